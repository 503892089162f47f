package parley_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"parley"
)

// longTale returns a tale that has gone through most parts of a state.
func longTale(t testing.TB) *tale {
	a := newTale(t)
	a.say("one")
	a.say("two")
	a.do(parley.SubmitInput{Content: "three", Request: "three", Busy: parley.Steer, Deliver: true,
		Agent: parley.AgentRef{Name: "helper", Turns: 9}})
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "x"})
	a.recover()
	asks := ask("b", parley.VerdictAsk, parley.Effectful)
	asks.Verdict.Similar = parley.SimilarRule{Text: "b with other arguments", Digest: "digest of the rule"}
	a.model(parley.ModelEnded{Usage: parley.Usage{Input: 1, Output: 2, Cached: 3}, Calls: []parley.CallAsked{
		ask("a", parley.VerdictRun, parley.Pure), asks,
		ask("c", parley.VerdictCard, parley.Pure), ask("d", parley.VerdictBlock, "")}})
	a.do(parley.ExplainApproval{Card: a.state.Run.Calls[1].Card})
	a.tool(a.state.Run.Calls[1].ID, parley.ExplanationEnded{Text: "b", Usage: parley.Usage{Input: 1}})
	a.do(parley.ExplainApproval{Card: a.state.Run.Calls[1].Card})
	a.do(parley.DecideApproval{Card: a.state.Run.Calls[1].Card, Decision: parley.AllowAlways,
		Scope: parley.ScopeSimilar})
	a.recover()
	a.do(parley.ResolveToolCall{Call: a.state.Run.Calls[1].ID, Resolution: parley.Rerun})
	a.do(parley.AnswerQuestion{Card: a.state.Run.Calls[2].Card, Answers: [][]string{{"yes"}}})
	a.tool(a.state.Run.Calls[0].ID, parley.ToolPiece{Text: "y"})
	a.do(parley.CancelRun{})
	a.do(parley.SubmitInput{Content: "four", Request: "four", Agent: parley.AgentRef{Name: "helper"}, Classify: true,
		Finding: &parley.Finding{Verdict: parley.ScreenFlag, Score: 0.5, Reason: "pattern:x"}})
	a.do(parley.HaltSession{Reason: "enough"})
	a.do(parley.ReopenSession{})
	a.do(parley.RenameSession{Title: "a title"})
	a.do(parley.RevokeGrant{Grant: a.state.Always[0].ID})
	a.do(parley.SubmitInput{Content: "plan it", Mode: parley.ModePlan, Agent: parley.AgentRef{Name: "helper"}})
	plan := ask("plan", parley.VerdictPlan, parley.Pure)
	plan.Verdict.Plan = parley.PlanUpdate{Summary: "all of it",
		Items: []parley.PlanItem{{Title: "one", Description: "first", Status: parley.ItemDone}, {Title: "two"}}}
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{plan}})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.do(parley.DecidePlan{Decision: parley.EditPlan, Text: "otherwise"})
	a.do(parley.DecidePlan{Decision: parley.ApprovePlan, Agent: parley.AgentRef{Name: "helper"}})
	a.recover()
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	judged := wanderer
	judged.Autonomy.Evaluator = "judge"
	a.do(parley.SubmitInput{Content: "come back", Agent: judged})
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{comesBack(time.Second, "one"), comesBack(2*time.Second, ""),
		comesBack(time.Hour, "three")}})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.now = a.now.Add(time.Second)
	a.do2(parley.FireTimer{Timer: a.state.Timers[0].ID, Agent: judged})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.now = a.now.Add(time.Second)
	a.do2(parley.FireTimer{Timer: a.state.Timers[0].ID, Agent: judged})
	a.do(parley.SubmitInput{Content: "read my mail",
		Agent: parley.Agent{Name: "helper", Trust: []parley.Source{"mcp:git"}}.Ref()})
	delegates := ask("delegate", parley.VerdictChild, parley.Effectful)
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{from("mcp:mail", "mail__read", parley.Pure), delegates}})
	a.tool(a.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallSucceeded,
		Finding: &parley.Finding{Verdict: parley.ScreenFlag}})
	kid := a.state.Children[0]
	a.tool(kid.Call, parley.ChildEnded{Child: kid.Session, Outcome: parley.Completed,
		Sources: []parley.Source{"remote:far"}})
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{writes}})
	a.do(parley.DecideApproval{Card: a.state.Run.Calls[0].Card, Decision: parley.AllowAlways})
	return a
}

// TestSnapshots checks that a state equals the state that is decoded from its
// snapshot.
func TestSnapshots(t *testing.T) {
	a := longTale(t)
	state := parley.NewState("acme", a.state.ID)
	taken := 0
	for _, e := range a.log {
		state = parley.Fold(state, e)
		snapshot, ok := state.Snapshot()
		if open := state.Run != nil && state.Run.Turn != nil; ok == open {
			t.Fatalf("seq %d: turn open %v, snapshot taken %v", e.Seq, open, ok)
		}
		if !ok {
			continue
		}
		taken++
		if back, ok := snapshot.State(); !ok || !reflect.DeepEqual(back, state) {
			t.Fatalf("seq %d:\n%+v\nwas read back as\n%+v", e.Seq, state, back)
		}
	}
	if taken < 10 {
		t.Errorf("only %d snapshots", taken)
	}
	good, _ := state.Snapshot()
	for name, bad := range map[string]parley.Snapshot{
		"another version": {Seq: good.Seq, Version: parley.FoldVersion + 1, Body: good.Body},
		"another seq":     {Seq: good.Seq - 1, Version: parley.FoldVersion, Body: good.Body},
		"no JSON":         {Seq: good.Seq, Version: parley.FoldVersion, Body: []byte(`{`)},
		"nothing":         {},
	} {
		if _, ok := bad.State(); ok {
			t.Errorf("%s was taken", name)
		}
	}
}

// TestFoldVersion checks that the result of Fold changes only together with
// FoldVersion. Otherwise a snapshot of an older release would be used as one of
// this release.
func TestFoldVersion(t *testing.T) {
	a := longTale(t)
	var got bytes.Buffer
	state := parley.NewState("acme", a.state.ID)
	for _, e := range a.log {
		state = parley.Fold(state, e)
		if snapshot, ok := state.Snapshot(); ok {
			fmt.Fprintf(&got, "%s\n", snapshot.Body)
		}
	}
	file := filepath.Join("testdata", "fold", fmt.Sprintf("v%d.jsonl", parley.FoldVersion))
	want, err := os.ReadFile(file)
	if os.IsNotExist(err) && flag.Lookup("update").Value.String() == "true" {
		want, err = got.Bytes(), os.WriteFile(file, got.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("logs fold to something else than in version %d: raise FoldVersion, and write the new one with -run "+
			"FoldVersion -update", parley.FoldVersion)
	}
	if !json.Valid(bytes.SplitN(want, []byte("\n"), 2)[0]) {
		t.Error("the sample is no JSON")
	}
}
