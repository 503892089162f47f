package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"parley"
	"parley/port"
)

// An actor owns one loaded session. Everything but submit and nudge runs on its
// own goroutine.
type actor struct {
	key
	engine *Engine
	log    *slog.Logger
	users  int // guarded by Engine.mu

	inputs      chan *request
	answers     chan *request // cancels and answers overtake inputs
	reports     chan report
	outputReady chan struct{} // signals that a worker's coalescer has new text
	nudged      chan struct{}
	gone        chan struct{} // closed when the actor has left
	refusal     error         // the answer to requests that still wait; set before gone is closed

	s            *session
	memory       memory
	hasOutput    bool               // a worker's coalescer may hold text
	owner        parley.PrincipalID // of the session; set once, before the first worker is started
	project      *Project           // likewise; nil: the session is not open yet
	preview      bool               // it never runs: TurnRequest builds a request with it
	workers      map[parley.Step]*worker
	awaitingRest []*request // see request.rest
	swept        bool       // the session is deleted, and sweepLoop was told to remove the file contents kept for its runs

	term atomic.Int64 // the node's lease term in which the node was last known to have the session
}

// mailbox is the capacity of each of an actor's two request queues.
const mailbox = 64

type request struct {
	who      port.Principal
	command  parley.Command   // Do is nil: the request only wakes the actor
	internal bool             // of the engine itself: permission is not checked
	rest     bool             // answered when no work of an ended run is alive
	letter   parley.CommandID // the letter that brought it from another node; empty: none
	reply    chan reply       // buffers the one reply
}

type reply struct {
	port.Receipt
	err error
}

func newActor(e *Engine, k key) *actor {
	return &actor{key: k, engine: e, log: e.Log.With("session", k.session),
		inputs: make(chan *request, mailbox), answers: make(chan *request, mailbox),
		reports: make(chan report), outputReady: make(chan struct{}, 1), nudged: make(chan struct{}, 1),
		gone:    make(chan struct{}),
		workers: map[parley.Step]*worker{}, memory: memory{total: &e.conversationBytes}}
}

// submit hands a command to the actor and waits for the answer. If ctx ends
// first, the command may still be carried out.
func (a *actor) submit(ctx context.Context, r *request) (port.Receipt, error) {
	box := a.answers
	if _, ok := r.command.Do.(parley.SubmitInput); ok {
		box = a.inputs
	}
	select {
	case box <- r:
	default:
		return port.Receipt{}, parley.Errorf(parley.CodeOverloaded, "This session has too much to do; try again in "+
			"a moment.")
	}
	select {
	case got := <-r.reply:
		return got.Receipt, got.err
	case <-ctx.Done():
		return port.Receipt{}, ctx.Err()
	case <-a.gone:
	}
	select {
	case got := <-r.reply:
		return got.Receipt, got.err
	default:
		return port.Receipt{}, a.refusal
	}
}

// nudge makes the actor check again which steps are wanted.
func (a *actor) nudge() {
	select {
	case a.nudged <- struct{}{}:
	default:
	}
}

func (a *actor) run() {
	err := a.engine.cutOff(a.loop())
	a.stopWorkers()
	if errors.Is(err, errDraining) && a.s != nil && a.engine.hasOtherNodes() {
		a.handOver()
	}
	a.memory.drop()
	if a.refusal = err; err == nil || parley.CodeOf(err) == parley.CodeInternal && !isElsewhere(err) {
		a.refusal = errGone
	}
	if err != nil {
		a.fail(err)
	}
	close(a.gone)
}

// fail removes an actor that stopped because of err. If the log cannot be read,
// the session is set aside for setAsideFor. After any other error the session
// is loaded again soon, and recovered as after a crash.
func (a *actor) fail(err error) {
	if isElsewhere(err) {
		a.log.Debug("another node has the session", "error", err)
		a.engine.remove(a, errors.Is(err, errFenced))
		return
	}
	corrupt := parley.CodeOf(err) == parley.CodeCorrupt
	if corrupt {
		a.setAside()
	}
	if a.engine.ctx.Err() == nil {
		a.log.Error("session stopped", "error", err, "again", !corrupt)
	}
	a.engine.remove(a, !corrupt)
}

// errPanicked is corrupt, so that the session is set aside: the same panic
// would happen again.
var errPanicked = parley.Errorf(parley.CodeCorrupt, "This session cannot be served; the server's log says why.")

// errGone means that the actor left before it handled the request.
var errGone = parley.Errorf(parley.CodeUnavailable, "The session could not be written; try again in a moment.")

// loop runs the actor. It returns nil when the actor has unloaded without an
// error.
func (a *actor) loop() (err error) {
	defer func() {
		if p := recover(); p != nil {
			a.panicked(p)
			err = errPanicked
		}
	}()
	e := a.engine
	if err := a.noteTerm(); err != nil {
		return err
	}
	if a.s, err = loadIf(e.ctx, e.Store, a.tenant, a.session, e.Snapshot, a.mayLoad); err != nil {
		return e.tooNew(err)
	}
	if a.s.state.Head == 0 { // a new session: there is no log to read
		a.memory.transcript = parley.NewTranscript()
	}
	a.noteProject()
	// An earlier append may be in the log though it was reported as failed.
	e.Feed.Reread(a.tenant, a.session)
	if _, err := a.apply(entry{in: parley.Report{At: e.Now(), Body: parley.Recover{}}}); err != nil {
		return err
	}
	timer := time.NewTimer(e.Idle)
	defer timer.Stop()
	for {
		wake, err := a.reconcile()
		if err != nil {
			return err
		}
		draining := e.draining.Load()
		if draining && len(a.workers) == 0 {
			err := a.s.release(e.ctx, e.hasOtherNodes())
			e.remove(a, false)
			e.tellNodes(dueTopic, nil)
			return err
		}
		timer.Reset(wake)
		if left, err := a.await(timer, wake); left || err != nil {
			return err
		}
	}
}

