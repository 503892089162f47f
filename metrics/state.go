package metrics

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/port"
)

// Sources are read during each scrape. Each of them may be nil.
type Sources struct {
	// Backlog returns how much waits in the store, and since when.
	Backlog func(context.Context, time.Time) (port.Backlog, error)
	// Sockets counts open sockets by dialect.
	Sockets   func() map[string]int
	Followers func() int
	Sessions  func() int // number of loaded sessions
	// Bus counts messages between nodes by their outcome.
	Bus func() map[string]int64
}

// askWithin is how long the store may take to return the backlog. Otherwise a
// slow database would hold up all other metrics.
const askWithin = 2 * time.Second

// Watch adds metrics that are read during each scrape. It must be called at
// most once, before the first scrape.
func (m *Metrics) Watch(s Sources) {
	m.registry.MustRegister(&state{Sources: s, now: m.now})
}

type state struct {
	Sources
	now func() time.Time
}

func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("parley_"+name, help, labels, nil)
}

var (
	sockets   = described("sockets", "Open sockets, by dialect.", "dialect")
	followers = described("followers", "Followers of logs: sockets, streams, and parents of sub-agents.")
	loaded    = described("sessions_loaded", "Sessions in memory.")
	messages  = described("bus_messages_total", "Messages between nodes, by outcome: sent, heard, lost (dropped by "+
		"this node) or forged (not made with the server's key, and dropped).", "what")
	backlogUp = described("backlog_up", "1: the metrics of the backlog could be read from the store; 0: they are "+
		"missing.")
	dueSessions = described("due_sessions", "Sessions that need attention, by reason and state: a server has the "+
		"session (held), it is due and no server has it (late), or it is not due yet (later).", "reason", "state")
	dueLateness = described("due_late_seconds", "How long the oldest late session has been due, by reason; 0: there is "+
		"none.", "reason")
	cardsWaiting = described("cards_waiting", "Cards that wait for a person now, by kind.", "kind")
	cardOldest   = described("cards_oldest_seconds", "How long the oldest of these cards has been waiting; 0: there "+
		"is none.", "kind")
	effectsOwed  = described("effects_pending", "Effects that are not delivered yet, by type.", "type")
	effectOldest = described("effects_oldest_seconds", "Age of the oldest of these effects; 0: there is none.", "type")
	allOfBacklog = []*prometheus.Desc{backlogUp, dueSessions, dueLateness, cardsWaiting, cardOldest, effectsOwed,
		effectOldest}
)

// reasons are the usual reasons for which sessions are due. They are exported as
// zero if no session is due.
var reasons = []string{"run", "card", "timer"}

func (s *state) Describe(out chan<- *prometheus.Desc) {
	for _, d := range append([]*prometheus.Desc{sockets, followers, loaded, messages}, allOfBacklog...) {
		out <- d
	}
}

func (s *state) Collect(out chan<- prometheus.Metric) {
	say := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if s.Sockets != nil {
		for dialect, n := range s.Sockets() {
			say(sockets, float64(n), dialect)
		}
	}
	var bus map[string]int64
	if s.Bus != nil {
		bus = s.Bus()
	}
	for _, what := range []string{"sent", "heard", "lost", "forged"} {
		out <- prometheus.MustNewConstMetric(messages, prometheus.CounterValue, float64(bus[what]), what)
	}
	if s.Followers != nil {
		say(followers, float64(s.Followers()))
	}
	if s.Sessions != nil {
		say(loaded, float64(s.Sessions()))
	}
	if s.Backlog == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	now := s.now()
	backlog, err := s.Backlog(ctx, now)
	if err != nil {
		say(backlogUp, 0)
		return
	}
	say(backlogUp, 1)
	age := func(since time.Time) float64 {
		if since.IsZero() || since.After(now) { // a clock may have been set back
			return 0
		}
		return now.Sub(since).Seconds()
	}
	for _, reason := range reasons {
		if !slices.ContainsFunc(backlog.Due, func(d port.DueDepth) bool { return d.Reason == reason }) {
			backlog.Due = append(backlog.Due, port.DueDepth{Reason: reason})
		}
	}
	for _, d := range backlog.Due {
		say(dueSessions, float64(d.Held), d.Reason, "held")
		say(dueSessions, float64(d.Late), d.Reason, "late")
		say(dueSessions, float64(d.Later), d.Reason, "later")
		say(dueLateness, age(d.Since), d.Reason)
	}
	depths := func(list []port.Depth, count, oldest *prometheus.Desc, kinds ...string) {
		for _, kind := range kinds {
			if !slices.ContainsFunc(list, func(d port.Depth) bool { return d.Kind == kind }) {
				list = append(list, port.Depth{Kind: kind})
			}
		}
		for _, d := range list {
			say(count, float64(d.Count), d.Kind)
			say(oldest, age(d.Since), d.Kind)
		}
	}
	depths(backlog.Cards, cardsWaiting, cardOldest, string(parley.CardApproval), string(parley.CardQuestion),
		string(parley.CardCall))
	depths(backlog.Effects, effectsOwed, effectOldest, string(parley.SendMessage), string(parley.Webhook))
}
