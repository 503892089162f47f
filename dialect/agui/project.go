package agui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
)

// A View is the state of the run that a stream shows. It must see the log from the input that the run answers.
type View struct {
	Thread  string // the client's name for the session
	Session parley.SessionID

	said   []saying // messages that wait for a run
	run    parley.RunID
	first  string // name of the run
	name   string // name of the open or last AG-UI run
	parts  int    // number of AG-UI runs so far in this run
	waits  dialect.Waits
	cards  []interrupt     // open cards
	client []parley.CallID // calls that the client carries out
	paused bool            // the AG-UI run has finished and the run waits
	open   parley.OutputID // output in progress
	shown  int             // bytes of it that were shown
	parent string          // message that contains the tool calls of the turn
	used   parley.Usage    // usage of this AG-UI run
}

// saying is a message that waits for its run.
type saying struct {
	input   parley.InputID
	message userMessage
	hidden  bool // an autonomous message, which is not shown
}

// Ignored are the event types that this dialect does not show.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, dialect.TenantFacts, dialect.ContextEvents, dialect.FileEvents,
	map[string]string{
		"SessionOpened":        "the client named the thread",
		"TurnStarted":          "turns are not visible here; their output is",
		"SessionRenamed":       "threads have no titles here",
		"SessionHalted":        "the end of its run is shown",
		"SessionReopened":      "its next message is shown",
		"SessionDeleted":       "the end of its run is shown",
		"InputReceived":        "it is shown with the run that answers it",
		"InputWithdrawn":       "the stream that waits for its answer reports it",
		"ToolCallStarted":      "it was shown when it was asked for",
		"ToolOutputAppended":   "results are whole here",
		"TimerSet":             "the follow-up is shown when it is due",
		"TimerFired":           "its run is shown to clients that follow the thread",
		"ChildSpawned":         "the call that delegates is shown",
		"ChildReturned":        "the call that delegates is shown",
		"ModelFellBack":        "models are not visible here",
		"ExplanationRequested": "the explanation is shown",
	})

// Project returns the frames that show an event to a client. A run that
// continues after an interrupt becomes another AG-UI run.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	v, starts := v.hears(e)
	if v.run == 0 || e.Session == v.Session && e.Run != v.run {
		return v, nil
	}
	paused := v.paused
	v, bodies := v.project(e)
	_, answered := e.Body.(parley.ToolCallFinished)
	answered = answered && e.Session == v.Session
	if !starts && paused && (len(bodies) > 0 || answered || !v.waits.Waiting()) {
		v.parts++
		v.name = fmt.Sprintf("%s.%d", v.first, v.parts)
		bodies = append([]any{runStarted{Type: "RUN_STARTED", ThreadID: v.Thread, RunID: v.name, ParentRunID: v.first}},
			bodies...)
		v.paused = false
	}
	if v, bodies = v.ends(e, bodies); v.run != 0 && !v.paused && v.waits.Waiting() {
		v, bodies = v.pause(bodies)
	}
	frames := make([]dialect.Frame, len(bodies))
	for i, body := range bodies {
		frames[i] = dialect.Frame{Body: body}
		switch body.(type) {
		case runStarted, runFinished: // they name the thread
			frames[i].PerClient = true
		}
	}
	return v, frames
}

// hears keeps messages until their run starts.
func (v View) hears(e parley.Event) (_ View, starts bool) {
	if e.Session != v.Session {
		return v, false
	}
	switch b := e.Body.(type) {
	case parley.InputReceived:
		m := userMessage{messageID(e, b.Command), "user", b.Content}
		v.said = append(slices.Clip(v.said), saying{parley.InputID(e.Seq), m, b.Synthetic})
	case parley.InputWithdrawn:
		v, _ = v.takes(b.Input)
	case parley.RunStarted:
		name := cmp.Or(b.Request, parley.Ref(e.Session, e.Seq))
		v = View{Thread: v.Thread, Session: v.Session, said: v.said, run: e.Run, first: name, name: name, parts: 1}
		return v, true
	}
	return v, false
}

// takes removes and returns the message of an input.
func (v View) takes(id parley.InputID) (_ View, s saying) {
	i := slices.IndexFunc(v.said, func(s saying) bool { return s.input == id })
	if i < 0 {
		return v, s
	}
	s = v.said[i]
	v.said = slices.Delete(slices.Clone(v.said), i, i+1)
	return v, s
}

// commandPrefix begins the command ids of this dialect. A digest of the message and its id follow.
const commandPrefix = "agui:"

// messageID returns the id that an AG-UI client gave the message, or else a reference to the event.
func messageID(e parley.Event, c parley.CommandID) string {
	if rest, ok := strings.CutPrefix(string(c), commandPrefix); ok {
		if _, id, ok := strings.Cut(rest, ":"); ok && id != "" {
			return id
		}
	}
	return parley.Ref(e.Session, e.Seq)
}

