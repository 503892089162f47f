// Package engine is the only writer of logs.
//
// Every session with work to do has one actor: a goroutine that takes commands and reports one at a time. For each it
// calls parley.Decide, commits the events, and then starts the steps that parley.Next returns, such as model calls and
// tool calls. Each step runs in a worker goroutine of the actor. An idle actor unloads; a command or the due table
// loads its session again. Recovery after a crash is no special case: an actor loads a log with open steps.
//
// Background goroutines: the scheduler, retention, the sweep of kept file contents, the expiry of effects, the indexing
// of earlier conversations and, with several nodes, the watch of other nodes. Close waits for them and for one actor
// per loaded session; each actor waits for its workers. Locks: Engine.mu guards the map of actors, tenants.mu the
// cached tenant states, definitionCache.mu the cached definitions, quotaHolds.mu the quota holds, artifactSweeps.mu the
// times of sweeps, coalescer.mu the output of a worker; all are leaves and never held across I/O.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/port"
)

// Feed takes committed events and serves them to followers.
type Feed interface {
	Publish(parley.TenantID, []parley.Event)
	Reread(parley.TenantID, parley.SessionID)
	Replaced(parley.TenantID)
	Session(parley.TenantID, parley.SessionID, parley.Seq) port.Follower
	Tree(parley.TenantID, parley.SessionID, parley.Position) port.Follower
	Below(tenant parley.TenantID, root parley.SessionID, after parley.Seq, quiet bool) port.Follower
}

// Refusals records refusals in the audit, and combines those of one kind.
type Refusals interface {
	Refused(ctx context.Context, tenant parley.TenantID, kind string, record parley.Audit) error
}

// Config holds everything an engine works with. All fields up to Now must be
// set, including Agents and Tools of the project.
type Config struct {
	Project           // the first one
	More    []Project // the others

	Store  port.Store
	Feed   Feed
	Access port.Authorizer
	Model  port.Model // with its own retries, if there are to be any
	Log    *slog.Logger
	Now    func() time.Time

	Nodes   port.Nodes       // of the store; nil: this process is the only one
	Bus     port.Bus         // between nodes; nil: they communicate through the store only
	Node    func() port.Node // describes this node, besides its sessions and projects; nil: no description
	NodeKey []byte           // shared by all nodes; encrypts their messages to each other

	Remotes    port.Remotes    // nil: remote agents cannot be reached
	Screen     port.Screen     // nil: nothing is screened
	Classifier port.Classifier // nil: inputs are not classified
	// FileRead records, before the answer, that a person has read a file or was
	// refused it; nil: nothing is recorded.
	FileRead func(ctx context.Context, who port.Principal, path string, refused bool) error
	Webhooks port.Webhooks // nil: sessions have none
	// DefaultModel returns the model of agents that name none, in tenants that
	// have not chosen another.
	DefaultModel func() string
	// EffectDelivered is called when an effect was delivered, with the time since its
	// creation. Nil: it is not called.
	EffectDelivered func(effect parley.EffectType, owed time.Duration)
	Refusals        Refusals // nil: each refusal is recorded
	// ReadPDF extracts the text of a document of a principal and counts its pages, see parley.Image; nil: documents are
	// refused.
	ReadPDF func(ctx context.Context, who port.Principal, document []byte) (text string, pages int, err error)
	// SeesPDF reports whether a model is shown the pages of a document; nil: no model is.
	SeesPDF  func(model string) bool
	Titles   func(model string) bool // whether it may be asked for titles of conversations; nil: no model may
	Window   func(model string) int  // tokens it can read; nil or zero: DefaultWindow
	Autonomy parley.Autonomy         // the limits for autonomous messages of any agent
	Prompts  port.IdleLimits         // of idle prompts; zero: every 30 s, at most 10

	// Quotas returns the quotas of a tenant; nil: there are none. MaxUsage returns the most that a call of a model can use
	// for a request of so many bytes; nil: one context window, without cost. Cost returns the cost of a call in
	// millionths of a US dollar; nil: zero. QuotaReached is called when a quota of a user or of a tenant has refused
	// something, with the name of the quota.
	Quotas       func(parley.TenantID) port.Quotas
	MaxUsage     func(model string, bytes int64) parley.Usage
	Cost         func(model string, used parley.Usage) int64
	QuotaReached func(of, what string)

	// Artifacts deletes a tenant's artifacts with these names and returns their number; nil: there are no artifacts.
	Artifacts func(tenant parley.TenantID, names map[string]bool) (int, error)
	// OldArtifacts deletes a tenant's artifacts that were written before a time, except those in keep, and returns
	// their number. If dry is set, it only counts them. nil: there are no artifacts.
	OldArtifacts func(tenant parley.TenantID, before time.Time, keep map[string]bool, dry bool) (int, error)
	// KeptChanges holds the file contents that Changes keeps for sessions; nil: there are none.
	KeptChanges port.KeptChanges
	// Retention returns how long a tenant keeps its data; nil: everything for ever.
	Retention func(parley.TenantID) port.Retention

	Idle     time.Duration // unload an actor that was idle for so long; default a minute
	CardLife time.Duration // how long an approval or a question waits for a person; default a day
	Retry    time.Duration // load a session that failed again after this; default 2 s
	Calls    int           // models called at the same time; default 256
	Snapshot parley.Seq    // events between snapshots of a session; default 200
}

