package eventbus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/dialect"
)

// A View is the state of a session that is needed to project its next event. It
// can be derived from the log since the input that started the last run, and
// from the parent: see watcher.view.
type View struct {
	root    string // project_root of every message, unless a fact of the tenant names another
	name    string // the client's name for the session
	agent   string // of the open run, else of the last run, else of the session
	parent  parent
	run     parley.RunID
	trigger parley.InputID // input of the run
	started time.Time      // start of the run
	status  status
	tokens  *int      // last size of the context
	queue   []waiting // received inputs that are neither adopted nor withdrawn
	calls   []call    // open calls
	cards   []card    // open cards
	shown   int       // bytes of the open output that were shown
	answer  []string  // texts of this turn, and of cut turns that it continues
	cut     bool      // the last turn was cut off
	task    *task     // the task that the run has finalized
	plan    *plan     // the plan of the run
	partial bool      // a part of the log could not be read
	retry   *retry    // set while calls of the model are being retried
}

// parent is the agent and run that started the session of a sub-agent. run is empty for a session of a person. The
// session's log names only the run, so agent is empty unless it was looked up.
type parent struct{ run, agent string }

type waiting struct {
	queued
	seq parley.InputID
}

type call struct {
	id   parley.CallID
	name string
	args string
	// started is the start of the tool; zero: it has not started.
	started time.Time
	// out and err are the incomplete last lines of its output.
	out, err string
}

// line returns the incomplete line of a stream.
func (c *call) line(stream parley.Stream) *string {
	if stream == parley.Stderr {
		return &c.err
	}
	return &c.out
}

// card is the message of an open card.
type card struct {
	id string
	m  message
}

// NewView returns the view of a session without events, in the project at root.
func NewView(root string) View { return View{root: root} }