func (v View) pause(bodies []any) (View, []any) {
	how := outcome{Type: "interrupt", Interrupts: v.cards}
	for _, id := range v.waits.OfClient() {
		how.Pending = append(how.Pending, parley.Ref(v.Session, parley.Seq(id)))
	}
	if len(v.cards) > 0 {
		how.Pending = nil
	} else {
		how.Type = "success"
	}
	v, bodies = v.endOutput(bodies)
	bodies = append(bodies, runFinished{"RUN_FINISHED", v.Thread, v.name, how, usageOf(v.used)})
	v.paused, v.used = true, parley.Usage{}
	return v, bodies
}

// ends shows the end of the run, after the other frames of the event.
func (v View) ends(e parley.Event, bodies []any) (View, []any) {
	b, ok := e.Body.(parley.RunFinished)
	if !ok || e.Session != v.Session {
		return v, bodies
	}
	switch use := usageOf(v.used); b.Outcome {
	case parley.Completed:
		bodies = append(bodies, runFinished{"RUN_FINISHED", v.Thread, v.name, outcome{Type: "success"}, use})
	case parley.Cancelled:
		bodies = append(bodies, runFinished{"RUN_FINISHED", v.Thread, v.name, outcome{Type: "cancelled"}, use})
	default:
		bodies = append(bodies, runError{"RUN_ERROR", cmp.Or(b.Message, "The agent failed."),
			string(cmp.Or(b.Code, parley.Code(b.Outcome))), use})
	}
	return View{Thread: v.Thread, Session: v.Session, said: v.said, name: v.name}, bodies
}

func (v View) project(e parley.Event) (_ View, out []any) {
	waits, change := v.waits.After(v.Session, e)
	v.waits = waits
	v, out = v.below(e, change)
	if e.Session != v.Session {
		return v, out
	}
	call := func(id parley.CallID) string { return parley.Ref(e.Session, parley.Seq(id)) }
	switch b := e.Body.(type) {
	case parley.RunStarted:
		started := runStarted{Type: "RUN_STARTED", ThreadID: v.Thread, RunID: v.name}
		var s saying
		if v, s = v.takes(b.Input); s.input != 0 && !s.hidden {
			started.Input = &runInput{v.Thread, v.name, []userMessage{s.message}, []string{}, []string{}}
		}
		return v, append(out, started)
	case parley.InputAdopted:
		var s saying
		if v, s = v.takes(b.Input); s.input != 0 && !s.hidden { // it steers the run
			out = append(out, span{Type: "TEXT_MESSAGE_START", MessageID: s.message.ID, Role: "user"},
				span{Type: "TEXT_MESSAGE_CONTENT", MessageID: s.message.ID, Delta: s.message.Content},
				span{Type: "TEXT_MESSAGE_END", MessageID: s.message.ID})
		}
	case parley.TurnStarted:
		v.parent = parley.Ref(e.Session, e.Seq)
	case parley.TurnFinished:
		v.used = v.used.Plus(b.Usage)
	case parley.ChildReturned:
		v.used = v.used.Plus(b.Usage)
	case parley.OutputStarted:
		return v.startOutput(parley.OutputID(e.Seq), b.Kind, 0, out)
	case parley.OutputAppended:
		return v.appends(b, out)
	case parley.OutputFinished:
		if rest := b.Text[min(v.shown, len(b.Text)):]; rest != "" { // the chunks were deleted from the log
			v, out = v.appends(parley.OutputAppended{Output: b.Output, Kind: b.Kind, Offset: v.shown, Text: rest}, out)
		}
		return v.endOutput(out)
	case parley.ToolCallRequested:
		if b.Client {
			v.client = append(slices.Clip(v.client), parley.CallID(e.Seq))
		}
		return v, append(out, called(call(parley.CallID(e.Seq)), v.parent, b)...)
	case parley.ToolCallBlocked:
		return v, append(out, result(e, call(b.Call), b.Reason, "blocked"))
	case parley.ToolCallFinished:
		return v.finished(e, b, out)
	case parley.ApprovalRequested, parley.QuestionAsked:
		c, _ := dialect.Opens(e)
		v = v.opened(c, call(callOf(b)))
	case parley.ApprovalDecided, parley.QuestionAnswered, parley.ToolCallResolved:
		c, _ := dialect.Closes(e)
		v = v.closed(c.ID)
	case parley.ApprovalExplained:
		x, _ := dialect.Explains(e)
		return v, append(out, custom{"CUSTOM", dialect.Explained, x})
	case parley.PlanChanged:
		return v, append(out, activity{"ACTIVITY_SNAPSHOT", "plan-" + v.first, "PLAN", b.Plan})
	case parley.ProblemReported:
		return v, append(out, custom{"CUSTOM", "problem", problem{b.Code, b.Message}})
	}
	return v, out
}

func callOf(body parley.EventBody) parley.CallID {
	switch b := body.(type) {
	case parley.ApprovalRequested:
		return b.Call
	case parley.QuestionAsked:
		return b.Call
	}
	return 0
}

// Each text is a message of its own. A thinking is a span with one message.

