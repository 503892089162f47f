package engine

import (
	"context"
	"maps"
	"slices"
	"sync"

	"parley"
	"parley/port"
)

// tenants remembers what the sessions of tenants amount to, so that an input need
// not read a log to find out whether its agent is stopped. Their actors keep it
// up to date: one process writes a store.
type tenants struct {
	mu    sync.Mutex // guards the following; leaf
	known map[parley.TenantID]parley.State
	round int // how often what was known was forgotten
}

// maxTenants bounds what is remembered.
const maxTenants = 4096

// learn takes in a state of a tenant's session that was read in a round. An older
// one than is known, or one that may be older than what was forgotten since, is
// of no use.
func (t *tenants) learn(s parley.State, round int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.known[s.Tenant]
	if round != t.round || ok && known.Head >= s.Head {
		return
	}
	if !ok && len(t.known) >= maxTenants {
		clear(t.known)
		t.round++
	}
	t.known[s.Tenant] = s
}

// list is the tenants of which something is known.
func (t *tenants) list() []parley.TenantID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.known))
}

// forget forgets what is known of a tenant if the head of its session is another.
func (t *tenants) forget(id parley.TenantID, head parley.Seq) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.known[id]; ok && s.Head < head {
		delete(t.known, id)
		t.round++ // what was read before is as old
	}
}

func (t *tenants) look(id parley.TenantID) (s parley.State, ok bool, round int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok = t.known[id]
	return s, ok, t.round
}

// learn is for the actor of a tenant's session, whose state nothing is newer than.
func (a *actor) learn() {
	if a.session == parley.TenantSession {
		_, _, round := a.engine.tenants.look(a.tenant)
		a.engine.tenants.learn(a.s.state, round)
		a.engine.tell(factsTopic, nil)
	}
}

// tenant is the state of a tenant's session.
func (e *Engine) tenant(ctx context.Context, id parley.TenantID) (parley.State, error) {
	for {
		s, ok, round := e.tenants.look(id)
		if ok {
			return s, nil
		}
		read, err := load(ctx, e.Store, id, parley.TenantSession, e.Snapshot)
		if err != nil {
			return parley.State{}, e.tooNew(err)
		}
		e.tenants.learn(read.state, round)
	}
}

// running refuses what is for an agent that somebody has stopped.
func (e *Engine) running(ctx context.Context, tenant parley.TenantID, project, agent string) error {
	s, err := e.tenant(ctx, tenant)
	if err == nil && s.Facts.IsStopped(project, agent) {
		err = parley.Errorf(parley.CodeStopped, "agent is not running")
	}
	return err
}

// Stopped lists the agents of a project that are stopped. See port.Door.
func (e *Engine) Stopped(ctx context.Context, who port.Principal, project string) ([]string, error) {
	s, err := e.tenantFor(ctx, who)
	return s.Facts.StoppedIn(e.projects.at(who.Tenant, project).Root), err
}

// tenantSession is Session for the tenant's own, which is there before anything
// is in it, and is everybody's who may read agents.
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

// ofTenant is the tenant's session as something to be permitted.
func ofTenant(id parley.TenantID) port.Resource {
	return port.Resource{Kind: port.WholeTenant, Tenant: id, Session: parley.TenantSession}
}

// resource is what a command to the actor's session is about.
func (a *actor) resource() port.Resource {
	switch {
	case a.session == parley.TenantSession:
		return ofTenant(a.tenant)
	case a.s.state.Owner == "":
		// whoever opens it has it
		return port.Resource{Kind: port.OwnSessions, Tenant: a.tenant, Session: a.session}
	}
	return port.Resource{Kind: port.OneSession, Tenant: a.tenant, Session: a.session, Owner: a.s.state.Owner}
}
