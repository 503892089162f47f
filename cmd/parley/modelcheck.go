package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/config"
	"parley/provider"
)

// A vendorState is a vendor's answer about its models.
type vendorState struct {
	vendor   string
	wanted   []string // models of the vendor that agents use
	has      []string
	unlisted []string // wanted models that the vendor does not list
	err      error    // why there is no list: the vendor cannot be reached, or refuses the key
}

// askVendor requests the list of a vendor's models, which is free of charge.
func askVendor(ctx context.Context, models *provider.Models, vendor string, wanted []string) vendorState {
	s := vendorState{vendor: vendor}
	for _, model := range wanted {
		if models.Provider(model) == vendor {
			s.wanted = append(s.wanted, model)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if s.has, s.err = models.List(ctx, vendor); s.err != nil {
		return s
	}
	for _, model := range s.wanted {
		if !slices.ContainsFunc(s.has, func(there string) bool { return listed(there, model) }) {
			s.unlisted = append(s.unlisted, model)
		}
	}
	return s
}

// A modelCheck asks the vendors of the agents' models for their lists when the server starts, so that the log reports
// at once if a model server is down or refuses the key. The start does not wait for it.
type modelCheck struct {
	models  *provider.Models
	wanted  []string
	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelFunc
	started bool
	done    chan struct{}
}

// newModelCheck returns a modelCheck. It also logs which models of the agents cannot be called.
func newModelCheck(s *config.Settings, models *provider.Models, agents []parley.Agent, log *slog.Logger) *modelCheck {
	warnOfModels(s, models, agents, log)
	c := &modelCheck{models: models, wanted: modelsOf(agents, models.Default(), s.Classifier), log: log,
		done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *modelCheck) Start() {
	c.started = true
	go func() {
		defer close(c.done)
		for _, vendor := range c.models.Reached() {
			if slices.ContainsFunc(c.wanted, func(model string) bool { return c.models.Provider(model) == vendor }) {
				c.report(askVendor(c.ctx, c.models, vendor, c.wanted))
			}
		}
	}()
}

func (c *modelCheck) report(s vendorState) {
	names := func(models []string) string { return strings.Join(models, ", ") }
	switch {
	case c.ctx.Err() != nil: // the server is stopping
	case s.err != nil:
		c.log.Warn("the model server cannot be used now; agents fail until it can", "vendor", s.vendor,
			"models", names(s.wanted), "reason", reason(s.err))
	case len(s.unlisted) > 0:
		c.log.Warn("the model server does not list a model; correct MODEL or the agent's file, or install the model",
			"vendor", s.vendor, "models", names(s.unlisted))
	}
}

// Close cancels the check and waits for its end.
func (c *modelCheck) Close(context.Context) error {
	c.cancel()
	if !c.started {
		return nil
	}
	<-c.done // soon: the check waits only for requests that end with c.ctx
	return nil
}

// patience is the time limit for a vendor, and for a check of parley doctor.
const patience = 10 * time.Second
