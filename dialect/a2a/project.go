package a2a

import (
	"cmp"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
)

// A View is the state of a stream that follows a log. It shows every task of its session whose input it has seen.
type View struct {
	Session parley.SessionID // empty: the root of the first event
	Context string           // the client's name for the session; empty: its id
	shape   shape
	run     parley.RunID
	task    parley.InputID // task of the run
	text    dialect.Text
	begun   bool // a part of the artifact was sent
	open    []dialect.Card
	below   dialect.Below
}

// Ignored are the event types that this dialect does not show.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, dialect.TenantFacts, map[string]string{
	"SessionOpened":        "a context begins with its first task",
	"SessionRenamed":       "contexts have no titles",
	"SessionHalted":        "the end of its run is shown",
	"SessionReopened":      "a context takes messages again",
	"SessionDeleted":       "its tasks ended before",
	"TurnStarted":          "an agent is opaque to its clients",
	"TurnFinished":         "an agent is opaque to its clients",
	"OutputStarted":        "its chunks are shown",
	"ToolCallRequested":    "an agent is opaque to its clients",
	"ToolCallBlocked":      "an agent is opaque to its clients",
	"ToolCallStarted":      "an agent is opaque to its clients",
	"ToolOutputAppended":   "an agent is opaque to its clients",
	"ExplanationRequested": "a task has a status, and no words about an open card",
	"ApprovalExplained":    "a task has a status, and no words about an open card",
	"PlanChanged":          "an agent is opaque to its clients",
	"FilesChanged":         "an agent is opaque to its clients",
	"ChangesUndone":        "an agent is opaque to its clients",
	"ChildSpawned":         "sub-agents are not visible, only their cards",
	"ChildReturned":        "sub-agents are not visible, only their cards",
	"ContextMeasured":      "an agent is opaque to its clients",
	"CompactionStarted":    "an agent is opaque to its clients",
	"ContextCompacted":     "an agent is opaque to its clients",
	"CompactionFailed":     "an agent is opaque to its clients",
	"ModelFellBack":        "which model answers is not visible",
	"TimerSet":             "the task of a follow-up is shown when it begins",
	"TimerFired":           "the task of a follow-up is shown when it begins",
})

// Project returns the frames that show an event to a client. Of sub-agents it shows only cards.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	session := cmp.Or(v.Session, e.Root, e.Session)
	if v.run != 0 {
		var change dialect.Change
		if v.below, change = v.below.After(session, e); change.Opened != nil || change.Closed != nil {
			return v, v.waiting(e)
		}
	}
	if e.Session != session {
		return v, nil
	}
	switch b := e.Body.(type) {
	case parley.InputReceived:
		return v, v.received(e, b)
	case parley.InputWithdrawn:
		st, text := withdrawn(b.Reason)
		return v, v.update(e, b.Input, st, nil, v.words(e, b.Input, text))
	case parley.InputAdopted:
		if e.Run != v.run || b.Input != v.task { // another input's run adopts this input
			return v, v.update(e, b.Input, completed, nil,
				v.words(e, b.Input, "This message was added to the task that was running."))
		}
		return v, nil
	case parley.RunStarted:
		v = View{Session: v.Session, Context: v.Context, shape: v.shape, run: e.Run, task: b.Input}
		return v, v.update(e, v.task, working, nil, nil)
	}
	if v.run == 0 || e.Run != v.run {
		return v, nil // the run started before this view began
	}
	return v.inRun(e)
}

// inRun shows an event of the open run.
func (v View) inRun(e parley.Event) (View, []dialect.Frame) {
	if c, ok := dialect.Opens(e); ok {
		v.open = append(slices.Clip(v.open), c)
		return v, v.waiting(e)
	}
	if c, ok := dialect.Closes(e); ok {
		v.open = slices.DeleteFunc(slices.Clone(v.open), func(o dialect.Card) bool { return o.ID == c.ID })
		return v, v.waiting(e)
	}
	switch b := e.Body.(type) {
	case parley.OutputStarted:
		v.text = v.text.Start()
	case parley.OutputAppended:
		if b.Kind == parley.Text {
			var text string
			v.text, text = v.text.Piece(b)
			return v.say(e, text)
		}
	case parley.OutputFinished:
		if b.Kind == parley.Text {
			var rest string
			v.text, rest = v.text.End(b)
			return v.say(e, rest)
		}
	case parley.ProblemReported:
		if len(v.cards()) > 0 {
			return v, nil // keep the state input-required
		}
		return v, v.update(e, v.task, working, nil, v.words(e, v.task, b.Message))
	case parley.RunFinished:
		return v.ending(e, b)
	}
	return v, nil
}

