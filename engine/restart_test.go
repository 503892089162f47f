package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

// TestACutRunContinues ends the process in the middle of an answer, with a drain
// or without. The next process goes on with the run.
func TestACutRunContinues(t *testing.T) {
	for _, cut := range []bool{false, true} {
		r := newRig(t)
		id := r.open()
		r.say(id, "say one; hang")
		r.until(id, "it hangs", seen[parley.OutputAppended](1))
		r.say(id, "say two")
		if !cut { // no run ends by itself, so the time to drain must run out
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			_ = r.Engine.Close(ctx)
			cancel()
		}
		r.noHang = true
		r.restart(cut)
		log := r.finished(id, 2)
		if want := []string{"one", "one", "two"}; !slices.Equal(texts(log), want) {
			t.Errorf("said %q, want %q", texts(log), want)
		}
		if out := all[parley.OutputFinished](log)[0]; !out.Incomplete {
			t.Errorf("what was cut is not marked: %+v", out)
		}
		r.check(id)
	}
}

// TestDrainReachesABoundary checks that a running tool may end, and that the
// next step is left to the next process.
func TestDrainReachesABoundary(t *testing.T) {
	synctest.Test(t, drainReachesABoundary)
}

func drainReachesABoundary(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.hands.wait = make(chan struct{})
	r.say(id, "call wait x | say done")
	r.until(id, "the tool runs", seen[parley.ToolCallStarted](1))
	stopped := make(chan struct{})
	go func() {
		r.stop(false)
		close(stopped)
	}()
	synctest.Wait() // the drain waits for the tool
	close(r.hands.wait)
	<-stopped
	r.start()
	log := r.finished(id, 1)
	if n := len(all[parley.ToolCallFinished](log)); n != 1 ||
		all[parley.ToolCallFinished](log)[0].Outcome != parley.CallSucceeded {
		t.Errorf("the tool did not end in peace:\n%s", story(log))
	}
	if len(all[parley.TurnFinished](log)) != 2 || len(all[parley.TurnStarted](log)) != 2 {
		t.Errorf("a turn was cut:\n%s", story(log))
	}
	r.check(id)
}

func TestDrainingRefuses(t *testing.T) {
	r := newRig(t)
	id := r.open()
	if err := r.Engine.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := r.try(id, input("say hello", parley.Queue)); parley.CodeOf(err) != parley.CodeUnavailable {
		t.Errorf("%v", err)
	}
	_ = r.Engine.Close(context.Background()) // a second Close has no effect
}

func TestWaitingSurvivesRestarts(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.say(id, "call write x; call ask y | say done")
	approval, question := card[parley.ApprovalRequested](r, id, 1), card[parley.QuestionAsked](r, id, 1)
	for _, cut := range []bool{true, false, true} {
		r.restart(cut)
	}
	if m, err := r.Session(context.Background(), ann, id); err != nil || m.Status != parley.StatusWaiting {
		t.Fatalf("%+v, %v", m, err)
	}
	r.do(id, parley.DecideApproval{Card: approval, Decision: parley.AllowOnce})
	r.restart(true)
	r.do(id, parley.AnswerQuestion{Card: question, Answers: [][]string{{"me"}}})
	r.until(id, "it waits or has ended", func(log []parley.Event) bool {
		return len(all[parley.RunFinished](log)) > 0 || len(all[parley.ToolCallFinished](log)) == 2
	})
	r.check(id)
}
