package engine

import (
	"context"
	"strings"

	"parley"
	"parley/port"
)

// preparePlan finds the agent that carries out an approved plan: the one that made it,
// unless another is named.
func (a *actor) preparePlan(who port.Principal, c parley.Command, do parley.DecidePlan) (*parley.Agent,
	parley.DecidePlan, error) {
	if do.Decision != parley.ApprovePlan {
		return nil, do, nil
	}
	name := do.Agent.Name
	if plan := a.s.state.Plan; name == "" && plan != nil {
		name = plan.Agent
	}
	p, err := a.projectFor("")
	if err != nil {
		return nil, do, err
	}
	agent, err := a.agentFor(p, name)
	if err == nil {
		err = a.mayTalk(who, c.Via, agent)
	}
	if err == nil {
		err = a.engine.checkNotStopped(a.engine.ctx, a.tenant, p.Root, agent.Name)
	}
	do.Agent = p.ref(agent)
	return &agent, do, err
}

// instructionsFor returns the agent's instructions, with those for the run's mode
// and plan.
func instructionsFor(agent parley.Agent, mode parley.RunMode, plan *parley.Plan) string {
	about := plan.Instructions(mode)
	return strings.Trim(agent.Instructions+"\n\n"+about, "\n")
}

// toolsIn returns the tools that a run may have: in plan mode, only those that
// read.
func toolsIn(specs []parley.ToolSpec, mode parley.RunMode) []parley.ToolSpec {
	if mode != parley.ModePlan {
		return specs
	}
	var some []parley.ToolSpec
	for _, s := range specs {
		if s.ReadOnly {
			some = append(some, s)
		}
	}
	return some
}

// Plan implements port.Door.
func (e *Engine) Plan(ctx context.Context, who port.Principal, id parley.SessionID) (parley.Plan, error) {
	state, err := e.stateOf(ctx, who, id)
	if err != nil {
		return parley.Plan{}, err
	}
	if state.Plan == nil {
		return parley.Plan{}, parley.Errorf(parley.CodeNotFound, "This session has no plan.")
	}
	return *state.Plan, nil
}

// stateOf reads the state of a session that the principal may read.
func (e *Engine) stateOf(ctx context.Context, who port.Principal, id parley.SessionID) (parley.State, error) {
	m, err := e.Session(ctx, who, id)
	if err == nil {
		err = e.auditReading(ctx, who, m)
	}
	if err != nil {
		return parley.State{}, err
	}
	// load starts at the last snapshot, so it is quick. It holds and writes
	// nothing.
	s, err := load(ctx, e.Store, who.Tenant, id, e.Snapshot)
	if err != nil {
		return parley.State{}, err
	}
	return s.state, nil
}
