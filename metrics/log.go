package metrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/port"
)

// Published counts events that were just committed. It takes no lock for
// frequent events.
func (m *Metrics) Published(events []parley.Event) {
	if len(events) == 0 {
		return
	}
	m.events.Add(float64(len(events)))
	for i := range events {
		switch b := events[i].Body.(type) {
		case parley.InputReceived:
			m.inputs.Inc()
		case parley.RunStarted:
			m.runsStarted.Inc()
		case parley.RunFinished:
			m.runFinished(events[i], b.Outcome)
		case parley.TurnFinished:
			inc(m.turns, b.Stop)
		case parley.ApprovalRequested:
			inc(m.cards, parley.CardApproval)
		case parley.QuestionAsked:
			inc(m.cards, parley.CardQuestion)
		case parley.ToolCallFinished:
			m.calls.WithLabelValues(m.tools.of(b.Name), string(b.Outcome)).Inc()
			if b.Outcome == parley.CallUnknown {
				inc(m.cards, parley.CardCall)
			}
		case parley.ToolCallBlocked:
			m.calls.WithLabelValues(m.tools.known(b.Name), "blocked").Inc()
		case parley.TimerFired:
			if !b.Due.IsZero() { // zero for timers of earlier releases
				m.late.Observe(max(b.At.Sub(b.Due), 0).Seconds())
			}
		case parley.EffectEnqueued:
			inc(m.effects, b.Type)
		}
	}
}

// runFinished counts the end of a run. The exemplar of the counter is the id of the run, which leads to its log and to
// its trace.
func (m *Metrics) runFinished(e parley.Event, outcome parley.Outcome) {
	if c, ok := m.runsFinished[outcome]; ok {
		run := string(e.Session) + "." + strconv.FormatUint(uint64(e.Run), 10)
		c.(prometheus.ExemplarAdder).AddWithExemplar(1, prometheus.Labels{"run_id": run})
	}
}

// QuotaReached counts a request that a quota of a user or a tenant has refused.
func (m *Metrics) QuotaReached(of, what string) { m.quotas.WithLabelValues(of, what).Inc() }

// Told counts an attempt to deliver a webhook. waited is the time since the webhook
// was enqueued.
func (m *Metrics) Told(outcome string, waited time.Duration) {
	inc(m.hooks, outcome)
	if outcome == "delivered" {
		m.Delivered(parley.Webhook, waited)
	}
}

// Delivered records how long an effect waited until it was delivered.
func (m *Metrics) Delivered(effect parley.EffectType, waited time.Duration) {
	m.told.WithLabelValues(string(effect)).Observe(max(waited, 0).Seconds())
}

// Committed records a commit of a store: its number of batches and its duration.
func (m *Metrics) Committed(batches int, took time.Duration) {
	m.commitBatches.Observe(float64(batches))
	m.commitDuration.Observe(took.Seconds())
}

// Store counts appends to a store.
func (m *Metrics) Store(s port.Store) port.Store { return &store{s, m} }

type store struct {
	port.Store
	m *Metrics
}

func (s *store) Append(ctx context.Context, b port.Batch) (port.Appended, error) {
	start := s.m.now()
	res, err := s.Store.Append(ctx, b)
	s.m.appendDuration.Observe(s.m.now().Sub(start).Seconds())
	outcome := "stored"
	switch {
	case err != nil:
		outcome = "failed"
	case res.Fenced:
		outcome = "fenced"
	}
	inc(s.m.appends, outcome)
	return res, err
}
