package debugconsole

import (
	"cmp"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
	"parley/transport"
)

// A View is a connection's state of the log that it follows: the open run, if the view has seen its start. Of any other
// run it shows nothing.
type View struct {
	Session  parley.SessionID // empty: the root of the first event
	run      parley.RunID
	requests []string // requests that the run answers; its frames carry the first
	text     dialect.Text
	held     string   // text for the next frame
	lost     []string // calls of unknown outcome that are not resolved
	halted   []string // requests that the coming session_halt ends
	below    dialect.Below
}

// Ignored are the event types that this dialect does not show.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, dialect.TenantFacts, map[string]string{
	"SessionOpened":        "the message that opened it is being answered",
	"SessionRenamed":       "sessions have no titles here",
	"SessionReopened":      "the halt closed the socket",
	"InputReceived":        "the client has the message",
	"InputAdopted":         "its answer is shown",
	"RunStarted":           "its answer is shown",
	"TurnStarted":          "turns are not visible here",
	"TurnFinished":         "turns are not visible here",
	"OutputStarted":        "its chunks are shown",
	"OutputFinished":       "its pieces are shown; what none of them had comes with the next frame",
	"ToolCallRequested":    "it is shown when it has ended",
	"ToolCallStarted":      "it is shown when it has ended",
	"ToolOutputAppended":   "the document has names of tools, not results",
	"ExplanationRequested": "the explanation is shown",
	"PlanChanged":          "the document has no plans",
	"FilesChanged":         "the document has no files",
	"ChangesUndone":        "the document has no files",
	"ChildSpawned":         "sub-agents are not visible here, only what needs a person",
	"ChildReturned":        "the tool that delegated is shown",
	"ContextMeasured":      "the document has no context to be shown",
	"CompactionStarted":    "the document has no context to be shown",
	"ContextCompacted":     "the document has no context to be shown",
	"CompactionFailed":     "the document has no context to be shown",
	"ModelFellBack":        "which model answers is not visible here",
	"TimerSet":             "the follow-up is shown when it is due",
	"TimerFired":           "the name of its request says that a timer fired",
})

// Project returns the frames that show an event to a client. Of sub-agents it shows only cards.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	session := cmp.Or(v.Session, e.Root, e.Session)
	if v.run != 0 {
		var change dialect.Change
		v.below, change = v.below.After(session, e)
		if change.Opened != nil || change.Closed != nil || change.Explained != nil {
			return v.changed(change)
		}
	}
	if e.Session != session {
		return v, nil
	}
	switch b := e.Body.(type) {
	case parley.RunStarted:
		return View{Session: v.Session, run: e.Run, requests: []string{name(b.Request, e.Session, b.Input)}}, nil
	case parley.InputWithdrawn:
		return v.withdrawn(name(b.Request, e.Session, b.Input), b.Reason)
	case parley.SessionHalted:
		return v.halt(b.Reason)
	case parley.SessionDeleted:
		return View{},
			[]dialect.Frame{{Close: &dialect.Goodbye{Code: transport.Policy, Reason: "The session was deleted."}}}
	}
	if v.run == 0 || e.Run != v.run {
		return v, nil // the run started before this view began
	}
	switch b := e.Body.(type) {
	case parley.InputAdopted:
		if id := name(b.Request, e.Session, b.Input); !slices.Contains(v.requests, id) {
			v.requests = append(slices.Clip(v.requests), id)
		}
	case parley.OutputStarted:
		v.text = v.text.Start()
	case parley.OutputAppended:
		if b.Kind == parley.Text {
			var text string
			v.text, text = v.text.Piece(b)
			return v.show(chunk{v.head("chunk"), text, false})
		}
	case parley.OutputFinished:
		if b.Kind == parley.Text {
			// Text that no chunk has shown is held until the next frame, so
			// that the last text can be in the final chunk.
			var rest string
			v.text, rest = v.text.End(b)
			v.held += rest
		}
	case parley.ToolCallBlocked:
		return v.show(toolStopped{v.head("tool_blocked"), b.Name, b.Reason})
	case parley.ToolCallFinished:
		return v.tool(e, b)
	case parley.ProblemReported:
		f := problem{head: v.head("problem"), Message: b.Message}
		if r := b.Retry; r != nil {
			f.Problem, f.Retrying = r.Problem, !r.GaveUp
		}
		return v.show(f)
	case parley.RunFinished:
		return v.ending(b)
	default:
		return v.card(e)
	}
	return v, nil
}

// name returns the name of a request, also if a client of another protocol gave none.
func name(request string, session parley.SessionID, input parley.InputID) string {
	return cmp.Or(request, parley.Ref(session, parley.Seq(input)))
}

func (v View) head(kind string) head { return head{kind, v.requests[0]} }

// show returns frames, after a chunk with the held text.
func (v View) show(bodies ...frame) (View, []dialect.Frame) {
	var frames []dialect.Frame
	if v.held != "" {
		frames = append(frames, dialect.Frame{Body: chunk{v.head("chunk"), v.held, false}})
		v.held = ""
	}
	for _, b := range bodies {
		frames = append(frames, dialect.Frame{Body: b})
	}
	return v, frames
}

