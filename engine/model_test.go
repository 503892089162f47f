package engine

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"parley"
	"parley/port"
)

// twoModels is an agent with a fallback model.
type twoModels struct{ agents }

func (twoModels) Agent(parley.TenantID, string) (parley.Agent, error) {
	return parley.Agent{Name: "puppet", Instructions: "obey", Model: "first", Fallback: []string{"second"}}, nil
}

// TestFallbacksAreInTheLog checks that a fallback is in the log before any output
// of the other model, and that the next turn calls the first model again.
func TestFallbacksAreInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Agents = twoModels{} })
		var asked []string
		r.puppet.seen = func(req port.ModelRequest) { asked = append(asked, req.Model) }
		r.puppet.busy = 3
		id := r.open()
		r.say(id, "say hello; call read x | say done")
		log := r.finished(id, 1)
		r.check(id)
		turn := parley.TurnID(seqOf[parley.TurnStarted](log, 1))
		want := []parley.ModelFellBack{{Turn: turn, Preferred: "first", Actual: "second",
			Reason: "The puppet is busy."}}
		if got := all[parley.ModelFellBack](log); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v", got)
		}
		if seqOf[parley.ModelFellBack](log, 1) > seqOf[parley.OutputStarted](log, 1) {
			t.Error("it was shown what another model said before it was told so")
		}
		if want := []string{"first", "first", "first", "second", "first"}; !slices.Equal(asked, want) {
			t.Errorf("asked %v", asked)
		}
		if started := all[parley.TurnStarted](log); started[0].Model != "first" ||
			!slices.Equal(texts(log), []string{"hello", "done"}) {
			t.Errorf("%+v, %q", started, texts(log))
		}
	})
}

// TestRetriesAreInTheLog checks that a retry is in the log while the model is still
// called. It is there once, even if the server stops between two attempts.
func TestRetriesAreInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		told := func(log []parley.Event) (messages []string) {
			for _, b := range all[parley.ProblemReported](log) {
				messages = append(messages, b.Message)
			}
			return messages
		}
		const second, third = "The puppet is busy; retrying (attempt 2 of 3)…",
			"The puppet is busy; retrying (attempt 3 of 3)…"
		id := r.open()
		r.puppet.busy = 2
		r.say(id, "say hello")
		r.until(id, "the first retry", seen[parley.ProblemReported](1))
		if n := r.puppet.called(); n != 1 {
			t.Errorf("it was told after %d calls", n)
		}
		log := r.finished(id, 1)
		if got := told(log); !slices.Equal(got, []string{second, third}) ||
			seqOf[parley.ProblemReported](log, 2) > seqOf[parley.OutputStarted](log, 1) {
			t.Errorf("%q\n%s", got, story(log))
		}
		r.check(id)

		id = r.open()
		r.puppet.busy, r.busy = 3, 3
		r.say(id, "say hello")
		r.until(id, "the first retry", seen[parley.ProblemReported](1))
		r.restart(true)
		log = r.finished(id, 1)
		if got := told(log); !slices.Equal(got, []string{second, third,
			"The puppet is busy; gave up after 3 attempts."}) ||
			all[parley.RunFinished](log)[0].Outcome != parley.Failed {
			t.Errorf("%q\n%s", got, story(log))
		}
		r.check(id)
	})
}

// TestTheModelGetsItsMemo checks that the model gets its memo back with the next
// turn, also after a restart.
func TestTheModelGetsItsMemo(t *testing.T) {
	onEveryStore(t, func(t *testing.T, reopen func() port.Store) {
		r := newRig(t)
		r.stop(true)
		r.reopen = reopen
		r.start()
		memo := &parley.Memo{Provider: "p", Model: "m", Data: json.RawMessage(`{"sign":"AbC+/="}`)}
		usage := parley.Usage{Input: 3, CostMicros: 7}
		r.puppet.says = []port.ModelChunk{{Thinking: "hm"}, {Text: "so"},
			{Done: &port.ModelDone{Stop: parley.StopEnd, Usage: usage, Memo: memo}}}
		id := r.open()
		r.say(id, "one")
		if end := all[parley.RunFinished](r.finished(id, 1))[0]; end.Usage != usage {
			t.Errorf("%+v", end)
		}
		r.restart(false)
		got := make(chan port.ModelRequest, 1)
		r.puppet.seen = func(req port.ModelRequest) { got <- req }
		r.say(id, "say two")
		r.finished(id, 2)
		want := parley.Message{Role: parley.RoleAssistant, Text: "so", Thinking: "hm", Memo: memo}
		if m := (<-got).Messages[1]; m.Memo == nil || compact(t, m.Memo.Data) != compact(t, memo.Data) {
			t.Errorf("%+v", m)
		} else if m.Memo, m.Seq = memo, 0; !reflect.DeepEqual(m, want) {
			t.Errorf("%+v", m)
		}
	})
}

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestCallsOverTheLimitAreOneEntry checks that as many calls as a turn may have are
// carried out, and that the next one in the log stands for all others.
func TestCallsOverTheLimitAreOneEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.open()
		r.do(id, parley.SubmitInput{Content: strings.Repeat("call read x; ", parley.MaxCalls+20) +
			"say well | say done"})
		log := r.finished(id, 1)
		r.check(id)
		blocked := all[parley.ToolCallBlocked](log)
		if len(blocked) != 1 || len(all[parley.ToolCallRequested](log)) != parley.MaxCalls+1 ||
			len(all[parley.ToolCallFinished](log)) != parley.MaxCalls {
			t.Errorf("blocked %+v of %d", blocked, len(all[parley.ToolCallRequested](log)))
		}
		if got := texts(log); !slices.Equal(got, []string{"well", "done"}) {
			t.Errorf("%q", got)
		}
	})
}

// TestAFailedRunIsNamedInTheLog checks that the server's log names a failed run
// by its session and run, as its trace does.
func TestAFailedRunIsNamedInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &logbook{}
		r := newRig(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(book, nil)) })
		id := r.open()
		r.say(id, "fail")
		log := r.until(id, "the end of the run", func(log []parley.Event) bool {
			return len(all[parley.RunFinished](log)) == 1
		})
		want := fmt.Sprintf(`msg="model call failed" session=%s run=%d `, id, log[len(log)-1].Run)
		if book.count(want) != 1 {
			t.Errorf("not logged: %s\n%s", want, book.text.String())
		}
	})
}

// TestOnlySomeModelsAreCalledAtATime checks that a run waits while as many models are called as the configuration allows.
func TestOnlySomeModelsAreCalledAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Calls = 1 })
		first, second := r.open(), r.open()
		r.say(first, "say one; hang")
		synctest.Wait()
		r.say(second, "say two")
		synctest.Wait()
		if n := r.puppet.called(); n != 1 {
			t.Fatalf("%d models are called at a time", n)
		}
		r.do(first, parley.CancelRun{})
		if got := texts(r.finished(second, 1)); !slices.Equal(got, []string{"two"}) {
			t.Errorf("%q", got)
		}
	})
}
