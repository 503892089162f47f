package mcpserver

import (
	"cmp"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
)

// A View is the state of an ask_agent call that follows a log. It shows every run of its session whose start it has
// seen.
type View struct {
	Session parley.SessionID // empty: the root of the first event
	Notices dialect.Notices
	run     parley.RunID
	input   parley.InputID // input that started the run
	text    dialect.Text
	answer  string // answer so far
	open    []dialect.Card
	below   dialect.Below
}

// progress is a notification to a waiting client. Chunks of the answer have the kind text.
type progress struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Card    string `json:"card,omitempty"`
	of      parley.InputID
	asks    *dialect.Card // the card that was opened
}

// ending is the result that a client has waited for.
type ending struct {
	Text    string       `json:"text"`
	Problem string       `json:"problem,omitempty"` // why there is no complete answer
	Usage   parley.Usage `json:"usage"`
	of      parley.InputID
}

// Ignored are the event types that this dialect does not show.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, dialect.TenantFacts, dialect.ContextEvents, dialect.FileEvents,
	map[string]string{
		"SessionOpened":        "the call that opened it is being answered",
		"SessionRenamed":       "get_session tells the title",
		"SessionHalted":        "the end of its run is shown",
		"SessionReopened":      "get_session tells the status",
		"SessionDeleted":       "its runs ended before",
		"InputReceived":        "the client has the message",
		"InputAdopted":         "its answer is shown",
		"RunStarted":           "its answer is shown",
		"TurnStarted":          "turns are not visible here",
		"TurnFinished":         "turns are not visible here",
		"OutputStarted":        "its chunks are shown",
		"ToolCallBlocked":      "the request for the call is shown",
		"ToolCallStarted":      "the request for the call is shown",
		"ToolOutputAppended":   "the request for the call is shown",
		"ExplanationRequested": "an elicitation is not changed while it is open",
		"ApprovalExplained":    "an elicitation is not changed while it is open",
		"PlanChanged":          "plans are not visible here",
		"ChildSpawned":         "sub-agents are not visible here, only their cards",
		"ChildReturned":        "sub-agents are not visible here, only their cards",
		"ModelFellBack":        "which model answers is not visible here",
		"TimerSet":             "no call waits for a follow-up",
		"TimerFired":           "no call waits for a follow-up",
	})

// Project returns the frames that show an event to a client. Of sub-agents it shows only cards.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	session := cmp.Or(v.Session, e.Root, e.Session)
	if v.run != 0 {
		var change dialect.Change
		v.below, change = v.below.After(session, e)
		if change.Opened != nil || change.Closed != nil {
			return v, v.changed(session, change)
		}
	}
	if e.Session != session {
		return v, nil
	}
	switch b := e.Body.(type) {
	case parley.InputWithdrawn:
		return v, []dialect.Frame{{Body: ending{Problem: withdrawn(b.Reason), of: b.Input}}}
	case parley.RunStarted:
		return View{Session: v.Session, Notices: v.Notices, run: e.Run, input: b.Input}, nil
	}
	if v.run == 0 || e.Run != v.run {
		return v, nil // the run started before this view began
	}
	return v.inRun(session, e)
}

// inRun shows an event of the open run.
func (v View) inRun(session parley.SessionID, e parley.Event) (View, []dialect.Frame) {
	if c, ok := dialect.Opens(e); ok {
		v.open = append(slices.Clip(v.open), c)
		return v, v.changed(session, dialect.Change{Opened: &c})
	}
	if c, ok := dialect.Closes(e); ok {
		v.open = slices.DeleteFunc(slices.Clone(v.open), func(o dialect.Card) bool { return o.ID == c.ID })
		return v, v.changed(session, dialect.Change{Closed: []dialect.Closed{c}})
	}
	switch b := e.Body.(type) {
	case parley.OutputStarted:
		v.text = v.text.Start()
	case parley.OutputAppended:
		if b.Kind == parley.Text {
			var text string
			v.text, text = v.text.Piece(b)
			return v.say(text)
		}
	case parley.OutputFinished:
		if b.Kind == parley.Text {
			var rest string
			v.text, rest = v.text.End(b)
			return v.say(rest)
		}
	case parley.ToolCallRequested:
		return v, v.tell("tool", b.Name)
	case parley.ProblemReported:
		return v, v.tell("problem", b.Message)
	case parley.RunFinished:
		shown := v.changed(session, dialect.Change{Closed: v.closed(b.Outcome)})
		end := ending{Text: v.answer, Problem: complaint(b), Usage: b.Usage, of: v.input}
		return View{Session: v.Session, Notices: v.Notices}, append(shown, dialect.Frame{Body: end})
	}
	return v, nil
}

// closed returns the cards that the end of the run closes.
func (v View) closed(how parley.Outcome) (list []dialect.Closed) {
	for _, c := range v.open {
		list = append(list, dialect.Closed{Card: c, How: string(how)})
	}
	return append(list, v.below.End(how)...)
}

func (v View) say(text string) (View, []dialect.Frame) {
	if text == "" {
		return v, nil
	}
	v.answer += text
	return v, v.tell("text", text)
}

func (v View) tell(kind, message string) []dialect.Frame {
	return []dialect.Frame{{Body: progress{Kind: kind, Message: message, of: v.input}}}
}

// changed shows changes of cards.
func (v View) changed(session parley.SessionID, change dialect.Change) (shown []dialect.Frame) {
	if c := change.Opened; c != nil {
		shown = append(shown,
			dialect.Frame{Body: progress{Kind: "waiting", Message: v.Notices.Text(*c, session), Card: c.ID,
				of: v.input, asks: c}})
	}
	for _, c := range change.Closed {
		shown = append(shown, dialect.Frame{Body: progress{Kind: "settled", Message: "Settled: " + c.How, Card: c.ID,
			of: v.input}})
	}
	return shown
}

// complaint returns the reason why a run has no complete answer, or "".
func complaint(b parley.RunFinished) string {
	switch b.Outcome {
	case parley.Completed:
		return ""
	case parley.Cancelled:
		return cmp.Or(b.Message, "The run was cancelled.")
	case parley.Denied:
		return cmp.Or(b.Message, "A person did not allow the run to go on.")
	}
	return cmp.Or(strings.TrimSpace(b.Message), "The agent failed.")
}

func withdrawn(why parley.WithdrawReason) string {
	switch why {
	case parley.WithdrawnByHalt:
		return "The message was not answered: the session was halted."
	case parley.WithdrawnByDelete:
		return "The message was not answered: the session was deleted."
	}
	return "The message was taken back before it was answered."
}
