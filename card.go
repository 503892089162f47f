package parley

import (
	"encoding/json"
	"slices"
	"time"
)

// A Decision is how an approval ended.
type Decision string

const (
	AllowOnce     Decision = "allow"
	AllowAlways   Decision = "always" // for the rest of the session: this exact call, or its rule
	Deny          Decision = "deny"   // the model gets the denial as the result, and the run continues
	DenyAndStop   Decision = "stop"   // the run ends as denied
	cardExpired   Decision = "expired"
	CardCancelled Decision = "cancelled"
)

// A cardEnding is how a question ended.
type cardEnding string

const (
	questionAnswered  cardEnding = "answered"
	questionExpired   cardEnding = "expired"
	questionCancelled cardEnding = "cancelled"
)

// A Question is one question of an agent to a person.
type Question struct {
	Question    string   `json:"question"`
	Header      string   `json:"header,omitempty"`
	Options     []Option `json:"options,omitempty"`
	MultiSelect bool     `json:"multi_select,omitempty"`
}

type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Cards wait for a person. Each is an approval or a question and belongs to a
// call. A card ends exactly once.
type ApprovalRequested struct {
	Call    CallID    `json:"call"`
	Name    string    `json:"name"`
	Show    string    `json:"show"`   // the action, exactly as it will be carried out
	Digest  string    `json:"digest"` // of tool, arguments and place
	Expires time.Time `json:"expires"`
	Why     string    `json:"why,omitempty"` // why untrusted or flagged content requires the approval
	// Sources of that content.
	Sources []Source `json:"sources,omitempty"`
	// Similar is the rule that the person may allow for the rest of the
	// session.
	Similar SimilarRule `json:"similar,omitzero"`
}

func (b ApprovalRequested) fold(s State, e Event) State {
	return s.inCall(e, b.Call, func(c *Call) {
		c.Status, c.Card, c.Digest, c.Despite, c.Expires = callApproving, CardID(e.Seq), b.Digest, b.Sources, b.Expires
		c.Similar = b.Similar.Digest
	})
}

func (b ApprovalRequested) rowOf(e Event) rowChange {
	return CardOpened{CardApproval, e.Seq, e.Run, b.Call}
}

type ApprovalDecided struct {
	Card     CardID     `json:"card"`
	Call     CallID     `json:"call"`
	Decision Decision   `json:"decision"`
	Scope    GrantScope `json:"scope,omitempty"` // with AllowAlways; empty: exactly the shown call
	Note     string     `json:"note,omitempty"`
}

func (b ApprovalDecided) fold(s State, e Event) State {
	return s.grant(e, b).inCall(e, b.Call, func(c *Call) {
		c.Status, c.Card, c.Answer, c.Explaining = afterDecision[b.Decision], 0, denial(b), false
		if c.Status == callReady && c.Spawned != 0 {
			c.Status = callDelegated
		}
	})
}

func (b ApprovalDecided) rowOf(Event) rowChange { return CardClosed{Seq(b.Card)} }

type QuestionAsked struct {
	Call      CallID     `json:"call"`
	Questions []Question `json:"questions"`
	Expires   time.Time  `json:"expires"`
}

func (b QuestionAsked) fold(s State, e Event) State {
	return s.inCall(e, b.Call, func(c *Call) {
		c.Status, c.Card, c.Expires, c.Asks = callAsking, CardID(e.Seq), b.Expires, len(b.Questions)
	})
}

func (b QuestionAsked) rowOf(e Event) rowChange {
	return CardOpened{CardQuestion, e.Seq, e.Run, b.Call}
}

type QuestionAnswered struct {
	Card    CardID     `json:"card"`
	Call    CallID     `json:"call"`
	Ending  cardEnding `json:"ending"`
	Answers [][]string `json:"answers,omitempty"` // per question, the chosen labels or free text
}

func (b QuestionAnswered) fold(s State, e Event) State {
	return s.inCall(e, b.Call, func(c *Call) { c.Status, c.Card, c.Answer = callAnswered, 0, answerText(b) })
}

func (b QuestionAnswered) rowOf(Event) rowChange { return CardClosed{Seq(b.Card)} }

func (r *openRun) card(id CardID) *Call {
	for i := range r.Calls {
		if id != 0 && r.Calls[i].Card == id {
			return &r.Calls[i]
		}
	}
	return nil
}

var errCardClosed = Errorf(CodeClosed, "This was already answered, has expired or never was.")