func (v View) descent() descent {
	if v.parent.run == "" {
		return descent{}
	}
	return descent{orNull(cmp.Or(v.parent.agent, v.parent.run)), &v.parent.run}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// peer returns the partner of the agent: its parent or the user.
func (v View) peer() string {
	if v.parent.run != "" {
		return "parent"
	}
	return "user"
}

// Ignored are the event types that this dialect does not show.
var Ignored = dialect.Ignoring(dialect.Bookkeeping, map[string]string{
	"RunStarted":           "its input was shown, and its first turn says what it does",
	"ExplanationRequested": "the explanation is shown",
	"CompactionStarted":    "its end is shown",
	"TimerSet":             "the call that sets it is shown, and the follow-up when it is due",
	"TimerFired":           "its input is shown",
})

// projection builds the messages of one event.
type projection struct {
	v      View
	e      parley.Event
	frames []dialect.Frame
}

// Project returns the messages that show an event to a client.
func Project(v View, e parley.Event) (View, []dialect.Frame) {
	p := &projection{v: v, e: e}
	p.settleRetry()
	switch b := e.Body.(type) {
	case parley.SessionOpened:
		p.v.agent, p.v.root, p.v.name = b.Agent, cmp.Or(b.Project, p.v.root), b.Name
		if b.Parent != nil {
			p.v.parent.run = runName(b.Parent.Session, b.Parent.Run)
		}
		p.sync("")
	case parley.SessionRenamed, parley.SessionHalted, parley.SessionReopened, parley.SessionDeleted,
		parley.SettingsChanged,
		parley.MissionSet, parley.MissionCleared:
		p.sync("")
	case parley.OverrideSet:
		p.sync(b.Agent)
	case parley.AgentStarted:
		p.sync(b.Agent)
	case parley.AgentStopped:
		p.sync(b.Agent)
	case parley.AgentChanged:
		p.sync(b.Agent)
	case parley.InputReceived, parley.InputAdopted, parley.InputWithdrawn:
		p.input()
	case parley.PlanChanged:
		p.planned(b)
	case parley.FilesChanged:
		p.changed(b)
	case parley.ChangesUndone:
		p.undone(b)
	case parley.ContextMeasured:
		p.measured(b)
	case parley.ContextCompacted:
		p.v.tokens = &b.After
		p.context(contextUsage{Stage: "compaction", Messages: b.Messages, Tokens: b.After, Limit: b.Limit,
			Compressed: true, Summaries: 1})
	case parley.CompactionFailed:
		p.says("system", p.v.peer(), "assistant", b.Message)
	case parley.ProblemReported:
		p.problem(b)
	case parley.ModelFellBack:
		p.show(message{ID: p.byAgent("model-fallback"), Kind: "model_fallback", AgentID: p.v.agent,
			Text: text("Using %s model (%s unavailable: %s)", b.Actual, b.Preferred, b.Reason),
			Data: modelFallback{b.Preferred, b.Actual, b.Reason, b.Preferred, b.Actual}})
	default:
		p.inRun()
	}
	return p.v, p.frames
}

// inRun shows events of runs, models and tools.
func (p *projection) inRun() {
	switch b := p.e.Body.(type) {
	case parley.RunStarted:
		v := p.v
		p.v = View{root: v.root, name: v.name, parent: v.parent, queue: v.queue, partial: v.partial,
			agent: b.Agent.Name, run: parley.RunID(p.e.Seq), trigger: b.Input, started: p.e.At}
	case parley.RunFinished:
		p.finished(b)
	case parley.TurnStarted:
		if !p.v.cut {
			p.v.answer = nil
		}
		p.v.cut = false
		p.become(modelLoading, "")
	case parley.TurnFinished:
		p.turned(b)
	case parley.OutputStarted:
		p.v.shown = 0
		if b.Kind == parley.Thinking {
			p.become(isThinking, "")
		} else {
			p.become(working, "")
		}
	case parley.OutputAppended:
		p.v.shown = b.Offset + len(b.Text)
		p.token(b.Kind, "", b.Text)
	case parley.OutputFinished:
		p.said(b)
	case parley.ChildSpawned:
		p.become(callingTool, clip("Delegating to "+b.Agent, maxDetail))
		p.show(message{ID: p.named("run-subagent-spawned-" + escape(b.Agent) + "-%d"), Kind: "run",
			Phase: "subagent_spawned", AgentID: p.v.agent,
			Text: text("Spawned subagent %s", b.Agent),
			Data: subagent{descent: p.delegates(), Subagent: b.Agent, Session: b.Child, Task: b.Task}})
	case parley.ChildReturned:
		p.show(message{ID: p.named("run-subagent-result-" + escape(b.Agent) + "-%d"), Kind: "run",
			Phase: "subagent_result", AgentID: p.v.agent,
			Text: text("Subagent %s returned", b.Agent),
			Data: subagent{descent: p.delegates(), Subagent: b.Agent, Session: b.Child,
				Outcome: &outcome{Type: "none", Run: b.Outcome}}})
	default:
		p.inCall()
	}
}

// show adds a message. Every session belongs to a project. Facts of the tenant
// have no session.
func (p *projection) show(m message) {
	m.Seq = p.seq()
	m.Rev, m.TsMs, m.ProjectRoot = m.Seq, p.e.At.UnixMilli(), p.v.root
	switch b := p.e.Body.(type) {
	case parley.MissionSet:
		m.ProjectRoot = cmp.Or(b.Project, p.v.root)
	case parley.MissionCleared:
		m.ProjectRoot = cmp.Or(b.Project, p.v.root)
	case parley.OverrideSet:
		m.ProjectRoot = cmp.Or(b.Project, p.v.root)
	}
	if p.e.Session != parley.TenantSession {
		m.SessionID, m.SessionName = p.e.Session, p.v.name
	}
	if len(p.frames) == perEvent {
		// a mistake in this package; see TestEventsHaveAtMostEightMessages
		panic(fmt.Sprintf("%T is more than %d messages", p.e.Body, perEvent))
	}
	p.frames = append(p.frames, dialect.Frame{Body: m, PerClient: p.v.partial})
}

// seq returns the seq of the next message.
func (p *projection) seq() int64 { return int64(p.e.Position)*perEvent + int64(len(p.frames)) }

// named returns an id that contains the seq of the next message.
func (p *projection) named(format string) string { return fmt.Sprintf(format, p.seq()) }

// byAgent returns an id for the next message, with the kind, the agent and the seq.
func (p *projection) byAgent(kind string) string {
	return fmt.Sprintf("%s-%s-%d", kind, p.v.agent, p.seq())
}

// delegates returns the agent and its run. The run is empty if it has already ended.
func (p *projection) delegates() descent {
	by := descent{Parent: orNull(p.v.agent)}
	if p.e.Run != 0 {
		by.Run = orNull(runName(p.e.Session, p.e.Run))
	}
	return by
}

// escape escapes a name for use in a format string.
func escape(name string) string { return strings.ReplaceAll(name, "%", "%%") }

func text(format string, args ...any) *string {
	s := fmt.Sprintf(format, args...)
	return &s
}

func (p *projection) sync(agent string) {
	p.show(message{ID: p.named("run-sync-%d"), Kind: "run", Phase: "sync", Text: text("State updated"), AgentID: agent})
}

// says shows a text, unless it is blank.
func (p *projection) says(from, to, role, content string) {
	p.saying(content, said{From: from, To: to, Role: role})
}

func (p *projection) saying(content string, data said) {
	if !parley.IsBlank(content) {
		p.show(message{ID: p.named("msg-%d"), Kind: "message", Text: &content, AgentID: data.From, Data: data})
	}
}

const maxPreview = 100

// unaskedText returns the text that is shown for an autonomous message.
func unaskedText(b parley.InputReceived) string {
	if b.Mission != 0 {
		return idleTriggered
	}
	return followUpDue
}

// idlePrompt shows that an idle agent is prompted. The document has no end for this status: the run follows
// immediately.
func (p *projection) idlePrompt(b parley.InputReceived) {
	p.show(message{ID: fmt.Sprintf("idle-trigger-%s-%d", b.Agent.Name, p.seq()), Kind: "activity", Phase: "doing",
		Text:    text(idleTriggered),
		AgentID: b.Agent.Name, Data: activity{Status: "idle_prompt_triggered", Lifecycle: "doing",
			descent: p.v.descent()}})
}

const idleTriggered = "Idle prompt triggered"

// followUpDue is shown instead of the message of a timer, which is only for the agent.
const followUpDue = "A follow-up is due."

// input shows inputs. They are shown at once, and wait while the agent is busy.
func (p *projection) input() {
	switch b := p.e.Body.(type) {
	case parley.InputReceived:
		waits := p.v.run != 0 || len(p.v.queue) > 0
		if b.Synthetic {
			b.Content = unaskedText(b)
		}
		p.v.queue = append(slices.Clip(p.v.queue), waiting{seq: parley.InputID(p.e.Seq),
			queued: queued{parley.Ref(p.e.Session, p.e.Seq), b.Agent.Name, p.e.Session, clip(b.Content, maxPreview),
				p.e.At.Unix()}})
		if b.Mission != 0 {
			p.idlePrompt(b)
		} else if b.Synthetic { // an autonomous message
			p.says("system", p.v.peer(), "assistant", b.Content)
		} else {
			p.saying(b.Content, said{From: p.v.peer(), To: b.Agent.Name, Role: "user",
				Input: parley.Ref(p.e.Session, p.e.Seq), Images: len(b.Images)})
		}
		if waits {
			p.showQueue(b.Agent.Name, "")
		}
	case parley.InputAdopted:
		// An input that started a run at once was never in the queue.
		if w := p.takeOut(b.Input); b.Input != p.v.trigger || parley.RunID(b.Input)+1 != p.v.run {
			p.showQueue(w.AgentID, "")
		}
	case parley.InputWithdrawn:
		w := p.takeOut(b.Input)
		p.showQueue(w.AgentID, w.ID)
	}
}

func (p *projection) takeOut(id parley.InputID) waiting {
	i := slices.IndexFunc(p.v.queue, func(w waiting) bool { return w.seq == id })
	if i < 0 {
		return waiting{}
	}
	w := p.v.queue[i]
	p.v.queue = slices.Delete(slices.Clone(p.v.queue), i, i+1)
	return w
}

// showQueue shows the inputs that wait for an agent. The run's own input is left out, adopted or not. withdrawn names
// an input that was withdrawn: otherwise clients could not tell it from an adopted one.
func (p *projection) showQueue(agent, withdrawn string) {
	items := []queued{}
	for _, w := range p.v.queue {
		if w.AgentID == agent && w.seq != p.v.trigger {
			items = append(items, w.queued)
		}
	}
	plural := "s"
	if len(items) == 1 {
		plural = ""
	}
	p.show(message{ID: fmt.Sprintf("queue-%s|%s|%s", p.v.root, p.e.Session, agent), Kind: "queue", AgentID: agent,
		Text: text("Queued %d message%s", len(items), plural), Data: queue{items, withdrawn}})
}

func (p *projection) token(kind parley.OutputKind, phase, text string) {
	m := message{ID: p.byAgent("token"), Kind: "token", Phase: phase, Text: &text, AgentID: p.v.agent}
	if kind == parley.Thinking {
		m.Data = thinking{true}
	}
	p.show(m)
}

// said ends an output. If its chunks were deleted from the log, it shows the remaining text.
func (p *projection) said(b parley.OutputFinished) {
	rest := b.Text[min(p.v.shown, len(b.Text)):]
	p.v.shown = 0
	p.token(b.Kind, "done", rest)
	p.frames[len(p.frames)-1].PerClient = p.v.partial || rest != ""
	if b.Kind != parley.Text {
		return
	}
	p.v.answer = append(slices.Clip(p.v.answer), b.Text)
	if !parley.IsBlank(b.Text) {
		p.show(message{ID: p.byAgent("text-seg"), Kind: "text_segment", Text: &b.Text, AgentID: p.v.agent,
			Data: textSegment{p.v.descent()}})
	}
}

// turned shows the answer if the turn gave it. Text before tool calls was
// already shown.
func (p *projection) turned(b parley.TurnFinished) {
	switch b.Stop {
	case parley.StopEnd, parley.StopLength, parley.StopRefusal:
		p.says(p.v.agent, p.v.peer(), "assistant", strings.Join(p.v.answer, ""))
	case parley.StopCut:
		p.v.cut = true // the next turn continues the text
		return
	}
	p.v.answer = nil
}

func (p *projection) finished(b parley.RunFinished) {
	switch b.Outcome {
	case parley.Cancelled:
		p.rest("Cancelled")
	case parley.Completed:
		p.rest("")
	default:
		p.rest("")
		why := b.Message
		if parley.IsBlank(why) {
			why = "The agent failed."
		}
		p.says("system", p.v.peer(), "assistant", why)
	}
	p.resolved(string(b.Outcome), p.v.cards...) // calls of unknown outcome that are not resolved
	out := outcome{Type: "none", Run: b.Outcome, Message: b.Message}
	switch {
	case p.v.task != nil:
		out.Type, out.task = "task", p.v.task
	case p.v.plan != nil && p.v.plan.Status == parley.PlanProposed:
		out.Type, out.plan = "plan", p.v.plan
	}
	p.show(message{ID: p.byAgent("run-outcome"), Kind: "run", Phase: "outcome", Text: text("Run outcome"),
		AgentID: p.v.agent, Data: runOutcome{out}})
	done := turnComplete{Tokens: p.v.tokens, descent: p.v.descent()}
	if !p.v.started.IsZero() {
		ms := p.e.At.Sub(p.v.started).Milliseconds()
		done.Duration = &ms
	}
	p.show(message{ID: p.byAgent("turn-complete"), Kind: "turn_complete", AgentID: p.v.agent, Data: done})
	p.v = View{root: p.v.root, name: p.v.name, agent: p.v.agent, parent: p.v.parent, queue: p.v.queue}
}

func (p *projection) planned(b parley.PlanChanged) {
	shown := plan{b.Summary, b.Items, b.Status, b.Text}
	if shown.Items == nil {
		shown.Items = []parley.PlanItem{}
	}
	if p.v.run != 0 {
		p.v.plan = &shown
	}
	p.show(message{ID: p.byAgent("run-plan"), Kind: "run", Phase: "plan_update", Text: text("Plan updated"),
		AgentID: p.v.agent, Data: planUpdate{shown}})
	if b.Status == parley.PlanRejected {
		p.says(p.v.peer(), p.v.agent, "user", "Plan rejected.") // an approval is an input of its own
	}
}

func (p *projection) changed(b parley.FilesChanged) {
	if len(b.Files) == 0 { // the run was ended from outside and changed no files
		return
	}
	run := cmp.Or(b.After, p.e.Run)
	report := changeReport{Run: parley.Ref(p.e.Session, parley.Seq(run)), Files: []fileChange{}, Truncated: b.Truncated}
	for _, f := range b.Files {
		report.Files = append(report.Files, fileChange(f))
	}
	p.show(message{ID: p.byAgent("run-change-report"), Kind: "run", Phase: "change_report", Text: text("Change report"),
		AgentID: p.v.agent, Data: report})
}

func (p *projection) undone(b parley.ChangesUndone) {
	p.show(message{ID: p.byAgent("run-changes-undone"), Kind: "run", Phase: "changes_undone",
		Text: text("Changes undone"), AgentID: p.v.agent, Data: changesUndone{
			Run: parley.Ref(p.e.Session, parley.Seq(b.Run)), Files: append([]parley.UndoneFile{}, b.Files...),
			Problem: b.Problem}})
}

func (p *projection) measured(b parley.ContextMeasured) {
	p.v.tokens = &b.Tokens
	usage := contextUsage{Stage: "turn", Messages: b.Messages, Tokens: b.Tokens, Limit: b.Limit}
	if !b.Estimated {
		usage.Prompt = &b.Tokens
	}
	p.context(usage)
}

func (p *projection) context(usage contextUsage) {
	usage.AgentID = p.v.agent
	p.show(message{ID: "run-context-" + p.v.agent, Kind: "run", Phase: "context_usage", AgentID: p.v.agent,
		Data: usage})
}

// taskOf returns the task in the arguments of finalize_task.
func taskOf(arguments string) *task {
	t := task{Stories: []string{}, Acceptance: []string{}}
	var given struct {
		Title      string   `json:"title"`
		Stories    []string `json:"user_stories"`
		Acceptance []string `json:"acceptance_criteria"`
	}
	if json.Unmarshal([]byte(arguments), &given) != nil {
		return nil
	}
	t.Title = given.Title
	t.Stories, t.Acceptance = append(t.Stories, given.Stories...), append(t.Acceptance, given.Acceptance...)
	return &t
}
