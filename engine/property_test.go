package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley"
	"parley/checker"
	"parley/port"
)

// TestAnythingMayHappen drives a session with random commands, reports, stale
// reports, clock jumps and crashes, on a real store. The checker then reads the
// log. The session's state must always equal the state that the log folds to,
// and a replaced writer must not append.
func TestAnythingMayHappen(t *testing.T) { onEveryStore(t, anythingMayHappen) }

// TestKeptCasesAreReplayed checks the name of the folder with kept cases: rapid
// replays a case only from the folder of the test's current name.
func TestKeptCasesAreReplayed(t *testing.T) {
	files, err := filepath.Glob("testdata/rapid/*/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases were kept: %v", err)
	}
	for _, f := range files {
		if ok, err := filepath.Match("testdata/rapid/TestAnythingMayHappen_sqlite/TestAnythingMayHappen_sqlite-*.fail",
			f); err != nil || !ok {
			t.Errorf("%s is not found by any test", f)
		}
	}
}

func anythingMayHappen(t *testing.T, open func() port.Store) {
	store := open()
	defer store.Close()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		m := &machine{t: t, store: store, id: parley.SessionID(fmt.Sprintf("33333333-3333-4333-8333-%012x", n)),
			now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		m.load()
		m.command(parley.OpenSession{})
		m.input()
		for range rapid.IntRange(40, 120).Draw(t, "steps") {
			rapid.SampledFrom(actions).Draw(t, "action").do(m)
			m.check()
		}
		m.finish()
	})
}

// actions lists likelier actions more than once: a session has to make progress
// before it is worth disturbing.
var actions = func() (list []action) {
	for _, a := range []struct {
		action
		weight int
	}{
		{action{"work", (*machine).work}, 24},
		{action{"input", (*machine).input}, 5},
		{action{"answer", (*machine).answer}, 5},
		{action{"crash", (*machine).load}, 4},
		{action{"explain", (*machine).explain}, 3},
		{action{"revoke", (*machine).revoke}, 1},
		{action{"resolve", (*machine).resolve}, 3},
		{action{"plan", (*machine).plan}, 2},
		{action{"forget", (*machine).forget}, 1},
		{action{"stale", (*machine).stale}, 2},
		{action{"clock", (*machine).clock}, 2},
		{action{"cancel", (*machine).cancel}, 2},
		{action{"zombie", (*machine).zombie}, 1},
		{action{"repeat", (*machine).repeat}, 1},
		{action{"admin", (*machine).admin}, 1},
	} {
		list = append(list, slices.Repeat([]action{a.action}, a.weight)...)
	}
	return list
}()

type action struct {
	name string
	do   func(*machine)
}

func (a action) String() string { return a.name }

// A machine is a session whose workers the test plays.
type machine struct {
	t     *rapid.T
	store port.Store
	id    parley.SessionID
	now   time.Time
	s     *session

	requests int
	reports  []parley.Report // made so far; a late worker may send each of them again
	last     parley.Command  // the last command with an id
	receipt  port.Receipt

	kept *parley.Transcript // read while the log grew
	told []parley.Message   // messages at the last check
}

func (m *machine) load() {
	var err error
	if m.s, err = load(context.Background(), m.store, acme, m.id, 7); err != nil {
		m.t.Fatal("load:", err)
	}
	m.take(parley.Report{At: m.now, Body: parley.Recover{}})
	if err := m.s.hold(context.Background()); err != nil {
		m.t.Fatal("hold:", err)
	}
}

func always([]parley.Step) bool { return true }

func (m *machine) take(in parley.In) []parley.Event {
	events, err := m.s.apply(context.Background(), entry{in: in, mayContinue: always})
	if _, broken := errors.AsType[*brokenError](err); broken {
		m.t.Fatalf("%+v: %v", in, err)
	}
	return events
}

// command submits a command with an id of its own; a refusal is fine.
func (m *machine) command(do parley.CommandBody) {
	m.requests++
	c := parley.Command{ID: parley.CommandID(fmt.Sprint("c", m.requests)), Tenant: acme, Session: m.id, By: "ann",
		At: m.now, Do: do}
	receipt := port.StoredReceipt{Receipt: port.Receipt{Session: m.id, Command: c.ID}, Digest: digest(do),
		By: "ann"}
	before := m.s.state.Head
	events, err := m.s.apply(context.Background(), entry{in: c, receipt: &receipt, mayContinue: always})
	if _, broken := errors.AsType[*brokenError](err); broken {
		m.t.Fatalf("%+v: %v", do, err)
	}
	if err != nil && m.s.state.Head != before {
		m.t.Fatalf("%+v was refused and left a trace", do)
	}
	if len(events) > 0 {
		m.last, m.receipt = c, receipt.Receipt
	}
}

