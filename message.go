package parley

import "slices"

// A Message is one entry of the conversation as the model gets it.
type Message struct {
	Role       role
	Text       string
	Incomplete bool          // an assistant's text that was cut off
	Calls      []MessageCall // calls of an assistant
	Call       CallID        // the call that returned a tool's text
	Images     []Image       // from a user
	Seq        Seq           // where the message begins in the log
	Input      InputID       // the input of a user's message
	Thinking   string        // of an assistant, for the whole turn
	Memo       *Memo         // of an assistant's turn that was not cut off
}

type MessageCall struct {
	ID        CallID
	Provider  string
	Name      string
	Arguments string
}

type role string

const (
	RoleUser      role = "user"
	RoleAssistant role = "assistant"
	RoleTool      role = "tool"
)

// Conversation reads the messages of a log. Chunks are not needed. Every call
// is followed by its result, as vendors demand.
func Conversation(log []Event) []Message {
	t := NewTranscript()
	for _, e := range log {
		t.Read(e)
	}
	return t.Messages()
}

// A Transcript reads a conversation event by event, so that a growing log need not
// be read from its beginning again.
type Transcript struct {
	head     Seq       // seq of the last event that was read
	messages []Message // only appended to, because Messages has returned it
	inputs   map[InputID]InputReceived
	adopted  map[InputID]int // index into messages
	turn     Message         // of the assistant, open
	results  map[CallID]string
	notes    map[CallID]string // notes of people who allowed a call
	original map[CallID]CallID // a rerun answers for the call it repeats
	size     int               // of messages and inputs
}

func NewTranscript() *Transcript {
	return &Transcript{inputs: map[InputID]InputReceived{}, adopted: map[InputID]int{}, results: map[CallID]string{},
		notes: map[CallID]string{}, original: map[CallID]CallID{}}
}

// Head returns the seq of the last event that was read.
func (c *Transcript) Head() Seq { return c.head }

// Size estimates the bytes that a transcript holds.
func (c *Transcript) Size() int { return c.size }

// Messages returns the conversation so far. Later reads do not change the
// result, and callers must not change it.
func (c *Transcript) Messages() []Message {
	return slices.Clip(c.withTurn(c.messages[:len(c.messages):len(c.messages)]))
}

// Read adds the next event of the log. Chunks may be left out.
func (c *Transcript) Read(e Event) {
	c.head = max(c.head, e.Seq)
	switch b := e.Body.(type) {
	case InputReceived:
		c.size += b.Size()
		c.inputs[InputID(e.Seq)] = b
	case InputAdopted:
		c.closeTurn()
		in, known := c.inputs[b.Input]
		if in.Fresh {
			c.replace(nil)
			clear(c.adopted)
		}
		for _, m := range messagesOf(in.Earlier, e.Seq) {
			c.add(m)
		}
		c.adopted[b.Input] = len(c.messages)
		c.add(Message{Role: RoleUser, Text: in.Content, Images: in.Images, Seq: e.Seq, Input: b.Input})
		if known {
			c.size -= in.Size()
			delete(c.inputs, b.Input)
		}
	case InputWithdrawn:
		if in, known := c.inputs[b.Input]; known {
			c.size -= in.Size()
			delete(c.inputs, b.Input)
		}
	case InputScreened:
		if i, ok := c.adopted[b.Input]; ok && b.Finding.Verdict == ScreenBlock {
			messages := slices.Clone(c.messages)
			messages[i].Text, messages[i].Images = "(A message was blocked.)", nil
			c.replace(messages)
		}
	case TurnStarted, RunFinished:
		c.closeTurn()
	case OutputFinished:
		c.begin(e.Seq)
		if b.Kind == Text {
			c.turn.Text += b.Text
			c.turn.Incomplete = c.turn.Incomplete || b.Incomplete
		} else {
			c.turn.Thinking += b.Text
		}
	case TurnFinished:
		c.turn.Memo = b.Memo
	case ToolCallRequested:
		if b.RerunOf != 0 {
			c.original[CallID(e.Seq)] = c.root(b.RerunOf)
			return
		}
		if b.Remote {
			return // a remote agent's own call: the model did not ask for it, and its result is not known
		}
		c.begin(e.Seq)
		c.turn.Calls = append(c.turn.Calls, MessageCall{CallID(e.Seq), b.Provider, b.Name, b.Arguments})
	case ChangesUndone:
		if b.Problem == "" {
			c.add(Message{Role: RoleUser, Seq: e.Seq, Text: "(" + b.Summary() + ")"})
		}
	case SessionForked:
		for _, m := range b.messages(e.Seq) {
			c.add(m)
		}
	case ContextCompacted:
		c.compact(b)
	case ApprovalDecided:
		if b.Note != "" && (b.Decision == AllowOnce || b.Decision == AllowAlways) {
			c.notes[c.root(b.Call)] = "\n\nNote from the person who allowed this: " + b.Note
		}
	case ToolCallBlocked:
		c.result(b.Call, "Blocked: "+b.Reason)
	case ToolCallFinished:
		c.result(b.Call, resultText(b))
	case ToolCallResolved:
		if b.Resolution == MarkDone {
			c.result(b.Call, "A person looked and says that this was done. "+b.Note)
		}
	}
}