func (v View) outputID() string { return parley.Ref(v.Session, parley.Seq(v.open)) }

func (v View) startOutput(id parley.OutputID, kind parley.OutputKind, shown int, out []any) (View, []any) {
	v.open, v.shown = id, shown
	if kind == parley.Thinking {
		return v, append(out, span{Type: "REASONING_START", MessageID: v.outputID()},
			span{Type: "REASONING_MESSAGE_START", MessageID: v.outputID(), Role: "reasoning"})
	}
	v.parent = v.outputID()
	return v, append(out, span{Type: "TEXT_MESSAGE_START", MessageID: v.outputID(), Role: "assistant"})
}

func (v View) appends(b parley.OutputAppended, out []any) (View, []any) {
	if v.open != b.Output { // its AG-UI run finished in the meantime
		v, out = v.startOutput(b.Output, b.Kind, b.Offset, out)
	}
	v.shown = b.Offset + len(b.Text)
	kind := "TEXT_MESSAGE_CONTENT"
	if b.Kind == parley.Thinking {
		kind = "REASONING_MESSAGE_CONTENT"
	}
	return v, append(out, span{Type: kind, MessageID: v.outputID(), Delta: b.Text})
}

func (v View) endOutput(out []any) (View, []any) {
	id := v.outputID()
	switch {
	case v.open == 0:
	case v.parent == id:
		out = append(out, span{Type: "TEXT_MESSAGE_END", MessageID: id})
	default:
		out = append(out, span{Type: "REASONING_MESSAGE_END", MessageID: id},
			span{Type: "REASONING_END", MessageID: id})
	}
	v.open = 0
	return v, out
}

func called(id, parent string, b parley.ToolCallRequested) []any {
	return []any{toolCallStart{"TOOL_CALL_START", id, b.Name, parent},
		span{Type: "TOOL_CALL_ARGS", ToolCallID: id, Delta: string(dialect.Arguments(b.Arguments))},
		span{Type: "TOOL_CALL_END", ToolCallID: id}}
}

func result(e parley.Event, call, content, how string) toolCallResult {
	r := toolCallResult{"TOOL_CALL_RESULT", parley.Ref(e.Session, e.Seq), call, content, "tool", nil}
	if how != string(parley.CallSucceeded) {
		r.Metadata = map[string]any{"outcome": how}
	}
	return r
}

// finished shows the result of a call. Clients know the results of their own
// calls, unless a call was cancelled.
func (v View) finished(e parley.Event, b parley.ToolCallFinished, out []any) (View, []any) {
	id := parley.Ref(e.Session, parley.Seq(b.Call))
	if c, ok := dialect.Opens(e); ok {
		v = v.opened(c, id)
	}
	if slices.Contains(v.client, b.Call) && b.Outcome != parley.CallCancelled {
		return v, out
	}
	return v, append(out, result(e, id, dialect.Result(b), string(b.Outcome)))
}

// below shows the cards of sub-agents as tool calls, which end when the card is closed. The result of the delegating
// call tells what the sub-agent did.
func (v View) below(e parley.Event, change dialect.Change) (_ View, out []any) {
	if c := change.Opened; c != nil {
		if c.Kind != parley.CardCall {
			out = append(out, called(c.ID, "", c.Call)...)
		}
		v = v.opened(*c, c.ID)
	}
	for _, c := range change.Closed {
		if v = v.closed(c.ID); c.Kind != parley.CardCall {
			r := result(e, c.ID, c.How, string(parley.CallSucceeded))
			r.MessageID = c.ID + ".closed"
			out = append(out, r)
		}
	}
	if x := change.Explained; x != nil {
		out = append(out, custom{"CUSTOM", dialect.Explained, *x})
	}
	return v, out
}

func (v View) opened(c dialect.Card, call string) View {
	i := interrupt{ID: c.ID, ToolCallID: call}
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		i.Reason, i.Message, i.ExpiresAt = reasonApproval, b.Show, &b.Expires
		i.Metadata = map[string]any{"tool": b.Name}
		for key, value := range map[string]string{"why": b.Why, "similar": b.Similar.Text} {
			if value != "" {
				i.Metadata[key] = value
			}
		}
	case parley.QuestionAsked:
		i.Reason, i.ExpiresAt = reasonQuestion, &b.Expires
		i.Metadata = map[string]any{"questions": b.Questions}
		var lines []string
		for _, q := range b.Questions {
			lines = append(lines, q.Question)
		}
		i.Message = strings.Join(lines, "\n")
	case parley.ToolCallFinished:
		i.Reason, i.Message, i.Metadata = reasonUnknown, b.Result, map[string]any{"tool": b.Name}
	}
	if c.Agent != "" {
		i.Metadata["agent"] = c.Agent
	}
	i.Schema = schemas[i.Reason]
	v.cards = append(slices.Clip(v.cards), i)
	return v
}

func (v View) closed(id string) View {
	v.cards = slices.DeleteFunc(slices.Clone(v.cards), func(i interrupt) bool { return i.ID == id })
	return v
}
