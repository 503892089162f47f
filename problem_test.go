package parley_test

import (
	"slices"
	"testing"

	"parley"
)

// TestRetriesAreAnnouncedOnce checks that a turn after a crash makes the same
// attempts again without announcing them twice. After an answer of the model, and
// for another model, attempts are announced again.
func TestRetriesAreAnnouncedOnce(t *testing.T) {
	a := newTale(t)
	a.say("hello")
	told := func() (messages []string) {
		for _, e := range a.log {
			if b, ok := e.Body.(parley.ProblemReported); ok {
				messages = append(messages, b.Message)
			}
		}
		return messages
	}
	expect := func(want ...string) {
		t.Helper()
		if got := told(); !slices.Equal(got, want) {
			t.Errorf("told %q\nwant %q", got, want)
		}
	}
	second := parley.Retrying{Code: parley.CodeUnavailable, Problem: "Network error while contacting Acme", Attempt: 2,
		Of: 3}
	third := second
	third.Attempt = 3
	over := third
	over.GaveUp, over.Advice = true, "Please check your connection and try again."

	all := []string{"Network error while contacting Acme; retrying (attempt 2 of 3)…",
		"Network error while contacting Acme; retrying (attempt 3 of 3)…",
		"Network error while contacting Acme. Please check your connection and try again."}
	a.model(second)
	turn := a.state.Run.Turn.ID
	if b := a.log[len(a.log)-1].Body.(parley.ProblemReported); b.Code != parley.CodeUnavailable ||
		*b.Retry != (parley.Retry{Turn: turn, Problem: second.Problem, Attempt: 2, Of: 3}) {
		t.Errorf("%+v", b)
	}
	a.recover()
	a.model(second)
	expect(all[:1]...)
	a.model(third)
	expect(all[:2]...)
	a.recover()
	a.model(second)
	a.model(third)
	a.model(over)
	a.model(over)
	expect(all...)

	// A late report, and a report of a turn that has shown output, change
	// nothing.
	if err := a.take(parley.Report{At: a.now, Run: a.state.Run.ID, Turn: turn, Body: second}); err != nil {
		t.Error(err)
	}
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "So"})
	a.model(second)
	expect(all...)

	// Attempts in another turn, and with another model, are announced again.
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.say("and now")
	busy := parley.Retrying{Code: parley.CodeOverloaded, Problem: "Acme is busy", Attempt: 2, Of: 3}
	a.model(busy)
	a.model(parley.FellBack{Preferred: "a", Actual: "b", Reason: "busy"})
	a.model(busy)
	busy.GaveUp = true
	a.model(busy)
	expect(append(all, "Acme is busy; retrying (attempt 2 of 3)…", "Acme is busy; retrying (attempt 2 of 3)…",
		"Acme is busy; gave up after 2 attempts.")...)
}
