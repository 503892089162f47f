package engine

import (
	"cmp"
	"context"
	"sync"
	"time"

	"parley"
	"parley/port"
)

// Quotas are checked before a session is opened, before an input is accepted and before a model is called. The store
// adds up past usage from the events that report it. A call under way holds the most that it can use until its events
// are committed. A single node has holds in memory; several nodes have them in the store.

// quotaHolds are the holds of calls under way on this node.
type quotaHolds struct {
	check chan struct{} // buffers one: two checks at the same time would both get the last of a quota

	mu    sync.Mutex // guards the following; leaf
	held  map[parley.TenantID]map[*port.Hold]bool
	ended chan struct{} // closed when a hold ends

	unsettled []unsettled // ended holds that could not be settled in the store
}

type unsettled struct {
	tenant parley.TenantID
	id     string
}

func newQuotaHolds() quotaHolds {
	return quotaHolds{check: make(chan struct{}, 1), held: map[parley.TenantID]map[*port.Hold]bool{},
		ended: make(chan struct{})}
}

// holds returns the current holds of a tenant, and a channel that is closed when a hold ends.
func (l *quotaHolds) holds(tenant parley.TenantID) (list []port.Hold, ended <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h := range l.held[tenant] {
		list = append(list, *h)
	}
	return list, l.ended
}

func (l *quotaHolds) add(tenant parley.TenantID, h port.Hold) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[tenant] == nil {
		l.held[tenant] = map[*port.Hold]bool{}
	}
	l.held[tenant][&h] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.held[tenant], &h); len(l.held[tenant]) == 0 {
			delete(l.held, tenant)
		}
		l.signal()
	}
}

// signal wakes the calls that wait for a hold to end. It needs l.mu.
func (l *quotaHolds) signal() {
	close(l.ended)
	l.ended = make(chan struct{})
}

// quotasOf returns the quotas of a tenant. False means that there are none, and no check is needed.
func (e *Engine) quotasOf(tenant parley.TenantID) (port.Quotas, bool) {
	if e.Quotas == nil {
		return port.Quotas{}, false
	}
	q := e.Quotas(tenant)
	return q, q != port.Quotas{}
}

// holdPause is how long a call waits at most before it asks again, because holds on other nodes end without a signal.
const holdPause = 250 * time.Millisecond

// reserve holds what a request wants under the quotas of a tenant. If it has to wait, settle is nil, and wait is closed
// when it is worth asking again. Otherwise the caller calls settle when the usage is committed, or when there is none.
func (e *Engine) reserve(ctx context.Context, tenant parley.TenantID, want port.Hold) (settle func(),
	wait <-chan struct{}, err error) {
	q, limited := e.quotasOf(tenant)
	if !limited {
		return func() {}, nil, nil
	}
	defer func() { e.countRefusal(err) }()
	if e.Nodes != nil {
		return e.reserveShared(ctx, tenant, q, want)
	}
	l := &e.quotaHolds
	select {
	case l.check <- struct{}{}:
		defer func() { <-l.check }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	held, ended := l.holds(tenant) // first: see Quotas.Admit
	now := e.Now()
	all, own, err := e.Store.Tenant(tenant).Spent(ctx, port.Day(now), want.User, limitsStorage(q))
	if err != nil {
		return nil, nil, err
	}
	ok, err := q.Admit(now, all, own, held, want)
	if err != nil || !ok {
		return nil, ended, err
	}
	return l.add(tenant, want), nil, nil
}

func limitsStorage(q port.Quotas) bool { return q.Tenant.Storage > 0 || q.User.Storage > 0 }

// reserveShared is reserve with holds in the store, among all nodes.
func (e *Engine) reserveShared(ctx context.Context, tenant parley.TenantID, q port.Quotas, want port.Hold) (
	settle func(), wait <-chan struct{}, err error) {
	e.settleRest(ctx)
	_, ended := e.quotaHolds.holds(tenant)
	id, ok, err := e.Nodes.Reserve(ctx, tenant, q, e.Now(), want)
	if err != nil || !ok {
		return nil, ended, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), stopGrace)
		defer cancel()
		err := e.Nodes.Settle(ctx, tenant, id)
		l := &e.quotaHolds
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil { // settled with the next one; if this node ends, the hold is void
			l.unsettled = append(l.unsettled, unsettled{tenant, id})
		}
		l.signal()
	}, nil, nil
}

// settleRest ends holds that could not be ended before.
func (e *Engine) settleRest(ctx context.Context) {
	l := &e.quotaHolds
	l.mu.Lock()
	rest := l.unsettled
	l.unsettled = nil
	l.mu.Unlock()
	for _, u := range rest {
		if e.Nodes.Settle(ctx, u.tenant, u.id) != nil {
			l.mu.Lock()
			l.unsettled = append(l.unsettled, u)
			l.mu.Unlock()
		}
	}
}

// countRefusal reports a reached quota to metrics.
func (e *Engine) countRefusal(err error) {
	if r := port.ReachedBy(err); r != nil && e.QuotaReached != nil {
		e.QuotaReached(r.Of, r.What)
	}
}

// reserveCall holds what a model call may use. If quotas leave too little, it returns a channel to wait on. The hold
// ends with the worker, whose last report brings the usage into the log.
func (a *actor) reserveCall(ctx context.Context, request port.ModelRequest, b *stepInput) (wait <-chan struct{},
	err error) {
	if _, limited := a.engine.quotasOf(a.tenant); !limited {
		return nil, nil
	}
	want := a.engine.mostOf(request)
	want.User = a.owner
	settle, wait, err := a.engine.reserve(ctx, a.tenant, want)
	b.settle = settle
	return wait, err
}