// Engine implements port.Door.
type Engine struct {
	Config
	// Agents are the agents of the projects and the custom agents.
	Agents   port.ProjectAgents
	projects *projects

	ctx   context.Context // ends when running work is to be cut off
	cut   context.CancelFunc
	wg    sync.WaitGroup
	poked chan struct{} // makes the scheduler look again

	leased chan struct{} // tells expire that a client asked for an effect

	sealer     sealer
	letterCame chan struct{} // makes watch read letters
	sweeps     chan struct{} // makes sweepLoop sweep

	began     time.Time // of Start
	artifacts artifactSweeps

	factsChanged chan struct{} // makes watch read which tenants' facts other nodes have changed

	draining     atomic.Bool   // set under mu
	modelSlots   chan struct{} // model calls under way
	chunkCommits chan struct{} // commits of chunks that wait for the store

	quotaHolds        quotaHolds
	erasures          erasures
	large             largeInputs
	conversationBytes atomic.Int64 // bytes of the conversations that are kept in memory
	tenants           tenants
	definitions       definitionCache // definitions that were read from the store

	mu               sync.Mutex // guards the following; leaf
	actors           map[key]*actor
	retries          map[key]time.Time  // sessions that failed, and when to load them again
	drained          chan struct{}      // closed when draining and no actor is left
	answeringLetters map[messageID]bool // letters that are being answered
}

type key struct {
	tenant  parley.TenantID
	session parley.SessionID
}

// New returns a complete engine that starts nothing by itself. Until Start it
// carries out commands, and no other work.
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
	e := &Engine{Config: c, modelSlots: make(chan struct{}, c.Calls), chunkCommits: make(chan struct{}, pieceCommits),
		poked:  make(chan struct{}, 1),
		leased: make(chan struct{}, 1), actors: map[key]*actor{}, retries: map[key]time.Time{},
		drained: make(chan struct{}), answeringLetters: map[messageID]bool{}, letterCame: make(chan struct{}, 1),
		sweeps:       make(chan struct{}, 1),
		factsChanged: make(chan struct{}, 1),
		sealer:       newSealer(c.NodeKey),
		quotaHolds:   newQuotaHolds(),
		tenants:      tenants{states: map[parley.TenantID]parley.State{}}}
	e.artifacts.upTo = map[parley.TenantID]time.Time{}
	e.large.places = make(chan struct{}, largeAtOnce)
	e.definitions.read = map[definitionKey]parley.Agent{}
	e.projects = newProjects(c)
	e.projects.differ = e.projectsDiffer
	e.Agents = everyAgent{engine: e}
	e.ctx, e.cut = context.WithCancel(context.Background())
	return e
}

// Start begins the background work. It recovers at once what an earlier process
// left open. Start must be called at most once.
func (e *Engine) Start() {
	e.began = e.Now()
	e.wg.Go(e.schedule)
	e.wg.Go(e.expire)
	e.wg.Go(e.indexEarlier)
	if e.Nodes != nil {
		e.joinNodes()
	}
	if e.Retention != nil {
		e.wg.Go(e.retain)
	}
	if e.KeptChanges != nil || e.OldArtifacts != nil {
		e.wg.Go(e.sweepLoop)
	}
}

// Drain makes the engine refuse everything new, as before a Close. Runs go on
// until they reach a boundary between steps.
func (e *Engine) Drain() {
	if e.Nodes != nil {
		e.Nodes.Describe(e.describeNode) // finds other nodes for requests that are refused here
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
		e.Nodes.Describe(e.describeNode) // other nodes learn of it at once
	}
	e.poke() // the scheduler ends
}

// Close stops the engine. It accepts nothing new from now on. Runs may go on
// until they reach a boundary between steps or ctx ends. Then they are cut off
// where they are, and the next process recovers them. Close returns when every
// goroutine of the engine has ended, or with an error if some work does not
// stop.
func (e *Engine) Close(ctx context.Context) error {
	e.Drain()
	select {
	case <-e.drained:
	case <-ctx.Done():
		e.Log.Info("cutting runs that are still under way; they continue after the next start", "sessions", e.loaded())
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

// stopGrace is how long work may take to stop.
const stopGrace = 2 * time.Second

// checkDrained closes drained once no actor is left. It needs e.mu.
func (e *Engine) checkDrained() {
	if e.draining.Load() && len(e.actors) == 0 {
		select {
		case <-e.drained:
		default:
			close(e.drained)
		}
	}
}

// Loaded returns the number of sessions in memory.
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

// cutOff returns errDraining in place of the error of a store that was not used, because running work is being cut off.
func (e *Engine) cutOff(err error) error {
	if errors.Is(err, context.Canceled) && e.ctx.Err() != nil {
		return errDraining
	}
	return err
}

// acquire finds or loads the actor of a session and keeps it from unloading until
// done is called. While the engine drains, only loaded sessions can be used
// and, without other nodes, only for requests that start nothing.
func (e *Engine) acquire(k key, starts bool) (a *actor, done func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a = e.actors[k]
	if e.draining.Load() && (a == nil || starts && !e.hasOtherNodes()) {
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

// submitHere submits a request to the session's actor on this node. If isElsewhere(err) is true, nothing was done, and
// another node has to answer.
func (e *Engine) submitHere(ctx context.Context, k key, starts bool, r *request) (port.Receipt, error) {
	a, done, err := e.acquire(k, starts)
	if err != nil {
		e.leave(ctx, k)
		return port.Receipt{}, err
	}
	defer done()
	r.reply = make(chan reply, 1)
	return a.submit(ctx, r)
}

// unload removes an idle actor from the map, unless it is in use.
func (e *Engine) unload(a *actor) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.users > 0 {
		return false
	}
	delete(e.actors, a.key)
	e.checkDrained()
	return true
}

// remove removes an actor that cannot go on from the map. If again is set, its
// session is loaded again after Config.Retry.
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
