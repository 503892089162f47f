package webhook

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"parley"
	"parley/port"
)

const (
	flying      = 64               // deliveries under way, of all receivers
	perTenant   = flying / 4       // of one tenant's; per receiver, see perHost
	claimFor    = 2 * answerWithin // longer than an attempt can take
	firstPause  = 5 * time.Second  // after the first attempt; three times as long after each
	maxPause    = time.Hour
	agentRests  = 24 * time.Hour // after an agent's receiver wanted no more
	lookAtClock = time.Minute    // clocks are set, machines sleep, other servers die
	retryStore  = 2 * time.Second
)

// Store is what a Dispatcher works on.
type Store interface {
	port.HookStore
	Tenant(parley.TenantID) port.TenantStore
	Epoch() string
}

// Config is what a Dispatcher works with.
type Config struct {
	Store  Store
	Sealer Sealer
	Allow  Allow
	// Env has the secrets that files of agents name.
	Env     func(name string) (string, bool)
	Public  string // what links begin with, without a slash at the end
	Version string
	Log     *slog.Logger
	Now     func() time.Time
	// Term counts the leases of this node: another may do what was begun in an
	// earlier one. Nil: there are no other nodes.
	Term func(context.Context) (int64, error)
	// Told hears what came of each attempt, and, of what was told or given up,
	// how long that took. Nil: nobody does.
	Told func(outcome string, waited time.Duration)
}

// A Dispatcher tells webhooks what they are owed. One goroutine looks for what
// is due, and each delivery has one of its own.
type Dispatcher struct {
	Config
	sender *sender
	poked  chan struct{}
	ended  chan landing
	wg     sync.WaitGroup
	trying sync.Map // tenants for which Try runs

	looking context.Context // ends when no more is begun
	stop    context.CancelFunc
	telling context.Context // ends when deliveries under way are cut
	cut     context.CancelFunc
}

// A flight is a delivery under way.
type flight struct {
	tenant  parley.TenantID
	session parley.SessionID
	effect  parley.Seq
	target  string
}

// A landing is how a flight has ended.
type landing struct {
	flight
	failed error // the store: it is as due as it was
}

// New makes a dispatcher that delivers nothing before Start.
func New(c Config) *Dispatcher {
	d := &Dispatcher{Config: c, sender: newSender(c.Allow, "Parley/"+c.Version), poked: make(chan struct{}, 1),
		ended: make(chan landing, flying)}
	d.looking, d.stop = context.WithCancel(context.Background())
	d.telling, d.cut = context.WithCancel(context.Background())
	return d
}

// Start begins with the deliveries that an earlier process has left. It is for
// once.
func (d *Dispatcher) Start() { d.wg.Go(func() { d.look(d.looking, d.telling) }) }

// Poke says that somebody may have to be told something.
func (d *Dispatcher) Poke() {
	select {
	case d.poked <- struct{}{}:
	default:
	}
}

// Close begins nothing new, and cuts deliveries that are under way when ctx ends:
// they are made again after the next start.
func (d *Dispatcher) Close(ctx context.Context) error {
	d.stop()
	defer context.AfterFunc(ctx, d.cut)()
	d.wg.Wait()
	d.cut()
	d.sender.close()
	return nil
}

