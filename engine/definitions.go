package engine

import (
	"context"
	"slices"

	"parley"
	"parley/port"
)

// definitionOf returns the digest of the agent definition that an event names; empty: none.
func definitionOf(e parley.Event) string {
	switch b := e.Body.(type) {
	case parley.InputReceived:
		return b.Agent.Digest
	case parley.AgentChanged:
		return b.Digest
	}
	return ""
}

// personal reports whether a stored definition may contain words of a person: the arguments of a skill that the person
// called, or instructions for one run. It cannot if its agent has the same instructions now.
func (e *Engine) personal(ctx context.Context, tenant parley.TenantID, digest string) (bool, error) {
	agent, err := e.Store.Tenant(tenant).Definition(ctx, digest)
	if err != nil {
		if parley.CodeOf(err) == parley.CodeNotFound {
			err = nil
		}
		return false, err
	}
	for _, p := range append(slices.Clone(e.projects.list), e.projects.none) {
		if !p.of(tenant) {
			continue
		}
		now, err := p.agents(e).Agent(tenant, agent.Name)
		if err == nil && now.Instructions == agent.Instructions {
			return false, nil
		}
	}
	return true, nil
}

// eraseRows has the store erase, and forgets the erased definitions.
func (e *Engine) eraseRows(ctx context.Context, tenant parley.TenantID, what port.Erasure) error {
	if err := e.Store.Erase(ctx, tenant, what); err != nil {
		return err
	}
	e.definitions.mu.Lock()
	defer e.definitions.mu.Unlock()
	for _, digest := range what.Definitions {
		delete(e.definitions.read, definitionKey{tenant, digest})
	}
	return nil
}
