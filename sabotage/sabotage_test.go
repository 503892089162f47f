// Package sabotage tests the tests. Each entry plants one bug, by handing the
// compiler a changed copy of one file, and demands that the tests named beside
// it fail. The tree itself is never touched, and no code has a hook for it.
package sabotage

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A bug replaces old, which must stand exactly once in the file, by new.
type bug struct {
	what     string // it breaks
	file     string
	old, new string
	pkg, run string // the tests that must notice
}

var bugs = []bug{
	// I1, I2, I3: the log is the truth, has one writer, and is followed gaplessly.
	{"a writer that was replaced is not fenced by its epoch", "store/sqlite/append.go",
		"AND head = ? AND epoch <= ?`", "AND head = ? AND ? >= 0`", "./store/sqlite", "TestStore"},
	{"a writer that builds on another head is not fenced", "store/sqlite/append.go",
		"AND head = ? AND epoch <= ?`", "AND ? >= 0 AND epoch <= ?`", "./store/sqlite", "TestStore"},
	{"the engine does not notice that it is fenced", "engine/session.go",
		"if err == nil && res.Fenced {", "if false {", "./engine", "TestAnythingMayHappen"},
	{"a batch that cannot be stored takes its neighbours along", "store/sqlite/append.go",
		"if err != nil && len(group) > 1 {", "if false {", "./store/sqlite", "TestStore"},
	{"power loss loses what was accepted", "store/sqlite/store.go",
		"synchronous(FULL)", "synchronous(NORMAL)", "./store/sqlite", "TestPowerLossIsSurvived"},
	{"a window of recent events has a gap", "feed/window.go",
		"if !w.known || before != w.end() {", "if !w.known {", "./feed", "TestNothingIsMissed"},
	{"a follower of a tree skips what it was not shown", "feed/feed.go",
		"if e.Root == f.root {", "if e.Root == f.root && e.Seq%7 != 0 {", "./feed", "TestNothingIsMissed"},
	{"a follower is not woken when a tail begins", "feed/window.go",
		"w.known, w.from = true, at\n\tw.wake()", "w.known, w.from = true, at", "./feed", "TestALateTailLosesNothing"},
	{"what a failed commit stored is not shown", "engine/actor.go",
		"e.Feed.Reread(a.tenant, a.session)", "", "./engine", "TestWhatWasCommittedIsShown"},
	{"nothing that is stored is shown", "engine/actor.go",
		"a.engine.Feed.Publish(a.tenant, events)", "a.engine.Feed.Publish(a.tenant, append(events[:0:0], events[:len(events)*0]...))", "./engine", "TestFollowersSeeTheLog"},

	// I4: the functions are pure.
	{"folding changes the state it was given", "state.go",
		"r.Calls = slices.Clone(r.Calls)\n\t\t\tchange(&r.Calls[i])", "change(&r.Calls[i])", ".", "TestFoldIsPure"},
	{"the clock of a log goes back", "decide.go",
		"if at.Before(d.s.LastAt) {", "if false {", ".", "TestClocksGoBackLogsDoNot"},

	// I5: a run ends once, or waits visibly.
	{"an input that was adopted is answered again", "state.go",
		"s.Queue = without(s.Queue, i)\n\t\t\ts = s.withRun", "s = s.withRun", "./engine", "TestAnythingMayHappen"},
	{"a run is interrupted one cut too early", "decide.go",
		"r.Cuts >= MaxCuts:", "r.Cuts >= MaxCuts-1:", "./engine", "TestPrefixes"},
	{"a run completes before it has answered", "decide.go",
		"case r.Turns > 0 && r.Stop != StopTools", "case r.Stop != StopTools", "./engine", "TestPrefixes"},
	{"a run that a crash cut is not found again", "engine/session.go",
		"if s.due == nil || !sameDue(*s.due, due) {", "if false {", "./engine", "TestACutRunGoesOn"},
	{"a crash leaves the model's half-said text open", "decide.go",
		"d.finishOutput(true)\n\tfor _, c := range r.Calls {\n\t\td.cancelCall(c)\n\t}\n\td.emit(r.ID, TurnFinished{Turn: r.Turn.ID, Stop: StopCut", "d.emit(r.ID, TurnFinished{Turn: r.Turn.ID, Stop: StopCut", "./engine", "TestPrefixes"},
	{"the queue has no limit", "decide.go",
		"len(d.s.Queue) >= MaxQueue", "len(d.s.Queue) > MaxQueue", ".", "TestTheQueueIsBounded"},

	// I6: a call ends once, and nothing is silently done twice.
	{"after a crash a call with an effect is run again", "decide.go",
		"if c.Class == Pure || c.Class == Idempotent {", "if true {", "./engine", "TestPrefixes"},
	{"a call is started twice", "decide.go",
		"case CallReady:\n\t\td.emit(run, ToolCallStarted{Call: c.ID, Attempt: 1})", "case CallReady:\n\t\td.emit(run, ToolCallStarted{Call: c.ID, Attempt: 1})\n\t\td.emit(run, ToolCallStarted{Call: c.ID, Attempt: 2})", "./engine", "TestPrefixes"},

	{"a peaceful stop leaves a call unperformed", "engine/actor.go",
		"if a.workers[step] == nil {", "if a.workers[step] == nil && !e.draining.Load() {", "./engine", "TestAPeacefulStopMakesNothingUnknown"},
	{"what cannot be stored as it is runs all the same", "engine/worker.go",
		"case !utf8.ValidString(c.Name + c.Arguments + c.Provider):", "case !utf8.ValidString(\"\"):", "./engine", "TestTextIsStoredAsShown"},

	// I7: after a cancel there is silence.
	{"a cancel leaves text open", "decide.go",
		"if r.Turn != nil {\n\t\td.finishOutput(true)\n\t}", "", "./engine", "TestPrefixes"},
	{"late evidence gets into the run", "decide.go",
		"d.emit(0, LateResultNoted{", "d.emit(rep.Run, LateResultNoted{", "./engine", "TestAnythingMayHappen"},
	{"a model that was told to stop is still heard", "decide.go",
		"return r != nil && r.ID == rep.Run && r.Turn != nil && r.Turn.ID == rep.Turn", "return r != nil && r.Turn != nil", "./engine", "TestAnythingMayHappen|TestCancelThenSilence"},
	{"the next run does not wait for the last one's workers", "engine/actor.go",
		"for step := range a.workers {\n\t\tif !wants(steps, step) {\n\t\t\treturn false", "for step := range a.workers {\n\t\tif !wants(steps, step) {\n\t\t\treturn true", "./engine", "TestNextRunWaitsForTheLastOnesWorkers"},

	// I8: a command repeated under its id has one effect.
	{"receipts are not looked for", "engine/actor.go",
		"case ok:\n\t\t\tfirst.Repeated = true\n\t\t\treturn first.Receipt, nil", "", "./engine", "TestCommandsHaveOneEffect"},
	{"receipts are not kept", "store/sqlite/append.go",
		"if r := b.Receipt; r != nil {", "if r := b.Receipt; r != nil && r.Command == \"\" {", "./engine", "TestCommandsHaveOneEffect"},

	// I9: an approval covers what was shown, once, in time.
	{"an expired approval can still be given", "decide.go",
		"c.Status != CallApproving || !d.at.Before(c.Expires):", "c.Status != CallApproving:", ".", "TestApprovals"},
	{"always covers everything", "decide.go",
		"!slices.Contains(d.s.Always, v.Digest)):", "len(d.s.Always) == 0):", ".", "TestApprovals"},
	{"a call starts before it was allowed", "decide.go",
		"case v.Kind == VerdictAsk && (v.Digest == \"\" || !slices.Contains(d.s.Always, v.Digest)):", "case false:", "./engine", "TestPrefixes"},

	// I10: nothing crosses tenants, and what no rule permits is denied.
	{"what no role permits is permitted", "access/access.go",
		"return parley.Errorf(parley.CodeForbidden, \"You may not do this: it needs %s.\", action)", "return nil", "./engine", "TestRefusals"},
	{"a tenant's log shows another's", "store/sqlite/read.go",
		"WHERE tenant = ? AND position > ? ORDER BY", "WHERE tenant <> ? AND position > ? ORDER BY", "./store/sqlite", "TestStore"},
	{"rights are not asked about when following", "engine/door.go",
		"if err := e.Access.Permit(who, parley.ActRead, parley.Resource{Tenant: who.Tenant, Session: id, Owner: m.Owner}); err != nil {", "if false {\n\t\tvar err error", "./engine", "TestRefusals"},

	// What a dialect shows and takes.
	{"thinking is shown as text", "dialect/threadchat/project.go",
		"if v.run != 0 && b.Kind == parley.Text {", "if v.run != 0 {", "./dialect/threadchat", "TestTranscripts"},
	{"of two keys the last one counts", "dialect/object.go",
		"if _, twice := o[name]; twice {", "if _, twice := o[name]; twice && false {", "./dialect/threadchat", "TestTranscripts"},

	// I13: memory is bounded.
	{"the window of recent events grows without end", "feed/window.go",
		"len(w.items)-drop > windowEvents || w.bytes > windowBytes && drop < len(w.items)", "drop < len(w.items) && w.bytes < 0", "./feed", "TestASlowFollowerCostsNothing"},
}

