package trace

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"parley"
	"parley/port"
)

// A fakeStore contains logs and can only be read.
type fakeStore struct {
	port.Store
	logs map[parley.SessionID][]parley.Event
}

func (s fakeStore) Epoch() string                           { return "epoch" }
func (s fakeStore) Tenant(parley.TenantID) port.TenantStore { return fakeLogs{logs: s.logs} }

type fakeLogs struct {
	port.TenantStore
	logs map[parley.SessionID][]parley.Event
}

func (l fakeLogs) Events(_ context.Context, id parley.SessionID, after parley.Seq, limit int) ([]parley.Event, error) {
	log, ok := l.logs[id]
	if !ok {
		return nil, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	log = slices.DeleteFunc(slices.Clone(log), func(e parley.Event) bool { return e.Seq <= after })
	return log[:min(len(log), limit, 3)], nil // small pages, so that reading a run takes several
}

// An at is an event and its time, in seconds after start.
type at struct {
	second int
	body   parley.EventBody
}

// start is the time of the first event.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newLog returns the log of one run. The event with the seq run starts it.
func newLog(id parley.SessionID, run parley.RunID, events ...at) (log []parley.Event) {
	for i, a := range events {
		e := parley.Event{Session: id, Seq: parley.Seq(i + 1), Root: "root", At: start.Add(time.Duration(a.second) *
			time.Second), Body: a.body}
		if e.Seq > parley.Seq(run) {
			e.Run = run
		}
		log = append(log, e)
	}
	return log
}

var (
	coder    = parley.AgentRef{Name: "coder", Digest: "d1", Model: "claude-x"}
	explorer = parley.AgentRef{Name: "explorer", Model: "gemini-y"}
)

// crashed returns the logs of a run with all cases: an approval, a sub-agent, and
// crashes in a model call, in a repeatable tool call and in one that is not.
func crashed() map[parley.SessionID][]parley.Event {
	exit := 3
	return map[parley.SessionID][]parley.Event{
		"root": newLog("root", 3,
			at{0, parley.SessionOpened{Owner: "ann"}},
			at{0, parley.InputReceived{Content: "do it"}},
			at{1, parley.RunStarted{Input: 2, Agent: coder, Request: "req-1"}}, // 3
			at{1, parley.InputAdopted{}},
			at{2, parley.TurnStarted{Number: 1, Model: "claude-x"}}, // 5
			at{3, parley.OutputStarted{Turn: 5, Kind: parley.Text}},
			at{4, parley.OutputAppended{Output: 6, Text: "I sh"}},
			at{10, parley.OutputFinished{Output: 6, Kind: parley.Text, Text: "I sh", Incomplete: true}},
			at{10, parley.TurnFinished{Turn: 5, Stop: parley.StopCut, Code: parley.CodeInterrupted,
				Message: "The server stopped in the middle of the answer."}},
			at{11, parley.TurnStarted{Number: 2, Model: "claude-x"}}, // 10
			at{12, parley.ModelFellBack{Turn: 10, Preferred: "claude-x", Actual: "gpt-z", Reason: "overloaded"}},
			at{13, parley.ToolCallRequested{Turn: 10, Name: "shell", Arguments: `{"command":["ls"]}`,
				Provider: "call_1"}}, // 12
			at{13, parley.ApprovalRequested{Call: 12, Name: "shell"}}, // 13
			at{14, parley.TurnFinished{Turn: 10, Stop: parley.StopTools,
				Usage: parley.Usage{Input: 100, Output: 20, Cached: 60, CostMicros: 1500}}},
			at{30, parley.ApprovalDecided{Card: 13, Call: 12, Decision: parley.AllowOnce}},
			at{31, parley.ToolCallStarted{Call: 12, Attempt: 1}},
			at{40, parley.ToolCallStarted{Call: 12, Attempt: 2}}, // 17
			at{42, parley.ToolCallFinished{Call: 12, Name: "shell", Outcome: parley.CallFailed, Exit: &exit,
				Result: "no"}},
			at{43, parley.TurnStarted{Number: 3, Model: "claude-x"}},                               // 19
			at{44, parley.ToolCallRequested{Turn: 19, Name: "delegate", Arguments: "{}"}},          // 20
			at{44, parley.ChildSpawned{Call: 20, Child: "child", Agent: "explorer"}},               // 21
			at{44, parley.ToolCallRequested{Turn: 19, Name: "deploy", Class: parley.Effectful}},    // 22
			at{44, parley.ToolCallRequested{Turn: 19, Name: "rm", Arguments: "not JSON"}},          // 23
			at{44, parley.ToolCallBlocked{Call: 23, Name: "rm", Reason: "it is not in the list"}},  // 24
			at{45, parley.TurnFinished{Turn: 19, Stop: parley.StopTools}},                          // 25
			at{46, parley.ToolCallStarted{Call: 22, Attempt: 1}},                                   // 26
			at{50, parley.ToolCallFinished{Call: 22, Name: "deploy", Outcome: parley.CallUnknown}}, // 27
			at{60, parley.ToolCallResolved{Call: 22, Resolution: parley.Rerun}},
			at{61, parley.ToolCallRequested{Turn: 19, Name: "deploy", RerunOf: 22}}, // 29
			at{62, parley.ToolCallStarted{Call: 29, Attempt: 1}},
			at{63, parley.ToolCallFinished{Call: 29, Name: "deploy", Outcome: parley.CallSucceeded}},
			at{70, parley.ChildReturned{Call: 20, Child: "child", Agent: "explorer"}},
			at{71, parley.ToolCallFinished{Call: 20, Name: "delegate", Outcome: parley.CallSucceeded}},
			at{72, parley.TurnStarted{Number: 4, Model: "claude-x"}},
			at{73, parley.OutputStarted{Turn: 34, Kind: parley.Text}},
			at{74, parley.OutputFinished{Output: 35, Kind: parley.Text, Text: "Done."}},
			at{75, parley.TurnFinished{Turn: 34, Stop: parley.StopEnd}},
			at{76, parley.RunFinished{Outcome: parley.Completed, Usage: parley.Usage{Input: 200, Output: 30}}},
		),
		"child": newLog("child", 3,
			at{45, parley.SessionOpened{Owner: "ann", Parent: &parley.Origin{Session: "root", Run: 3, Call: 20,
				Depth: 1}}},
			at{45, parley.InputReceived{Content: "look"}},
			at{46, parley.RunStarted{Input: 2, Agent: explorer}},
			at{47, parley.TurnStarted{Number: 1, Model: "gemini-y"}},                                 // 4
			at{48, parley.ToolCallRequested{Turn: 4, Name: "ask_user"}},                              // 5
			at{48, parley.QuestionAsked{Call: 5}},                                                    // 6
			at{48, parley.ToolCallRequested{Turn: 4, Name: "delegate"}},                              // 7
			at{48, parley.ChildSpawned{Call: 7, Child: "grandchild", Agent: "coder"}},                // 8
			at{49, parley.TurnFinished{Turn: 4, Stop: parley.StopTools}},                             // 9
			at{55, parley.QuestionAnswered{Card: 6, Call: 5}},                                        // 10
			at{56, parley.ToolCallFinished{Call: 5, Name: "ask_user", Outcome: parley.CallDenied}},   // 11
			at{58, parley.ToolCallFinished{Call: 7, Name: "delegate", Outcome: parley.CallFailed}},   // 12
			at{59, parley.RunFinished{Outcome: parley.Failed, Code: parley.CodeModel, Message: "m"}}, // 13
		),
		"grandchild": newLog("grandchild", 2,
			at{50, parley.SessionOpened{Owner: "ann", Parent: &parley.Origin{Session: "child", Run: 3, Call: 7,
				Depth: 2}}},
			at{50, parley.RunStarted{Agent: parley.AgentRef{Name: "far", Remote: true}}},
			at{51, parley.TurnStarted{Number: 1}},
			at{52, parley.TurnFinished{Turn: 3, Stop: parley.StopCut, Code: parley.CodeInterrupted}},
			at{53, parley.RunFinished{Outcome: parley.Interrupted, Code: parley.CodeInterrupted}},
		),
	}
}

// A collector receives spans.
type collector struct {
	spans []*tracepb.Span
	took  chan int // number of spans so far
	fail  func() error
}

func (c *collector) upload(_ context.Context, all []*tracepb.ResourceSpans) error {
	if c.fail != nil {
		if err := c.fail(); err != nil {
			return err
		}
	}
	for _, r := range all {
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	c.took <- len(c.spans)
	return nil
}

func newCollector() *collector { return &collector{took: make(chan int, 100)} }

func newExporter(c *collector, logs map[parley.SessionID][]parley.Event, log *bytes.Buffer) *Exporter {
	x := New(Options{Store: fakeStore{logs: logs}, Upload: c.upload, Sampled: Ratio(1),
		Provider: func(model string) string { return "vendor of " + model },
		Log:      slog.New(slog.NewTextHandler(log, nil))})
	x.pause = time.Millisecond
	return x
}

// finish passes the last event of a log to an exporter.
func finish(x *Exporter, log []parley.Event) { x.Published("tenant", log[len(log)-1:]) }

// export returns all spans of the runs in the logs.
func export(t *testing.T, logs map[parley.SessionID][]parley.Event, content bool) []*tracepb.Span {
	t.Helper()
	c, log := newCollector(), &bytes.Buffer{}
	x := newExporter(c, logs, log)
	x.Content = content
	for _, l := range logs {
		finish(x, l)
	}
	x.Start()
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
	return c.spans
}

// tree draws spans as a tree, with seconds, errors and links.
func tree(t *testing.T, spans []*tracepb.Span) string {
	t.Helper()
	var out strings.Builder
	drawn := 0
	var draw func(parent []byte, indent string)
	draw = func(parent []byte, indent string) {
		var below []*tracepb.Span
		for _, s := range spans {
			if bytes.Equal(s.ParentSpanId, parent) {
				below = append(below, s)
			}
		}
		slices.SortFunc(below, func(a, b *tracepb.Span) int {
			if n := int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)); n != 0 {
				return n
			}
			return strings.Compare(a.Name, b.Name)
		})
		for _, s := range below {
			drawn++
			second := func(at uint64) int { return int(time.Unix(0, int64(at)).Sub(start) / time.Second) }
			fmt.Fprintf(&out, "%s%s %d-%d", indent, s.Name, second(s.StartTimeUnixNano), second(s.EndTimeUnixNano))
			if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
				fmt.Fprintf(&out, " error=%s", attributeOf(s.Attributes, "error.type"))
			}
			for _, l := range s.Links {
				i := slices.IndexFunc(spans, func(o *tracepb.Span) bool { return bytes.Equal(o.SpanId, l.SpanId) })
				if i < 0 {
					t.Fatalf("%s has a link to nothing", s.Name)
				}
				fmt.Fprintf(&out, " %s(%s %d)", l.Attributes[0].Value.GetStringValue(), spans[i].Name,
					second(spans[i].StartTimeUnixNano))
			}
			out.WriteByte('\n')
			draw(s.SpanId, indent+"  ")
		}
	}
	draw(nil, "")
	ids := map[string]bool{}
	for _, s := range spans {
		ids[hex.EncodeToString(s.SpanId)] = true
		if !bytes.Equal(s.TraceId, spans[0].TraceId) || len(s.TraceId) != 16 || len(s.SpanId) != 8 {
			t.Errorf("%s is of trace %x, span %x", s.Name, s.TraceId, s.SpanId)
		}
	}
	if drawn != len(spans) || len(ids) != len(spans) {
		t.Errorf("%d spans with %d ids, %d of them in the tree", len(spans), len(ids), drawn)
	}
	return out.String()
}

