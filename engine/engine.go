// Package engine is the only writer of logs.
//
// Every session that something happens in has one actor: a goroutine that takes
// commands and reports one at a time, has parley.Decide say what they amount to,
// commits that, and then makes true what parley.Next says should be going on:
// model calls and tool calls, each a worker goroutine of the actor. An actor
// that has nothing to do unloads; what wakes it again is a command or the due
// table. Recovery after a crash is an actor loading a log in which something is
// still open.
//
// Goroutines: one scheduler, one that trims, one that sweeps, and one for effects that nobody came for; one actor per
// loaded session, waited for by Close; workers, waited for by their actor. Locks: Engine.mu guards the map of actors,
// tenants.mu what is known of tenants, held.mu what calls hold; all are leaves and never held across I/O.
package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/port"
)

// Feed is where committed events go, and where followers read them.
type Feed interface {
	Publish(parley.TenantID, []parley.Event)
	Reread(parley.TenantID, parley.SessionID)
	Session(parley.TenantID, parley.SessionID, parley.Seq) port.Follower
	Tree(parley.TenantID, parley.SessionID, parley.Position) port.Follower
	Below(tenant parley.TenantID, root parley.SessionID, after parley.Seq, quiet bool) port.Follower
}

// Refusals puts refusals on record, those of one kind together.
type Refusals interface {
	Refused(ctx context.Context, tenant parley.TenantID, kind string, record parley.Audit) error
}

// Config is everything an engine works with. All fields up to Now must be set, and
// Agents and Tools of the project.
type Config struct {
	Project           // the first one
	More    []Project // the others

	Store  port.Store
	Feed   Feed
	Access port.Authorizer
	Model  port.Model // patient, if it is to be
	Log    *slog.Logger
	Now    func() time.Time

	Nodes   port.Nodes       // of the store; nil: this process is the only one
	Bus     port.Bus         // between nodes; nil: they meet in the store alone
	Node    func() port.Node // what is said of this one besides its sessions and projects; nil: nothing
	NodeKey []byte           // what all nodes share, and seals what they tell each other

	Remotes    port.Remotes    // nil: agents that run elsewhere are not reached
	Screen     port.Screen     // nil: nothing is screened
	Classifier port.Classifier // nil: nobody is asked
	// FileRead records that a person has read a file, or was refused it, before
	// the answer; nil: nothing is recorded.
	FileRead func(ctx context.Context, who port.Principal, path string, refused bool) error
	Webhooks port.Webhooks // nil: sessions have none
	// DefaultModel is that of agents that name none, in tenants that have not
	// chosen another.
	DefaultModel func() string
	// Told hears that an effect was delivered, and how long it was owed. Nil:
	// nobody does.
	Told     func(effect parley.EffectType, owed time.Duration)
	Refusals Refusals // nil: each is put on record
	// ReadPDF extracts the text of a document of a principal and counts its pages, see parley.Image; nil: documents are
	// refused.
	ReadPDF func(ctx context.Context, who port.Principal, document []byte) (text string, pages int, err error)
	// SeesPDF says whether a model is shown the pages of a document; nil: no model is.
	SeesPDF  func(model string) bool
	Titles   func(model string) bool // it may be asked for titles of conversations; nil: none may
	Window   func(model string) int  // tokens it can read; nil or zero: DefaultWindow
	Autonomy parley.Autonomy         // the most that any agent may do unasked
	Prompts  port.IdleLimits         // of idle prompts; zero: DefaultIdleLimits

	// Quotas are those of a tenant; nil: nobody has any. Most is the most that a call of a model can use which is given
	// so many bytes; nil: a window of it, for nothing. Cost is what a call costs, in millionths of a US dollar; nil:
	// nothing. Reached hears that a quota has refused something, of a user or
	// of a tenant, and which one.
	Quotas  func(parley.TenantID) port.Quotas
	Most    func(model string, bytes int64) parley.Usage
	Cost    func(model string, used parley.Usage) int64
	Reached func(of, what string)

	// Artifacts deletes those of a tenant that have these names, and says how many there were; nil: there are none.
	Artifacts func(tenant parley.TenantID, names map[string]bool) (int, error)
	// OldArtifacts deletes those of a tenant that were written before a time, but for some names, and says how many.
	// dry: it only counts them. nil: there are none.
	OldArtifacts func(tenant parley.TenantID, before time.Time, keep map[string]bool, dry bool) (int, error)
	// KeptChanges is what Changes keep of sessions; nil: nothing.
	KeptChanges port.KeptChanges
	// Retention says how long a tenant keeps its data; nil: everything for ever.
	Retention func(parley.TenantID) port.Retention

	Idle     time.Duration // unload an actor that had nothing to do for so long; default a minute
	CardLife time.Duration // how long a person may take; default a day
	Retry    time.Duration // load a session that failed again after this; default 2 s
	Calls    int           // models called at the same time; default 256
	Snapshot parley.Seq    // events between snapshots of a session; default 200
}

