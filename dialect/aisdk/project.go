package aisdk

import (
	"cmp"
	"fmt"

	"parley"
	"parley/dialect"
)

// A View is the state of the run that a stream shows. It must see the log from the start of that run, or from a point
// without an open run.
type View struct {
	session parley.SessionID
	run     parley.RunID // the open run; 0: none
	agent   string
	waits   dialect.Waits
	paused  bool         // the stream ended because the run waits
	step    bool         // a step is open
	asks    bool         // the open step has only cards of sub-agents
	shown   int          // bytes of the open output that were shown
	stop    parley.Stop  // stop reason of the last turn
	used    parley.Usage // usage so far
}

// Ignored are the event types that this dialect does not show.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, dialect.TenantFacts, dialect.ContextEvents, dialect.FileEvents,
	map[string]string{
		"SessionOpened":        "the client named the chat",
		"SessionRenamed":       "chats have no titles here",
		"SessionHalted":        "the end of its run is shown",
		"SessionReopened":      "its next message is shown",
		"SessionDeleted":       "the end of its run is shown",
		"InputReceived":        "the client has the message",
		"InputAdopted":         "the client has the message",
		"InputWithdrawn":       "the stream that waits for its answer reports it",
		"ToolCallStarted":      "it was shown when it was asked for",
		"ToolOutputAppended":   "results are whole here",
		"TimerSet":             "the follow-up is shown when it is due",
		"TimerFired":           "its run is shown to clients that reconnect",
		"PlanChanged":          "plans are not visible here",
		"ChildSpawned":         "the call that delegates is shown",
		"ChildReturned":        "the call that delegates is shown",
		"ModelFellBack":        "models are not visible here",
		"ExplanationRequested": "the explanation is shown",
	})

// Project returns the chunks that show an event to a client. After a pause, the
// message starts again under the same id: a client that sends an answer
// continues reading there.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	if b, ok := e.Body.(parley.RunStarted); ok && e.Session == v.session {
		v = View{session: e.Session, run: e.Run, agent: b.Agent.Name}
	}
	if v.run == 0 || e.Session == v.session && e.Run != v.run {
		return v, nil
	}
	before := v
	v, bodies := v.project(e)
	if before.paused && len(bodies) > 0 {
		bodies, v.paused = append([]any{before.begin()}, bodies...), false
	}
	if v.run != 0 && !v.paused && v.waits.Waiting() {
		v.paused = true
		v, bodies = v.endStep(bodies)
		bodies = append(bodies, finish{"finish", "tool-calls", usageOf(v.used)})
	}
	frames := make([]dialect.Frame, len(bodies))
	for i, body := range bodies {
		frames[i] = dialect.Frame{Body: body}
	}
	return v, frames
}

func (v View) begin() start {
	return start{"start", parley.Ref(v.session, parley.Seq(v.run)), startMetadata{v.session, v.agent}}
}

func (v View) endStep(bodies []any) (View, []any) {
	if v.step {
		v.step, v.asks, bodies = false, false, append(bodies, bare{"finish-step"})
	}
	return v, bodies
}

func (v View) project(e parley.Event) (_ View, out []any) {
	waits, change := v.waits.After(v.session, e)
	v.waits = waits
	v, out = v.below(change)
	if e.Session != v.session {
		return v, out
	}
	call := func(id parley.CallID) string { return parley.Ref(e.Session, parley.Seq(id)) }
	switch b := e.Body.(type) {
	case parley.RunStarted:
		return v, append(out, v.begin())
	case parley.RunFinished:
		return v.end(b, out)
	case parley.TurnStarted:
		v, out = v.endStep(out)
		v.step = true
		return v, append(out, bare{"start-step"})
	case parley.TurnFinished:
		v.stop, v.used = b.Stop, v.used.Plus(b.Usage)
	case parley.ChildReturned:
		v.used = v.used.Plus(b.Usage)
	case parley.OutputStarted:
		v.shown = 0
		return v, append(out, piece{Type: kinds[b.Kind] + "-start", ID: outputID(parley.OutputID(e.Seq))})
	case parley.OutputAppended:
		v.shown = b.Offset + len(b.Text)
		return v, append(out, piece{kinds[b.Kind] + "-delta", outputID(b.Output), b.Text})
	case parley.OutputFinished:
		if rest := b.Text[min(v.shown, len(b.Text)):]; rest != "" { // the chunks were deleted from the log
			out = append(out, piece{kinds[b.Kind] + "-delta", outputID(b.Output), rest})
		}
		return v, append(out, piece{Type: kinds[b.Kind] + "-end", ID: outputID(b.Output)})
	case parley.ToolCallRequested:
		return v, append(out, toolInput{"tool-input-available", call(parley.CallID(e.Seq)), b.Name,
			dialect.Arguments(b.Arguments), !b.Client, !b.Client, ""})
	case parley.ToolCallBlocked:
		return v, append(out, toolError{"tool-output-error", call(b.Call), b.Reason})
	case parley.ToolCallFinished:
		return v, append(out, v.result(e, b)...)
	case parley.ToolCallResolved:
		closed, _ := dialect.Closes(e)
		return v, append(out, data{Type: "data-call", ID: closed.ID, Data: closed.Fields()})
	case parley.ApprovalDecided:
		closed, _ := dialect.Closes(e)
		return v, append(out, approvalResponse{"tool-approval-response", closed.ID, allowed(closed.How), b.Note})
	case parley.ApprovalRequested:
		card, _ := dialect.Opens(e)
		return v, append(out, asking(card, call(b.Call), b))
	case parley.QuestionAsked: // the client provides the output of the call
		return v, append(out, toolInput{"tool-input-available", call(b.Call), "ask_user",
			dialect.Encode(map[string]any{"questions": b.Questions}), false, true, ""})
	case parley.ApprovalExplained:
		x, _ := dialect.Explains(e)
		return v, append(out, data{Type: "data-explanation", ID: x.ID, Data: x})
	case parley.ProblemReported:
		return v, append(out, data{Type: "data-problem", Data: problem{b.Code, b.Message}, Transient: true})
	}
	return v, out
}

