package parley

// A Message is one entry of the conversation as a model is given it.
type Message struct {
	Role       role
	Text       string
	Incomplete bool          // an assistant's text that was cut off
	Calls      []MessageCall // what an assistant asked for
	Call       CallID        // the call a tool's text is the result of
	Images     []Image       // that a user shows
	Seq        Seq           // where it begins in the log
	Input      InputID       // what a user's was received as
	Thinking   string        // an assistant's, all of the turn
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

// Conversation reads the messages back from a log. Pieces are not needed. Every
// call in it is followed by its result, as vendors demand.
func Conversation(log []Event) []Message {
	c := conversation{inputs: map[InputID]InputReceived{}, adopted: map[InputID]int{}, results: map[CallID]string{},
		notes: map[CallID]string{}, original: map[CallID]CallID{}}
	for _, e := range log {
		c.read(e)
	}
	c.closeTurn()
	return c.messages
}

type conversation struct {
	messages []Message
	inputs   map[InputID]InputReceived
	adopted  map[InputID]int // where in messages it is
	turn     Message         // of the assistant, open
	results  map[CallID]string
	notes    map[CallID]string // of who allowed a call
	original map[CallID]CallID // a rerun answers for the call it repeats
}

func (c *conversation) read(e Event) {
	switch b := e.Body.(type) {
	case InputReceived:
		c.inputs[InputID(e.Seq)] = b
	case InputAdopted:
		c.closeTurn()
		in := c.inputs[b.Input]
		if in.Fresh {
			c.messages = nil
			clear(c.adopted)
		}
		c.adopted[b.Input] = len(c.messages)
		c.messages = append(c.messages, Message{Role: RoleUser, Text: in.Content, Images: in.Images, Seq: e.Seq,
			Input: b.Input})
		delete(c.inputs, b.Input)
	case InputScreened:
		if i, ok := c.adopted[b.Input]; ok && b.Finding.Verdict == ScreenBlock {
			c.messages[i].Text, c.messages[i].Images = "(A message was blocked.)", nil
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
			return // it was no call of ours, and what it answered is not known
		}
		c.begin(e.Seq)
		c.turn.Calls = append(c.turn.Calls, MessageCall{CallID(e.Seq), b.Provider, b.Name, b.Arguments})
	case ContextCompacted:
		c.compact(b)
	case ApprovalDecided:
		if b.Note != "" && (b.Decision == AllowOnce || b.Decision == AllowAlways) {
			c.notes[c.root(b.Call)] = "\n\nNote from the person who allowed this: " + b.Note
		}
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

// begin notes where the turn of the assistant begins.
func (c *conversation) begin(at Seq) {
	if c.turn.Seq == 0 {
		c.turn.Seq = at
	}
}

// compact puts a summary in the place of what was said up to a seq.
func (c *conversation) compact(b ContextCompacted) {
	c.closeTurn()
	kept := []Message{{Role: RoleUser, Seq: b.Upto, Text: "This is a summary of the conversation so far; what was " +
		"said literally is no longer here.\n\n" + b.Summary}}
	clear(c.adopted) // what was screened was screened before
	for _, m := range c.messages {
		if m.Seq > b.Upto {
			kept = append(kept, m)
		}
	}
	c.messages = kept
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
		c.messages = append(c.messages, Message{Role: RoleTool, Call: call.ID, Text: result + c.notes[call.ID],
			Seq: t.Seq})
		delete(c.results, call.ID)
		delete(c.notes, call.ID)
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
