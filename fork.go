package parley

// A fork is a session that begins with the conversation of another one, up to some event. The event holds the
// conversation itself: deleting the other session changes nothing in the fork.

// SessionForked follows the SessionOpened of a fork.
type SessionForked struct {
	Source   SessionID       `json:"source"`
	At       Seq             `json:"at"` // the last event of the source that is included
	Messages []ForkedMessage `json:"messages,omitempty"`
	// Sources are the sources that the source session had read from.
	Sources []Source `json:"sources,omitempty"`
}

// A ForkedMessage is a Message as a fork keeps it. Memos and thinking are left out: another model cannot use them.
type ForkedMessage struct {
	Role       role         `json:"role"`
	Text       string       `json:"text,omitempty"`
	Incomplete bool         `json:"incomplete,omitempty"`
	Calls      []ForkedCall `json:"calls,omitempty"`
	Call       CallID       `json:"call,omitempty"` // the call that returned a tool's text
	Images     []Image      `json:"images,omitempty"`
}

type ForkedCall struct {
	ID        CallID `json:"id"` // its seq in the source
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (b SessionForked) fold(s State, _ Event) State {
	return s.reading(b.Sources...)
}

// ForkOf converts a conversation to the messages of a fork.
func ForkOf(conversation []Message) (list []ForkedMessage) {
	for _, m := range conversation {
		f := ForkedMessage{Role: m.Role, Text: m.Text, Incomplete: m.Incomplete, Call: m.Call, Images: m.Images}
		for _, c := range m.Calls {
			f.Calls = append(f.Calls, ForkedCall{c.ID, c.Name, c.Arguments})
		}
		list = append(list, f)
	}
	return list
}

// messages returns the copied conversation as messages of the fork. All have the seq of the event that holds them.
// Calls have negative ids, because the fork's own calls are named by its own seqs.
func (b SessionForked) messages(at Seq) (list []Message) {
	for _, f := range b.Messages {
		m := Message{Role: f.Role, Text: f.Text, Incomplete: f.Incomplete, Call: negative(f.Call), Images: f.Images,
			Seq: at}
		for _, c := range f.Calls {
			m.Calls = append(m.Calls, MessageCall{ID: negative(c.ID), Name: c.Name, Arguments: c.Arguments})
		}
		list = append(list, m)
	}
	return list
}

// negative keeps the ids of copied calls apart from ids of the fork. A fork of a fork has ids that are already
// negative.
func negative(id CallID) CallID {
	switch {
	case id > 0:
		return -id
	case id < 0:
		return id - forkOfFork
	}
	return 0
}

// forkOfFork is larger than any seq.
const forkOfFork = 1 << 40

// ForkSession opens a session with the conversation of another one. The principal must have access to that session.
type ForkSession struct {
	Source SessionID
	At     Seq    // the last event that is included; zero: the whole log
	Title  string // default: that of the source

	// Set by the engine from the source.
	Agent    string          `json:",omitempty"`
	Project  string          `json:",omitempty"`
	Messages []ForkedMessage `json:",omitempty"`
	Sources  []Source        `json:",omitempty"`
}

func (do ForkSession) Rules() Rules {
	r := Rules{Action: ActMessage, Opens: true, Limits: []limit{{"title", len(do.Title), MaxNote}}}
	switch {
	case len(do.Messages)+len(do.Sources) > 0 || do.Agent+do.Project != "":
		r.Wrong = Errorf(CodeInvalid, "A fork has the conversation of its source.")
	case do.At < 0:
		r.Wrong = Errorf(CodeInvalid, "An event of a session is named by a number from 1.")
	}
	return r
}

func (do ForkSession) decide(d *decision, c Command) error {
	switch {
	case d.s.Deleted:
		return Errorf(CodeClosed, "This session was deleted.")
	case d.s.Owner != "":
		return Errorf(CodeConflict, "There is a session of this id already.")
	case c.By == "":
		return Errorf(CodeForbidden, "A session needs an owner.")
	}
	size := 0
	for _, m := range (SessionForked{Messages: do.Messages}).messages(0) {
		size += m.size()
	}
	if size > maxForked {
		return Errorf(CodeTooLarge, "The conversation has %d bytes, and a fork at most %d. Compact it first.", size,
			maxForked)
	}
	d.emit(0, SessionOpened{Owner: c.By, Agent: do.Agent, Title: titleOf(CleanText(do.Title)), Project: do.Project})
	d.emit(0, SessionForked{Source: do.Source, At: do.At, Messages: do.Messages, Sources: do.Sources})
	return nil
}
