package parley

// An EarlierMessage is one message of a conversation that the client has kept
// itself. Some clients send the whole conversation with each request. The model
// gets these messages before the input of the request.
type EarlierMessage struct {
	Role  earlierRole   `json:"role"`
	Text  string        `json:"text,omitempty"`
	Calls []EarlierCall `json:"calls,omitempty"` // calls of the assistant
	Call  string        `json:"call,omitempty"`  // of a tool: the id of the call that returned the text
}

// An EarlierCall is a tool call in an earlier message, with the client's id.
type EarlierCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type earlierRole string

const (
	EarlierSystem    earlierRole = "system" // instructions of the client, after the agent's own
	EarlierUser      earlierRole = "user"
	EarlierAssistant earlierRole = "assistant"
	EarlierTool      earlierRole = "tool"
)

// checkEarlier validates the earlier messages of an input.
func checkEarlier(list []EarlierMessage) error {
	if len(list) > MaxEarlier {
		return Errorf(CodeTooLarge, "A request can have at most %d earlier messages, and this one has %d.", MaxEarlier,
			len(list))
	}
	size := 0
	for _, m := range list {
		size += len(m.Text)
		for _, c := range m.Calls {
			size += len(c.ID) + len(c.Name) + len(c.Arguments)
		}
		switch {
		case m.Role != EarlierSystem && m.Role != EarlierUser && m.Role != EarlierAssistant && m.Role != EarlierTool:
			return Errorf(CodeInvalid, "An earlier message is of system, user, assistant or tool, not of %.40q.",
				m.Role)
		case len(m.Calls) > 0 && m.Role != EarlierAssistant:
			return Errorf(CodeInvalid, "Only an assistant's message has calls.")
		}
	}
	if size > MaxContent {
		return Errorf(CodeTooLarge, "The earlier messages are longer than %d bytes.", MaxContent)
	}
	return nil
}

func cleanEarlier(list []EarlierMessage) []EarlierMessage {
	var clean []EarlierMessage
	for _, m := range list {
		m.Text = CleanText(m.Text)
		clean = append(clean, m)
	}
	return clean
}

// messagesOf returns the earlier messages of an input at a seq, as the model gets
// them. Vendors demand that every call is followed by its result, so a call
// without a result gets one. A result without its call is left out. Calls get
// negative ids, which no event has.
func messagesOf(list []EarlierMessage, at Seq) (messages []Message) {
	next := -CallID(at) * maxEarlierCalls
	results := map[string]string{}
	for _, m := range list {
		if m.Role == EarlierTool {
			results[m.Call] = m.Text
		}
	}
	for _, m := range list {
		switch m.Role {
		case EarlierSystem:
			messages = append(messages, Message{Role: RoleUser, Seq: at,
				Text: "Instructions from the program that this conversation comes from:\n\n" + m.Text})
		case EarlierUser:
			messages = append(messages, Message{Role: RoleUser, Text: m.Text, Seq: at})
		case EarlierAssistant:
			turn := Message{Role: RoleAssistant, Text: m.Text, Seq: at}
			var answers []Message
			for _, c := range m.Calls {
				next--
				result, known := results[c.ID]
				if !known {
					result = "Cancelled: this did not run."
				}
				turn.Calls = append(turn.Calls, MessageCall{ID: next, Name: c.Name, Arguments: c.Arguments})
				answers = append(answers, Message{Role: RoleTool, Call: next, Text: result, Seq: at})
			}
			if turn.Text != "" || len(turn.Calls) > 0 {
				messages = append(append(messages, turn), answers...)
			}
		}
	}
	return messages
}
