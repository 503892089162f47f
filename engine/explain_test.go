package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
)

// explained asks for an explanation of the n-th approval of a session and
// returns the text.
func (r *rig) explained(id parley.SessionID, n int) string {
	r.t.Helper()
	told := len(all[parley.ApprovalExplained](r.log(id)))
	r.do(id, parley.ExplainApproval{Card: card[parley.ApprovalRequested](r, id, n)})
	log := r.until(id, "it is explained", seen[parley.ApprovalExplained](told+1))
	return all[parley.ApprovalExplained](log)[told].Text
}

func TestAnApprovalIsExplained(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	var requests []port.ModelRequest
	r.puppet.seen = func(q port.ModelRequest) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, q)
	}
	id := r.open()
	r.say(id, "say I must write; call write x | say done")
	if text := r.explained(id, 1); text != "it would write x" {
		t.Errorf("it is explained as %q", text)
	}
	mu.Lock()
	asked := requests[len(requests)-1]
	mu.Unlock()
	if len(asked.Tools) != 0 || len(asked.Messages) != 1 ||
		!strings.Contains(asked.Messages[0].Text, "Tool: write\nArguments: \"x\"\n") {
		t.Errorf("who explains is given %+v", asked)
	}
	r.do(id, parley.DecideApproval{Card: card[parley.ApprovalRequested](r, id, 1), Decision: parley.AllowOnce,
		Note: "carefully"})
	log := r.finished(id, 1)
	if turns := all[parley.TurnStarted](log); len(turns) != 2 ||
		!slices.Equal(texts(log), []string{"I must write", "done"}) {
		t.Errorf("the explanation is a part of the conversation:\n%s", story(log))
	}
	if end := all[parley.RunFinished](log)[0]; end.Usage.Output != 6 {
		t.Errorf("the explanation cost nothing: %+v", end.Usage)
	}
	mu.Lock()
	defer mu.Unlock()
	last := requests[len(requests)-1].Messages
	if told := last[len(last)-1].Text; !strings.Contains(told, "did write") ||
		!strings.Contains(told, "allowed this: carefully") {
		t.Errorf("the model is told %q", told)
	}
	r.check(id)
}

// TestFailedExplanations checks that every failure of the model is explained
// to the person, and that the card stays open.
func TestFailedExplanations(t *testing.T) {
	const unable = "Unable to generate an explanation for this call. "
	for do, want := range map[string]string{
		"!fail":              unable + "The puppet was told to fail.",
		"!panic":             unable + "Something went wrong in the server; its log says what.",
		"!think hm":          unable + "The model had nothing to say.",
		"!nothing":           unable + "The model had nothing to say.",
		"!say well,+fail":    unable + "The puppet was told to fail.",
		"!call read secrets": unable + "The model had nothing to say.",
	} {
		r := newRig(t)
		id := r.open()
		r.say(id, "call write "+do+" | say done")
		if text := r.explained(id, 1); text != want {
			t.Errorf("%s: %q, want %q", do, text, want)
		}
		if n := r.hands.count("read"); n != 0 {
			t.Errorf("%s: a tool was performed", do)
		}
		r.do(id, parley.DecideApproval{Card: card[parley.ApprovalRequested](r, id, 1), Decision: parley.Deny})
		r.finished(id, 1)
		r.check(id)
	}
}

func TestAnExplanationIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.puppet.says = []port.ModelChunk{{Call: &parley.MessageCall{Name: "write", Arguments: `"x"`}}}
		id := r.open()
		r.say(id, "write")
		card := card[parley.ApprovalRequested](r, id, 1)
		synctest.Wait()
		r.puppet.says = slices.Repeat([]port.ModelChunk{{Text: strings.Repeat("é", 100)}}, 1000)
		if text := r.explained(id, 1); len(text) > parley.MaxExplanation || len(text) < parley.MaxExplanation-3 ||
			!strings.HasSuffix(text, "é …") {
			t.Errorf("it has %d bytes: %.20q", len(text), text[len(text)-20:])
		}

		synctest.Wait()
		r.puppet.says = nil
		r.do(id, parley.DecideApproval{Card: card, Decision: parley.DenyAndStop})
		r.finished(id, 1)
		r.say(id, "call write !hang | say done")
		r.do(id, parley.ExplainApproval{
			Card: parley.CardID(
				seqOf[parley.ApprovalRequested](r.until(id, "a card is open", seen[parley.ApprovalRequested](2)), 2))})
		time.Sleep(explainWithin - time.Millisecond)
		synctest.Wait()
		if told := all[parley.ApprovalExplained](r.log(id)); len(told) != 1 {
			t.Errorf("it did not take its time: %+v", told)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		const want = "Unable to generate an explanation for this call. The model took longer than 30s."
		if told := all[parley.ApprovalExplained](r.log(id)); len(told) != 2 || told[1].Text != want {
			t.Errorf("in the end it was told %+v", told)
		}
		r.check(id)
	})
}

// TestAnExplanationSurvivesACrash checks that an explanation is made after a
// crash without a second request.
func TestAnExplanationSurvivesACrash(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.say(id, "call write !say so+ hang | say done")
	r.do(id, parley.ExplainApproval{Card: card[parley.ApprovalRequested](r, id, 1)})
	r.noHang = true
	r.restart(true)
	r.until(id, "it is explained", seen[parley.ApprovalExplained](1))
	r.do(id, parley.DecideApproval{Card: card[parley.ApprovalRequested](r, id, 1), Decision: parley.AllowOnce})
	log := r.finished(id, 1)
	if n := len(all[parley.ExplanationRequested](log)); n != 1 || r.hands.count("write") != 1 {
		t.Errorf("asked %d times, written %d times", n, r.hands.count("write"))
	}
	r.check(id)
}

// TestADecisionEndsTheExplaining checks that the explanation has ended when the
// call starts.
func TestADecisionEndsTheExplaining(t *testing.T) {
	for _, end := range []parley.CommandBody{parley.DecideApproval{Decision: parley.AllowOnce},
		parley.DecideApproval{Decision: parley.Deny}, parley.CancelRun{}} {
		r := newRig(t)
		id := r.open()
		r.say(id, "call write !say so+ hang | say done")
		waiting := card[parley.ApprovalRequested](r, id, 1)
		r.do(id, parley.ExplainApproval{Card: waiting})
		if do, ok := end.(parley.DecideApproval); ok {
			do.Card = waiting
			end = do
		}
		r.do(id, end)
		log := r.finished(id, 1)
		if n := len(all[parley.ApprovalExplained](log)); n != 0 {
			t.Errorf("%+v: it was explained all the same", end)
		}
		if _, err := r.try(id, parley.ExplainApproval{Card: waiting}); parley.CodeOf(err) != parley.CodeClosed {
			t.Errorf("%+v: %v", end, err)
		}
		r.check(id)
	}
}

// TestAnExplanationDoesNotLeak checks that an explanation does not let the
// canary out.
func TestAnExplanationDoesNotLeak(t *testing.T) {
	r := newRig(t, screened)
	id := r.open()
	r.say(id, "call write !leak plain | say done")
	r.do(id, parley.ExplainApproval{Card: card[parley.ApprovalRequested](r, id, 1)})
	log := r.until(id, "it ends, or is explained", func(log []parley.Event) bool {
		return seen[parley.RunFinished](1)(log) || seen[parley.ApprovalExplained](1)(log)
	})
	raw, err := json.Marshal(r.log(id))
	if err != nil {
		t.Fatal(err)
	}
	if r.Screen.Canary(acme, id).Contains(string(raw)) {
		t.Errorf("the log has the word:\n%s", raw)
	}
	if end := all[parley.RunFinished](log); len(end) != 1 || end[0].Outcome != parley.Halted {
		t.Errorf("the run ended as %+v", end)
	}
	r.check(id)
}
