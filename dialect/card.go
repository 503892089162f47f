package dialect

import (
	"errors"
	"fmt"
	"time"

	"parley"
)

// A Card asks something of a person.
type Card struct {
	ID    string // by which it is answered
	Kind  parley.CardKind
	Agent string           // the sub-agent that asks; empty: the session's own agent
	Asks  parley.EventBody // ApprovalRequested, QuestionAsked, or the ToolCallFinished of a call of unknown outcome
	// Call is what the sub-agent asked for, in cards of Below.
	Call parley.ToolCallRequested
	call parley.CallID

	// The card as its own session knows it; for a call of unknown outcome the call.
	Session parley.SessionID
	Seq     parley.Seq
}

// A Closed card waits no longer. How is the decision, or the outcome of the run
// that the card was of. Asks is nil where only the end of the card is known.
type Closed struct {
	Card
	How string
}

// Opens returns the card that an event opens in its session.
func Opens(e parley.Event) (c Card, ok bool) {
	switch b := e.Body.(type) {
	case parley.ApprovalRequested:
		c = cardOf(e, parley.CardApproval, e.Seq)
		c.call = b.Call
	case parley.QuestionAsked:
		c = cardOf(e, parley.CardQuestion, e.Seq)
		c.call = b.Call
	case parley.ToolCallFinished:
		if b.Outcome != parley.CallUnknown { // of an unknown outcome only a person can make the run go on
			return c, false
		}
		c = cardOf(e, parley.CardCall, parley.Seq(b.Call))
		c.call = b.Call
	default:
		return c, false
	}
	c.Asks = e.Body
	return c, true
}

// Closes returns the card that an event closes in its session. The end of a run
// closes all cards of the run that are still open, and is not told here.
func Closes(e parley.Event) (c Closed, ok bool) {
	switch b := e.Body.(type) {
	case parley.ApprovalDecided:
		return Closed{cardOf(e, parley.CardApproval, parley.Seq(b.Card)), string(b.Decision)}, true
	case parley.QuestionAnswered:
		return Closed{cardOf(e, parley.CardQuestion, parley.Seq(b.Card)), string(b.Ending)}, true
	case parley.ToolCallResolved:
		return Closed{cardOf(e, parley.CardCall, parley.Seq(b.Call)), string(b.Resolution)}, true
	}
	return c, false
}

// Explained is the type of the frame that shows what Explains returns.
const Explained = "approval_explained"

// Explains returns the explanation of an approval that a person asked for.
func Explains(e parley.Event) (x ExplainedFields, ok bool) {
	b, ok := e.Body.(parley.ApprovalExplained)
	return ExplainedFields{parley.Ref(e.Session, parley.Seq(b.Card)), b.Text}, ok
}

// ClosesCall is a call of unknown outcome that was not resolved when its run
// ended.
func ClosesCall(id string, how parley.Outcome) Closed {
	return Closed{Card{ID: id, Kind: parley.CardCall}, string(how)}
}

func cardOf(e parley.Event, kind parley.CardKind, seq parley.Seq) Card {
	return Card{ID: parley.Ref(e.Session, seq), Kind: kind, Session: e.Session, Seq: seq}
}

// Frame is the type of the frame that shows the card, in the dialects whose
// documents have no cards of their own.
func (c Card) Frame() string {
	return map[parley.CardKind]string{
		parley.CardApproval: "approval_request",
		parley.CardQuestion: "question",
		parley.CardCall:     "tool_call_unknown",
	}[c.Kind]
}

// Frame is the type of the frame that says that the card is closed.
func (c Closed) Frame() string {
	return map[parley.CardKind]string{
		parley.CardApproval: "approval_closed",
		parley.CardQuestion: "question_closed",
		parley.CardCall:     "tool_call_resolved",
	}[c.Kind]
}