var kinds = map[parley.OutputKind]string{parley.Text: "text", parley.Thinking: "reasoning"}

func outputID(id parley.OutputID) string { return fmt.Sprintf("output-%d", id) }

// result returns the chunks that end a tool call.
func (v View) result(e parley.Event, b parley.ToolCallFinished) []any {
	id := parley.Ref(e.Session, parley.Seq(b.Call))
	switch b.Outcome {
	case parley.CallSucceeded:
		return []any{toolOutput{"tool-output-available", id, b.Result}}
	case parley.CallDenied:
		return []any{toolDenied{"tool-output-denied", id}}
	case parley.CallUnknown:
		card, _ := dialect.Opens(e)
		return []any{toolError{"tool-output-error", id, b.Result}, data{Type: "data-call", ID: id, Data: card.Fields()}}
	}
	return []any{toolError{"tool-output-error", id, cmp.Or(dialect.Result(b), "The tool failed.")}}
}

// end ends the message. Clients stop reading at an error, so the usage comes first.
func (v View) end(b parley.RunFinished, out []any) (View, []any) {
	after, out := v.endStep(out)
	use := usageOf(b.Usage)
	switch b.Outcome {
	case parley.Completed:
		out = append(out, finish{"finish", cmp.Or(reasons[v.stop], "stop"), use})
	case parley.Cancelled:
		out = append(out, finish{Type: "message-metadata", Metadata: use},
			abort{"abort", "The answer was cancelled."})
	default:
		reason := "error"
		if b.Outcome == parley.Interrupted {
			reason = "interrupted"
		}
		out = append(out, finish{Type: "message-metadata", Metadata: use},
			failure{"error", cmp.Or(b.Message, "The agent failed.")}, finish{"finish", reason, use})
	}
	after.run = 0
	return after, out
}

var reasons = map[parley.Stop]string{parley.StopLength: "length", parley.StopRefusal: "content-filter"}

// below shows the cards of sub-agents as tool calls, which end when the card is closed. The result of the delegating
// call tells what the sub-agent did. The cards have a step of their own: clients send answers automatically if no other
// call is open in the last step, but the delegating call is open.
func (v View) below(change dialect.Change) (_ View, out []any) {
	if c := change.Opened; c != nil {
		if !v.asks {
			v, out = v.endStep(out)
			v.step, v.asks, out = true, true, append(out, bare{"start-step"})
		}
		switch b := c.Asks.(type) {
		case parley.ApprovalRequested:
			out = append(out, toolInput{"tool-input-available", c.ID, c.Call.Name, dialect.Arguments(c.Call.Arguments),
				true, true, c.Agent + ": " + c.Call.Name}, asking(*c, c.ID, b))
		case parley.QuestionAsked:
			out = append(out, toolInput{"tool-input-available", c.ID, "ask_user",
				dialect.Encode(map[string]any{"questions": b.Questions}), false, true, c.Agent + ": ask_user"})
		default:
			out = append(out, data{Type: "data-call", ID: c.ID, Data: c.Fields()})
		}
	}
	for _, c := range change.Closed {
		switch {
		case c.Kind == parley.CardCall:
			out = append(out, data{Type: "data-call", ID: c.ID, Data: c.Fields()})
		case c.Kind == parley.CardQuestion:
			out = append(out, toolOutput{"tool-output-available", c.ID, c.How})
		case allowed(c.How):
			out = append(out, approvalResponse{Type: "tool-approval-response", ApprovalID: c.ID, Approved: true},
				toolOutput{"tool-output-available", c.ID, "Allowed."})
		default:
			out = append(out, approvalResponse{Type: "tool-approval-response", ApprovalID: c.ID},
				toolDenied{"tool-output-denied", c.ID})
		}
	}
	if x := change.Explained; x != nil {
		out = append(out, data{Type: "data-explanation", ID: x.ID, Data: *x})
	}
	return v, out
}

func asking(c dialect.Card, call string, b parley.ApprovalRequested) approvalRequest {
	return approvalRequest{"tool-approval-request", c.ID, call,
		descriptor{b.Show, b.Expires, c.Agent, b.Similar.Text}, b.Why}
}

func allowed(how string) bool {
	return how == string(parley.AllowOnce) || how == string(parley.AllowAlways)
}
