package engine

import (
	"context"
	"regexp"
	"sync"
	"time"

	"parley"
	"parley/port"
)

// Artifacts are files in the data folder of the node that wrote them. An erasure, or retention, deletes those that the
// deleted sessions name, on its own node. Two kinds are left: files of other nodes, and files that no event names,
// because the process died before the result of the call was stored. A sweep finds both: they are artifacts that no
// event of the tenant names.

// artifactAge is the age from which an artifact of this process counts as left over if no event names it. A younger one
// may belong to a call that has not ended.
const artifactAge = time.Hour

// artifactSweeps remember up to which time artifacts were swept.
type artifactSweeps struct {
	mu   sync.Mutex // guards upTo; leaf
	upTo map[parley.TenantID]time.Time
}

// sweepAllArtifacts sweeps the artifacts of every tenant.
func (e *Engine) sweepAllArtifacts(ctx context.Context) error {
	tenants, err := e.Store.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		if tenant == "" { // the server's own audit chain; it has no sessions
			continue
		}
		if err := e.sweepArtifacts(ctx, tenant); err != nil {
			return err
		}
	}
	return nil
}

// sweepArtifacts deletes the artifacts of a tenant that no event names, if sessions were erased or removed since the
// last sweep. Artifacts that this process may still be writing are left for the next sweep.
func (e *Engine) sweepArtifacts(ctx context.Context, tenant parley.TenantID) error {
	if e.OldArtifacts == nil {
		return nil
	}
	before := e.Now().Add(-artifactAge)
	if e.began.After(before) { // files of an earlier process
		before = e.began
	}
	e.artifacts.mu.Lock()
	upTo := e.artifacts.upTo[tenant]
	e.artifacts.mu.Unlock()
	needed := false
	for _, action := range []string{port.AuditUserErased, port.AuditRetention} {
		last, err := e.Store.Tenant(tenant).Audited(ctx, port.AuditQuery{Action: action, Limit: 1})
		if err != nil {
			return err
		}
		needed = needed || len(last) > 0 && !last[0].At.Before(upTo)
	}
	if !needed {
		return nil
	}
	if old, err := e.OldArtifacts(tenant, before, nil, true); err != nil {
		return err
	} else if old > 0 {
		named := map[string]bool{}
		if err := e.eachArtifact(ctx, tenant, "", func(name string) { named[name] = true }); err != nil {
			return err
		}
		if _, err := e.OldArtifacts(tenant, before, named, false); err != nil {
			return err
		}
	}
	e.artifacts.mu.Lock()
	defer e.artifacts.mu.Unlock()
	e.artifacts.upTo[tenant] = before
	return nil
}

// eachArtifact calls do for every name of an artifact in the logs of a session and its sub-agents. root empty: in all
// logs of the tenant.
func (e *Engine) eachArtifact(ctx context.Context, tenant parley.TenantID, root parley.SessionID,
	do func(name string)) error {
	return e.eachEvent(ctx, tenant, root, func(event parley.Event) error {
		for _, name := range artifactsOf(event) {
			do(name)
		}
		return nil
	})
}

// eachEvent calls do for every event in the logs of a session and its sub-agents, until do fails. root empty: in all
// logs of the tenant.
func (e *Engine) eachEvent(ctx context.Context, tenant parley.TenantID, root parley.SessionID,
	do func(parley.Event) error) error {
	for after := parley.Position(0); ; {
		page, err := e.Store.Tenant(tenant).Tree(ctx, root, after, erasePage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, event := range page {
			if err := do(event); err != nil {
				return err
			}
		}
		after = page[len(page)-1].Position
	}
}

var artifactName = regexp.MustCompile(`artifact://([A-Za-z0-9.-]+\.txt)`)

// artifactsOf returns the names of the artifacts in an event.
func artifactsOf(e parley.Event) (names []string) {
	_, _, body, err := parley.EncodeBody(e.Body)
	if err != nil {
		return nil
	}
	for _, m := range artifactName.FindAllSubmatch(body, -1) {
		names = append(names, string(m[1]))
	}
	return names
}
