package engine

import (
	"context"
	"maps"
	"slices"
	"sync"

	"parley"
	"parley/port"
)

// tenants caches the states of the tenants' sessions, so that an input need not
// read a log to find out whether its agent is stopped. The actors of these
// sessions keep it up to date, and readFacts does so for sessions that other
// nodes have.
type tenants struct {
	mu     sync.Mutex // guards the following; leaf
	states map[parley.TenantID]parley.State
	round  int // counts how often a state was dropped
}

// maxTenants bounds the cached states.
const maxTenants = 4096

// put caches a state of a tenant's session that was read in a round. It
// ignores a state that is older than the cached one, or may be older than one
// dropped since.
func (t *tenants) put(s parley.State, round int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.states[s.Tenant]
	if round != t.round || ok && known.Head >= s.Head {
		return
	}
	if !ok && len(t.states) >= maxTenants {
		clear(t.states)
		t.round++
	}
	t.states[s.Tenant] = s
}

// list returns the tenants with a cached state.
func (t *tenants) list() []parley.TenantID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.states))
}

// dropOlder drops the cached state of a tenant if the log of its session has grown
// beyond it.
func (t *tenants) dropOlder(id parley.TenantID, head parley.Seq) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.states[id]; ok && s.Head < head {
		delete(t.states, id)
		t.round++ // a state that was read before is as old
	}
}

func (t *tenants) get(id parley.TenantID) (s parley.State, ok bool, round int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok = t.states[id]
	return s, ok, t.round
}

// cacheTenantState caches the state of a tenant's session. Only its actor calls it, and no
// state is newer than the actor's.
func (a *actor) cacheTenantState() {
	if a.session == parley.TenantSession {
		_, _, round := a.engine.tenants.get(a.tenant)
		a.engine.tenants.put(a.s.state, round)
		a.engine.tellNodes(factsTopic, nil)
	}
}

// tenantState returns the state of a tenant's session.
func (e *Engine) tenantState(ctx context.Context, id parley.TenantID) (parley.State, error) {
	for {
		s, ok, round := e.tenants.get(id)
		if ok {
			return s, nil
		}
		read, err := load(ctx, e.Store, id, parley.TenantSession, e.Snapshot)
		if err != nil {
			return parley.State{}, e.tooNew(err)
		}
		e.tenants.put(read.state, round)
	}
}

// checkNotStopped returns an error if an agent is stopped.
func (e *Engine) checkNotStopped(ctx context.Context, tenant parley.TenantID, project, agent string) error {
	s, err := e.tenantState(ctx, tenant)
	if err == nil && s.Facts.IsStopped(project, agent) {
		err = parley.Errorf(parley.CodeStopped, "agent is not running")
	}
	return err
}

// Stopped lists the agents of a project that are stopped. See port.Door.
func (e *Engine) Stopped(ctx context.Context, who port.Principal, project string) ([]string, error) {
	s, err := e.tenantStateFor(ctx, who)
	return s.Facts.StoppedIn(e.projects.at(who.Tenant, project).Root), err
}

// tenantSession is Session for the tenant's session, which exists before its
// first event. Every principal that may read the tenant's agents may read it.
func (e *Engine) tenantSession(ctx context.Context, who port.Principal) (port.Summary, error) {
	if err := e.permit(ctx, who, "", parley.ActRead, ofTenant(who.Tenant)); err != nil {
		return port.Summary{}, err
	}
	st, err := e.Store.Tenant(who.Tenant).Session(ctx, parley.TenantSession)
	if parley.CodeOf(err) == parley.CodeNotFound && err != nil {
		return port.SummaryOf(parley.NewState(who.Tenant, parley.TenantSession)), nil
	}
	return st.Summary, err
}

// ofTenant returns the tenant's session as a resource of permissions.
func ofTenant(id parley.TenantID) port.Resource {
	return port.Resource{Kind: port.WholeTenant, Tenant: id, Session: parley.TenantSession}
}

// resource returns the actor's session as a resource of permissions.
func (a *actor) resource() port.Resource {
	switch {
	case a.session == parley.TenantSession:
		return ofTenant(a.tenant)
	case a.s.state.Owner == "":
		// the principal that opens it will own it
		return port.Resource{Kind: port.OwnSessions, Tenant: a.tenant, Session: a.session}
	}
	return port.Resource{Kind: port.OneSession, Tenant: a.tenant, Session: a.session, Owner: a.s.state.Owner}
}
