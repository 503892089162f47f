// Package metrics counts the work of a server, for Prometheus.
//
// The package observes places that all work passes, and nothing depends on it.
// Events are counted where they are published, appends around the store, calls
// around the model and the toolbox, and requests where they are answered. The
// backlog is read from the store during each scrape.
//
// The values of labels are bounded. Names of models and tools, which people and
// models can invent, are counted separately up to a limit, and as "other" after
// that. Sessions, users and tenants are not labels.
package metrics

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley"
	"parley/port"
)

// Metrics are the metrics of a server, with a registry of their own.
type Metrics struct {
	registry *prometheus.Registry
	now      func() time.Time

	requests        *prometheus.CounterVec
	requestDuration *prometheus.HistogramVec

	events       prometheus.Counter
	inputs       prometheus.Counter
	runsStarted  prometheus.Counter
	runsFinished map[parley.Outcome]prometheus.Counter
	turns        map[parley.Stop]prometheus.Counter
	cards        map[parley.CardKind]prometheus.Counter
	effects      map[parley.EffectType]prometheus.Counter
	late         prometheus.Histogram
	told         *prometheus.HistogramVec
	hooks        map[string]prometheus.Counter
	calls        *prometheus.CounterVec
	callDuration *prometheus.HistogramVec

	modelCalls    *prometheus.CounterVec
	modelDuration *prometheus.HistogramVec
	modelFirst    *prometheus.HistogramVec
	modelTokens   *prometheus.CounterVec
	modelCost     *prometheus.CounterVec
	quotas        *prometheus.CounterVec

	appends        map[string]prometheus.Counter
	appendDuration prometheus.Histogram
	commitBatches  prometheus.Histogram
	commitDuration prometheus.Histogram

	models, tools names
}

// Buckets in seconds. A commit is a hundred times as fast as a model call, so there
// are several sets.
var (
	short = prometheus.ExponentialBuckets(0.0005, 2.5, 10) // to 1.9 s
	long  = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	wide  = []float64{0.01, 0.05, 0.25, 1, 5, 30, 120, 600, 3600, 6 * 3600, 24 * 3600}
)

// Maximum numbers of names that are counted separately.
const (
	maxModels = 50
	maxTools  = 100
)

