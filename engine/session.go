package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"parley"
	"parley/port"
)

// A session is an actor's access to one log: the state, and the right to
// append. It has no goroutine of its own, and its caller does one thing at a
// time. After a brokenError it is useless and must be loaded anew.
type session struct {
	store  port.Store
	tenant parley.TenantID
	id     parley.SessionID

	state         parley.State
	epoch         int64
	snapshotEvery parley.Seq      // events between snapshots
	snapshotAt    parley.Seq      // where the last one is
	due           *port.DueChange // as last written by this session; nil: unknown
	held          bool            // the session's row names this node
	wrote         atomic.Bool     // the session's row has this epoch

	serversOff atomic.Pointer[[]string] // the tool servers that state has switched off, for workers

	next *agenda // of state, for the first use after an apply; nil: call nextSteps
	asks int     // how often Next was called
}

var errFenced = errors.New("the session has another writer")

// A brokenError means that an append may or may not be in the log. The session
// in memory is no longer to be trusted.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// load folds the log, starting at its last snapshot. A session that does not
// exist yet has an empty log.
func load(ctx context.Context, store port.Store, tenant parley.TenantID, id parley.SessionID, every parley.Seq) (
	*session, error) {
	return loadIf(ctx, store, tenant, id, every, func(port.Stored) error { return nil })
}

// loadIf is load, but fails if may returns an error.
func loadIf(ctx context.Context, store port.Store, tenant parley.TenantID, id parley.SessionID, every parley.Seq,
	may func(port.Stored) error) (*session, error) {
	s := &session{store: store, tenant: tenant, id: id, state: parley.NewState(tenant, id), snapshotEvery: every}
	logs := store.Tenant(tenant)
	st, err := logs.Session(ctx, id)
	switch {
	case parley.CodeOf(err) == parley.CodeNotFound && err != nil:
		s.epoch, s.due = 1, &port.DueChange{Clear: true}
		return s, nil
	case err != nil:
		return nil, err
	}
	if err := may(st); err != nil {
		return nil, err
	}
	s.epoch = st.Epoch + 1
	snapshot, ok, err := logs.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	if state, good := snapshot.State(); ok && good && state.Head <= st.Summary.Head {
		s.state, s.snapshotAt = state, state.Head
	}
	for s.state.Head < st.Summary.Head {
		events, err := logs.Events(ctx, id, s.state.Head, 1000)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return nil, &parley.Error{Code: parley.CodeCorrupt, Message: "A part of this session's log cannot be read.",
				Hint: "restore the session from a backup; other sessions are not affected",
				Err:  fmt.Errorf("session %s ends at seq %d, its row says %d", id, s.state.Head, st.Summary.Head)}
		}
		for _, e := range events {
			s.state = parley.Fold(s.state, e)
		}
	}
	s.serversOff.Store(&s.state.Off)
	return s, nil
}

// An entry is the content of one commit.
type entry struct {
	pieces  []parley.Report // chunks, in order; they come before in
	in      parley.In       // nil: nothing but chunks
	receipt *port.StoredReceipt
	agent   *parley.Agent
	webhook *port.StoredWebhook
	letter  parley.CommandID // the letter that brought the command; empty: none
	// mayContinue reports whether the log may go on by itself from a state with these
	// steps. It may not while work of an ended run is still alive.
	mayContinue func(wanted []parley.Step) bool
}

// apply decides on the entry, lets the log go on from there as far as it can,
// and commits all events at once. It returns the events with their positions.
// Any error but a brokenError is a refusal: nothing has changed.
func (s *session) apply(ctx context.Context, e entry) ([]parley.Event, error) {
	var events []parley.Event
	state, at := s.state, s.state.LastAt
	for _, p := range e.pieces {
		more, err := parley.Decide(state, p)
		if err != nil {
			return nil, err
		}
		events, state, at = append(events, more...), fold(state, more), p.At
	}
	if e.in != nil {
		more, err := parley.Decide(state, e.in)
		if err != nil {
			return nil, err
		}
		events, state = append(events, more...), fold(state, more)
	}
	switch in := e.in.(type) {
	case parley.Command:
		at = in.At
	case parley.Report:
		at = in.At
	}
	next := s.nextSteps(state, at)
	for e.mayContinue != nil && wants(next.steps, parley.LogOn{}) && e.mayContinue(next.steps) {
		more, err := parley.Decide(state, parley.Report{At: at, Body: parley.Advance{}})
		if err != nil {
			return nil, err
		}
		events, state = append(events, more...), fold(state, more)
		next = s.nextSteps(state, at)
	}
	if len(events) == 0 && (e.receipt == nil || s.state.Head == 0) {
		s.next = next
		return nil, nil
	}
	return events, s.append(ctx, e, events, state, next)
}

