package trace

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"parley"
	"parley/port"
)

const (
	maxRuns   = 4096             // runs in the queue; later ones are dropped until there is room
	maxSpans  = 512              // spans in one request
	maxBytes  = 1 << 20          // bytes of text in one request, approximately
	page      = 256              // events per read from the store
	maxPause  = 10 * time.Second // between two attempts at a request
	maxTries  = 5                // attempts at a request that the collector answers with an error
	lastSpans = time.Second      // time limit of Close for the remaining spans
)

// Options of an Exporter.
type Options struct {
	Store    port.Store
	Upload   func(context.Context, []*tracepb.ResourceSpans) error // makes one attempt
	Closed   func()                                                // called when nothing more is uploaded; may be nil
	Resource *resourcepb.Resource
	Version  string                    // version of the server
	Sampled  func(trace [16]byte) bool // whether a trace is exported
	Provider func(model string) string // the vendor of a model, by its name in the conventions
	Content  bool                      // export the texts of messages and tool calls, too
	Log      *slog.Logger
}

// Ratio selects a fraction of all traces by their ids. Every node selects the
// same traces, and a sub-agent's run is exported together with its parent run.
func Ratio(ratio float64) func([16]byte) bool {
	return func(trace [16]byte) bool {
		return ratio >= 1 || float64(binary.BigEndian.Uint64(trace[8:])>>1) < ratio*(1<<63)
	}
}

// An Exporter sends the spans of runs that have ended. A nil Exporter does
// nothing.
//
// Its queue contains ids of runs; their spans are computed from the store when
// they can be sent. So an outage of the collector costs little memory, and only
// runs above maxRuns are lost. If an answer of the collector is lost, spans are
// sent twice, with the same ids.
type Exporter struct {
	Options
	runs  chan run
	left  atomic.Int64 // number of dropped runs
	pause time.Duration

	ctx      context.Context // context of reads and uploads
	cancel   context.CancelFunc
	stop     chan struct{}
	stopping sync.Once
	wg       sync.WaitGroup

	down bool // the last attempt failed; only the worker uses this field
}

type run struct {
	tenant  parley.TenantID
	session parley.SessionID
	id      parley.RunID
}

// New returns an exporter. It sends spans from Start to Close.
func New(o Options) *Exporter {
	x := &Exporter{Options: o, runs: make(chan run, maxRuns), pause: time.Second, stop: make(chan struct{})}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

func (x *Exporter) Start() { x.wg.Go(x.work) }

// Close sends the spans of queued runs, unless that takes more than a second or the
// collector is down.
func (x *Exporter) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lastSpans)
	defer cancel()
	defer context.AfterFunc(ctx, x.cancel)()
	x.stopping.Do(func() { close(x.stop) })
	x.wg.Wait()
	x.cancel()
	if x.Closed != nil {
		x.Closed()
	}
	if left := x.left.Swap(0) + int64(len(x.runs)); left > 0 {
		x.Log.Warn("runs were not exported as traces", "runs", left)
	}
	return nil
}

// Published queues the runs that have ended. It does not block.
func (x *Exporter) Published(tenant parley.TenantID, events []parley.Event) {
	if x == nil {
		return
	}
	for i := range events {
		if _, ok := events[i].Body.(parley.RunFinished); !ok {
			continue
		}
		select {
		case x.runs <- run{tenant, events[i].Session, events[i].Run}:
		default:
			x.left.Add(1)
		}
	}
}

// work collects spans while runs are queued, and sends them when the queue is empty
// or a request is full.
func (x *Exporter) work() {
	var spans []*tracepb.Span
	bytes := 0
	for {
		r, ok := x.next()
		if !ok {
			return
		}
		more, err := x.read(r)
		switch {
		case x.ctx.Err() != nil:
			x.left.Add(1 + int64(runsIn(spans)))
			return
		case parley.CodeOf(err) == parley.CodeNotFound && err != nil: // the session was deleted
		case err != nil:
			x.left.Add(1)
			x.Log.Warn("a run cannot be read, and is not exported as a trace", "session", r.session, "run", r.id,
				"error", err)
		}
		for _, s := range more {
			spans, bytes = append(spans, s), bytes+size(s)
			if len(spans) >= maxSpans || bytes >= maxBytes {
				x.send(spans)
				spans, bytes = nil, 0
			}
		}
		if len(spans) > 0 && len(x.runs) == 0 {
			x.send(spans)
			spans, bytes = nil, 0
		}
	}
}