func TestEveryBugIsNoticed(t *testing.T) {
	if os.Getenv("PARLEY_SABOTAGE") == "" {
		t.Skip("planting bugs takes minutes; make sabotage does it")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bugs {
		t.Run(strings.ReplaceAll(b.what, " ", "_"), func(t *testing.T) {
			t.Parallel() // most of them wait for something that never comes
			overlay := plant(t, root, b)
			args := []string{"test", "-count=1", "-timeout", "3m", "-failfast", "-run", "^(" + b.run + ")$", b.pkg}
			if b.pkg == "./engine" || b.pkg == "./e2e" {
				args[len(args)-2] += "/^sqlite$" // where they run on several stores, one is enough
			}
			if b.pkg == "./engine" {
				args = append(args, "-rapid.shrinktime=1s") // that it fails is enough
			}
			cmd := exec.Command("go", args...)
			cmd.Dir = root
			// By the environment, so that tests that build the program get it too.
			cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
			out, err := cmd.CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("nobody noticed:\n%s", out)
			case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic: "):
				t.Errorf("no test failed, something else did:\n%s", out)
			}
		})
	}
}

// plant writes the changed file, and the overlay that puts it in place.
func plant(t *testing.T, root string, b bug) string {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(b.file))
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), b.old); n != 1 {
		t.Fatalf("%s has %d places like\n%s\nthe bug can no longer be planted there", b.file, n, b.old)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), b.old, b.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
