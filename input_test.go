package parley_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"parley"
	"parley/checker"
)

func TestTheQueueIsBounded(t *testing.T) {
	a := newTale(t)
	a.say("first")
	for i := range parley.MaxQueue {
		a.say(fmt.Sprint(i))
	}
	if err := a.try(parley.SubmitInput{Content: "one more", Agent: parley.AgentRef{Name: "h"}}); parley.CodeOf(
		err) != parley.CodeQueueFull {
		t.Errorf("%v", err)
	}
}

func TestSteering(t *testing.T) {
	a := newTale(t)
	a.say("work")
	a.do(parley.SubmitInput{Content: "faster", Request: "r2", Busy: parley.Steer,
		Agent: parley.AgentRef{Name: "helper"}})
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "done"})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.expect("TurnFinished InputAdopted TurnStarted")
	if r := a.state.Run; len(r.Requests) != 2 || r.Requests[1] != "r2" {
		t.Errorf("%+v", r)
	}
	a.do(parley.CancelRun{Request: "r2"})
	a.expect("TurnFinished RunFinished")
}

// TestSteeringAtTheLastTurn checks that a steering input that comes too late
// for the run gets a run of its own.
func TestSteeringAtTheLastTurn(t *testing.T) {
	a := newTale(t)
	a.do(parley.SubmitInput{Content: "work", Agent: parley.AgentRef{Name: "helper", Turns: 1}})
	a.do(parley.SubmitInput{Content: "faster", Busy: parley.Steer, Agent: parley.AgentRef{Name: "helper"}})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.expect("TurnFinished RunFinished RunStarted InputAdopted TurnStarted")
	if end := last[parley.RunFinished](a); end.Outcome != parley.Completed {
		t.Errorf("%+v", end)
	}
}

// TestWithdrawInput checks that a waiting input can be withdrawn once. The trigger
// of a run cannot be withdrawn.
func TestWithdrawInput(t *testing.T) {
	a := newTale(t)
	a.say("one")
	a.say("two")
	a.say("three")
	first, second := a.state.Run.Input, a.state.Queue[0].ID
	a.refused(parley.WithdrawInput{Input: first}, parley.CodeClosed)
	a.do(parley.WithdrawInput{Input: second})
	a.refused(parley.WithdrawInput{Input: second}, parley.CodeClosed)
	a.refused(parley.WithdrawInput{Input: 99}, parley.CodeClosed)
	if q := a.state.Queue; len(q) != 1 || q[0].Request != "three" {
		t.Errorf("%+v", q)
	}
	for _, err := range checker.Check(a.log) {
		t.Error(err)
	}
}

// TestTitles checks that a title is the first line of a message, shortened to the limit.
func TestTitles(t *testing.T) {
	for content, want := range map[string]string{
		"hello":                                "hello",
		"  first\nsecond":                      "first",
		strings.Repeat("ä", 60):                strings.Repeat("ä", 60),
		strings.Repeat("ä", 61):                strings.Repeat("ä", 59) + "…",
		strings.Repeat("ä", 1000) + "\nsecond": strings.Repeat("ä", 59) + "…",
	} {
		a := newTale(t)
		a.say(content)
		if a.state.Title != want {
			t.Errorf("%.80q: %q", content, a.state.Title)
		}
	}
}

// TestLongMessagesAreNotCopied checks that Fold does not copy long messages, and that the state does not hold them.
func TestLongMessagesAreNotCopied(t *testing.T) {
	s := parley.NewState("acme", "11111111-1111-4111-8111-111111111111")
	for _, content := range []string{strings.Repeat("x", 1<<20), "short\n" + strings.Repeat("x", 1<<20)} {
		e := parley.Event{Seq: 1, Body: parley.InputReceived{Content: content}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := parley.Fold(s, e)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%d bytes were allocated", n)
		}
		for _, kept := range append(got.Recent, got.Title) {
			begin := uintptr(unsafe.Pointer(unsafe.StringData(content)))
			if at := uintptr(unsafe.Pointer(unsafe.StringData(kept))); at >= begin && at < begin+uintptr(len(content)) {
				t.Errorf("%.20q is a part of the message", kept)
			}
		}
	}
}

// TestEarlierMessagesAreBounded checks that the maximum of earlier messages is accepted, and one more is refused.
func TestEarlierMessagesAreBounded(t *testing.T) {
	for n, want := range map[int]parley.Code{parley.MaxEarlier: "", parley.MaxEarlier + 1: parley.CodeTooLarge} {
		do := parley.SubmitInput{Content: "x",
			Earlier: slices.Repeat([]parley.EarlierMessage{{Role: parley.EarlierUser, Text: "y"}}, n)}
		if err := do.Rules().Wrong; (err != nil) != (want != "") || err != nil && parley.CodeOf(err) != want {
			t.Errorf("%d messages: %v", n, err)
		}
	}
}