// repeat checks that the receipt of an accepted command can be found for ever.
func (m *machine) repeat() {
	if m.last.ID == "" {
		return
	}
	got, ok, err := m.store.Tenant(acme).Receipt(context.Background(), m.id, m.last.ID)
	if err != nil || !ok || got.Receipt != m.receipt || got.Digest != digest(m.last.Do) {
		m.t.Fatalf("receipt of %+v: %+v, %v, %v; want %+v", m.last, got, ok, err, m.receipt)
	}
}

func (m *machine) input() {
	agent := parley.AgentRef{Name: "puppet", Turns: rapid.IntRange(1, 6).Draw(m.t, "turns"),
		Files:  rapid.Bool().Draw(m.t, "files"),
		Remote: rapid.IntRange(0, 3).Draw(m.t, "elsewhere") == 0, Autonomy: unasked}
	m.command(parley.SubmitInput{
		Content: rapid.SampledFrom([]string{"hello", " ", "a\x00b", "\u200b", "long text"}).Draw(m.t, "content"),
		Request: fmt.Sprint("r", m.requests), Agent: agent,
		Busy: rapid.SampledFrom([]parley.BusyMode{"", parley.Queue, parley.Steer}).Draw(m.t, "busy"),
		Mode: rapid.SampledFrom([]parley.RunMode{"", "", parley.ModePlan}).Draw(m.t, "mode"),
	})
}

func (m *machine) cancel() {
	if queue := m.s.state.Queue; len(queue) > 0 && rapid.Bool().Draw(m.t, "take back") {
		m.command(parley.WithdrawInput{Input: rapid.SampledFrom(queue).Draw(m.t, "waiting").ID})
		return
	}
	m.command(parley.CancelRun{
		Request: rapid.SampledFrom([]string{"", fmt.Sprint("r", m.requests/2), fmt.Sprint("r", m.requests-1)}).Draw(m.t,
			"request"),
	})
}

// someSeq returns the seq of a recent event, most likely one of the open run.
func (m *machine) someSeq() int64 {
	head := int64(m.s.state.Head)
	return rapid.Int64Range(max(0, head-12), head).Draw(m.t, "seq")
}

func (m *machine) answer() {
	for _, card := range m.cards() {
		if rapid.Bool().Draw(m.t, "this one") {
			m.command(parley.DecideApproval{Card: card, Note: "because",
				Scope: rapid.SampledFrom([]parley.GrantScope{"", "", parley.ScopeSimilar}).Draw(m.t, "scope"),
				Decision: rapid.SampledFrom([]parley.Decision{parley.AllowOnce, parley.AllowAlways, parley.Deny,
					parley.DenyAndStop, "maybe"}).Draw(m.t, "decision")})
			m.command(parley.AnswerQuestion{Card: card, Answers: [][]string{{"yes"}}})
		}
	}
	m.command(parley.AnswerQuestion{Card: parley.CardID(m.someSeq())})
}

// revoke revokes a grant, which need not exist.
func (m *machine) revoke() {
	grant := parley.GrantID(m.someSeq())
	if n := len(m.s.state.Always); n > 0 && rapid.Bool().Draw(m.t, "one that holds") {
		grant = m.s.state.Always[rapid.IntRange(0, n-1).Draw(m.t, "grant")].ID
	}
	m.command(parley.RevokeGrant{Grant: grant})
}

// explain asks for an explanation of a card. A second request during the
// explanation changes nothing.
func (m *machine) explain() {
	m.command(parley.ExplainApproval{Card: parley.CardID(m.someSeq())})
	for _, card := range m.cards() {
		m.command(parley.ExplainApproval{Card: card})
		before := m.s.state.Head
		m.command(parley.ExplainApproval{Card: card})
		if m.s.state.Head != before {
			m.t.Fatalf("card %d is being explained, and to ask again led to %d events", card, m.s.state.Head-before)
		}
	}
}

func (m *machine) cards() (list []parley.CardID) {
	if r := m.s.state.Run; r != nil {
		for _, c := range r.Calls {
			if c.Card != 0 {
				list = append(list, c.Card)
			}
		}
	}
	return list
}

func (m *machine) resolve() {
	call := parley.CallID(m.someSeq())
	if r := m.s.state.Run; r != nil {
		for _, c := range r.Calls {
			if c.Status == "lost" {
				call = c.ID
			}
		}
	}
	m.command(parley.ResolveToolCall{Call: call,
		Resolution: rapid.SampledFrom([]parley.Resolution{parley.Rerun, parley.MarkDone, parley.Abandon, "shrug"}).Draw(
			m.t, "resolution")})
}

