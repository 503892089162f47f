package parley

import "time"

// Runs and open cards have rows beside the log, so that they are found without
// reading one. A row says where something is and how it ended; what was said is
// in the log alone.

// A RunQuery narrows a list of runs. What is empty does not.
type RunQuery struct {
	Owner   PrincipalID
	Session SessionID
	Agent   string
	Run     RunID     // of Session
	Parent  *Origin   // only runs of the children of this run: Session and Run count
	Open    bool      // only those that have not ended
	Before  time.Time // only those that started before
	Limit   int
}

// A RunInfo is what lists of runs show.
type RunInfo struct {
	Session   SessionID   `json:"session"`
	Root      SessionID   `json:"root"`
	Run       RunID       `json:"run"`
	Agent     string      `json:"agent"`
	Owner     PrincipalID `json:"owner"`
	Parent    *Origin     `json:"parent,omitempty"`
	Request   string      `json:"request,omitempty"`
	Outcome   Outcome     `json:"outcome,omitempty"` // empty: still open
	Waiting   bool        `json:"waiting,omitempty"` // open, and only a person can make it go on
	Code      Code        `json:"code,omitempty"`
	Message   string      `json:"message,omitempty"`
	Usage     Usage       `json:"usage,omitzero"`
	StartedAt time.Time   `json:"started_at"`
	EndedAt   time.Time   `json:"ended_at,omitzero"`
}

// An Activity is when an agent was last at work.
type Activity struct {
	Open bool      // it is
	Last time.Time // when its last run ended; zero: none did
}

// A CardKind is what a person is waited for to do.
type CardKind string

const (
	CardApproval CardKind = "approval" // to decide it
	CardQuestion CardKind = "question" // to answer it
	CardCall     CardKind = "call"     // to say what became of a call of unknown outcome
)

// A CardQuery narrows a list of what waits for a person. What is empty does not.
type CardQuery struct {
	Owner   PrincipalID
	Session SessionID
	Root    SessionID // only those of a tree; not together with Session
	Kind    CardKind
	Limit   int
}

// A CardInfo is something that waits for a person.
type CardInfo struct {
	Kind      CardKind    `json:"kind"`
	Session   SessionID   `json:"session"`
	Root      SessionID   `json:"root"`
	Run       RunID       `json:"run"`
	Seq       Seq         `json:"seq"` // by which it is answered: the card's, or the call's
	Call      CallID      `json:"call"`
	Agent     string      `json:"agent"`
	Owner     PrincipalID `json:"owner"`
	Tool      string      `json:"tool"`
	Arguments string      `json:"arguments"`
	Show      string      `json:"show,omitempty"` // exactly what will be done
	Digest    string      `json:"digest,omitempty"`
	Why       string      `json:"why,omitempty"`
	Questions []Question  `json:"questions,omitempty"`
	AskedAt   time.Time   `json:"asked_at"`
	Expires   time.Time   `json:"expires,omitzero"` // calls wait for ever
	Position  Position    `json:"-"`                // of the event that Seq names
}

// Read takes what the log says about the card from the events that made the card
// and the call; for a call of unknown outcome that is one event.
func (c *CardInfo) Read(card, call EventBody) {
	if b, ok := call.(ToolCallRequested); ok {
		c.Tool, c.Arguments = b.Name, b.Arguments
	}
	switch b := card.(type) {
	case ApprovalRequested:
		c.Show, c.Digest, c.Why, c.Expires = b.Show, b.Digest, b.Why, b.Expires
	case QuestionAsked:
		c.Questions, c.Expires = b.Questions, b.Expires
	}
}

// A Row is what one event does to the rows of its session. Stores carry it out in
// the transaction that appends the event.
type Row interface{ row() }

type (
	// RunOpened adds the row of a run.
	RunOpened struct {
		Run            RunID
		Agent, Request string
	}
	// RunClosed says in it how the run ended. Nothing of it waits any more.
	RunClosed struct {
		Run RunID
		RunFinished
	}
	// CardOpened adds the row of something that waits for a person.
	CardOpened struct {
		Kind CardKind
		Seq  Seq
		Run  RunID
		Call CallID
	}
	CardClosed struct{ Seq Seq }
	// RowsGone removes all rows of the session's runs, cards and timers.
	RowsGone struct{}
)

func (RunOpened) row()  {}
func (RunClosed) row()  {}
func (CardOpened) row() {}
func (CardClosed) row() {}
func (RowsGone) row()   {}

// RowOf is nil for most events.
func RowOf(e Event) Row {
	switch b := e.Body.(type) {
	case RunStarted:
		return RunOpened{RunID(e.Seq), b.Agent.Name, b.Request}
	case RunFinished:
		return RunClosed{e.Run, b}
	case ApprovalRequested:
		return CardOpened{CardApproval, e.Seq, e.Run, b.Call}
	case ApprovalDecided:
		return CardClosed{Seq(b.Card)}
	case QuestionAsked:
		return CardOpened{CardQuestion, e.Seq, e.Run, b.Call}
	case QuestionAnswered:
		return CardClosed{Seq(b.Card)}
	case ToolCallFinished:
		if b.Outcome == CallUnknown {
			return CardOpened{CardCall, Seq(b.Call), e.Run, b.Call}
		}
	case ToolCallResolved:
		return CardClosed{Seq(b.Call)}
	case SessionDeleted:
		return RowsGone{}
	}
	return timerRow(e)
}
