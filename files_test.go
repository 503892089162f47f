package parley_test

import (
	"slices"
	"testing"

	"parley"
	"parley/checker"
)

// edited returns a run that may have changed files and has nothing left to do.
func edited(t *testing.T) *tale {
	a := newTale(t)
	a.do(parley.SubmitInput{Content: "edit", Request: "edit", Agent: parley.AgentRef{Name: "helper", Files: true}})
	a.model(parley.ModelEnded{
		Calls: []parley.CallAsked{{Name: "write_file", Arguments: "{}", Verdict: parley.Verdict{Kind: parley.VerdictRun,
			Class: parley.Effectful}}}})
	a.expect("ToolCallStarted")
	a.tool(a.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallSucceeded})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.expect("TurnFinished")
	return a
}

func (a *tale) wants(step parley.Step) {
	a.t.Helper()
	if steps := parley.Next(a.state, a.now); !slices.Contains(steps, step) {
		a.t.Fatalf("wanted is %+v, not %+v", steps, step)
	}
}

var oneFile = []parley.FileChange{{Path: "x", Summary: "Modified"}}

func TestRunReportsChangesAtItsEnd(t *testing.T) {
	a := edited(t)
	a.wants(parley.ReportChanges{Run: a.state.Run.ID, Turns: 2})
	a.model(parley.ChangesFound{Turns: 2, Files: oneFile, Truncated: 3})
	a.expect("FilesChanged RunFinished")
	if got := last[parley.FilesChanged](a); got.Truncated != 3 {
		t.Errorf("%+v", got)
	}

	a = edited(t)
	a.model(parley.ChangesFound{Turns: 2})
	a.expect("TurnFinished RunFinished")
	for _, err := range checker.Check(a.log) {
		t.Error(err)
	}
}

// TestOutdatedChangesReportIsIgnored checks that an outdated report of changes does not
// end a run that has continued.
func TestOutdatedChangesReportIsIgnored(t *testing.T) {
	a := edited(t)
	a.do(parley.SubmitInput{Content: "more", Request: "more", Busy: parley.Steer,
		Agent: parley.AgentRef{Name: "helper", Files: true}})
	a.expect("InputAdopted TurnStarted")
	a.model(parley.ChangesFound{Turns: 2, Files: oneFile})
	a.expect("TurnStarted")
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.model(parley.ChangesFound{Turns: 2, Files: oneFile})
	a.expect("TurnFinished")
	a.wants(parley.ReportChanges{Run: a.state.Run.ID, Turns: 3})
}

// TestACancelledRunIsReportedOnce checks that the changes of a cancelled run are
// reported once, after its end and before the next run starts.
func TestACancelledRunIsReportedOnce(t *testing.T) {
	a := edited(t)
	run := a.state.Run.ID
	a.do(parley.CancelRun{})
	a.do(parley.SubmitInput{Content: "next", Request: "next", Agent: parley.AgentRef{Name: "helper", Files: true}})
	a.expect("RunFinished InputReceived")
	late := parley.ReportChanges{Run: run}
	a.wants(late)
	found := parley.Report{At: a.now, Run: run, Body: parley.ChangesFound{Turns: 2, Files: oneFile}}
	for _, body := range []parley.ChangesFound{{Turns: 2, Files: oneFile}, {Files: oneFile}, {Files: oneFile}} {
		found.Body = body // before the end, after the end, and a repetition
		if err := a.take(found); err != nil {
			t.Fatal(err)
		}
	}
	a.expect("RunFinished InputReceived FilesChanged RunStarted InputAdopted TurnStarted")
	if slices.Contains(parley.Next(a.state, a.now), parley.Step(late)) {
		t.Error("it is to be reported again")
	}
	for _, err := range checker.Check(a.log) {
		t.Error(err)
	}
}

// TestADeletedSessionReportsNothing checks that a deleted session has no steps,
// because no client can read it.
func TestADeletedSessionReportsNothing(t *testing.T) {
	a := edited(t)
	a.do(parley.DeleteSession{})
	if steps := parley.Next(a.state, a.now); len(steps) != 0 {
		t.Errorf("wanted is %+v", steps)
	}
}