// next waits for a run. After Close it returns only the runs that are already
// queued.
func (x *Exporter) next() (r run, ok bool) {
	select {
	case r = <-x.runs:
		return r, true
	default:
	}
	select {
	case r = <-x.runs:
		return r, true
	case <-x.stop:
		return r, false
	}
}

// size returns the approximate number of bytes of text in a span.
func size(s *tracepb.Span) (n int) {
	for _, a := range s.Attributes {
		n += len(a.Value.GetStringValue())
	}
	return n
}

// read computes the spans of a run from its log.
func (x *Exporter) read(r run) ([]*tracepb.Span, error) {
	logs := x.Store.Tenant(r.tenant)
	at, err := x.place(logs, r)
	if err != nil || !x.Sampled([16]byte(at.trace)) {
		return nil, err
	}
	f := newFold(at, x.Provider, x.Content)
	for after := parley.Seq(r.id) - 1; ; {
		events, err := logs.Events(x.ctx, r.session, after, page)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return nil, fmt.Errorf("the log ends at %d, before the run does", after)
		}
		for _, e := range events {
			if f.content != nil && e.Seq == parley.Seq(r.id) {
				if f.content.input, err = x.input(logs, e); err != nil {
					return nil, err
				}
			}
			if f.add(e) {
				return f.ended, nil
			}
		}
		after = events[len(events)-1].Seq
	}
}

// input returns the text that started a run.
func (x *Exporter) input(logs port.TenantStore, e parley.Event) (string, error) {
	started, _ := e.Body.(parley.RunStarted)
	events, err := logs.Events(x.ctx, e.Session, parley.Seq(started.Input)-1, 1)
	if err != nil || len(events) == 0 {
		return "", err
	}
	received, _ := events[0].Body.(parley.InputReceived)
	return received.Content, nil
}

// place computes where a run belongs, from the run at the top of the tree. The
// session of a sub-agent contains the run and the call that have spawned it.
func (x *Exporter) place(logs port.TenantStore, r run) (place, error) {
	first, err := logs.Events(x.ctx, r.session, 0, 1)
	if err != nil {
		return place{}, err
	}
	if len(first) == 0 {
		return place{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	opened, _ := first[0].Body.(parley.SessionOpened)
	if opened.Parent == nil {
		return atTop(x.Store.Epoch(), r.tenant, r.session, r.id), nil
	}
	above, err := x.place(logs, run{r.tenant, opened.Parent.Session, opened.Parent.Run})
	return above.below(opened.Parent.Call, r.session, r.id), err
}

// send retries until the collector has accepted the spans. While it cannot be
// reached, other runs wait in the queue. A request that it answers with an error is
// dropped after maxTries attempts, because it may never accept these spans.
func (x *Exporter) send(spans []*tracepb.Span) {
	request := []*tracepb.ResourceSpans{{Resource: x.Resource, ScopeSpans: []*tracepb.ScopeSpans{{
		Scope: &commonpb.InstrumentationScope{Name: "parley", Version: x.Version}, Spans: spans}}}}
	pause := x.pause
	for try := 1; ; try++ {
		err := x.Upload(x.ctx, request)
		if _, partly := errors.AsType[*Partial](err); partly {
			x.Log.Warn("the collector did not take everything", "error", err)
			err = nil
		}
		if err == nil {
			left := x.left.Swap(0)
			if x.down {
				x.Log.Info("traces are exported again", "runs_left_out", left)
			} else if left > 0 {
				x.Log.Warn("runs were not exported as traces", "runs", left)
			}
			x.down = false
			return
		}
		if !x.down && x.ctx.Err() == nil {
			x.down = true
			x.Log.Warn("traces cannot be exported; runs wait until they can", "waiting", len(x.runs), "at_most",
				maxRuns,
				"error", err)
		}
		unreachable, _ := errors.AsType[*url.Error](err)
		if unreachable == nil && try >= maxTries || !x.rest(pause) {
			x.left.Add(int64(runsIn(spans)))
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// runsIn counts the runs whose last span is among these.
func runsIn(spans []*tracepb.Span) (n int) {
	for _, s := range spans {
		if attributeOf(s.Attributes, "gen_ai.operation.name") == "invoke_agent" {
			n++
		}
	}
	return n
}

// rest waits before the next attempt. It returns false if the server is stopping.
func (x *Exporter) rest(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.stop:
	case <-x.ctx.Done():
	}
	return false
}