// TestARunIsOneTree checks that a run and the runs of its sub-agents are one tree,
// across a crash.
func TestARunIsOneTree(t *testing.T) {
	const want = `invoke_agent coder 1-76
  turn 2-10 error=interrupted
    chat claude-x 2-10 error=interrupted
  turn 11-42
    chat claude-x 11-14 continues(chat claude-x 2)
    approval shell 13-30
    execute_tool shell 31-40 error=interrupted
    execute_tool shell 40-42 error=failed continues(execute_tool shell 31)
  turn 43-71
    chat claude-x 43-45
    execute_tool delegate 44-71
      invoke_agent explorer 46-59 error=model_error
        turn 47-58
          chat gemini-y 47-49
          execute_tool delegate 48-58 error=failed
            invoke_agent far 50-53 error=interrupted
              turn 51-52 error=interrupted
          question 48-55
          execute_tool ask_user 55-56
    execute_tool rm 44-44 error=blocked
    execute_tool deploy 46-50 error=unknown
    resolution deploy 50-60
    execute_tool deploy 62-63 reruns(execute_tool deploy 46)
  turn 72-75
    chat claude-x 72-75
`
	if diff := cmp.Diff(want, tree(t, export(t, crashed(), false))); diff != "" {
		t.Error(diff)
	}
}

