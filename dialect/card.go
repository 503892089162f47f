package dialect

import (
	"errors"
	"fmt"
	"time"

	"parley"
)

// A Card asks a person for an approval, an answer or the outcome of a call.
type Card struct {
	ID    string // id for answers
	Kind  parley.CardKind
	Agent string           // the sub-agent that asks; empty: the session's own agent
	Asks  parley.EventBody // ApprovalRequested, QuestionAsked, or the ToolCallFinished of a call of unknown outcome
	// Call is the call that the sub-agent asked for. Only cards of Below have
	// it.
	Call parley.ToolCallRequested
	call parley.CallID

	// Session and Seq name the card in its own session; for a call of unknown outcome, Seq names the call.
	Session parley.SessionID
	Seq     parley.Seq
}

// Closed is a card that no longer waits. How is the decision, or the outcome of
// the run that the card belonged to. Asks is nil if only the end of the card is
// known.
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
		if b.Outcome != parley.CallUnknown { // only a person can resolve an unknown outcome
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
// also closes all its open cards; Closes does not report those.
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

// Explained is the type of the frame with the result of Explains.
const Explained = "approval_explained"

// Explains returns the explanation of an approval that a person requested.
func Explains(e parley.Event) (x ExplainedFields, ok bool) {
	b, ok := e.Body.(parley.ApprovalExplained)
	return ExplainedFields{parley.Ref(e.Session, parley.Seq(b.Card)), b.Text}, ok
}

// ClosesCall returns a closed call of unknown outcome that was not resolved
// before its run ended.
func ClosesCall(id string, how parley.Outcome) Closed {
	return Closed{Card{ID: id, Kind: parley.CardCall}, string(how)}
}

func cardOf(e parley.Event, kind parley.CardKind, seq parley.Seq) Card {
	return Card{ID: parley.Ref(e.Session, seq), Kind: kind, Session: e.Session, Seq: seq}
}

// Frame returns the type of the frame that shows the card, in dialects whose
// documents have no cards.
func (c Card) Frame() string {
	return map[parley.CardKind]string{
		parley.CardApproval: "approval_request",
		parley.CardQuestion: "question",
		parley.CardCall:     "tool_call_unknown",
	}[c.Kind]
}

// Frame returns the type of the frame that reports that the card is closed.
func (c Closed) Frame() string {
	return map[parley.CardKind]string{
		parley.CardApproval: "approval_closed",
		parley.CardQuestion: "question_closed",
		parley.CardCall:     "tool_call_resolved",
	}[c.Kind]
}

// The fields of cards in dialects whose documents (000 and 001) have no cards.
// The dialect puts its usual first fields before them.
type (
	ApprovalFields struct {
		ID        string    `json:"id"`
		ToolName  string    `json:"tool_name"`
		Command   string    `json:"command"` // exactly what would be done
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
	// ExplainedFields belong to a card that stays open.
	ExplainedFields struct {
		ID   string `json:"id"`
		Text string `json:"text"`
	}
)

// Fields returns the card's ApprovalFields, QuestionFields or CallFields.
func (c Card) Fields() any {
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		return ApprovalFields{c.ID, b.Name, b.Show, b.Expires, b.Why, c.Agent, b.Similar.Text}
	case parley.QuestionAsked:
		return QuestionFields{c.ID, b.Questions, b.Expires, c.Agent}
	case parley.ToolCallFinished:
		return CallFields{c.ID, b.Name, b.Result, c.Agent}
	}
	panic(fmt.Sprintf("%T asks nothing", c.Asks)) // Opens returns no other cards
}

// Fields returns the fields of the frame that reports that the card is closed.
func (c Closed) Fields() ClosedFields { return ClosedFields{c.ID, c.How} }

// A ReadAnswer reads an answer to the card or call with this seq.
type ReadAnswer func(parley.Seq, Object) (parley.CommandBody, error)

// Answers maps the types of messages that answer cards to their readers.
var Answers = map[string]ReadAnswer{
	"approval_response":    DecideApproval,
	"question_response":    AnswerQuestion,
	"tool_call_resolution": ResolveCall,
}

// explain takes the place of a decision, but decides nothing.
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

// ResolveCall reads {resolution, note} for a call of unknown outcome, or {result, failed} for a call that the client
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

// Answer reads an answer to the card whose id is under key. unknown is the
// error text for a string that is not the id of a card.
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