// await handles the next request, report or signal. It returns true when the
// actor has unloaded without an error.
func (a *actor) await(timer *time.Timer, wake time.Duration) (left bool, err error) {
	e := a.engine
	// Answers overtake inputs, so they are checked first.
	select {
	case r := <-a.answers:
		return false, a.serve(r)
	default:
	}
	for {
		var pieces chan struct{} // nil: no chunk is to be committed
		if a.hasOutput {
			pieces = e.chunkCommits
		}
		select {
		case r := <-a.answers:
			return false, a.serve(r)
		case r := <-a.inputs:
			return false, a.serve(r)
		case r := <-a.reports:
			return false, a.handleReport(r)
		case <-a.outputReady:
			a.hasOutput = true
		case pieces <- struct{}{}:
			heard, err := a.commitOutput()
			<-e.chunkCommits
			if heard || err != nil {
				return false, err
			}
		case <-a.nudged:
			return false, nil
		case <-e.ctx.Done():
			return false, errDraining
		case <-timer.C:
			if len(a.workers) > 0 || len(a.s.steps(e.Now())) > 0 && wake < e.Idle {
				return false, nil // busy, or a card expires
			}
			if err = a.s.release(e.ctx, e.hasOtherNodes()); err == nil && e.unload(a) {
				e.poke() // the released session may be due before all others
				return true, nil
			}
			return false, err
		}
	}
}

// apply commits the events that an entry leads to, and publishes them to
// followers.
func (a *actor) apply(en entry) ([]parley.Event, error) {
	en.mayContinue = a.mayContinue
	events, err := a.s.apply(a.engine.ctx, en)
	if err != nil {
		return nil, err
	}
	a.cacheTenantState()
	a.noteProject()
	a.memory.add(events)
	a.engine.Feed.Publish(a.tenant, events)
	a.logEvents(events)
	return events, nil
}

// serve answers a request. It returns an error when the actor cannot go on.
func (a *actor) serve(r *request) error {
	if r.rest {
		a.awaitingRest = append(a.awaitingRest, r)
		return nil
	}
	if r.command.Do == nil {
		err := a.s.hold(a.engine.ctx)
		r.reply <- reply{err: err}
		return err
	}
	receipt, err := a.commandHere(r)
	r.reply <- reply{receipt, err}
	if errors.Is(err, errDraining) {
		return err
	}
	if broken, ok := errors.AsType[*brokenError](err); ok {
		return broken
	}
	return nil
}

// handleReport commits a report of a worker, after the chunks that the worker produced
// before it. The last report means that the worker has ended.
func (a *actor) handleReport(r report) error {
	en := entry{pieces: r.pieces}
	if r.last {
		delete(a.workers, r.step)
		defer r.settleHold()
		if _, ok := r.step.(parley.CallModel); ok {
			a.memory.setTranscript(r.transcript)
		}
	}
	if r.Body != nil {
		en.in = r.Report
	}
	if en.in == nil && len(en.pieces) == 0 {
		return nil
	}
	_, err := a.apply(en)
	return err
}

// commitOutput commits the chunks that the workers have produced so far. It
// returns false if there are none: a report took them already, or there is only
// part of a character.
func (a *actor) commitOutput() (heard bool, err error) {
	select {
	case r := <-a.reports: // it brings its chunks in the same commit
		return true, a.handleReport(r)
	default:
	}
	var en entry
	a.hasOutput = false
	now := a.engine.Now()
	for step, w := range a.workers {
		en.pieces = append(en.pieces, w.out.reports(step, now, false)...)
	}
	if len(en.pieces) > 0 {
		_, err = a.apply(en)
	}
	return len(en.pieces) > 0, err
}

// setAside postpones a session that cannot be read, so that the scheduler does
// not load it again at once.
func (a *actor) setAside() {
	e := a.engine
	st, err := e.Store.Tenant(a.tenant).Session(e.ctx, a.session)
	if err == nil {
		_, err = e.Store.Append(e.ctx, port.Batch{Tenant: a.tenant, Session: a.session, Epoch: st.Epoch,
			After: st.Summary.Head, Summary: st.Summary,
			Due: &port.DueChange{Due: parley.Due{At: e.Now().Add(setAsideFor), Reason: "corrupt"}}})
	}
	if err != nil {
		a.log.Error("session could not be set aside", "error", err)
	}
	e.poke()
}

const (
	setAsideFor = 10 * time.Minute
	// idleNew is when an actor unloads whose session does not exist or was only opened: many sockets send nothing. A
	// program that connects to send a message has sent it by then.
	idleNew = 100 * time.Millisecond
)

// publicError returns an error as callers outside the engine may see it.
func publicError(err error) error {
	if isElsewhere(err) {
		return errGone
	}
	if broken, ok := errors.AsType[*brokenError](err); ok {
		if parley.CodeOf(broken.error) == parley.CodeInternal {
			return parley.Errorf(parley.CodeUnavailable, "The session could not be written; try again in a moment.")
		}
		return broken.error
	}
	return err
}