// TestSpansOfOneLogAreTheSame checks that every process computes the same spans
// from the same log.
func TestSpansOfOneLogAreTheSame(t *testing.T) {
	sorted := func() []*tracepb.Span {
		spans := export(t, crashed(), true)
		slices.SortFunc(spans, func(a, b *tracepb.Span) int { return bytes.Compare(a.SpanId, b.SpanId) })
		return spans
	}
	a, b := sorted(), sorted()
	if !slices.EqualFunc(a, b, func(a, b *tracepb.Span) bool { return proto.Equal(a, b) }) {
		t.Error("two exports of one log differ")
	}
	if other := atTop("restored", "tenant", "root", 3); bytes.Equal(other.trace, a[0].TraceId) {
		t.Error("a history that was restored has the traces of the one before")
	}
}

// attributesOf returns the attributes of the only span with a name and a start, as
// text.
func attributesOf(t *testing.T, spans []*tracepb.Span, name string, second int) map[string]string {
	t.Helper()
	for _, s := range spans {
		if s.Name != name || int64(s.StartTimeUnixNano) != start.Add(time.Duration(second)*time.Second).UnixNano() {
			continue
		}
		all := map[string]string{"kind": s.Kind.String()}
		for _, a := range s.Attributes {
			if _, twice := all[a.Key]; twice {
				t.Errorf("%s has two %s", name, a.Key)
			}
			value := a.Value.String()
			_, value, _ = strings.Cut(value, ":")
			all[a.Key] = strings.Trim(value, `"`)
		}
		return all
	}
	t.Fatalf("there is no %s at %d", name, second)
	return nil
}