// look begins deliveries as they are due, and waits for the next: for its time,
// for a poke, or for one that ends and makes room. A receiver that has as many
// under way as it may is left out, so that it holds up nobody else; and so is a
// tenant, whose receivers may be many. A store that
// fails is left alone for a while: all that is due would be due again at once.
func (d *Dispatcher) look(ctx, telling context.Context) {
	under, targets, tenants := map[flight]bool{}, map[string]int{}, map[parley.TenantID]int{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var rests time.Time // the store, until then
	for {
		var l landing
		select {
		case <-timer.C:
		case <-d.poked:
		case l = <-d.ended:
			delete(under, l.flight)
			if targets[l.target]--; targets[l.target] == 0 {
				delete(targets, l.target)
			}
			if tenants[l.tenant]--; tenants[l.tenant] == 0 {
				delete(tenants, l.tenant)
			}
		case <-ctx.Done():
			return
		}
		now, wait := d.Now(), lookAtClock
		left := rests.Sub(now)
		if left > retryStore {
			left = 0 // the clock was set back
		}
		if l.failed != nil && left <= 0 {
			d.Log.Error("webhooks could not be claimed; it is tried again", "session", l.session, "effect", l.effect,
				"after", retryStore, "error", l.failed)
			rests, left = now.Add(retryStore), retryStore
		}
		if left > 0 {
			timer.Reset(left + time.Millisecond)
			continue
		}
		if room := flying - len(under); room > 0 {
			var busy port.HooksBusy
			for target, n := range targets {
				if n >= perHost {
					busy.Targets = append(busy.Targets, target)
				}
			}
			for tenant, n := range tenants {
				if n >= perTenant {
					busy.Tenants = append(busy.Tenants, tenant)
				}
			}
			// What is under way may still be listed, until it is claimed.
			due, next, err := d.Store.DueHooks(ctx, now, busy, room+len(under))
			if err != nil && ctx.Err() == nil {
				d.Log.Error("cannot read which webhooks are due", "error", err)
				rests = now.Add(retryStore)
				next = rests
			}
			if !next.IsZero() {
				wait = min(wait, max(next.Sub(now), 0)+time.Millisecond)
			}
			for _, h := range due {
				f := flight{h.Tenant, h.Session, h.Effect, h.Target}
				if under[f] || targets[h.Target] >= perHost || tenants[h.Tenant] >= perTenant || len(under) >= flying {
					continue // until one ends
				}
				under[f] = true
				targets[h.Target]++
				tenants[h.Tenant]++
				d.wg.Go(func() {
					failed := d.deliver(telling, h)
					select {
					case d.ended <- landing{f, failed}:
					case <-ctx.Done(): // nobody looks any more
					}
				})
			}
		}
		timer.Reset(wait)
	}
}

// deliver makes one attempt, from the claim to what is written of it. It fails if
// there could be no claim; one that was made puts off the next attempt by itself.
func (d *Dispatcher) deliver(ctx context.Context, h port.HookDue) error {
	term, err := d.term(ctx)
	if err != nil {
		return err
	}
	now := d.Now()
	until := now.Add(claimFor).UTC().Truncate(time.Microsecond)
	claimed, err := d.Store.ClaimHook(ctx, h, now, until)
	if ctx.Err() != nil {
		return nil // cut
	}
	if err != nil || !claimed {
		return err
	}
	if again, err := d.term(ctx); err != nil || again != term {
		return nil // the process was stopped meanwhile: the claim runs out
	}
	fate := d.attempt(ctx, h)
	if ctx.Err() != nil {
		return nil // cut: the claim runs out, and it is made again
	}
	if err := d.Store.SettleHook(ctx, h, until, fate); err != nil {
		d.Log.Error("what came of a webhook could not be kept; it is told again", "session", h.Session, "effect",
			h.Effect, "error", err)
		return nil
	}
	log := d.Log.With("session", h.Session, "effect", h.Effect, "event", h.Event, "target", h.Target, "attempt",
		h.Attempts+1)
	outcome := string(fate.Status)
	switch fate.Status {
	case port.EffectCompleted:
		outcome = "delivered"
		log.Debug("effect_delivered", "type", parley.Webhook)
	case port.EffectPending:
		outcome = "retried"
		log.Info("a webhook was not taken, and is tried again", "why", fate.Why, "at", fate.Next)
	default:
		log.Warn("a webhook is given up", "why", fate.Why)
	}
	if d.Told != nil {
		d.Told(outcome, fate.At.Sub(h.Made))
	}
	return nil
}

func (d *Dispatcher) term(ctx context.Context) (int64, error) {
	if d.Term == nil {
		return 0, nil
	}
	return d.Term(ctx)
}

// attempt says what came of it. What cannot become any better is given up at
// once.
func (d *Dispatcher) attempt(ctx context.Context, h port.HookDue) port.HookFate {
	fate := port.HookFate{Status: port.EffectFailed, At: d.Now()}
	if !d.Now().Before(h.Made.Add(parley.EffectLife)) {
		fate.Why = port.EffectExpired
		return fate
	}
	logs := d.Store.Tenant(h.Tenant)
	body, err := compose(ctx, logs, h, d.Public)
	var to addressee
	if err == nil {
		to, err = d.addressee(ctx, logs, h)
	}
	switch gaveUp, ok := errors.AsType[givenUp](err); {
	case ok:
		fate.Status, fate.Why = gaveUp.status, gaveUp.why
		return fate
	case errors.Is(err, errNoEvent):
		fate.Why = err.Error()
		return fate
	case err != nil: // the store's trouble
		return d.again(h, fate, verdict{why: "the server could not read what to tell"})
	}
	v := d.sender.send(ctx, to.url, to.key, IDOf(d.Store.Epoch(), h.Tenant, h.Session, h.Effect), d.Now(), body)
	fate.At = d.Now()
	switch {
	case v.done:
		fate.Status = port.EffectCompleted
		return fate
	case v.gone:
		fate.Why = v.why
		if err := d.Store.HookGone(ctx, h.Tenant, to.place, to.url, fate.At); err != nil && ctx.Err() == nil {
			d.Log.Error("that a webhook is gone could not be kept", "session", h.Session, "error", err)
		}
		return fate
	}
	return d.again(h, fate, v)
}

// again is when it is tried next: after longer and longer, never all at the same
// moment, and not after a day.
func (d *Dispatcher) again(h port.HookDue, fate port.HookFate, v verdict) port.HookFate {
	pause := firstPause
	for range min(h.Attempts, 10) {
		pause = min(3*pause, maxPause)
	}
	pause = max(pause, v.after)
	pause += rand.N(pause/4 + 1)
	fate.Why, fate.Next = v.why, fate.At.Add(pause).UTC().Truncate(time.Microsecond)
	end := h.Made.Add(parley.EffectLife)
	switch {
	case !fate.At.Before(end):
		return fate
	case fate.Next.After(end):
		fate.Next = end
	}
	fate.Status = port.EffectPending
	return fate
}

// An addressee is who is told, and what signs it.
type addressee struct {
	url   string
	key   []byte
	place parley.SessionID // of its row
}

// givenUp: there is nobody to be told.
type givenUp struct {
	status port.EffectStatus
	why    string
}

func (g givenUp) Error() string { return g.why }

func (d *Dispatcher) addressee(ctx context.Context, logs port.TenantStore, h port.HookDue) (addressee, error) {
	if h.Agent != "" {
		return d.agent(ctx, logs, h)
	}
	to := addressee{place: h.HookPromise.Session}
	row, ok, err := logs.Webhook(ctx, to.place)
	switch {
	case err != nil:
		return to, err
	case !ok:
		return to, givenUp{port.EffectGone, "the session has no webhook any more"}
	case row.Hook.Target != h.Target:
		return to, givenUp{port.EffectGone, "the session has another webhook now"}
	case !row.Gone.IsZero():
		return to, givenUp{port.EffectFailed, "the receiver wants no more; set the webhook again"}
	}
	to.url = row.URL
	if to.key, err = d.Sealer.open(h.Tenant, to.place, row.Sealed); err != nil {
		return to, givenUp{port.EffectFailed, err.Error()}
	}
	return to, nil
}

// agent is the webhook of the definition that the run was started with.
func (d *Dispatcher) agent(ctx context.Context, logs port.TenantStore, h port.HookDue) (addressee, error) {
	agent, err := logs.Definition(ctx, h.Agent)
	to := addressee{place: port.AgentHook(agent.Name)}
	switch {
	case parley.CodeOf(err) == parley.CodeNotFound && err != nil || err == nil && agent.Webhook == nil:
		return to, givenUp{port.EffectGone, "the agent has no webhook"}
	case err != nil:
		return to, err
	}
	to.url = agent.Webhook.URL
	row, ok, err := logs.Webhook(ctx, to.place)
	switch {
	case err != nil:
		return to, err
	case ok && row.URL == to.url && d.Now().Before(row.Gone.Add(agentRests)):
		return to, givenUp{port.EffectFailed, "the receiver wants no more; it is asked again after a day"}
	}
	secret, _ := d.Env(agent.Webhook.SecretEnv)
	if to.key, err = key(secret); err != nil {
		return to, givenUp{port.EffectFailed, "the secret in " + agent.Webhook.SecretEnv + " is missing or none"}
	}
	return to, nil
}