// New returns the metrics of a server. version is the version of the server.
func New(version string, now func() time.Time) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), now: now, models: names{most: maxModels},
		tools: names{most: maxTools}}
	// the collectors are constant: this panics in every test or never
	add := func(c prometheus.Collector) { m.registry.MustRegister(c) }
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "parley_" + name, Help: help})
		add(c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "parley_" + name, Help: help}, labels)
		add(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "parley_" + name, Help: help, Buckets: buckets})
		add(h)
		return h
	}
	histograms := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "parley_" + name, Help: help, Buckets: buckets},
			labels)
		add(h)
		return h
	}

	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "parley_build_info",
		Help:        "Always 1; the labels are the versions of the server and of Go.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()}})
	info.Set(1)
	add(info)
	add(collectors.NewGoCollector())
	add(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	m.requests = counters("http_requests_total", "Answered requests, by route pattern and status.", "route",
		"code")
	m.requestDuration = histograms("http_request_duration_seconds", "Time to answer a request, without streams "+
		"and sockets.", short, "route")

	m.events = counter("events_total", "Appended events.")
	m.inputs = counter("inputs_total", "Accepted inputs.")
	m.runsStarted = counter("runs_started_total", "Started runs.")
	m.runsFinished = each(counters("runs_finished_total", "Ended runs, by outcome.", "outcome"),
		parley.Completed, parley.Cancelled, parley.Failed, parley.Denied, parley.Interrupted, parley.Halted)
	m.turns = each(counters("turns_finished_total", "Ended turns, by the reason of the end.", "stop"),
		parley.StopEnd, parley.StopTools, parley.StopLength, parley.StopRefusal, parley.StopCut, parley.StopFailed,
		parley.StopCancelled)
	m.cards = each(counters("cards_opened_total", "Approvals, questions and calls of unknown outcome that began "+
		"to wait for a person, by kind.", "kind"),
		parley.CardApproval, parley.CardQuestion, parley.CardCall)
	m.effects = each(counters("effects_enqueued_total", "Promised effects, by type.", "type"),
		parley.SendMessage, parley.Webhook)
	m.told = histograms("effect_delivery_seconds", "Time from the promise of an effect to its delivery, by type.", wide,
		"type")
	m.late = histogram("timer_lateness_seconds", "How late follow-ups fired, without the cooldown.", wide)
	m.hooks = each(counters("webhook_attempts_total", "Attempts to deliver a webhook, by outcome.", "outcome"),
		"delivered", "retried", string(port.EffectFailed), string(port.EffectGone))
	m.calls = counters("tool_calls_total", "Ended tool calls, by tool and outcome. Blocked calls were not carried out.",
		"tool", "outcome")
	m.callDuration = histograms("tool_call_duration_seconds", "Time that a tool call took.", long, "tool")

	m.modelCalls = counters("model_calls_total", "Ended model calls, by model and outcome. A call and its retries "+
		"count as one.", "model", "outcome")
	m.modelDuration = histograms("model_call_duration_seconds", "Time from the request to the end of the answer.",
		long, "model")
	m.modelFirst = histograms("model_first_piece_seconds", "Time from the request to the first chunk of the answer.",
		long, "model")
	m.modelTokens = counters("model_tokens_total", "Tokens, by model and kind: input, output, and the parts of "+
		"the input that were read from the vendor's cache (cached) and written to it (written).", "model", "kind")
	m.quotas = counters("quota_refusals_total", "Inputs, sessions and model calls that a quota has refused, by its "+
		"owner (user or tenant) and its subject.", "of", "quota")
	for _, of := range []string{"user", "tenant"} {
		for _, what := range []string{"sessions", "tokens", "cost", "storage"} {
			m.quotas.WithLabelValues(of, what)
		}
	}
	m.modelCost = counters("model_cost_dollars_total", "Cost of model calls, if the price is known.", "model")

	m.appends = each(counters("appends_total", "Batches of events of sessions, by the outcome of the append.",
		"outcome"), "stored", "fenced", "failed")
	m.appendDuration = histogram("append_duration_seconds", "Time of an append, including the wait for its commit.",
		short)
	m.commitBatches = histogram("commit_batches", "Batches that shared a commit.",
		prometheus.ExponentialBuckets(1, 2, 9))
	m.commitDuration = histogram("commit_duration_seconds", "Time of a commit.", short)
	return m
}

// Handler answers scrapes. A client that accepts OpenMetrics also gets exemplars.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, MaxRequestsInFlight: 4,
		EnableOpenMetrics: true})
}

// Answered counts a request. route is the pattern of its route, or empty if there
// is none. Streams and sockets, for which lasted is true, are not timed.
func (m *Metrics) Answered(route string, status int, took time.Duration, lasted bool) {
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, code(status)).Inc()
	if !lasted {
		m.requestDuration.WithLabelValues(route).Observe(took.Seconds())
	}
}

// code returns the label of a status. It avoids an allocation for frequent ones,
// and returns "other" if the number is not a status.
func code(status int) string {
	switch status {
	case http.StatusSwitchingProtocols:
		return "101"
	case http.StatusOK:
		return "200"
	}
	if status < 100 || status > 599 {
		return "other"
	}
	return string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)})
}

// each creates a counter for every value, so that all of them are exported from
// the start as zero, and counting needs no lookup in the vector.
func each[T ~string](vec *prometheus.CounterVec, values ...T) map[T]prometheus.Counter {
	all := map[T]prometheus.Counter{}
	for _, v := range values {
		all[v] = vec.WithLabelValues(string(v))
	}
	return all
}

// inc increments the counter of a value. Unknown values are ignored.
func inc[T comparable](all map[T]prometheus.Counter, value T) {
	if c, ok := all[value]; ok {
		c.Inc()
	}
}

// names limits the number of values of a label. Its lock is cheap enough for events
// that are as frequent as calls.
type names struct {
	most int
	mu   sync.Mutex // guards seen; leaf
	seen map[string]bool
}

func (n *names) of(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.seen[name]:
	case len(n.seen) >= n.most:
		return "other"
	default:
		if n.seen == nil {
			n.seen = map[string]bool{}
		}
		n.seen[name] = true
	}
	return name
}

// known returns a name if it is already counted separately, else "other".
func (n *names) known(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.seen[name] {
		return "other"
	}
	return name
}
