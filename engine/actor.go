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

	inputs  chan *request
	answers chan *request // cancels and answers overtake inputs
	reports chan report
	spoke   chan struct{} // a worker has said something; it is in the worker's coalescer
	nudged  chan struct{}
	gone    chan struct{} // closed when the actor has left
	refusal error         // what those who still wait are told; set before gone is closed

	s       *session
	memory  memory
	unheard bool               // a worker's coalescer may hold something
	owner   parley.PrincipalID // of the session; set once, before the first worker is started
	project *Project           // likewise; nil: not yet
	looks   bool               // it never runs: a reader builds a request with it
	workers map[parley.Step]*worker
	resting []*request // see request.rest
	swept   bool       // the session is deleted, and what is kept of files before its runs is being removed

	term atomic.Int64 // of the node's lease, in which the session was last known to be this node's
}

// mailbox bounds what waits for one actor, of each kind.
const mailbox = 64

type request struct {
	who     port.Principal
	command parley.Command   // Do is nil for a mere wake-up
	own     bool             // the engine's own: nobody has to be asked
	rest    bool             // answered when nothing of an ended run is alive
	letter  parley.CommandID // that brought it from another node; empty: none did
	reply   chan reply       // has room for the one reply
}

type reply struct {
	port.Receipt
	err error
}

func newActor(e *Engine, k key) *actor {
	return &actor{key: k, engine: e, log: e.Log.With("session", k.session),
		inputs: make(chan *request, mailbox), answers: make(chan *request, mailbox),
		reports: make(chan report), spoke: make(chan struct{}, 1), nudged: make(chan struct{}, 1),
		gone:    make(chan struct{}),
		workers: map[parley.Step]*worker{}, memory: memory{all: &e.remembered}}
}

// submit hands a command over and waits for the answer. Whoever stops waiting
// need not have stopped the command.
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

// nudge has the actor look at the world again.
func (a *actor) nudge() {
	select {
	case a.nudged <- struct{}{}:
	default:
	}
}

func (a *actor) run() {
	err := a.live()
	a.stopWorkers()
	if errors.Is(err, errDraining) && a.s != nil && a.engine.shared() {
		a.leaveToOthers()
	}
	a.memory.forget()
	if a.refusal = err; err == nil || parley.CodeOf(err) == parley.CodeInternal && !moved(err) {
		a.refusal = errGone
	}
	if err != nil {
		a.fail(err)
	}
	close(a.gone)
}

// fail leaves because of err. A log that cannot be read is set aside until
// somebody has mended it; anything else is loaded anew soon, and recovered as
// after a crash.
func (a *actor) fail(err error) {
	if moved(err) {
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

// errPanicked: whatever it was would happen again.
var errPanicked = parley.Errorf(parley.CodeCorrupt, "This session cannot be served; the server's log says why.")

// errGone: the actor has left before it came to the request.
var errGone = parley.Errorf(parley.CodeUnavailable, "The session could not be written; try again in a moment.")

// live returns nil when the actor has left in peace.
func (a *actor) live() (err error) {
	defer func() {
		if p := recover(); p != nil {
			a.panicked(p)
			err = errPanicked
		}
	}()
	e := a.engine
	if err := a.begin(); err != nil {
		return err
	}
	if a.s, err = loadIf(e.ctx, e.Store, a.tenant, a.session, e.Snapshot, a.mayHave); err != nil {
		return e.tooNew(err)
	}
	if a.s.state.Head == 0 { // nothing is to be read
		a.memory.transcript = parley.NewTranscript()
	}
	a.settleIn()
	// An earlier append may be in the log though it was reported as failed.
	e.Feed.Reread(a.tenant, a.session)
	if _, err := a.take(entry{in: parley.Report{At: e.Now(), Body: parley.Recover{}}}); err != nil {
		return err
	}
	timer := time.NewTimer(e.Idle)
	defer timer.Stop()
	for {
		wake, err := a.settle()
		if err != nil {
			return err
		}
		draining := e.draining.Load()
		if draining && len(a.workers) == 0 {
			err := a.s.release(e.ctx, e.shared())
			e.remove(a, false)
			e.tell(dueTopic, nil)
			return err
		}
		timer.Reset(wake)
		if left, err := a.await(timer, wake); left || err != nil {
			return err
		}
	}
}

// await takes in the next thing that comes. It returns true when the actor has
// left in peace.
func (a *actor) await(timer *time.Timer, wake time.Duration) (left bool, err error) {
	e := a.engine
	// What overtakes is looked for first.
	select {
	case r := <-a.answers:
		return false, a.serve(r)
	default:
	}
	for {
		var pieces chan struct{} // nil: no chunk is to be committed
		if a.unheard {
			pieces = e.pieces
		}
		select {
		case r := <-a.answers:
			return false, a.serve(r)
		case r := <-a.inputs:
			return false, a.serve(r)
		case r := <-a.reports:
			return false, a.hear(r)
		case <-a.spoke:
			a.unheard = true
		case pieces <- struct{}{}:
			heard, err := a.hearPieces()
			<-e.pieces
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
			if err = a.s.release(e.ctx, e.shared()); err == nil && e.leave(a) {
				e.poke() // what was released may be due before anything else
				return true, nil
			}
			return false, err
		}
	}
}

// take commits what an input amounts to and tells followers.
func (a *actor) take(en entry) ([]parley.Event, error) {
	en.goOn = a.clear
	events, err := a.s.take(a.engine.ctx, en)
	if err != nil {
		return nil, err
	}
	a.learn()
	a.settleIn()
	a.memory.add(events)
	a.engine.Feed.Publish(a.tenant, events)
	a.story(events)
	return events, nil
}

// serve answers a request. It returns an error when the actor cannot go on.
func (a *actor) serve(r *request) error {
	if r.rest {
		a.resting = append(a.resting, r)
		return nil
	}
	if r.command.Do == nil {
		err := a.s.hold(a.engine.ctx)
		r.reply <- reply{err: err}
		return err
	}
	receipt, err := a.commandHere(r)
	r.reply <- reply{receipt, err}
	if broken, ok := errors.AsType[*brokenError](err); ok {
		return broken
	}
	return nil
}

// hear takes a report of a worker, and first what the worker has said before. Its
// last one says that it is gone.
func (a *actor) hear(r report) error {
	en := entry{pieces: r.pieces}
	if r.last {
		delete(a.workers, r.step)
		defer r.settled()
		if _, ok := r.step.(parley.CallModel); ok {
			a.memory.learned(r.read)
		}
	}
	if r.Body != nil {
		en.in = r.Report
	}
	if en.in == nil && len(en.pieces) == 0 {
		return nil
	}
	_, err := a.take(en)
	return err
}

// hearPieces takes what the workers have said so far. It returns false if that is
// nothing: a report of the worker came first, or half a character.
func (a *actor) hearPieces() (heard bool, err error) {
	select {
	case r := <-a.reports: // in one commit
		return true, a.hear(r)
	default:
	}
	var en entry
	a.unheard = false
	now := a.engine.Now()
	for step, w := range a.workers {
		en.pieces = append(en.pieces, w.out.reports(step, now, false)...)
	}
	if len(en.pieces) > 0 {
		_, err = a.take(en)
	}
	return len(en.pieces) > 0, err
}

// setAside moves a session that cannot be read out of the scheduler's way.
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
	idleEmpty   = 100 * time.Millisecond // an actor whose session does not exist
)

// shown is what of an error leaves the engine.
func shown(err error) error {
	if moved(err) {
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