// append commits events. next is the agenda of the state after them.
func (s *session) append(ctx context.Context, e entry, events []parley.Event, state parley.State, next *agenda) error {
	b := port.Batch{Tenant: s.tenant, Session: s.id, Epoch: s.epoch, After: s.state.Head,
		Events: events, Summary: port.SummaryOf(state), Parent: state.Parent, Agent: e.agent, Webhook: e.webhook,
		Letter: e.letter, Audit: parley.AuditOf(e.in, events)}
	if e.receipt != nil {
		r := *e.receipt
		if r.Last = state.Head; len(events) > 0 {
			r.First = events[0].Seq
		}
		*e.receipt, b.Receipt = r, &r
	}
	kept := s.snapshotAt
	if state.Head-s.snapshotAt >= s.snapshotEvery {
		if snapshot, ok := state.Snapshot(); ok {
			b.Snapshot, kept = &snapshot, state.Head
		}
	}
	due := dueChange(state, next.steps, true)
	if s.due == nil || !sameDue(*s.due, due) {
		b.Due = &due
	}
	res, err := s.commit(ctx, b)
	if err != nil {
		return err
	}
	for i := range events {
		events[i].Position = res.Positions[i]
	}
	s.state, s.next, s.due, s.snapshotAt = state, next, &due, kept
	s.serversOff.Store(&s.state.Off)
	return nil
}

// hold takes the session's due row, if it has one, for this process. release
// gives it back, so that the session can be woken when it is due. If others is
// set, other nodes may want the session before it is due.
func (s *session) hold(ctx context.Context) error { return s.setDue(ctx, true, false) }

func (s *session) release(ctx context.Context, others bool) error {
	return s.setDue(ctx, false, others && s.held)
}

// claim makes the session's row name this node, if it does not yet.
func (s *session) claim(ctx context.Context) error {
	if s.held || s.state.Head == 0 {
		return nil
	}
	due := dueChange(s.state, nil, true)
	_, err := s.commit(ctx, port.Batch{Tenant: s.tenant, Session: s.id, Epoch: s.epoch, After: s.state.Head,
		Summary: port.SummaryOf(s.state), Due: &due})
	if err == nil {
		s.due = &due
	}
	return err
}

func (s *session) setDue(ctx context.Context, held, leaves bool) error {
	due := dueChange(s.state, nil, held)
	if s.state.Head == 0 || s.due != nil && sameDue(*s.due, due) && !leaves {
		return nil
	}
	_, err := s.commit(ctx, port.Batch{Tenant: s.tenant, Session: s.id, Epoch: s.epoch, After: s.state.Head,
		Summary: port.SummaryOf(s.state), Due: &due, Leave: !held})
	if err == nil {
		s.due = &due
	}
	return err
}

func (s *session) commit(ctx context.Context, b port.Batch) (port.Appended, error) {
	res, err := s.store.Append(ctx, b)
	if err == nil && res.Fenced {
		err = errFenced
	}
	if err != nil {
		return res, &brokenError{err}
	}
	s.held = !b.Leave
	s.wrote.Store(true)
	return res, nil
}

// dueChange returns the due row of a state. A state whose steps need a worker
// is due now. To know that without State.Due saves a call of Next for every
// chunk of a model.
func dueChange(state parley.State, steps []parley.Step, held bool) port.DueChange {
	due, ok := parley.Due{At: state.LastAt, Reason: "run"}, slices.ContainsFunc(steps, needsWorker)
	if !ok {
		due, ok = state.Due()
	}
	return port.DueChange{Due: due, Held: ok && held, Clear: !ok}
}

// sameDue reports whether a write of the due row can be spared. A session that
// is due now stays due now, so the row need not follow the clock during a run.
func sameDue(a, b port.DueChange) bool {
	if a.Reason == "run" && b.Reason == "run" {
		return a.Held == b.Held
	}
	return a == b
}

func fold(s parley.State, events []parley.Event) parley.State {
	for _, e := range events {
		s = parley.Fold(s, e)
	}
	return s
}

// digest identifies what a command asks for, not when or by whom.
func digest(do parley.CommandBody) string {
	raw, err := json.Marshal(do)
	if err != nil {
		panic(fmt.Sprintf("%T cannot be encoded: %v", do, err)) // strings and numbers only
	}
	sum := sha256.Sum256(append([]byte(fmt.Sprintf("%T\n", do)), raw...))
	return hex.EncodeToString(sum[:])
}