// received shows the new task of an input.
func (v View) received(e parley.Event, b parley.InputReceived) []dialect.Frame {
	input := parley.InputID(e.Seq)
	t := &task{Kind: v.shape.kind("task"), ID: parley.Ref(e.Session, e.Seq), ContextID: v.context(e),
		Status: status{State: v.shape.state(submitted), Timestamp: timestamp(e.At)}}
	if !b.Synthetic {
		m := v.message(e, input, "user", v.shape.text(b.Content))
		m.MessageID = cmp.Or(b.Request, m.MessageID)
		t.History = []message{*m}
	}
	return frames(event{shape: v.shape, of: input, state: submitted, task: t})
}

// say shows a chunk of the answer.
func (v View) say(e parley.Event, text string) (View, []dialect.Frame) {
	if text == "" {
		return v, nil
	}
	shown := frames(v.piece(e, text))
	v.begun = true
	return v, shown
}

func (v View) piece(e parley.Event, text string) event {
	return event{shape: v.shape, of: v.task, artifact: &artifactUpdate{Kind: v.shape.kind("artifact-update"),
		TaskID: parley.Ref(e.Session, parley.Seq(v.task)), ContextID: v.context(e), Append: v.begun,
		Artifact: artifact{ArtifactID: "answer", Name: "answer", Parts: []part{v.shape.text(text)}}}}
}

// ending shows the end of the task.
func (v View) ending(e parley.Event, b parley.RunFinished) (View, []dialect.Frame) {
	var shown []dialect.Frame
	if v.begun {
		last := v.piece(e, "")
		last.artifact.LastChunk = true
		shown = frames(last)
	}
	st, text := goodbyeFor(b)
	shown = append(shown, v.update(e, v.task, st, &metadata{b.Usage, b.Outcome, b.Code}, v.words(e, v.task, text))...)
	return View{Session: v.Session, Context: v.Context, shape: v.shape}, shown
}

// goodbyeFor returns the state of a task whose run has ended, and the reason if it is not completed.
func goodbyeFor(b parley.RunFinished) (state, string) {
	switch b.Outcome {
	case parley.Completed:
		return completed, ""
	case parley.Cancelled:
		return canceled, cmp.Or(b.Message, "The task was canceled.")
	case parley.Denied:
		return rejected, cmp.Or(b.Message, "A person did not allow the task to go on.")
	}
	return failed, cmp.Or(strings.TrimSpace(b.Message), "The agent failed.")
}

func withdrawn(why parley.WithdrawReason) (state, string) {
	switch why {
	case parley.WithdrawnByHalt:
		return failed, "The message was not answered: the session was halted."
	case parley.WithdrawnByDelete:
		return canceled, "The message was not answered: the session was deleted."
	}
	return canceled, "The message was taken back before it was answered."
}

// waiting shows the state of the task after a change of its cards.
func (v View) waiting(e parley.Event) []dialect.Frame {
	cards := v.cards()
	if len(cards) == 0 {
		return v.update(e, v.task, working, nil, nil)
	}
	var text []string
	parts := []part{{}}
	for _, c := range cards {
		text = append(text, asks(c, len(cards) > 1))
		parts = append(parts, v.shape.data(fields(c)))
	}
	parts[0] = v.shape.text(strings.Join(text, "\n\n"))
	return v.update(e, v.task, inputRequired, nil, v.message(e, v.task, "agent", parts...))
}

// cards returns the open cards of the session and its sub-agents.
func (v View) cards() []dialect.Card { return slices.Concat(v.open, v.below.Open()) }

func (v View) update(e parley.Event, of parley.InputID, st state, meta *metadata, m *message) []dialect.Frame {
	u := &statusUpdate{Kind: v.shape.kind("status-update"), TaskID: v.taskID(e, of), ContextID: v.context(e),
		Status:   status{State: v.shape.state(st), Message: m, Timestamp: timestamp(e.At)},
		Metadata: meta}
	if v.shape == v03 {
		stops := st.stops()
		u.Final = &stops
	}
	return frames(event{shape: v.shape, of: of, state: st, status: u})
}

// words returns a message of the agent about its task, or nil for an empty text.
func (v View) words(e parley.Event, of parley.InputID, text string) *message {
	if text == "" {
		return nil
	}
	return v.message(e, of, "agent", v.shape.text(text))
}

func (v View) message(e parley.Event, of parley.InputID, role string, parts ...part) *message {
	return &message{Kind: v.shape.kind("message"), MessageID: parley.Ref(e.Session, e.Seq), ContextID: v.context(e),
		TaskID: v.taskID(e, of), Role: v.shape.role(role), Parts: parts}
}

func (v View) taskID(e parley.Event, of parley.InputID) string {
	return parley.Ref(cmp.Or(v.Session, e.Root, e.Session), parley.Seq(of))
}

func (v View) context(e parley.Event) string {
	return cmp.Or(v.Context, string(v.Session), string(e.Root), string(e.Session))
}

func frames(events ...event) (list []dialect.Frame) {
	for _, e := range events {
		list = append(list, dialect.Frame{Body: e})
	}
	return list
}
