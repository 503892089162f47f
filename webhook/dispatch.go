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
	flying      = 64               // concurrent deliveries to all receivers
	perTenant   = flying / 4       // concurrent deliveries of one tenant; for receivers, see perHost
	claimFor    = 2 * answerWithin // longer than an attempt can take
	firstPause  = 5 * time.Second  // after the first attempt; tripled after each further one
	maxPause    = time.Hour
	agentRests  = 24 * time.Hour // after the receiver of an agent's webhook has answered 410
	lookAtClock = time.Minute    // clocks are set, machines sleep, other servers die
	retryStore  = 2 * time.Second
)

// Store is the store of a Dispatcher.
type Store interface {
	port.HookStore
	Tenant(parley.TenantID) port.TenantStore
	Epoch() string
}

// Config is the configuration of a Dispatcher.
type Config struct {
	Store  Store
	Sealer Sealer
	Allow  Allow
	// Env looks up the secrets that the files of agents name.
	Env     func(name string) (string, bool)
	Public  string // beginning of links, without a trailing slash
	Version string
	Log     *slog.Logger
	Now     func() time.Time
	// Term returns the number of this node's lease. In a later term, another
	// node may already have made a delivery of an earlier one. Nil: there are
	// no other nodes.
	Term func(context.Context) (int64, error)
	// Told is called after each attempt, with its outcome and the age of the
	// delivery. Nil: it is not called.
	Told func(outcome string, waited time.Duration)
}

// A Dispatcher makes the due deliveries of webhooks. One goroutine looks for
// due deliveries, and each delivery has its own goroutine.
type Dispatcher struct {
	Config
	sender *sender
	poked  chan struct{}
	ended  chan landing
	wg     sync.WaitGroup
	trying sync.Map // tenants with a running Try

	looking    context.Context // ends when no new deliveries may begin
	stop       context.CancelFunc
	delivering context.Context // ends when running deliveries are cut
	cut        context.CancelFunc
}

// A flight is a running delivery.
type flight struct {
	tenant  parley.TenantID
	session parley.SessionID
	effect  parley.Seq
	target  string
}

// A landing is the end of a flight.
type landing struct {
	flight
	failed error // error of the store; the delivery is still due
}

// New returns a dispatcher that delivers nothing before Start.
func New(c Config) *Dispatcher {
	d := &Dispatcher{Config: c, sender: newSender(c.Allow, "Parley/"+c.Version), poked: make(chan struct{}, 1),
		ended: make(chan landing, flying)}
	d.looking, d.stop = context.WithCancel(context.Background())
	d.delivering, d.cut = context.WithCancel(context.Background())
	return d
}

// Start starts the dispatcher, with the deliveries that an earlier process has
// left. Call it once.
func (d *Dispatcher) Start() { d.wg.Go(func() { d.look(d.looking, d.delivering) }) }

// Poke tells the dispatcher that a delivery may be due.
func (d *Dispatcher) Poke() {
	select {
	case d.poked <- struct{}{}:
	default:
	}
}

// Close begins no new deliveries, and cuts running ones when ctx ends: they are
// made again after the next start.
func (d *Dispatcher) Close(ctx context.Context) error {
	d.stop()
	defer context.AfterFunc(ctx, d.cut)()
	d.wg.Wait()
	d.cut()
	d.sender.close()
	return nil
}

// look begins deliveries when they are due. Then it waits for the next one, for
// a poke, or for a delivery that ends and makes room. It skips receivers and
// tenants at their limit of concurrent deliveries, so that they do not delay
// others. After an error, it does not use the store for a while, because all
// due deliveries would fail again at once.
func (d *Dispatcher) look(ctx, delivering context.Context) {
	under, targets, tenants := map[flight]bool{}, map[string]int{}, map[parley.TenantID]int{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var rests time.Time // do not use the store before this time
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
			// Running deliveries may be listed too, until they are claimed.
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
					continue // try again when a delivery ends
				}
				under[f] = true
				targets[h.Target]++
				tenants[h.Tenant]++
				d.wg.Go(func() {
					failed := d.deliver(delivering, h)
					select {
					case d.ended <- landing{f, failed}:
					case <-ctx.Done(): // look has ended
					}
				})
			}
		}
		timer.Reset(wait)
	}
}

// deliver makes one attempt: it claims the delivery, sends it and stores the
// outcome. It returns an error if the claim failed. After a claim, the next
// attempt can only begin when the claim has run out, so other errors are only
// logged.
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
	fate, ended := d.attempt(ctx, h, term)
	if !ended || ctx.Err() != nil {
		return nil // suspended or cut; another attempt follows when the claim runs out
	}
	if err := d.Store.SettleHook(ctx, h, until, fate); err != nil {
		d.Log.Error("the outcome of a webhook delivery could not be stored; it is delivered again", "session",
			h.Session, "effect", h.Effect, "error", err)
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
		log.Info("a webhook delivery failed, and is tried again", "why", fate.Why, "at", fate.Next)
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

// attempt sends a delivery and returns its outcome. It gives up at once if
// another attempt cannot succeed. It sends nothing and returns false if the
// term is over: the process was suspended since the delivery was claimed.
func (d *Dispatcher) attempt(ctx context.Context, h port.HookDue, term int64) (fate port.HookFate, ended bool) {
	fate = port.HookFate{Status: port.EffectFailed, At: d.Now()}
	if !d.Now().Before(h.Made.Add(parley.EffectLife)) {
		fate.Why = port.EffectExpired
		return fate, true
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
		return fate, true
	case errors.Is(err, errNoEvent):
		fate.Why = err.Error()
		return fate, true
	case err != nil: // an error of the store
		return d.again(h, fate, verdict{why: "the server could not read the event"}), true
	}
	if again, err := d.term(ctx); err != nil || again != term {
		return fate, false
	}
	v := d.sender.send(ctx, to.url, to.key, IDOf(d.Store.Epoch(), h.Tenant, h.Session, h.Effect), d.Now(), body)
	fate.At = d.Now()
	switch {
	case v.done:
		fate.Status = port.EffectCompleted
		return fate, true
	case v.gone:
		fate.Why = v.why
		if err := d.Store.HookGone(ctx, h.Tenant, to.place, to.url, fate.At); err != nil && ctx.Err() == nil {
			d.Log.Error("that a webhook is gone could not be kept", "session", h.Session, "error", err)
		}
		return fate, true
	}
	return d.again(h, fate, v), true
}

// again schedules the next attempt. Pauses grow and are random. No attempt is
// later than a day after the delivery was created.
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

// An addressee is the receiver of a delivery, with the key that signs it.
type addressee struct {
	url   string
	key   []byte
	place parley.SessionID // key of its row in the store
}

// givenUp is the error for a delivery that cannot have a receiver any more.
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

// agent returns the webhook of the agent definition of the run.
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
