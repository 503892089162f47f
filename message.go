package parley

// A Message is one entry of the conversation as a model is given it.
type Message struct {
	Role       Role
	Text       string
	Incomplete bool          // an assistant's text that was cut off
	Calls      []MessageCall // what an assistant asked for
	Call       CallID        // the call a tool's text is the result of
}

type MessageCall struct {
	ID        CallID
	Provider  string
	Name      string
	Arguments string
}

type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Conversation reads the messages back from a log. Pieces are not needed. Every
// call in it is followed by its result, as vendors demand.
func Conversation(log []Event) []Message {
	c := conversation{inputs: map[InputID]string{}, adopted: map[InputID]int{}, results: map[CallID]string{}, original: map[CallID]CallID{}}
	for _, e := range log {
		c.read(e)
	}
	c.closeTurn()
	return c.messages
}

type conversation struct {
	messages []Message
	inputs   map[InputID]string
	adopted  map[InputID]int // where in messages it is
	turn     Message         // of the assistant, open
	results  map[CallID]string
	original map[CallID]CallID // a rerun answers for the call it repeats
}

func (c *conversation) read(e Event) {
	switch b := e.Body.(type) {
	case InputReceived:
		c.inputs[InputID(e.Seq)] = b.Content
	case InputAdopted:
		c.closeTurn()
		c.adopted[b.Input] = len(c.messages)
		c.messages = append(c.messages, Message{Role: RoleUser, Text: c.inputs[b.Input]})
		delete(c.inputs, b.Input)
	case InputScreened:
		if i, ok := c.adopted[b.Input]; ok && b.Finding.Verdict == ScreenBlock {
			c.messages[i].Text = "(A message was blocked.)"
		}
	case TurnStarted, RunFinished:
		c.closeTurn()
	case OutputFinished:
		if b.Kind == Text {
			c.turn.Text += b.Text
			c.turn.Incomplete = c.turn.Incomplete || b.Incomplete
		}
	case ToolCallRequested:
		if b.RerunOf != 0 {
			c.original[CallID(e.Seq)] = c.root(b.RerunOf)
			return
		}
		c.turn.Calls = append(c.turn.Calls, MessageCall{CallID(e.Seq), b.Provider, b.Name, b.Arguments})
	case ToolCallBlocked:
		c.results[c.root(b.Call)] = "Blocked: " + b.Reason
	case ToolCallFinished:
		c.results[c.root(b.Call)] = resultText(b)
	case ToolCallResolved:
		if b.Resolution == MarkDone {
			c.results[c.root(b.Call)] = "A person looked and says that this was done. " + b.Note
		}
	}
}

func (c *conversation) root(id CallID) CallID {
	if o, ok := c.original[id]; ok {
		return o
	}
	return id
}

func (c *conversation) closeTurn() {
	t := c.turn
	c.turn = Message{Role: RoleAssistant}
	if t.Text == "" && len(t.Calls) == 0 {
		return
	}
	t.Role = RoleAssistant
	c.messages = append(c.messages, t)
	for _, call := range t.Calls {
		result, ok := c.results[call.ID]
		if !ok {
			result = "Cancelled: this did not run."
		}
		c.messages = append(c.messages, Message{Role: RoleTool, Call: call.ID, Text: result})
		delete(c.results, call.ID)
	}
}

func resultText(b ToolCallFinished) string {
	switch b.Outcome {
	case CallCancelled:
		return "Cancelled before it ended."
	case CallFailed:
		return "Failed: " + b.Result
	}
	return b.Result
}