func (m *machine) plan() {
	m.command(parley.DecidePlan{Text: rapid.SampledFrom([]string{"", "otherwise"}).Draw(m.t, "text"),
		Agent: parley.AgentRef{Name: "puppet", Turns: 3},
		Decision: rapid.SampledFrom([]parley.PlanDecision{parley.ApprovePlan, parley.ApprovePlan, parley.RejectPlan,
			parley.EditPlan, "shrug"}).Draw(m.t, "decision")})
}

// unasked is the autonomy of the agents in these sessions.
var unasked = parley.Autonomy{Enabled: true, MaxConsecutive: 2, CooldownMS: 60000, MaxFollowUps: 3, Evaluator: "judge"}

// forget cancels a follow-up, which need not exist.
func (m *machine) forget() {
	timer := parley.TimerID(m.someSeq())
	if n := len(m.s.state.Timers); n > 0 && rapid.Bool().Draw(m.t, "one that waits") {
		timer = m.s.state.Timers[rapid.IntRange(0, n-1).Draw(m.t, "timer")].ID
	}
	m.command(parley.CancelTimer{Timer: timer})
}

// fire makes the clock fire a timer. It must change the state, or else the
// engine would repeat it for ever.
func (m *machine) fire(step parley.Fire) {
	before := m.s.state.Head
	agent := parley.AgentRef{Name: "puppet", Turns: 3, Autonomy: unasked}
	if rapid.IntRange(0, 9).Draw(m.t, "switched off") == 0 {
		agent.Autonomy = parley.Autonomy{}
	}
	m.take(parley.Command{Tenant: acme, Session: m.id, At: m.now,
		Do: parley.FireTimer{Timer: step.Timer, Agent: agent}})
	if m.s.state.Head == before {
		m.t.Fatalf("%+v was due, and nothing came of it", step)
	}
}

func (m *machine) admin() {
	m.command(rapid.SampledFrom([]parley.CommandBody{
		parley.HaltSession{Reason: "enough"}, parley.ReopenSession{}, parley.ReopenSession{},
		parley.RenameSession{Title: "x"},
		parley.RenameSession{}, parley.OpenSession{}, parley.DeleteSession{}, parley.CompactContext{},
		parley.CompactContext{},
	}).Draw(m.t, "command"))
}

func (m *machine) clock() {
	m.now = m.now.Add(time.Duration(rapid.Int64Range(-3600, 7200).Draw(m.t, "seconds")) * time.Second)
}

// work makes a worker of one of the wanted steps send a report.
func (m *machine) work() {
	for _, step := range parley.Next(m.s.state, m.now) {
		switch step := step.(type) {
		case parley.CallModel:
			body := m.modelSays
			if step.Agent.Remote {
				body = m.remoteSays
			}
			m.report(parley.Report{Run: step.Run, Turn: step.Turn, Body: body()})
		case parley.CallTool:
			m.report(parley.Report{Run: step.Run, Call: step.Call, Body: m.toolSays()})
		case parley.Compact:
			m.report(parley.Report{Body: m.summary(step)})
		case parley.RunChild:
			if rapid.Bool().Draw(m.t, "returns") {
				m.report(parley.Report{Run: step.Run, Call: step.Call, Body: parley.ChildEnded{Child: step.Child,
					Outcome: parley.Completed, Result: "r"}})
			}
		case parley.StopChild:
			m.report(parley.Report{Body: parley.ChildEnded{Child: step.Child, Outcome: parley.Cancelled}})
		case parley.ReportChanges:
			found := parley.ChangesFound{Turns: step.Turns}
			if rapid.Bool().Draw(m.t, "changed") {
				found.Files = []parley.FileChange{{Path: "x", Summary: "Modified"}}
			}
			m.report(parley.Report{Run: step.Run, Body: found})
		case parley.Explain:
			m.report(parley.Report{Run: step.Run, Call: step.Call, Body: parley.ExplanationEnded{Text: "it writes",
				Usage: parley.Usage{Output: 2}}})
		case parley.Fire:
			m.fire(step)
			return // the other steps do not change
		case parley.Evaluate:
			ended := parley.EvaluationEnded{Run: step.Run}
			if rapid.Bool().Draw(m.t, "comes back") {
				ended.FollowUp = &parley.FollowUp{
					Delay: time.Duration(rapid.IntRange(0, 600).Draw(m.t, "delay")) * time.Second, Reason: "to ask"}
			}
			m.report(parley.Report{Body: ended})
		case parley.LogOn:
			m.take(parley.Report{At: m.now, Body: parley.Advance{}})
		}
	}
}

func (m *machine) report(r parley.Report) {
	r.At = m.now
	m.reports = append(m.reports, r)
	m.take(r)
}

