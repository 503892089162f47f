package metrics

import (
	"context"
	"iter"

	"parley"
)

// Model counts calls of a model, as those see it that call it: with retries, and
// under the name of the model that answered.
func (m *Metrics) Model(next parley.Model) parley.Model { return model{next, m} }

type model struct {
	parley.Model
	m *Metrics
}

func (w model) Stream(ctx context.Context, request parley.ModelRequest) iter.Seq2[parley.Said, error] {
	return func(yield func(parley.Said, error) bool) {
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
			case err != nil && ctx.Err() != nil: // "left", above
			case err != nil:
				outcome = "failed"
			case said.FellBack != nil:
				name = m.models.of(said.FellBack.Actual)
			case said.Retry != nil: // of the call that is counted
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
		if n > 0 { // a counter that is given less than nothing panics
			m.modelTokens.WithLabelValues(name, kind).Add(float64(n))
		}
	}
	if u.CostMicros > 0 {
		m.modelCost.WithLabelValues(name).Add(u.CostUSD())
	}
}

// Tools times calls of tools.
func (m *Metrics) Tools(box parley.TenantToolbox) parley.TenantToolbox {
	return tenantTools{tools{box, m}, box}
}

type tools struct {
	parley.Toolbox
	m *Metrics
}

func (t tools) Perform(ctx context.Context, agent parley.Agent, name, arguments string, progress parley.Progress) (
	parley.ToolResult, error) {
	start := t.m.now()
	defer func() { t.m.callDuration.WithLabelValues(t.m.tools.of(name)).Observe(t.m.now().Sub(start).Seconds()) }()
	return t.Toolbox.Perform(ctx, agent, name, arguments, progress)
}

type tenantTools struct {
	tools
	box parley.TenantToolbox
}

func (t tenantTools) Of(ctx context.Context, ledger parley.ToolLedger) parley.Toolbox {
	return tools{t.box.Of(ctx, ledger), t.m}
}