// Engine is a port.Door.
type Engine struct {
	Config
	// Agents are those of the projects and those that were made.
	Agents   port.ProjectAgents
	projects *projects

	ctx   context.Context // ends when running work is to be cut
	cut   context.CancelFunc
	wg    sync.WaitGroup
	poked chan struct{} // has the scheduler look again

	leased chan struct{} // has expire know that somebody came for an effect

	sealer   sealer
	lettered chan struct{} // has watch read letters
	sweeps   chan struct{} // has sweepAgain look

	factsTold chan struct{} // has watch read what other nodes have changed of tenants

	draining atomic.Bool   // set under mu
	slots    chan struct{} // model calls under way
	pieces   chan struct{} // commits of chunks that wait for the store

	held       quotaHolds
	erasures   erasures
	large      largeInputs
	remembered atomic.Int64 // bytes of conversations that are kept
	tenants    tenants
	made       definitions // that were read

	mu      sync.Mutex // guards the following; leaf
	actors  map[key]*actor
	retries map[key]time.Time // sessions that failed, and when to load them again
	drained chan struct{}     // closed when draining and no actor is left
	reading map[about]bool    // letters that are being answered
}

type key struct {
	tenant  parley.TenantID
	session parley.SessionID
}

// New makes an engine that is whole and starts nothing: until Start it does what
// commands ask for, and takes up nothing else.
func New(c Config) *Engine {
	if c.Idle == 0 {
		c.Idle = time.Minute
	}
	if c.CardLife == 0 {
		c.CardLife = 24 * time.Hour
	}
	if c.Retry == 0 {
		c.Retry = 2 * time.Second
	}
	if c.Calls == 0 {
		c.Calls = 256
	}
	if c.Prompts == (port.IdleLimits{}) {
		c.Prompts = port.IdleLimits{Interval: 30 * time.Second, Prompts: 10}
	}
	if c.Snapshot == 0 {
		c.Snapshot = 200
	}
	e := &Engine{Config: c, slots: make(chan struct{}, c.Calls), pieces: make(chan struct{}, pieceCommits),
		poked:  make(chan struct{}, 1),
		leased: make(chan struct{}, 1), actors: map[key]*actor{}, retries: map[key]time.Time{},
		drained: make(chan struct{}), reading: map[about]bool{}, lettered: make(chan struct{}, 1),
		sweeps:    make(chan struct{}, 1),
		factsTold: make(chan struct{}, 1),
		sealer:    newSealer(c.NodeKey),
		held:      newQuotaHolds(),
		tenants:   tenants{known: map[parley.TenantID]parley.State{}}}
	e.large.places = make(chan struct{}, largeAtOnce)
	e.made.read = map[definitionKey]parley.Agent{}
	e.projects = newProjects(c)
	e.projects.apart = e.apart
	e.Agents = everyAgent{engine: e}
	e.ctx, e.cut = context.WithCancel(context.Background())
	return e
}