// TestAttributes checks that attributes have the names in the conventions, and that
// texts are included only if that is enabled.
func TestAttributes(t *testing.T) {
	for _, content := range []bool{false, true} {
		spans := export(t, crashed(), content)
		for _, want := range []struct {
			name       string
			second     int
			attributes map[string]string // empty: the attribute must be missing
		}{
			{"invoke_agent coder", 1, map[string]string{"gen_ai.operation.name": "invoke_agent",
				"gen_ai.agent.name": "coder", "gen_ai.agent.version": "d1", "gen_ai.conversation.id": "root",
				"gen_ai.provider.name": "vendor of claude-x", "gen_ai.request.model": "claude-x",
				"gen_ai.usage.input_tokens": "200", "gen_ai.usage.output_tokens": "30", "parley.outcome": "completed",
				"parley.run.id": "root.3", "parley.tenant": "tenant", "parley.request.id": "req-1", "error.type": "",
				"kind": "SPAN_KIND_INTERNAL"}},
			{"chat claude-x", 11, map[string]string{"gen_ai.operation.name": "chat", "gen_ai.response.model": "gpt-z",
				"gen_ai.usage.input_tokens": "100", "gen_ai.usage.cache_read.input_tokens": "60",
				"parley.cost_usd": "0.0015", "kind": "SPAN_KIND_CLIENT", "gen_ai.request.stream": "true"}},
			{"chat claude-x", 2, map[string]string{"gen_ai.response.time_to_first_chunk": "1",
				"gen_ai.response.model": "", "error.type": "interrupted"}},
			{"chat claude-x", 43, map[string]string{"gen_ai.response.model": "claude-x"}},
			{"execute_tool shell", 40, map[string]string{"gen_ai.operation.name": "execute_tool",
				"gen_ai.tool.name": "shell", "gen_ai.tool.call.id": "call_1", "gen_ai.tool.type": "function",
				"process.exit.code": "3", "parley.attempt": "2", "parley.call.id": "root.12"}},
			{"execute_tool delegate", 44, map[string]string{"parley.child.session": "child",
				"gen_ai.tool.call.id": "root.20"}},
			{"approval shell", 13, map[string]string{"parley.decision": "allow", "parley.wait": "approval"}},
			{"resolution deploy", 50, map[string]string{"parley.resolution": "rerun"}},
			{"invoke_agent far", 50, map[string]string{"kind": "SPAN_KIND_CLIENT", "gen_ai.provider.name": ""}},
		} {
			got := attributesOf(t, spans, want.name, want.second)
			for name, value := range want.attributes {
				if got[name] != value {
					t.Errorf("%s: %s is %q, want %q", want.name, name, got[name], value)
				}
			}
		}
		for name, about := range map[string]struct {
			span   string
			second int
		}{
			`[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"do it\"}]}]`: {"invoke_agent coder",
				1},
			`[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"Done.\"}]}]`: {"invoke_agent coder",
				1},
			`{\"command\":[\"ls\"]}`: {"execute_tool shell", 40},
			"no":                     {"execute_tool shell", 40},
			"not JSON":               {"execute_tool rm", 44},
		} {
			found := false
			for _, value := range attributesOf(t, spans, about.span, about.second) {
				found = found || value == name
			}
			if found != content {
				t.Errorf("content %v, and %s of %s is there: %v", content, name, about.span, found)
			}
		}
	}
}

