package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/port"
)

// A seed writes sessions into a store before a server starts. It uses the same
// pure functions as the engine.
type seed struct {
	ctx   context.Context
	store port.Store
	agent parley.Agent
	at    time.Time
}

// A plot describes a seeded session.
type plot struct {
	id      string
	runs    int
	chunks  int  // chunks of each answer
	size    int  // bytes of each chunk
	deliver bool // the ends of runs have bookmarks for clients without a cursor
}

// seeded fills the store in a data folder before a server starts on it.
func (t *trial) seeded(data string, plots []plot) error {
	store, err := t.o.Open(t.ctx, data, t.database)
	if err != nil {
		return err
	}
	s := &seed{t.ctx, store, parley.Agent{Name: "bench", Instructions: "Answer.", Model: "bench", Tools: []string{}},
		time.Now().UTC().Truncate(time.Microsecond)}
	err = together(len(plots), 64, func(i int) error {
		one := *s
		one.at = s.at.Add(time.Duration(i-len(plots)) * time.Second) // people do not do everything at one moment
		return one.session(plots[i])
	})
	return errors.Join(err, store.Close())
}

// startSeeded starts a server on a new data folder with seeded sessions.
func (t *trial) startSeeded(plots []plot, env ...string) error {
	data, err := t.dir()
	if err != nil {
		return err
	}
	if err := t.seeded(data, plots); err != nil {
		return err
	}
	return t.startOn(data, "127.0.0.1:0", env...)
}

// A draft is the log of a seeded session under construction.
type draft struct {
	*seed
	state  parley.State
	events []parley.Event
	err    error
}

// batchEvents is the maximum number of events in one append.
const batchEvents = 5000

func (s *seed) session(p plot) error {
	id := parley.SessionID(p.id)
	d := &draft{seed: s, state: parley.NewState("default", id)}
	d.take(parley.Command{Tenant: "default", Session: id, By: "local", At: s.at,
		Do: parley.OpenSession{Agent: "bench"}})
	chunk := strings.Repeat("x", max(p.size-1, 1)) + " "
	for run := range p.runs {
		d.take(parley.Command{Tenant: "default", Session: id, By: "local", At: s.at, Do: parley.SubmitInput{
			Content: "hello", Request: fmt.Sprint("r-", run), Deliver: p.deliver, Agent: s.agent.Ref()}})
		for range p.chunks {
			d.report(parley.ModelPiece{Kind: parley.Text, Text: chunk})
			if len(d.events) >= batchEvents {
				d.flush()
			}
		}
		d.report(parley.ModelEnded{Stop: parley.StopEnd})
		if d.err != nil {
			return d.err
		}
	}
	d.flush()
	return d.err
}

func (d *draft) report(body parley.ReportBody) {
	if d.state.Run == nil || d.state.Run.Turn == nil {
		d.err = errors.Join(d.err, errors.New("a seeded run has no turn"))
		return
	}
	d.take(parley.Report{At: d.at, Run: d.state.Run.ID, Turn: d.state.Run.Turn.ID, Body: body})
}

// take applies an input and all advances that follow from it.
func (d *draft) take(in parley.In) {
	for d.err == nil {
		more, err := parley.Decide(d.state, in)
		if err != nil {
			d.err = err
			return
		}
		for _, e := range more {
			d.state, d.events = parley.Fold(d.state, e), append(d.events, e)
		}
		if len(more) == 0 {
			return
		}
		in = parley.Report{At: d.at, Body: parley.Advance{}}
	}
}

func (d *draft) flush() {
	if d.err != nil || len(d.events) == 0 {
		return
	}
	b := port.Batch{Tenant: "default", Session: d.state.ID, Epoch: 1, After: d.events[0].Seq - 1, Events: d.events,
		Summary: port.SummaryOf(d.state), Agent: &d.agent, Due: &port.DueChange{Clear: true}}
	if snapshot, ok := d.state.Snapshot(); ok {
		b.Snapshot = &snapshot
	}
	d.events = nil
	if res, err := d.store.Append(d.ctx, b); err != nil || res.Fenced {
		d.err = errors.Join(err, fmt.Errorf("a seeded session was refused (fenced: %v)", res.Fenced))
	}
}
