package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// notebook is a port.Changes that finds one changed file, x, after every run.
// Its answers may wait, fail or panic.
type notebook struct {
	noting  func() // is called when files are noted
	asked   chan struct{}
	answers chan error // one for each call of Since; nil: it does not wait

	mu    sync.Mutex
	notes []string
	since []string

	mayUndo error      // why changes cannot be undone
	undo    chan error // one for each call of Undo; nil: it does not wait
}

func (n *notebook) MayUndo(context.Context, string) error { return n.mayUndo }

func (n *notebook) Undo(ctx context.Context, _ string) ([]parley.UndoneFile, error) {
	if n.undo != nil {
		n.asked <- struct{}{}
		select {
		case err := <-n.undo:
			if err == errPanic {
				panic(err)
			}
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return []parley.UndoneFile{{Path: "x", Did: parley.FileRestored}}, nil
}

func (n *notebook) Note(_ context.Context, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.noting != nil {
		n.noting()
	}
	n.notes = append(n.notes, name)
	return nil
}

var errPanic = errors.New("panic")

func (n *notebook) Since(ctx context.Context, name string) (parley.FilesChanged, error) {
	n.mu.Lock()
	n.since = append(n.since, name)
	found := parley.FilesChanged{Files: []parley.FileChange{{Path: "x", Summary: "Modified", Diff: "-x\n+y\n"}},
		Truncated: len(n.since)}
	n.mu.Unlock()
	if n.answers == nil {
		return found, nil
	}
	n.asked <- struct{}{}
	select {
	case err := <-n.answers:
		if err == errPanic {
			panic(err)
		}
		return found, err
	case <-ctx.Done():
		return parley.FilesChanged{}, ctx.Err()
	}
}

func (n *notebook) count() (notes, since int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.notes), len(n.since)
}

func noting(t *testing.T, n *notebook) *rig {
	return newRig(t, func(c *Config) { c.Changes = n })
}

// ending returns the types of the last n events of a log.
func ending(log []parley.Event, n int) (types []string) {
	for _, e := range log[len(log)-n:] {
		types = append(types, parley.TypeOf(e.Body))
	}
	return types
}

func TestFilesAreNotedBeforeAnythingIsDone(t *testing.T) {
	n := &notebook{}
	r := noting(t, n)
	n.noting = func() {
		if r.hands.count("do") > 0 && len(n.notes) == 0 {
			t.Error("noted too late")
		}
	}
	id := r.open()
	r.say(id, "call read x | call do x; call read x | call put x | say done")
	log := r.finished(id, 1)
	if got := ending(log, 2); !slices.Equal(got, []string{"FilesChanged", "RunFinished"}) {
		t.Errorf("%v\n%s", got, story(log))
	}
	if notes, since := n.count(); notes != 2 || since != 1 || n.notes[0] != n.notes[1] || n.notes[0] != n.since[0] {
		t.Errorf("noted %q, asked for %q", n.notes, n.since)
	}
	// A run that only reads has no changes to report.
	r.say(id, "call read x | say done")
	if log := r.finished(id, 2); len(all[parley.FilesChanged](log)) != 1 {
		t.Error(story(log))
	}
	if notes, since := n.count(); notes != 2 || since != 1 {
		t.Errorf("noted %q, asked for %q", n.notes, n.since)
	}
	// Changes are reported however the run ends by itself.
	r.do(id, parley.SubmitInput{Content: "call do x | call do x | call do x", Agent: parley.AgentRef{Name: "hasty"}})
	log = r.finished(id, 3)
	if end := all[parley.RunFinished](log)[2]; end.Code != parley.CodeTurnLimit ||
		len(all[parley.FilesChanged](log)) != 2 {
		t.Error(story(log))
	}
	r.check(id)
}

// TestARunIsNotLostForItsReport checks that a run ends even if its report fails
// or panics.
func TestARunIsNotLostForItsReport(t *testing.T) {
	for name, err := range map[string]error{"it fails": errors.New("no"), "it panics": errPanic} {
		t.Run(name, func(t *testing.T) {
			n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
			r := noting(t, n)
			id := r.open()
			n.answers <- err
			r.say(id, "call do x | say done")
			log := r.finished(id, 1)
			if got := all[parley.RunFinished](log)[0].Outcome; got != parley.Completed ||
				len(all[parley.FilesChanged](log)) != 0 {
				t.Error(story(log))
			}
			r.check(id)
		})
	}
}

func TestACrashWhileReporting(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
	r := noting(t, n)
	id := r.open()
	r.say(id, "call do x | say done")
	<-n.asked
	r.restart(true)
	<-n.asked
	n.answers <- nil
	log := r.finished(id, 1)
	if got := ending(log, 2); !slices.Equal(got, []string{"FilesChanged", "RunFinished"}) || r.hands.count("do") != 0 {
		t.Errorf("%v\n%s", got, story(log))
	}
	r.check(id)
}

// TestInputWhileReporting checks a run that gets another input during its
// report. It is reported again after its end, and the first report is dropped.
func TestInputWhileReporting(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
	r := noting(t, n)
	id := r.open()
	r.say(id, "call do x | say done")
	<-n.asked
	r.do(id, input("call do y | say done too", parley.Steer))
	<-n.asked
	n.answers <- nil
	log := r.finished(id, 1)
	changed := all[parley.FilesChanged](log)
	if len(changed) != 1 || changed[0].Truncated != 2 || len(all[parley.RunStarted](log)) != 1 {
		t.Error(story(log))
	}
	r.check(id)
}

// TestCancelWhileReporting checks that cancelling a run voids the report under
// way, and that the report is made again after the end of the run.
func TestCancelWhileReporting(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
	r := noting(t, n)
	id := r.open()
	r.say(id, "call do x | say done")
	<-n.asked
	r.do(id, parley.CancelRun{})
	r.say(id, "say more")
	<-n.asked
	n.answers <- nil
	r.reportedLate(id, parley.Cancelled, 2)
}

// reportedLate waits for a number of runs, the first of which was cancelled or
// halted. It checks that the report of the first run is the first event after
// the run's end.
func (r *rig) reportedLate(id parley.SessionID, outcome parley.Outcome, runs int) {
	r.t.Helper()
	r.finished(id, runs)
	log := r.until(id, "the report", seen[parley.FilesChanged](1))
	end, report := all[parley.RunFinished](log)[0], all[parley.FilesChanged](log)
	if end.Outcome != outcome || !end.ReportFollows || len(report) != 1 || len(report[0].Files) != 1 {
		r.t.Errorf("%+v, %+v", end, report)
	}
	at, next := seqOf[parley.FilesChanged](log, 1), seqOf[parley.RunStarted](log, 2)
	if at < seqOf[parley.RunFinished](log, 1) || next != 0 && next < at {
		r.t.Errorf("the report stands at %d, the next run starts at %d", at, next)
	}
	if e := log[at-1]; e.Run != 0 || report[0].After != parley.RunID(seqOf[parley.RunStarted](log, 1)) {
		r.t.Errorf("%+v", e)
	}
	r.check(id)
}

// TestACancelledRunIsReported checks that a cancelled run is reported when its
// tool has ended, and not before: a process that is being killed may still
// change files.
func TestACancelledRunIsReported(t *testing.T) {
	begins := make(chan struct{})
	n := &notebook{noting: func() { close(begins) }}
	r := noting(t, n)
	r.hands.wait = make(chan struct{})
	id := r.open()
	r.say(id, "call wait x")
	<-begins // the tool has begun, and the cancel below does not stop it
	r.do(id, parley.CancelRun{})
	r.say(id, "say more")
	time.Sleep(10 * time.Millisecond) // an early report would have begun by now
	if _, since := n.count(); since != 0 {
		t.Error("files are compared while the tool runs")
	}
	close(r.hands.wait)
	r.reportedLate(id, parley.Cancelled, 2)
}

// TestAHaltedRunIsReported checks that a halted run is reported, although
// nothing new starts in its session.
func TestAHaltedRunIsReported(t *testing.T) {
	n := &notebook{}
	r := noting(t, n)
	id := r.open()
	r.say(id, "call do x | hang")
	r.until(id, "the second turn", seen[parley.TurnStarted](2))
	r.do(id, parley.HaltSession{Reason: "enough"})
	r.reportedLate(id, parley.Halted, 1)
}

// TestACrashBeforeTheReport checks that the next process reports a cancelled
// run.
func TestACrashBeforeTheReport(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
	r := noting(t, n)
	id := r.open()
	r.say(id, "call do x | hang")
	r.until(id, "the second turn", seen[parley.TurnStarted](2))
	r.do(id, parley.CancelRun{})
	<-n.asked
	r.restart(true)
	<-n.asked
	n.answers <- nil
	r.reportedLate(id, parley.Cancelled, 1)
}

// TestACancelledRunWithoutAReport checks that the session goes on if the files
// cannot be compared, or belong to another tenant now.
func TestACancelledRunWithoutAReport(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
	r := noting(t, n)
	id := r.open()
	n.answers <- errors.New("no")
	r.say(id, "call do x | hang")
	r.until(id, "the second turn", seen[parley.TurnStarted](2))
	r.do(id, parley.CancelRun{})
	r.say(id, "say more")
	log := r.finished(id, 2)
	if got := all[parley.FilesChanged](log); len(got) != 1 || len(got[0].Files) != 0 {
		t.Error(story(log))
	}
	r.check(id)
}

// TestAServerWithoutChanges checks that a run with an open report ends on a
// server that does not track changes.
func TestAServerWithoutChanges(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
	r := noting(t, n)
	id := r.open()
	r.say(id, "call do x | say done")
	<-n.asked
	r.config.Changes = nil
	r.restart(true)
	if log := r.finished(id, 1); len(all[parley.FilesChanged](log)) != 0 {
		t.Error(story(log))
	}
	r.check(id)
}

// TestFileChangesOnlyForTheHomeTenant checks that runs of other tenants neither
// look at the files of the workspace nor report changes of them.
func TestFileChangesOnlyForTheHomeTenant(t *testing.T) {
	n := &notebook{}
	r := newRig(t, func(c *Config) { c.Changes, c.Home = n, "somebody-else" })
	r.do(parley.TenantSession, parley.MakeAgent{Agent: parley.Agent{Name: "helper", Instructions: "obey"}})
	id := r.open()
	r.say(id, "call do x | say done")
	log := r.finished(id, 1)
	if got := all[parley.FilesChanged](log); len(got) != 0 {
		t.Errorf("another tenant's run reports %+v", got)
	}
	if notes, since := n.count(); notes != 0 || since != 0 {
		t.Errorf("another tenant's run looked at the workspace: %q, %q", n.notes, n.since)
	}
	r.check(id)
}

// seenAgents is a toolbox that keeps the agents whose calls it judged.
type seenAgents struct {
	port.Toolbox
	mu   sync.Mutex
	seen []parley.Agent
}

func (s *seenAgents) Judge(agent parley.Agent, name, arguments string) parley.Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, agent)
	return s.Toolbox.Judge(agent, name, arguments)
}