// stale repeats a report, as a worker does that was not told to stop. Unless
// its step is still wanted, the report may only lead to a LateResultNoted.
func (m *machine) stale() {
	if len(m.reports) == 0 {
		return
	}
	r := rapid.SampledFrom(m.reports).Draw(m.t, "report")
	r.At = m.now
	wanted := false
	for _, step := range parley.Next(m.s.state, m.now) {
		switch step := step.(type) {
		case parley.CallModel:
			wanted = wanted || step.Run == r.Run && step.Turn == r.Turn
		case parley.CallTool:
			wanted = wanted || step.Run == r.Run && step.Call == r.Call
		case parley.RunChild:
			ended, ok := r.Body.(parley.ChildEnded)
			wanted = wanted || ok && ended.Child == step.Child
		case parley.StopChild:
			ended, ok := r.Body.(parley.ChildEnded)
			wanted = wanted || ok && ended.Child == step.Child
		case parley.Compact:
			ended, ok := r.Body.(parley.CompactionEnded)
			wanted = wanted || ok && ended.Since == step.Since
		case parley.ReportChanges:
			found, ok := r.Body.(parley.ChangesFound)
			wanted = wanted || ok && step.Run == r.Run && step.Turns == found.Turns
		case parley.Explain:
			wanted = wanted || step.Run == r.Run && step.Call == r.Call
		case parley.Evaluate:
			ended, ok := r.Body.(parley.EvaluationEnded)
			wanted = wanted || ok && ended.Run == step.Run
		}
	}
	events, err := parley.Decide(m.s.state, r)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range events {
		if _, late := e.Body.(parley.LateResultNoted); !late && !wanted {
			m.t.Fatalf("%+v is not wanted any more and led to %T", r, e.Body)
		}
	}
	m.take(r)
}

// zombie lets another writer load and write the session. The old writer must be
// fenced, and must not have changed anything.
func (m *machine) zombie() {
	old := m.s
	m.load()
	m.command(parley.RenameSession{Title: fmt.Sprint("title ", m.requests)})
	if m.s.state.Head == old.state.Head {
		return // nothing was written, so the old writer was not replaced yet
	}
	head := m.s.state.Head
	_, err := old.apply(context.Background(),
		entry{in: parley.Command{Tenant: acme, Session: m.id, By: "ann", At: m.now,
			Do: parley.RenameSession{Title: "zombie"}}})
	if err == nil || !errors.Is(err, errFenced) {
		m.t.Fatalf("a writer that was replaced was not fenced: %v", err)
	}
	if st, err := m.store.Tenant(acme).Session(context.Background(), m.id); err != nil || st.Summary.Head != head {
		m.t.Fatalf("a writer that was replaced wrote: %+v, %v", st, err)
	}
}

// finish checks that the session comes to rest if no more commands come and
// every worker does its work.
func (m *machine) finish() {
	for range 1000 {
		steps := parley.Next(m.s.state, m.now)
		busy := false
		for _, step := range steps {
			switch step := step.(type) {
			case parley.CallModel:
				m.report(parley.Report{Run: step.Run, Turn: step.Turn, Body: parley.ModelEnded{Stop: parley.StopEnd}})
				busy = true
			case parley.CallTool:
				m.report(parley.Report{Run: step.Run, Call: step.Call,
					Body: parley.ToolEnded{Outcome: parley.CallSucceeded}})
				busy = true
			case parley.RunChild:
				m.report(parley.Report{Run: step.Run, Call: step.Call, Body: parley.ChildEnded{Child: step.Child,
					Outcome: parley.Completed}})
				busy = true
			case parley.StopChild:
				m.report(parley.Report{Body: parley.ChildEnded{Child: step.Child, Outcome: parley.Cancelled}})
				busy = true
			case parley.Compact:
				m.report(parley.Report{Body: parley.CompactionEnded{Since: step.Since, Code: parley.CodeModel,
					Message: "no"}})
				busy = true
			case parley.ReportChanges:
				m.report(parley.Report{Run: step.Run, Body: parley.ChangesFound{Turns: step.Turns}})
				busy = true
			case parley.Explain:
				m.report(parley.Report{Run: step.Run, Call: step.Call,
					Body: parley.ExplanationEnded{Text: "it writes"}})
				busy = true
			case parley.Fire:
				m.fire(step)
				busy = true
			case parley.Evaluate:
				m.report(
					parley.Report{Body: parley.EvaluationEnded{Run: step.Run, Code: parley.CodeModel, Message: "no"}})
				busy = true
			case parley.LogOn:
				m.take(parley.Report{At: m.now, Body: parley.Advance{}})
				busy = true
			}
		}
		if !busy {
			break
		}
	}
	m.check()
	for _, err := range checker.Settled(m.log()) {
		m.t.Fatalf("%v\n%s", err, story(m.log()))
	}
	if err := m.s.release(context.Background(), true); err != nil {
		m.t.Fatal("release:", err)
	}
	m.t.Log(m.s.state.Head, "events")
}