// waitingCard returns the call with this open card if it has the status and the
// card has not expired.
func (d *decision) waitingCard(card CardID, status callStatus) (*Call, error) {
	if d.s.Run == nil {
		return nil, errCardClosed
	}
	c := d.s.Run.card(card)
	if c == nil || c.Status != status || !d.at.Before(c.Expires) {
		return nil, errCardClosed
	}
	return c, nil
}

type DecideApproval struct {
	Card     CardID
	Decision Decision
	Scope    GrantScope `json:",omitempty"` // with AllowAlways; empty: exactly the shown call
	Note     string
	Digest   string // of the call that the person saw; empty: not checked
}

func (do DecideApproval) Rules() Rules {
	return Rules{Action: ActMessage, Answers: true, Says: []string{do.Note}, Limits: []limit{noteLimit(do.Note)}}
}

func (do DecideApproval) decide(d *decision, _ Command) error {
	c, err := d.waitingCard(do.Card, callApproving)
	switch {
	case err != nil:
		return err
	case do.Digest != "" && do.Digest != c.Digest:
		return Errorf(CodeConflict, "The decision is about another call than the one that waits.")
	}
	switch do.Decision {
	case AllowOnce, AllowAlways, Deny, DenyAndStop:
	default:
		return Errorf(CodeInvalid, "A decision is allow, always, deny or stop, not %q.", do.Decision)
	}
	if err := do.checkScope(c); err != nil {
		return err
	}
	decided := ApprovalDecided{Card: c.Card, Call: c.ID, Decision: do.Decision, Note: CleanText(do.Note)}
	if do.Scope == ScopeSimilar {
		decided.Scope = do.Scope
	}
	d.part()
	d.emit(d.s.Run.ID, decided)
	return nil
}

// AnswerQuestion has one list of answers for each question of the card.
type AnswerQuestion struct {
	Card    CardID
	Answers [][]string
}

func (do AnswerQuestion) Rules() Rules {
	says := append([]string{}, slices.Concat(do.Answers...)...) // not nil: a card without answers is screened, too
	size := len(do.Answers)
	for _, answer := range says {
		size += 1 + len(answer)
	}
	return Rules{Action: ActMessage, Answers: true, Says: says, Limits: []limit{{"answer", size, MaxNote}}}
}

func (do AnswerQuestion) decide(d *decision, _ Command) error {
	c, err := d.waitingCard(do.Card, callAsking)
	if err != nil {
		return err
	}
	if len(do.Answers) != c.Asks {
		return Errorf(CodeInvalid, "%d answers are needed, one for each question.", c.Asks)
	}
	var answers [][]string // nil if empty, as after decoding
	for _, chosen := range do.Answers {
		var clean []string
		for _, a := range chosen {
			clean = append(clean, CleanText(a))
		}
		answers = append(answers, clean)
	}
	d.emit(d.s.Run.ID, QuestionAnswered{Card: c.Card, Call: c.ID, Ending: questionAnswered, Answers: answers})
	return nil
}

var afterDecision = map[Decision]callStatus{
	AllowOnce:     callReady,
	AllowAlways:   callReady,
	Deny:          callRefused,
	DenyAndStop:   callStopping,
	cardExpired:   callRefused,
	CardCancelled: callRefused,
}

// denial returns the result that the model gets for a call that a person did
// not allow.
func denial(b ApprovalDecided) string {
	switch {
	case b.Decision == AllowOnce || b.Decision == AllowAlways:
		return ""
	case b.Note != "":
		return "A person did not allow this: " + b.Note
	}
	return "A person did not allow this."
}

// answerText returns the result that the model gets for a question.
func answerText(b QuestionAnswered) string {
	if b.Ending != questionAnswered {
		return "Nobody answered: the question " + map[cardEnding]string{
			questionExpired: "expired", questionCancelled: "was cancelled"}[b.Ending] + "."
	}
	raw, _ := json.Marshal(map[string]any{"answers": b.Answers}) // strings only: cannot fail
	return string(raw)
}

// A CardKind says which action of a person a card waits for.
type CardKind string

const (
	CardApproval CardKind = "approval" // decide the approval
	CardQuestion CardKind = "question" // answer the question
	CardCall     CardKind = "call"     // resolve a call of unknown outcome
	CardPlan     CardKind = "plan"     // decide a proposed plan; the card opens after the run and belongs to no run
)

// CardOpened adds a row for a card.
type CardOpened struct {
	Kind CardKind
	Seq  Seq
	Run  RunID
	Call CallID
}

func (CardOpened) row() {}

type CardClosed struct{ Seq Seq }

func (CardClosed) row() {}
