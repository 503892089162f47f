package checker_test

import (
	"strings"
	"testing"
	"time"

	"parley"
	"parley/checker"
)

// approval returns a log that ends with an open approval, card 7 of call 6.
func approval(more ...parley.EventBody) []parley.Event {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	bodies := append([]parley.EventBody{
		parley.SessionOpened{Owner: "ann"}, parley.InputReceived{Content: "x"}, parley.RunStarted{Input: 2},
		parley.InputAdopted{Input: 2},
		parley.TurnStarted{Number: 1}, parley.ToolCallRequested{Turn: 5, Name: "do", Class: parley.Effectful},
		parley.ApprovalRequested{Call: 6, Show: "do it", Digest: "d", Expires: at.Add(20 * time.Second)},
		parley.TurnFinished{Turn: 5, Stop: parley.StopTools},
	}, more...)
	var log []parley.Event
	for i, b := range bodies {
		e := parley.Event{Session: "s", Seq: parley.Seq(i + 1), At: at.Add(time.Duration(i) * time.Second), Body: b}
		if i >= 2 {
			e.Run = 3
		}
		log = append(log, e)
	}
	return log
}

// TestExplanationsAreChecked checks that the checker finds violations, because
// it would otherwise be useless.
func TestExplanationsAreChecked(t *testing.T) {
	asked, told := parley.ExplanationRequested{Card: 7, Call: 6},
		parley.ApprovalExplained{Card: 7, Call: 6, Text: "It does it."}
	decided := parley.ApprovalDecided{Card: 7, Call: 6, Decision: parley.AllowOnce}
	for _, c := range []struct {
		name string
		log  []parley.Event
		want string
	}{
		{"good", approval(asked, told, asked, told, asked, decided), ""},
		{"asked twice", approval(asked, asked), "an explanation of card 7 was requested already"},
		{"not asked", approval(told), "no explanation of card 7 was requested"},
		{"told twice", approval(asked, told, told), "no explanation of card 7 was requested"},
		{"after the decision", approval(asked, decided, told), "no explanation of card 7 was requested"},
		{"asked after the decision", approval(decided, asked), "is not an open approval"},
		{"of another call", approval(parley.ExplanationRequested{Card: 7, Call: 5}), "is not an open approval"},
		{"nothing said", approval(asked, parley.ApprovalExplained{Card: 7, Call: 6, Text: " "}),
			"the explanation is blank"},
	} {
		wrong := checker.Check(c.log)
		if c.want == "" && len(wrong) > 0 || c.want != "" &&
			(len(wrong) == 0 || !strings.Contains(wrong[0].Error(), c.want)) {
			t.Errorf("%s: %v", c.name, wrong)
		}
	}
	if wrong := checker.Settled(approval(asked)); len(wrong) == 0 {
		t.Error("an explanation under way is settled")
	}
	if wrong := checker.Settled(approval(asked, told)); len(wrong) > 0 {
		t.Errorf("waiting for a person is not settled: %v", wrong)
	}
}