// TestACollectorThatIsDown checks that an outage is logged with one line, and that
// the collector gets every span afterwards.
func TestACollectorThatIsDown(t *testing.T) {
	c, log := newCollector(), &bytes.Buffer{}
	failures := maxTries + 2
	c.fail = func() error {
		if failures--; failures >= 0 {
			return &url.Error{Op: "Post", URL: "http://x", Err: errors.New("connection refused")}
		}
		return nil
	}
	logs := crashed()
	x := newExporter(c, logs, log)
	x.Start()
	finish(x, logs["root"])
	finish(x, logs["child"])
	for have := 0; have < 22; { // every span except those of the grandchild
		select {
		case have = <-c.took:
		case <-t.Context().Done():
			t.Fatal("the spans do not come")
		}
	}
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "traces cannot be exported") ||
		!strings.Contains(lines[1], "exported again") || !strings.Contains(lines[1], "runs_left_out=0") {
		t.Errorf("logged %s", log)
	}
}

// TestACollectorThatRefuses checks that a request that is refused maxTries times is
// dropped, and the next spans are sent.
func TestACollectorThatRefuses(t *testing.T) {
	c, log := newCollector(), &bytes.Buffer{}
	refusals := 0
	c.fail = func() error {
		if refusals++; refusals <= maxTries {
			return errors.New("400 Bad Request")
		}
		return nil
	}
	logs := crashed()
	x := newExporter(c, logs, log)
	x.Start()
	finish(x, logs["root"])
	x.flush(t) // the first run is dropped before the second is published
	finish(x, logs["grandchild"])
	if n := <-c.took; n != 2 {
		t.Errorf("%d spans, want those of the second run alone", n)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "runs_left_out=1") {
		t.Errorf("logged %s", log)
	}
}

