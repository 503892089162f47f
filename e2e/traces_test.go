package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"parley"
)

// A traceCollector receives traces by OTLP over HTTP.
type traceCollector struct {
	*httptest.Server
	up       atomic.Bool // if false, it closes connections without a response
	spans    *list[*tracepb.Span]
	resource *list[[]*commonpb.KeyValue]
}

func startCollector(t *testing.T) *traceCollector {
	t.Helper()
	c := &traceCollector{spans: newList[*tracepb.Span](), resource: newList[[]*commonpb.KeyValue]()}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.up.Load() {
			panic(http.ErrAbortHandler)
		}
		body, err := io.ReadAll(r.Body)
		var request coltracepb.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Api-Key") != "a b" ||
			proto.Unmarshal(body, &request) != nil {
			t.Errorf("%s %v %v", r.URL, r.Header, err)
		}
		for _, rs := range request.ResourceSpans {
			c.resource.add(rs.Resource.Attributes)
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					c.spans.add(s)
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

// eventsOf returns the events with a body of this type.
func eventsOf[B parley.EventBody](log []parley.Event) (list []parley.Event) {
	for _, e := range log {
		if _, ok := e.Body.(B); ok {
			list = append(list, e)
		}
	}
	return list
}

// A drawnSpan is a span as the test expects it.
type drawnSpan struct {
	name       string
	start, end time.Time
	failed     string // the type of its error
	follows    string // the name of the span that it links to
	below      []drawnSpan
}

// lines draws a tree of spans as text, so that two can be compared.
func (d drawnSpan) lines(indent string) string {
	at := func(t time.Time) string { return t.UTC().Format("15:04:05.000000") }
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s %s-%s %s %s\n", indent, d.name, at(d.start), at(d.end), d.failed, d.follows)
	slices.SortFunc(d.below, func(a, b drawnSpan) int {
		return strings.Compare(at(a.start)+a.name, at(b.start)+b.name)
	})
	for _, s := range d.below {
		b.WriteString(s.lines(indent + "  "))
	}
	return b.String()
}

// drawn returns the tree of spans below one.
func drawn(spans []*tracepb.Span, s *tracepb.Span) drawnSpan {
	at := func(nano uint64) time.Time { return time.Unix(0, int64(nano)) }
	d := drawnSpan{name: s.Name, start: at(s.StartTimeUnixNano), end: at(s.EndTimeUnixNano)}
	for _, a := range s.Attributes {
		if a.Key == "error.type" {
			d.failed = a.Value.GetStringValue()
		}
	}
	for _, o := range spans {
		if bytes.Equal(o.ParentSpanId, s.SpanId) {
			d.below = append(d.below, drawn(spans, o))
		}
		for _, l := range s.Links {
			if bytes.Equal(l.SpanId, o.SpanId) {
				d.follows += o.Name
			}
		}
	}
	return d
}

// observed runs the commands of docs/observe.md, except the start of a server,
// which the test does.
func (s *server) observed(session string) {
	s.t.Helper()
	page, err := os.ReadFile("../docs/observe.md")
	if err != nil {
		s.t.Fatal(err)
	}
	bin := s.t.TempDir()
	if err := os.Symlink(binary(s.t), filepath.Join(bin, "parley")); err != nil {
		s.t.Fatal(err)
	}
	printed := ""
	for _, m := range regexp.MustCompile(`(?m)^    \$ (.*)$`).FindAllStringSubmatch(string(page), -1) {
		if m[1] == "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 parley serve" {
			continue
		}
		cmd := exec.CommandContext(within(s.t, patience), "sh", "-c",
			strings.ReplaceAll(m[1], "http://127.0.0.1:8080", "http://"+s.address))
		cmd.Dir, cmd.Env = bin, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "PARLEY_SERVER=" + s.address}
		out, err := cmd.CombinedOutput()
		if err != nil {
			s.t.Errorf("%s: %v\n%s", m[1], err, out)
		}
		printed += string(out)
	}
	for _, want := range []string{`parley_runs_finished_total{outcome="completed"} 2`, session} {
		if !strings.Contains(printed, want) {
			s.t.Errorf("the commands did not print %s:\n%s", want, printed)
		}
	}
}

// TestATraceIsOneTree: a run delegates to a sub-agent. A crash interrupts its
// first tool call, and a person approves the next. All of it is one trace with
// the times of the log. It is exported as soon as the collector can be reached.
func TestATraceIsOneTree(t *testing.T) {
	t.Parallel()
	mock := startModel(t,
		script("have both done",
			asks("", call("delegate", map[string]any{"agent_id": "b-asks", "task": "look, then deploy"})),
			says("Done.")),
		script("look, then deploy", asks("", shellCall("cat", "gate")), asks("", shellCall("sh", "deploy.sh")),
			says("It is deployed.")))
	collector := startCollector(t)
	s := newDeployment(t, mock, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_SERVICE_NAME=my-parley",
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b")
	session := s.says("a-auto", "have both done")
	s = s.killedAtTheGate()
	s.pass()
	spawned := those[parley.ChildSpawned](s.exported(session))
	if len(spawned) != 1 {
		t.Fatalf("children: %+v", spawned)
	}
	s.send("/approvals/"+s.waiting("approvals", string(spawned[0].Child)), `{"decision":"allow"}`)
	s.pass()
	s.logged("traces cannot be exported", 1) // the run of the sub-agent ends first
	collector.up.Store(true)
	s.logged("traces are exported again", 1)
	log := s.ends(session)
	child := s.settled(string(spawned[0].Child))

	// The expected tree follows from the log.
	from := func(list []parley.Event, i int) time.Time {
		t.Helper()
		if i >= len(list) {
			t.Fatalf("there are only %d of these: %+v", len(list), list)
		}
		return list[i].At
	}
	model := func(log []parley.Event, turn int) drawnSpan {
		return drawnSpan{name: "chat gpt-4.1", start: from(eventsOf[parley.TurnStarted](log), turn),
			end: from(eventsOf[parley.TurnFinished](log), turn)}
	}
	turn := func(log []parley.Event, i int, end time.Time, below ...drawnSpan) drawnSpan {
		return drawnSpan{name: "turn", start: from(eventsOf[parley.TurnStarted](log), i), end: end,
			below: append(below, model(log, i))}
	}
	agent := func(name string, log []parley.Event, turns ...drawnSpan) drawnSpan {
		return drawnSpan{name: "invoke_agent " + name, start: from(eventsOf[parley.RunStarted](log), 0),
			end: from(eventsOf[parley.RunFinished](log), 0), below: turns}
	}
	starts, ends := eventsOf[parley.ToolCallStarted](child), eventsOf[parley.ToolCallFinished](child)
	decided := eventsOf[parley.ApprovalDecided](child)
	inChild := agent("b-asks", child,
		turn(child, 0, from(ends, 0),
			drawnSpan{name: "execute_tool shell", start: from(starts, 0), end: from(starts, 1), failed: "interrupted"},
			drawnSpan{name: "execute_tool shell", start: from(starts, 1), end: from(ends, 0),
				follows: "execute_tool shell"}),
		turn(child, 1, from(ends, 1),
			drawnSpan{name: "approval shell", start: from(eventsOf[parley.ApprovalRequested](child), 0),
				end: from(decided, 0)},
			drawnSpan{name: "execute_tool shell", start: from(starts, 2), end: from(ends, 1)}),
		turn(child, 2, from(eventsOf[parley.TurnFinished](child), 2)))
	returned := from(eventsOf[parley.ToolCallFinished](log), 0)
	want := agent("a-auto", log,
		turn(log, 0, returned, drawnSpan{name: "execute_tool delegate",
			start: from(eventsOf[parley.ToolCallRequested](log), 0), end: returned, below: []drawnSpan{inChild}}),
		turn(log, 1, from(eventsOf[parley.TurnFinished](log), 1)))

	wanted := want.lines("")
	if _, err := collector.spans.at(within(t, patience), strings.Count(wanted, "\n")-1); err != nil {
		t.Fatalf("%v; there are %d spans, of\n%s", err, len(collector.spans.all()), wanted)
	}
	s.observed(session)
	s.stop() // all other spans have been exported after that
	spans := collector.spans.all()
	var top []*tracepb.Span
	for _, span := range spans {
		if len(span.ParentSpanId) == 0 {
			top = append(top, span)
		}
		if !bytes.Equal(span.TraceId, spans[0].TraceId) {
			t.Errorf("%s is of another trace", span.Name)
		}
	}
	if len(top) != 1 {
		t.Fatalf("%d spans at the top: %v", len(top), top)
	}
	if got := drawn(spans, top[0]).lines(""); got != wanted || len(spans) != strings.Count(wanted, "\n") {
		t.Errorf("%d spans:\n%swant\n%s", len(spans), got, wanted)
	}
	if resource := fmt.Sprint(collector.resource.all()[0]); !strings.Contains(resource, "my-parley") {
		t.Errorf("the resource is %s", resource)
	}
	warnings := 0
	for _, line := range s.log.all() {
		if strings.Contains(line, "traces cannot be exported") {
			warnings++
		}
	}
	if warnings != 1 {
		t.Errorf("an outage of the collector was logged %d times", warnings)
	}
}