// settleHold ends the hold of a call that failed.
func (b *stepInput) settleHold() {
	if b.settle != nil {
		b.settle()
		b.settle = nil
	}
}

// checkQuotas returns an error if a quota of the tenant or of the user is reached.
func (e *Engine) checkQuotas(ctx context.Context, tenant parley.TenantID, user parley.PrincipalID) (err error) {
	q, limited := e.quotasOf(tenant)
	if !limited {
		return nil
	}
	defer func() { e.countRefusal(err) }()
	now := e.Now()
	all, own, err := e.Store.Tenant(tenant).Spent(ctx, port.Day(now), user, limitsStorage(q))
	if err == nil {
		_, err = q.Admit(now, all, own, nil, port.Hold{User: user})
	}
	return err
}

// mostOf returns the most that a model call can use. A request cannot have more tokens than bytes, and no model reads
// and writes more than its window.
func (e *Engine) mostOf(r port.ModelRequest) (most port.Hold) {
	bytes := requestBytes(r)
	for _, model := range append([]string{cmp.Or(r.Model, e.defaultModel())}, r.Fallback...) {
		window := int64(e.window(model))
		u := parley.Usage{Input: window}
		if e.MaxUsage != nil {
			u = e.MaxUsage(model, bytes)
		}
		most.Tokens, most.Micros = max(most.Tokens, min(u.Input+u.Output, window)), max(most.Micros, u.CostMicros)
	}
	return most
}

// imageBytes counts for an image or a page: vendors make some thousand tokens of it, whatever its size.
const imageBytes = 8 << 10

func requestBytes(r port.ModelRequest) int64 {
	n := len(r.Instructions)
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters) + 64
	}
	for _, m := range r.Messages {
		n += len(m.Text) + 64
		for _, i := range m.Images {
			n += max(1, i.Pages)*imageBytes + len(i.Text)
		}
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments) + 64
		}
	}
	return int64(n)
}

// beginCall waits for a slot of the model calls and for the quotas. prepare makes the request. A call that waits for a
// quota gives up its slot, and its request is prepared again. The caller gives the slot back by release.
func (a *actor) beginCall(ctx context.Context, b *stepInput, prepare func() (port.ModelRequest, error)) (
	request port.ModelRequest, release func(), err error) {
	for {
		if release, err = a.engine.modelSlot(ctx); err != nil {
			return request, nil, err
		}
		var wait <-chan struct{}
		if request, err = prepare(); err == nil {
			wait, err = a.reserveCall(ctx, request, b)
		}
		if err == nil && wait == nil {
			return request, release, nil
		}
		release()
		if err != nil {
			return request, nil, err
		}
		if err := a.awaitHold(ctx, wait); err != nil {
			return request, nil, err
		}
	}
}

// awaitHold waits until a hold has ended or, with several nodes, for holdPause.
func (a *actor) awaitHold(ctx context.Context, ended <-chan struct{}) error {
	var elsewhere <-chan time.Time
	if a.engine.Nodes != nil {
		timer := time.NewTimer(holdPause)
		defer timer.Stop()
		elsewhere = timer.C
	}
	select {
	case <-ended:
	case <-elsewhere:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// admit checks the quotas before a command that opens a session or begins a run. Answers of people are never refused: a
// run that waits for them goes on as far as it can. The caller calls settle when the command is committed.
func (a *actor) admit(r *request) (settle func(), err error) {
	opens, begins := a.s.state.Head == 0 && !r.internal, false
	switch r.command.Do.(type) {
	case parley.OpenSession, parley.ForkSession:
	case parley.SubmitInput: // an input of the engine itself is a task of an agent for a sub-agent
		begins = !r.internal
	case parley.PromptAgent:
		begins = true
	default:
		opens = false
	}
	nothing, user := func() {}, cmp.Or(a.s.state.Owner, r.who.ID)
	switch {
	case !opens && !begins:
		return nothing, nil
	case !opens:
		return nothing, a.engine.checkQuotas(a.engine.ctx, a.tenant, user)
	}
	settle, _, err = a.engine.reserve(a.engine.ctx, a.tenant, port.Hold{User: user, Sessions: 1})
	if err != nil {
		return nothing, err
	}
	return settle, nil
}

// Usage returns the usage of a day. See port.Door.
func (e *Engine) Usage(ctx context.Context, who port.Principal, at time.Time) (port.UsageReport, error) {
	everybody, err := e.mayReadAll(ctx, who)
	if err != nil {
		return port.UsageReport{}, err
	}
	if at.IsZero() {
		at = e.Now()
	}
	day, q := port.Day(at), port.Quotas{}
	if e.Quotas != nil {
		q = e.Quotas(who.Tenant)
	}
	logs := e.Store.Tenant(who.Tenant)
	all, own, err := logs.Spent(ctx, day, who.ID, true)
	if err != nil {
		return port.UsageReport{}, err
	}
	report := port.UsageReport{Day: day, RenewsAt: port.Renews(at), User: port.NewUsageOf(string(who.ID), own,
		q.User)}
	if !everybody {
		return report, nil
	}
	whole := port.NewUsageOf(string(who.Tenant), all, q.Tenant)
	report.Tenant = &whole
	rows, err := logs.Usage(ctx, port.UsageQuery{First: day, Last: day, Limit: maxUsage})
	if err != nil {
		return report, err
	}
	stored, err := logs.Storage(ctx)
	for _, r := range rows {
		r.Storage = stored[r.User]
		report.Users = append(report.Users, port.NewUsageOf(string(r.User), r.Spent, q.User))
	}
	return report, err
}

// maxUsage bounds how many users are listed.
const maxUsage = 1000
