package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
)

// fickle is a model that does one thing after the other, whatever model is
// asked for:
//
//	ok        says "<model> speaks", calls, and is done
//	busy      is refused with CodeOverloaded; busy3 asks for three seconds
//	key       is refused permanently
//	invalid   the request is wrong
//	slow      takes a minute to fail
//	cut       says something and breaks off; cutcall has only asked for a call
//	short     ends without an end
type fickle struct {
	does  []string
	asked []string // models asked for
}

func (f *fickle) Stream(ctx context.Context, req port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	return func(yield func(port.ModelChunk, error) bool) {
		do := f.does[len(f.asked)]
		f.asked = append(f.asked, req.Model)
		busy := parley.Errorf(parley.CodeOverloaded, "%s is busy.", req.Model)
		call := port.ModelChunk{Call: &parley.MessageCall{Name: "look", Arguments: "{}"}}
		switch do {
		case "ok":
			_ = yield(port.ModelChunk{Text: req.Model + " speaks"}, nil) && yield(call, nil) &&
				yield(port.ModelChunk{Done: &port.ModelDone{Stop: parley.StopTools}}, nil)
		case "busy":
			yield(port.ModelChunk{}, busy)
		case "busy3", "busy9":
			fmt.Sscanf(do, "busy%d", &busy.RetryAfter)
			busy.RetryAfter *= time.Second
			yield(port.ModelChunk{}, busy)
		case "key":
			yield(port.ModelChunk{}, parley.Errorf(parley.CodeModel, "The model %s needs a key.", req.Model))
		case "invalid":
			yield(port.ModelChunk{}, parley.Errorf(parley.CodeInvalid, "no"))
		case "slow":
			time.Sleep(time.Minute)
			yield(port.ModelChunk{}, parley.Errorf(parley.CodeUnavailable, "%s said nothing.", req.Model))
		case "cut":
			_ = yield(port.ModelChunk{Text: "So"}, nil) && yield(port.ModelChunk{}, busy)
		case "cutcall":
			_ = yield(call, nil) && yield(port.ModelChunk{}, busy)
		case "short":
			yield(call, nil)
		}
	}
}

