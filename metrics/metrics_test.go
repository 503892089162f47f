package metrics

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"parley"
	"parley/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var t0 = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// numbers returns all values of a scrape, by name and labels.
func numbers(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, s := range f.Metric {
			var labels []string
			for _, l := range s.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := strings.TrimPrefix(f.GetName(), "parley_") + "{" + strings.Join(labels, ",") + "}"
			switch {
			case s.Counter != nil:
				all[name] = s.Counter.GetValue()
			case s.Gauge != nil:
				all[name] = s.Gauge.GetValue()
			case s.Histogram != nil:
				all[name+" count"] = float64(s.Histogram.GetSampleCount())
				all[name+" sum"] = s.Histogram.GetSampleSum()
			}
		}
	}
	return all
}

func expect(t *testing.T, m *Metrics, want map[string]float64) {
	t.Helper()
	all := numbers(t, m)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got, ok := all[name]; !ok || got != want[name] {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, want[name])
		}
	}
}

func TestEventsAreCounted(t *testing.T) {
	m := New("1", time.Now)
	// counters without events are exported as zero
	expect(t, m, map[string]float64{"runs_finished_total{outcome=failed}": 0})
	var log []parley.Event
	for _, b := range []parley.EventBody{
		parley.InputReceived{}, parley.RunStarted{}, parley.TurnStarted{}, parley.OutputAppended{},
		parley.TurnFinished{Stop: parley.StopTools},
		parley.ApprovalRequested{}, parley.QuestionAsked{},
		parley.ToolCallFinished{Name: "shell", Outcome: parley.CallSucceeded}, parley.ToolCallBlocked{Name: "shell"},
		parley.TimerFired{At: t0.Add(2 * time.Second), Due: t0}, parley.TimerFired{At: t0},
		parley.ToolCallFinished{Name: "shell", Outcome: parley.CallUnknown},
		parley.EffectEnqueued{Type: parley.SendMessage},
		parley.RunFinished{Outcome: parley.Failed}, parley.RunFinished{Outcome: "of a later release"},
	} {
		log = append(log, parley.Event{Body: b})
	}
	m.Published(log)
	m.Published(nil)
	expect(t, m, map[string]float64{
		"events_total{}": 15, "timer_lateness_seconds{} count": 1, "timer_lateness_seconds{} sum": 2,
		"inputs_total{}": 1, "runs_started_total{}": 1, "runs_finished_total{outcome=failed}": 1,
		"runs_finished_total{outcome=completed}": 0,
		"turns_finished_total{stop=tools}":       1, "cards_opened_total{kind=approval}": 1,
		"cards_opened_total{kind=question}": 1, "cards_opened_total{kind=call}": 1,
		"tool_calls_total{outcome=blocked,tool=shell}": 1, "tool_calls_total{outcome=succeeded,tool=shell}": 1,
		"tool_calls_total{outcome=unknown,tool=shell}": 1,
		"effects_enqueued_total{type=send_message}":    1,
	})
}

// TestNamesAreBounded: users can invent names of models, and remote agents names of
// tools. For calls that were blocked, even a model can invent names.
func TestNamesAreBounded(t *testing.T) {
	m := New("1", time.Now)
	for i := range 10_000 {
		m.Published([]parley.Event{{Body: parley.ToolCallBlocked{Name: fmt.Sprint("made up", i)}},
			{Body: parley.ToolCallFinished{Name: fmt.Sprint("tool", i), Outcome: parley.CallSucceeded}},
			{Body: parley.ToolCallBlocked{Name: "tool0"}}})
		for range m.Model(script{}).Stream(t.Context(), port.ModelRequest{Model: fmt.Sprint("model", i)}) {
		}
	}
	if n := testutil.CollectAndCount(m.calls); n != maxTools+3 {
		t.Errorf("%d names and outcomes of tools", n)
	}
	if n := testutil.CollectAndCount(m.modelCalls); n != maxModels+1 {
		t.Errorf("%d names of models", n)
	}
	expect(t, m, map[string]float64{"tool_calls_total{outcome=succeeded,tool=other}": 10_000 - maxTools,
		"tool_calls_total{outcome=blocked,tool=other}": 10_000, "tool_calls_total{outcome=blocked,tool=tool0}": 10_000})
}

// A script is a model that returns fixed values, each after a second.
type script struct {
	said []port.ModelChunk
	err  error
}

func (s script) Stream(ctx context.Context, _ port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	return func(yield func(port.ModelChunk, error) bool) {
		for _, said := range s.said {
			time.Sleep(time.Second)
			if !yield(said, ctx.Err()) {
				return
			}
		}
		if s.err != nil {
			yield(port.ModelChunk{}, s.err)
		}
	}
}

func TestCallsOfModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New("1", time.Now)
		call := func(ctx context.Context, s script) {
			for said, err := range m.Model(s).Stream(ctx, port.ModelRequest{Model: "a"}) {
				if err != nil || said.Done != nil {
					return
				}
			}
		}
		done := port.ModelChunk{Done: &port.ModelDone{Stop: parley.StopEnd,
			Usage: parley.Usage{Input: 7, Output: 5, Cached: 3, CostMicros: 2_500_000}}}
		call(t.Context(), script{said: []port.ModelChunk{{Text: "one"}, {Text: "two"}, done}})
		call(t.Context(), script{said: []port.ModelChunk{{FellBack: &parley.FellBack{Actual: "b"}}, {Thinking: "hm"},
			done}})
		call(t.Context(), script{err: errors.New("no")})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		call(ctx, script{said: []port.ModelChunk{{Text: "one"}}})
		expect(t, m, map[string]float64{
			"model_calls_total{model=a,outcome=end}": 1, "model_calls_total{model=b,outcome=end}": 1,
			"model_calls_total{model=a,outcome=failed}": 1, "model_calls_total{model=a,outcome=cancelled}": 1,
			"model_first_piece_seconds{model=a} count": 1, "model_first_piece_seconds{model=a} sum": 1,
			"model_first_piece_seconds{model=b} sum": 2, "model_call_duration_seconds{model=b} sum": 3,
			"model_tokens_total{kind=input,model=a}": 7, "model_tokens_total{kind=output,model=a}": 5,
			"model_tokens_total{kind=cached,model=b}": 3,
			"model_cost_dollars_total{model=a}":       2.5,
		})
	})
}

type faulty struct {
	port.Store
	res port.Appended
	err error
}

func (f *faulty) Append(context.Context, port.Batch) (port.Appended, error) {
	time.Sleep(time.Second)
	return f.res, f.err
}

func TestAppendsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New("1", time.Now)
		for _, f := range []*faulty{{}, {}, {res: port.Appended{Fenced: true}}, {err: errors.New("full")}} {
			res, err := m.Store(f).Append(t.Context(), port.Batch{})
			if res.Fenced != f.res.Fenced || err != f.err {
				t.Errorf("%v %v became %v %v", f.res, f.err, res, err)
			}
		}
		m.Committed(3, time.Second/4)
		expect(t, m, map[string]float64{
			"appends_total{outcome=stored}": 2, "appends_total{outcome=fenced}": 1, "appends_total{outcome=failed}": 1,
			"append_duration_seconds{} sum": 4, "commit_batches{} sum": 3, "commit_duration_seconds{} sum": 0.25,
		})
	})
}

type box struct{ port.TenantToolbox }

func (b box) Of(context.Context, port.ToolLedger) port.Toolbox { return b }
func (box) Perform(context.Context, parley.Agent, string, string, port.Progress) (port.ToolResult, error) {
	time.Sleep(2 * time.Second)
	return port.ToolResult{Text: "done"}, nil
}

func TestToolsAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New("1", time.Now)
		for _, tools := range []port.Toolbox{m.Tools(box{}), m.Tools(box{}).Of(t.Context(), nil)} {
			if res, err := tools.Perform(t.Context(), parley.Agent{}, "shell", "{}", nil); err != nil ||
				res.Text != "done" {
				t.Error(res, err)
			}
		}
		expect(t, m, map[string]float64{"tool_call_duration_seconds{tool=shell} count": 2,
			"tool_call_duration_seconds{tool=shell} sum": 4})
	})
}

// TestBacklogMetrics uses a store that answers, fails, or hangs. The scrape returns
// all other metrics in any case, within askWithin.
func TestBacklogMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New("1", func() time.Time { return t0 })
		ask := func(context.Context) (port.Backlog, error) {
			return port.Backlog{
				Due: []port.DueDepth{{Reason: "run", Held: 3, Late: 2, Later: 1, Since: t0.Add(-time.Minute)},
					{Reason: "card", Since: t0.Add(time.Hour)}}}, nil
		}
		m.Watch(Sources{Followers: func() int { return 4 }, Sessions: func() int { return 5 },
			Sockets: func() map[string]int { return map[string]int{"threadchat": 6} },
			Backlog: func(ctx context.Context, _ time.Time) (port.Backlog, error) { return ask(ctx) }})
		rest := map[string]float64{"followers{}": 4, "sessions_loaded{}": 5, "sockets{dialect=threadchat}": 6}
		expect(t, m, rest)
		expect(t, m, map[string]float64{"backlog_up{}": 1, "due_sessions{reason=run,state=held}": 3,
			"due_sessions{reason=run,state=late}":  2,
			"due_sessions{reason=run,state=later}": 1, "due_late_seconds{reason=run}": 60,
			"due_late_seconds{reason=card}": 0})
		ask = func(ctx context.Context) (port.Backlog, error) {
			<-ctx.Done()
			return port.Backlog{}, ctx.Err()
		}
		start := time.Now()
		expect(t, m, rest)
		if took := time.Since(start); took != askWithin {
			t.Errorf("a scrape of a store that hangs took %v", took)
		}
		all := numbers(t, m)
		if _, there := all["due_late_seconds{reason=run}"]; there || all["backlog_up{}"] != 0 {
			t.Error("what is not known is told all the same")
		}
	})
}

// TestCountingChunksDoesNotAllocate checks that counting chunks does not allocate,
// because there are thousands of them.
func TestCountingChunksDoesNotAllocate(t *testing.T) {
	m := New("1", time.Now)
	events := []parley.Event{{Body: parley.OutputAppended{Text: "some"}}, {Body: parley.OutputAppended{Text: "more"}}}
	if n := testing.AllocsPerRun(1000, func() { m.Published(events) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPublished(b *testing.B) {
	m := New("1", time.Now)
	events := []parley.Event{{Body: parley.OutputAppended{Text: "some"}}}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Published(events)
		}
	})
}