func (v View) tool(e parley.Event, b parley.ToolCallFinished) (View, []dialect.Frame) {
	switch b.Outcome {
	case parley.CallSucceeded:
		return v.show(toolExecuted{v.head("tool_executed"), b.Name})
	case parley.CallDenied:
		return v.show(toolStopped{v.head("tool_blocked"), b.Name, b.Result})
	case parley.CallUnknown: // only a person can resolve it
		c, _ := dialect.Opens(e)
		v.lost = append(slices.Clip(v.lost), c.ID)
		return v.show(toolStopped{v.head("tool_failed"), b.Name, b.Result}, v.asking(c))
	}
	return v.show(toolStopped{v.head("tool_failed"), b.Name, cmp.Or(b.Result, "Cancelled before it ended.")})
}

// card shows an open card, or that a card is closed.
func (v View) card(e parley.Event) (View, []dialect.Frame) {
	if c, ok := dialect.Opens(e); ok {
		return v.show(v.asking(c))
	}
	if c, ok := dialect.Closes(e); ok {
		v.lost = slices.DeleteFunc(slices.Clone(v.lost), func(id string) bool { return id == c.ID })
		return v.show(v.closing(c))
	}
	if x, ok := dialect.Explains(e); ok {
		return v.show(cardExplained{v.head(dialect.Explained), x})
	}
	return v, nil
}

// changed shows changes of sub-agents' cards.
func (v View) changed(c dialect.Change) (View, []dialect.Frame) {
	var bodies []frame
	if c.Opened != nil {
		bodies = append(bodies, v.asking(*c.Opened))
	}
	for _, c := range c.Closed {
		bodies = append(bodies, v.closing(c))
	}
	if c.Explained != nil {
		bodies = append(bodies, cardExplained{v.head(dialect.Explained), *c.Explained})
	}
	return v.show(bodies...)
}

// asking returns the frame that shows a card.
func (v View) asking(c dialect.Card) frame {
	switch f := c.Fields().(type) {
	case dialect.ApprovalFields:
		return approvalRequest{v.head(c.Frame()), f}
	case dialect.QuestionFields:
		return question{v.head(c.Frame()), f}
	case dialect.CallFields:
		return callUnknown{v.head(c.Frame()), f}
	}
	return nil
}

func (v View) closing(c dialect.Closed) frame { return cardClosed{v.head(c.Frame()), c.Fields()} }

// ending ends every request that the run answers. If the run was halted, the session_halt ends them.
func (v View) ending(b parley.RunFinished) (View, []dialect.Frame) {
	after := View{Session: v.Session}
	var bodies []frame
	for _, c := range v.below.End(b.Outcome) {
		bodies = append(bodies, v.closing(c))
	}
	for _, id := range v.lost {
		bodies = append(bodies, v.closing(dialect.ClosesCall(id, b.Outcome)))
	}
	last := ""
	if b.Outcome == parley.Completed && len(bodies) == 0 {
		last, v.held = v.held, ""
	}
	for _, id := range v.requests {
		switch b.Outcome {
		case parley.Completed:
			bodies = append(bodies, chunk{head{"chunk", id}, last, true})
			last = ""
		case parley.Halted:
			after.halted = append(after.halted, id)
		default:
			bodies = append(bodies, failure{head{"error", id}, complaint(b), b.Code})
		}
	}
	_, frames := v.show(bodies...)
	return after, frames
}

// complaint returns the reason why a run has no complete answer.
func complaint(b parley.RunFinished) string {
	switch message := cmp.Or(strings.TrimSpace(b.Message), "The agent failed."); {
	case b.Outcome == parley.Cancelled:
		return "The answer was cancelled."
	case b.Outcome == parley.Denied, b.Code == parley.CodeBlocked:
		return message
	default:
		return "agent error: " + message
	}
}

func (v View) withdrawn(id string, why parley.WithdrawReason) (View, []dialect.Frame) {
	text := "The message was cancelled before it was answered."
	switch why {
	case parley.WithdrawnByHalt:
		v.halted = append(slices.Clip(v.halted), id)
		return v, nil
	case parley.WithdrawnByDelete:
		text = "The message was not answered: the session was deleted."
	}
	return v, []dialect.Frame{{Body: failure{head{"error", id}, text, parley.CodeClosed}}}
}

// halt ends the halted requests and closes the connection.
func (v View) halt(reason string) (View, []dialect.Frame) {
	if reason == parley.CanaryLeak {
		reason = "canary token detected" // the document's words
	}
	if len(v.halted) == 0 {
		v.halted = []string{""} // the halt ends no request
	}
	var frames []dialect.Frame
	for _, id := range v.halted {
		frames = append(frames, dialect.Frame{Body: sessionHalt{head{"session_halt", id}, reason}})
	}
	return View{},
		append(frames,
			dialect.Frame{Close: &dialect.Goodbye{Code: transport.Policy, Reason: "The session was halted: " + reason +
				"."}})
}