func TestPatience(t *testing.T) {
	for _, c := range []struct {
		name, does string
		fallback   string
		want       string // output that the caller gets
		asked      string // models asked for
		within     [2]time.Duration
	}{
		{"at once", "ok", "", "a speaks, call, done", "a", [2]time.Duration{0, 0}},
		{"the third time", "busy busy ok", "", "2/3, 3/3, a speaks, call, done", "a a a",
			[2]time.Duration{1500 * time.Millisecond, 2 * time.Second}},
		{"not a fourth time", "busy busy busy", "", "2/3, 3/3, gave up after 3, a is busy.", "a a a",
			[2]time.Duration{1500 * time.Millisecond, 2 * time.Second}},
		{"as the vendor asks", "busy3 ok", "", "2/3, a speaks, call, done", "a a",
			[2]time.Duration{3 * time.Second, 3 * time.Second}},
		{"not for longer than that", "busy9", "", "gave up after 1, a is busy.", "a", [2]time.Duration{0, 0}},
		{"then the next", "busy9 ok", "b c", "a→b (a is busy.), b speaks, call, done", "a b", [2]time.Duration{0, 0}},
		{"and the one after", "busy9 busy9 ok", "b c", "a→b (a is busy.), a→c (b is busy.), c speaks, call, done",
			"a b c", [2]time.Duration{0, 0}},
		{"until there is none", "busy9 busy9", "b", "a→b (a is busy.), gave up after 1, b is busy.", "a b",
			[2]time.Duration{0, 0}},
		{"each has its own three", "busy busy busy busy busy ok", "b",
			"2/3, 3/3, a→b (a is busy.), 2/3, 3/3, b speaks, call, done",
			"a a a b b b", [2]time.Duration{3 * time.Second, 4 * time.Second}},
		{"what will not change", "key ok", "b", "a→b (The model a needs a key.), b speaks, call, done", "a b",
			[2]time.Duration{0, 0}},
		{"a wrong request", "invalid", "b", "no", "a", [2]time.Duration{0, 0}},
		{"what took too long", "slow ok", "b", "a→b (a said nothing.), b speaks, call, done", "a b",
			[2]time.Duration{time.Minute, time.Minute}},
		{"after the first word", "cut", "b", "So, a is busy.", "a", [2]time.Duration{0, 0}},
		{"after a call that nobody saw", "cutcall ok", "b", "2/3, a speaks, call, done", "a a",
			[2]time.Duration{500 * time.Millisecond, time.Second}},
		{"an end without an end", "short ok", "", "2/3, a speaks, call, done", "a a",
			[2]time.Duration{500 * time.Millisecond, time.Second}},
		{"itself is no other", "busy9", "a a", "gave up after 1, a is busy.", "a", [2]time.Duration{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := &fickle{does: strings.Fields(c.does)}
				began := time.Now()
				var heard []string
				for s, err := range Patient(model, slog.New(slog.DiscardHandler)).Stream(t.Context(),
					port.ModelRequest{Model: "a", Fallback: strings.Fields(c.fallback)}) {
					switch {
					case err != nil:
						heard = append(heard, parley.MessageOf(err))
					case s.FellBack != nil:
						heard = append(heard, fmt.Sprintf("%s→%s (%s)", s.FellBack.Preferred, s.FellBack.Actual,
							s.FellBack.Reason))
					case s.Retry != nil && s.Retry.GaveUp:
						heard = append(heard, fmt.Sprintf("gave up after %d", s.Retry.Attempt))
					case s.Retry != nil:
						heard = append(heard, fmt.Sprintf("%d/%d", s.Retry.Attempt, s.Retry.Of))
					case s.Call != nil:
						heard = append(heard, "call")
					case s.Done != nil:
						heard = append(heard, "done")
					default:
						heard = append(heard, s.Text)
					}
				}
				if got := strings.Join(heard, ", "); got != c.want {
					t.Errorf("heard %s\nwant  %s", got, c.want)
				}
				if got := strings.Join(model.asked, " "); got != c.asked {
					t.Errorf("asked %s, want %s", got, c.asked)
				}
				if took := time.Since(began); took < c.within[0] || took > c.within[1] {
					t.Errorf("took %v, want %v", took, c.within)
				}
			})
		})
	}
}

// TestPatienceEnds checks that the retries end with the caller's context, even
// during a pause.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		model := &fickle{does: []string{"busy", "ok"}}
		began := time.Now()
		for s, err := range Patient(model, slog.New(slog.DiscardHandler)).Stream(ctx,
			port.ModelRequest{Model: "a", Fallback: []string{"b"}}) {
			if err == nil && s.Retry == nil {
				t.Error("something was said")
			}
		}
		if len(model.asked) != 1 || time.Since(began) != 100*time.Millisecond ||
			!errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("asked %v in %v", model.asked, time.Since(began))
		}
		// If the caller stops reading, there is no retry.
		for _, does := range []string{"cut", "busy"} {
			model = &fickle{does: []string{does, "ok"}}
			for range Patient(model, slog.New(slog.DiscardHandler)).Stream(t.Context(),
				port.ModelRequest{Model: "a", Fallback: []string{"b"}}) {
				break
			}
			if len(model.asked) != 1 {
				t.Errorf("after %s asked %v", does, model.asked)
			}
		}
	})
}

// TestRetriesDoNotWaitForTheirReport checks that a caller that handles the
// report of a retry slowly does not extend the pause.
func TestRetriesDoNotWaitForTheirReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := &fickle{does: []string{"busy3", "ok"}}
		began := time.Now()
		for s := range Patient(model, slog.New(slog.DiscardHandler)).Stream(t.Context(),
			port.ModelRequest{Model: "a"}) {
			if s.Retry != nil {
				time.Sleep(2 * time.Second)
			}
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