// begin notes where the turn of the assistant begins.
func (c *Transcript) begin(at Seq) {
	if c.turn.Seq == 0 {
		c.turn.Seq = at
	}
}

// compact replaces the conversation up to a seq by a summary.
func (c *Transcript) compact(b ContextCompacted) {
	c.closeTurn()
	kept := []Message{{Role: RoleUser, Seq: b.Upto, Text: "This is a summary of the conversation so far; what was " +
		"said literally is no longer here.\n\n" + b.Summary}}
	clear(c.adopted) // the classifier has finished with these messages
	for _, m := range c.messages {
		if m.Seq > b.Upto {
			kept = append(kept, m)
		}
	}
	c.replace(kept)
}

// result notes the result of a call of the open turn. It ignores calls of remote
// agents, because they belong to no turn of the model.
func (c *Transcript) result(id CallID, text string) {
	id = c.root(id)
	if slices.ContainsFunc(c.turn.Calls, func(call MessageCall) bool { return call.ID == id }) {
		c.results[id] = text
	}
}

func (c *Transcript) root(id CallID) CallID {
	if o, ok := c.original[id]; ok {
		return o
	}
	return id
}

func (c *Transcript) closeTurn() {
	for _, m := range c.withTurn(nil) {
		c.add(m)
	}
	c.turn = Message{}
	// All notes about calls belong to this turn, because calls end before the next
	// turn begins.
	clear(c.results)
	clear(c.notes)
	clear(c.original)
}

// withTurn appends the open turn to messages, as if it ended here.
func (c *Transcript) withTurn(messages []Message) []Message {
	t := c.turn
	if t.Text == "" && len(t.Calls) == 0 {
		return messages
	}
	t.Role = RoleAssistant
	messages = append(messages, t)
	for _, call := range t.Calls {
		result, ok := c.results[call.ID]
		if !ok {
			result = "Cancelled: this did not run."
		}
		messages = append(messages, Message{Role: RoleTool, Call: call.ID, Text: result + c.notes[call.ID], Seq: t.Seq})
	}
	return messages
}

func (c *Transcript) add(m Message) {
	c.messages = append(c.messages, m)
	c.size += m.size()
}

// replace replaces all messages so far.
func (c *Transcript) replace(messages []Message) {
	c.messages, c.size = messages, 0
	for _, m := range messages {
		c.size += m.size()
	}
	for _, in := range c.inputs {
		c.size += in.Size()
	}
}

// size estimates the bytes that a message holds.
func (m Message) size() int {
	const fixed = 256 // of the struct, and its share of maps
	n := fixed + len(m.Text) + len(m.Thinking)
	for _, c := range m.Calls {
		n += fixed + len(c.Name) + len(c.Arguments)
	}
	for _, i := range m.Images {
		n += len(i.Data) + len(i.Text)
	}
	if m.Memo != nil {
		n += len(m.Memo.Data)
	}
	return n
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