// TestARunLosesTheWorkspaceWithItsTenant restarts the server with another default
// tenant while a run is open. The run goes on with the definition it started with,
// but the workspace is no longer its tenant's.
func TestARunLosesTheWorkspaceWithItsTenant(t *testing.T) {
	n := &notebook{asked: make(chan struct{}, 9), answers: make(chan error, 9)}
	tools := &seenAgents{Toolbox: &hands{}}
	r := newRig(t, func(c *Config) { c.Changes, c.Home, c.Tools = n, acme, tools })
	id := r.open()
	r.say(id, "call ask x | call do x | say done")
	question := card[parley.QuestionAsked](r, id, 1)
	r.config.Home = "somebody-else"
	r.restart(true)
	tools.mu.Lock()
	tools.seen = nil
	tools.mu.Unlock()
	r.do(id, parley.AnswerQuestion{Card: question, Answers: [][]string{{"x"}}})
	log := r.finished(id, 1)
	if got := all[parley.FilesChanged](log); len(got) != 0 {
		t.Errorf("the run reports %+v", got)
	}
	if notes, since := n.count(); notes != 0 || since != 0 {
		t.Errorf("the run looked at the workspace: %q, %q", n.notes, n.since)
	}
	tools.mu.Lock()
	defer tools.mu.Unlock()
	for _, agent := range tools.seen {
		if agent.Tools == nil {
			t.Errorf("the agent %s has every tool of the workspace", agent.Name)
		}
	}
	if len(tools.seen) == 0 {
		t.Error("no call came after the restart")
	}
	r.check(id)
}