// TestAPartialSuccessIsNotSentAgain checks that spans which a collector has taken are not sent twice because it has
// rejected others.
func TestAPartialSuccessIsNotSentAgain(t *testing.T) {
	c, log := newCollector(), &bytes.Buffer{}
	requests := 0
	c.fail = func() error {
		requests++
		return &Partial{Rejected: 1, Words: "too old"}
	}
	newExporter(c, crashed(), log).send([]*tracepb.Span{{}})
	if requests != 1 || !strings.Contains(log.String(), "rejected 1 spans: too old") {
		t.Errorf("%d requests, logged %s", requests, log)
	}
}

// flush waits until the worker has dropped a run.
func (x *Exporter) flush(t *testing.T) {
	for x.left.Load() == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the run is not given up")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestTheQueueIsBounded checks that runs above the limit are dropped and counted.
func TestTheQueueIsBounded(t *testing.T) {
	c, log := newCollector(), &bytes.Buffer{}
	logs := crashed()
	x := newExporter(c, logs, log)
	for range maxRuns + 3 {
		finish(x, logs["grandchild"])
	}
	if n := x.left.Load(); n != 3 {
		t.Errorf("%d are left out", n)
	}
	if err := x.Close(t.Context()); err != nil { // the exporter was never started
		t.Error(err)
	}
	if !strings.Contains(log.String(), fmt.Sprintf("runs=%d", maxRuns+3)) {
		t.Errorf("logged %s", log)
	}
}

// TestAStopDoesNotWaitForTheCollector checks that Close returns soon if the
// collector is down.
func TestAStopDoesNotWaitForTheCollector(t *testing.T) {
	c, log := newCollector(), &bytes.Buffer{}
	tried := make(chan struct{}, 100)
	c.fail = func() error {
		tried <- struct{}{}
		return &url.Error{Op: "Post", URL: "http://x", Err: errors.New("connection refused")}
	}
	logs := crashed()
	x := newExporter(c, logs, log)
	x.pause = time.Hour
	x.Start()
	finish(x, logs["root"])
	<-tried
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "runs=1") {
		t.Errorf("logged %s", log)
	}
}

// TestADeletedSession checks that a deleted session has no trace and affects no
// other run.
func TestADeletedSession(t *testing.T) {
	logs := crashed()
	deleted := logs["child"]
	delete(logs, "child")
	delete(logs, "grandchild")
	c, log := newCollector(), &bytes.Buffer{}
	x := newExporter(c, logs, log)
	finish(x, deleted)
	finish(x, logs["root"])
	x.Start()
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(c.spans) != 17 || log.Len() > 0 {
		t.Errorf("%d spans, logged %s", len(c.spans), log)
	}
}

// TestRatio checks that all nodes select the same traces, and about the configured
// fraction.
func TestRatio(t *testing.T) {
	count := func(ratio float64) (n int) {
		for run := range 1000 {
			if Ratio(ratio)([16]byte(atTop("e", "t", "s", parley.RunID(run)).trace)) {
				n++
			}
		}
		return n
	}
	if none, some, all := count(0), count(0.25), count(1); none != 0 || some < 200 || some > 300 || all != 1000 {
		t.Errorf("%d, %d and %d of 1000", none, some, all)
	}
}

// TestTracingDoesNotAllocate checks that there are no allocations if tracing is off,
// or for events that do not end a run.
func TestTracingDoesNotAllocate(t *testing.T) {
	events := crashed()["root"]
	var off *Exporter
	on := newExporter(newCollector(), nil, &bytes.Buffer{})
	if n := testing.AllocsPerRun(100, func() {
		off.Published("tenant", events)
		on.Published("tenant", events[:len(events)-1])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