// Start begins the background work. What an earlier process left open is taken up
// at once. It is for once.
func (e *Engine) Start() {
	e.wg.Go(e.schedule)
	e.wg.Go(e.expire)
	e.wg.Go(e.indexEarlier)
	if e.Nodes != nil {
		e.meet()
	}
	if e.Retention != nil {
		e.wg.Go(e.retain)
	}
	if e.KeptChanges != nil {
		e.wg.Go(e.sweepAgain)
	}
}

// Drain has the engine refuse everything new, as before a Close. Runs go on until
// they reach a boundary between steps.
func (e *Engine) Drain() {
	if e.Nodes != nil {
		e.Nodes.Describe(e.aboutNode) // finds out who can have what is refused here
	}
	e.mu.Lock()
	if !e.draining.Swap(true) {
		for _, a := range e.actors {
			a.nudge()
		}
		e.checkDrained()
	}
	e.mu.Unlock()
	if e.Nodes != nil {
		e.Nodes.Describe(e.aboutNode) // others hear of it at once
	}
	e.poke() // the scheduler ends
}

// Close stops the engine. Nothing new is accepted from now on; runs may go on
// until they reach a boundary between steps or ctx ends, and are then cut where
// they are, to be recovered by the next process. It returns when every
// goroutine of the engine is gone, or with an error if something that was told
// to stop does not.
func (e *Engine) Close(ctx context.Context) error {
	e.Drain()
	select {
	case <-e.drained:
	case <-ctx.Done():
		e.Log.Info("cutting what still runs; it goes on after the next start", "sessions", e.loaded())
	}
	e.cut()
	gone := make(chan struct{})
	go func() { // outlives Close only if what it waits for does
		e.wg.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-time.After(stopGrace):
		return fmt.Errorf("%d sessions have work that does not stop; it ends with the process", e.loaded())
	}
}

// stopGrace is how long something that was told to stop may take.
const stopGrace = 2 * time.Second

// checkDrained needs e.mu.
func (e *Engine) checkDrained() {
	if e.draining.Load() && len(e.actors) == 0 {
		select {
		case <-e.drained:
		default:
			close(e.drained)
		}
	}
}

// Loaded is how many sessions are in memory.
func (e *Engine) Loaded() int { return e.loaded() }

// hasLoaded reports whether a session is loaded here.
func (e *Engine) hasLoaded(k key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.actors[k] != nil
}

func (e *Engine) loaded() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.actors)
}

var errDraining = parley.Errorf(parley.CodeUnavailable, "The server is stopping; come back in a moment.")

// use finds or loads the actor of a session and keeps it from unloading until
// done is called. While the engine drains only what is loaded can be used, and
// not for anything that starts something.
func (e *Engine) use(k key, starts bool) (a *actor, done func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a = e.actors[k]
	if e.draining.Load() && (a == nil || starts && !e.shared()) {
		return nil, nil, errDraining
	}
	if a == nil {
		a = newActor(e, k)
		e.actors[k] = a
		delete(e.retries, k)
		e.wg.Go(a.run)
	}
	a.users++
	return a, func() {
		e.mu.Lock()
		a.users--
		e.mu.Unlock()
	}, nil
}

// here has the actor of a session on this node answer a request. If moved says so of
// the error, nothing was done, and another node is to answer.
func (e *Engine) here(ctx context.Context, k key, starts bool, r *request) (port.Receipt, error) {
	a, done, err := e.use(k, starts)
	if err != nil {
		return port.Receipt{}, err
	}
	defer done()
	r.reply = make(chan reply, 1)
	return a.submit(ctx, r)
}

// leave takes an actor that has nothing to do out of the map, unless somebody
// uses it.
func (e *Engine) leave(a *actor) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.users > 0 {
		return false
	}
	delete(e.actors, a.key)
	e.checkDrained()
	return true
}

// remove takes an actor that cannot go on out of the map. If again is set, its
// session is loaded anew after a while.
func (e *Engine) remove(a *actor, again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.actors, a.key)
	if again && !e.draining.Load() {
		e.retries[a.key] = e.Now().Add(e.Retry)
		e.poke()
	}
	e.checkDrained()
}
