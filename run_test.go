package parley_test

import (
	"reflect"
	"slices"
	"testing"

	"parley"
	"parley/checker"
)

func TestTheThirdCutInterrupts(t *testing.T) {
	a := newTale(t)
	a.say("hello")
	for i := 1; i <= parley.MaxCuts; i++ {
		a.model(parley.ModelPiece{Kind: parley.Text, Text: "Hel"})
		a.recover()
		if out := last[parley.OutputFinished](a); !out.Incomplete || out.Text != "Hel" {
			t.Fatalf("cut %d: %+v", i, out)
		}
		if running := a.state.Run != nil; running != (i < parley.MaxCuts) {
			t.Fatalf("after cut %d: %s", i, a.types(3))
		}
	}
	if end := last[parley.RunFinished](a); end.Outcome != parley.Interrupted || end.Message == "" {
		t.Errorf("%+v", end)
	}
}

// TestCancelClosesEverything checks that the batch of a cancel closes everything
// that is open. Of later reports, only tool results are recorded, as late
// results.
func TestCancelClosesEverything(t *testing.T) {
	a := newTale(t)
	a.say("do it")
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{
		ask("run", parley.VerdictRun, parley.Effectful), ask("approve", parley.VerdictAsk, parley.Effectful),
		ask("ask", parley.VerdictCard, parley.Pure)}})
	run, call := a.state.Run.ID, a.state.Run.Calls[0].ID
	a.do(parley.CancelRun{Request: "do it"})
	a.expect("ToolCallFinished ApprovalDecided ToolCallFinished QuestionAnswered ToolCallFinished RunFinished")
	head := a.state.Head
	late := []parley.ReportBody{parley.ToolPiece{Text: "x"}, parley.ModelPiece{Kind: parley.Text, Text: "x"},
		parley.ModelEnded{}, parley.ModelFailed{}}
	for _, body := range late {
		if err := a.take(parley.Report{At: a.now, Run: run, Call: call, Turn: 5, Body: body}); err != nil ||
			a.state.Head != head {
			t.Errorf("%T was heard after the end: %s", body, a.types(1))
		}
	}
	if err := a.take(parley.Report{At: a.now, Run: run, Call: call,
		Body: parley.ToolEnded{Outcome: parley.CallSucceeded, Result: "done"}}); err != nil {
		t.Fatal(err)
	}
	a.expect("RunFinished LateResultNoted")
	if e := a.log[len(a.log)-1]; e.Run != 0 {
		t.Errorf("evidence inside the run: %+v", e)
	}
}

// TestARunEndsWithTheVendorsAnswer checks that a run ends with the vendor's answer if, and only if, the vendor refused
// the request.
func TestARunEndsWithTheVendorsAnswer(t *testing.T) {
	failed := parley.ModelFailed{Code: parley.CodeOverloaded, Message: "busy",
		Vendor: &parley.VendorError{Status: 429, Message: "Rate limit exceeded"}}
	piece := parley.ModelPiece{Kind: parley.Text, Text: "x"}
	for name, c := range map[string]struct {
		turns [][]parley.ReportBody
		want  *parley.VendorError
	}{
		"refused":         {[][]parley.ReportBody{{failed}}, failed.Vendor},
		"cut three times": {[][]parley.ReportBody{{piece, failed}, {piece, failed}, {piece, failed}}, failed.Vendor},
		"cut once":        {[][]parley.ReportBody{{piece, failed}, {parley.ModelEnded{Stop: parley.StopEnd}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTale(t)
			a.say("do it")
			for _, turn := range c.turns {
				for _, body := range turn {
					a.model(body)
				}
			}
			if end := last[parley.RunFinished](a); !reflect.DeepEqual(end.Vendor, c.want) {
				t.Errorf("it ended with %+v", end)
			}
		})
	}
}

// TestCancelByInput checks that an input without a request id can be cancelled
// like an input with one. It may wait, be the trigger of the run, or have been
// steered into the run.
func TestCancelByInput(t *testing.T) {
	say := func(a *tale, busy parley.BusyMode) parley.InputID {
		a.do(parley.SubmitInput{Content: "work", Busy: busy, Agent: parley.AgentRef{Name: "helper"}})
		for _, e := range slices.Backward(a.log) {
			if _, ok := e.Body.(parley.InputReceived); ok {
				return parley.InputID(e.Seq)
			}
		}
		return 0
	}
	a := newTale(t)
	first, steered, waiting := say(a, parley.Queue), say(a, parley.Steer), say(a, parley.Queue)
	if err := a.try(parley.CancelRun{Input: waiting + 1}); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("cancelling what is no input: %v", err)
	}
	a.do(parley.CancelRun{Input: waiting})
	if b := last[parley.InputWithdrawn](a); b.Input != waiting || a.state.Run == nil {
		t.Errorf("%+v", b)
	}
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.expect("InputAdopted TurnStarted")
	a.do(parley.CancelRun{Input: steered})
	a.expect("RunFinished")
	for _, over := range []parley.InputID{first, steered, waiting} {
		say(a, parley.Queue)
		if err := a.try(parley.CancelRun{Input: over}); parley.CodeOf(err) != parley.CodeNotFound ||
			a.state.Run == nil {
			t.Errorf("what is over was cancelled: %v", err)
		}
		a.do(parley.CancelRun{Input: a.state.Run.Input})
		a.expect("RunFinished")
	}
}

// TestCancelBeforeAdoption checks a cancel between the start of a run and the
// adoption of its trigger. An engine that drains may stop there.
func TestCancelBeforeAdoption(t *testing.T) {
	for _, do := range []parley.CommandBody{parley.CancelRun{}, parley.CancelRun{Request: "x"}, parley.HaltSession{},
		parley.DeleteSession{}} {
		a := newTale(t)
		for _, in := range []parley.In{
			parley.Command{By: "ann", At: a.now, Do: parley.SubmitInput{Content: "x", Request: "x",
				Agent: parley.AgentRef{Name: "helper"}}},
			parley.Report{At: a.now, Body: parley.Advance{}},
		} {
			events, err := parley.Decide(a.state, in)
			if err != nil {
				t.Fatal(err)
			}
			a.fold(events)
		}
		a.expect("InputReceived RunStarted")
		a.do(do)
		for _, err := range append(checker.Check(a.log), checker.Settled(a.log)...) {
			t.Errorf("%T: %v", do, err)
		}
	}
}
