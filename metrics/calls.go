package metrics

import (
	"context"
	"iter"

	"parley"
	"parley/port"
)

// Model counts calls of a model from the view of the callers: a call includes its
// retries, and counts under the name of the model that answered.
func (m *Metrics) Model(next port.Model) port.Model { return model{next, m} }

type model struct {
	port.Model
	m *Metrics
}

func (w model) Stream(ctx context.Context, request port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	return func(yield func(port.ModelChunk, error) bool) {
		m, name, outcome, spoke := w.m, w.m.models.of(request.Model), "left", false
		start := m.now()
		defer func() {
			if outcome == "left" && ctx.Err() != nil {
				outcome = "cancelled"
			}
			m.modelCalls.WithLabelValues(name, outcome).Inc()
			m.modelDuration.WithLabelValues(name).Observe(m.now().Sub(start).Seconds())
		}()
		for said, err := range w.Model.Stream(ctx, request) {
			switch {
			case err != nil && ctx.Err() != nil: // the outcome stays "left"; see above
			case err != nil:
				outcome = "failed"
			case said.FellBack != nil:
				name = m.models.of(said.FellBack.Actual)
			case said.Retry != nil: // retries belong to the same call
			case said.Done != nil:
				outcome = string(said.Done.Stop)
				m.used(name, said.Done.Usage)
			case !spoke:
				spoke = true
				m.modelFirst.WithLabelValues(name).Observe(m.now().Sub(start).Seconds())
			}
			if !yield(said, err) {
				return
			}
		}
	}
}

func (m *Metrics) used(name string, u parley.Usage) {
	for kind, n := range map[string]int64{"input": u.Input, "output": u.Output, "cached": u.Cached,
		"written": u.Written} {
		if n > 0 { // a counter panics if it gets a negative number
			m.modelTokens.WithLabelValues(name, kind).Add(float64(n))
		}
	}
	if u.CostMicros > 0 {
		m.modelCost.WithLabelValues(name).Add(u.CostUSD())
	}
}

// Tools measures the duration of tool calls.
func (m *Metrics) Tools(box port.TenantToolbox) port.TenantToolbox {
	return tenantTools{tools{box, m}, box}
}

type tools struct {
	port.Toolbox
	m *Metrics
}

func (t tools) Perform(ctx context.Context, agent parley.Agent, name, arguments string, progress port.Progress) (
	port.ToolResult, error) {
	start := t.m.now()
	defer func() { t.m.callDuration.WithLabelValues(t.m.tools.of(name)).Observe(t.m.now().Sub(start).Seconds()) }()
	return t.Toolbox.Perform(ctx, agent, name, arguments, progress)
}

type tenantTools struct {
	tools
	box port.TenantToolbox
}

func (t tenantTools) Of(ctx context.Context, ledger port.ToolLedger) port.Toolbox {
	return tools{t.box.Of(ctx, ledger), t.m}
}