// Cards as documents 000 and 001 would spell them. A frame begins with what all
// frames of its document begin with.
type (
	ApprovalFields struct {
		ID        string    `json:"id"`
		ToolName  string    `json:"tool_name"`
		Command   string    `json:"command"` // exactly what will be done
		ExpiresAt time.Time `json:"expires_at"`
		Why       string    `json:"why,omitempty"`
		Agent     string    `json:"agent,omitempty"`   // the sub-agent that asks
		Similar   string    `json:"similar,omitempty"` // the rule that scope "similar" allows
	}
	QuestionFields struct {
		ID        string            `json:"id"`
		Questions []parley.Question `json:"questions"`
		ExpiresAt time.Time         `json:"expires_at"`
		Agent     string            `json:"agent,omitempty"`
	}
	CallFields struct {
		ID       string `json:"id"`
		ToolName string `json:"tool_name"`
		Message  string `json:"message"`
		Agent    string `json:"agent,omitempty"`
	}
	ClosedFields struct {
		ID       string `json:"id"`
		Decision string `json:"decision"`
	}
	// ExplainedFields are of a card that stays open.
	ExplainedFields struct {
		ID   string `json:"id"`
		Text string `json:"text"`
	}
)

// Fields are the card's ApprovalFields, QuestionFields or CallFields.
func (c Card) Fields() any {
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		return ApprovalFields{c.ID, b.Name, b.Show, b.Expires, b.Why, c.Agent, b.Similar.Text}
	case parley.QuestionAsked:
		return QuestionFields{c.ID, b.Questions, b.Expires, c.Agent}
	case parley.ToolCallFinished:
		return CallFields{c.ID, b.Name, b.Result, c.Agent}
	}
	panic(fmt.Sprintf("%T asks nothing", c.Asks)) // Opens makes no other cards
}

// Fields are the fields of the frame that says that the card is closed.
func (c Closed) Fields() ClosedFields { return ClosedFields{c.ID, c.How} }

// A ReadAnswer reads an answer to the card, or to the call, of this seq.
type ReadAnswer func(parley.Seq, Object) (parley.CommandBody, error)

// Answers are the messages that answer cards, by their type.
var Answers = map[string]ReadAnswer{
	"approval_response":    DecideApproval,
	"question_response":    AnswerQuestion,
	"tool_call_resolution": ResolveCall,
}

// explain stands in the place of a decision, and decides nothing.
const explain = parley.Decision("explain")

// DecideApproval reads {decision, scope, note, digest}.
func DecideApproval(card parley.Seq, o Object) (parley.CommandBody, error) {
	do := parley.DecideApproval{Card: parley.CardID(card)}
	err := o.Strings(Fields{{"decision", &do.Decision}, {"scope", &do.Scope}, {"note", &do.Note},
		{"digest", &do.Digest}})
	if do.Decision == explain {
		return parley.ExplainApproval{Card: do.Card}, err
	}
	return do, err
}

// AnswerQuestion reads {answers}.
func AnswerQuestion(card parley.Seq, o Object) (parley.CommandBody, error) {
	do := parley.AnswerQuestion{Card: parley.CardID(card)}
	if !o.Has("answers") {
		return nil, errors.New("answers is missing")
	}
	err := o.Into("answers", &do.Answers, "a list with a list of strings for each question")
	return do, err
}

// ResolveCall reads {resolution, note} of a call of unknown outcome, or {result, failed} of a call that the client
// carries out.
func ResolveCall(call parley.Seq, o Object) (parley.CommandBody, error) {
	if o.Has("result") {
		do := parley.ReturnToolResult{Call: parley.CallID(call)}
		err := o.Strings(Fields{{"result", &do.Result}})
		if err == nil && o.Has("failed") {
			err = o.Into("failed", &do.Failed, "true or false")
		}
		return do, err
	}
	do := parley.ResolveToolCall{Call: parley.CallID(call)}
	err := o.Strings(Fields{{"resolution", &do.Resolution}, {"note", &do.Note}})
	return do, err
}

// Answer reads an answer to the card whose id stands under key. unknown is the
// error for a string that is no id of a card.
func Answer(o Object, key, unknown string, read ReadAnswer) (c parley.Command, err error) {
	id, err := o.String(key)
	if err != nil {
		return c, err
	}
	session, seq, ok := parley.ParseRef(id)
	if !ok {
		return c, errors.New(unknown)
	}
	do, err := read(seq, o)
	if err != nil {
		return c, err
	}
	return parley.Command{Session: session, Do: do}, nil
}
