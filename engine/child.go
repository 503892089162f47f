package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/port"
)

// runChild starts a sub-agent for a delegated call and waits for its result.
// Opening the child session and submitting the task are idempotent, so recovery
// after a crash repeats them. If ctx ends, the child goes on: only the log
// decides whether it is stopped.
func (a *actor) runChild(ctx context.Context, step parley.RunChild) parley.ReportBody {
	var ended parley.ChildEnded
	err := a.retry(ctx, func() (err error) {
		ended, err = a.startChild(ctx, step)
		return err
	})
	switch {
	case ctx.Err() != nil || a.engine.draining.Load():
		return nil
	case err != nil:
		a.log.Warn("a sub-agent could not be started", "run", step.Run, "child", step.Child, "error", err)
		return parley.ChildEnded{Child: step.Child, Outcome: parley.Failed, Result: parley.MessageOf(err)}
	}
	ended.Finding = a.engine.findingIn(ended.Result)
	return ended
}

func (a *actor) startChild(ctx context.Context, step parley.RunChild) (parley.ChildEnded, error) {
	ended := parley.ChildEnded{Child: step.Child}
	event, spawned, err := readEvent[parley.ChildSpawned](ctx, a, step.Spawned)
	if err != nil {
		return ended, err
	}
	mine, err := a.engine.Store.Tenant(a.tenant).Session(ctx, a.session)
	if err != nil {
		return ended, err
	}
	owner := mine.Summary.Owner
	origin := &parley.Origin{Session: a.session, Run: step.Run, Call: step.Call, Depth: spawned.Depth}
	if err := a.engine.submitInternal(ctx, a.tenant, step.Child, owner, "open",
		parley.OpenSession{Agent: spawned.Agent, Title: spawned.Task, Transient: true, Parent: origin, Root: event.Root,
			Hooks: spawned.Hooks, Off: spawned.Off, Project: mine.Summary.Project}); err != nil {
		return ended, err
	}
	agent := parley.AgentRef{Name: spawned.Agent, Tokens: spawned.Tokens, Seconds: spawned.Seconds,
		Micros: spawned.Micros}
	in := parley.SubmitInput{Content: spawned.Task, Request: parley.ChildRequest, Agent: agent,
		Sources: spawned.Sources, Untrusted: spawned.Untrusted}
	if spawned.Tainted { // written by an earlier release
		in.Finding = &parley.Finding{Verdict: parley.ScreenFlag, Reason: "the agent that delegates this was given " +
			"something that was flagged"}
	}
	if err := a.engine.submitInternal(ctx, a.tenant, step.Child, owner, "task", in); err != nil {
		return ended, err
	}
	return a.engine.awaitRun(ctx, a.tenant, step.Child)
}

// mayDelegate checks whether an agent may delegate to another one. An agent
// that lists delegates may use only these. An agent without a list may use
// every agent that has no allow list. An agent with an allow list has to be
// named: the delegating agent may serve people who are not on that list.
func (a *actor) mayDelegate(agent parley.Agent, to string) (parley.Agent, error) {
	other, err := a.agents().Agent(a.tenant, to)
	switch {
	case err != nil, slices.Contains(agent.Delegates, to):
	case agent.Delegates != nil:
		err = parley.Errorf(parley.CodeForbidden, "this agent delegates to %s, not to %q",
			strings.Join(agent.Delegates, ", "), to)
	case other.Allow != nil:
		err = parley.Errorf(parley.CodeForbidden, "%q has an allow list; an agent that delegates to it must name it "+
			"under delegates", to)
	}
	return other, err
}

// delegateList returns instructions that list the agents an agent can delegate to.
func (a *actor) delegateList(agent parley.Agent) string {
	if !a.offers(agent, "delegate") {
		return ""
	}
	var b strings.Builder
	for _, other := range a.agents().List(a.tenant) {
		if _, err := a.mayDelegate(agent, other.Name); err == nil {
			fmt.Fprintf(&b, "\n- %s: %s", other.Name, cmp.Or(other.Description, "no description"))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n\nAgents you can delegate to:" + b.String()
}

// awaitRun follows a child until the run of its task has ended. It ignores
// other runs and withdrawn inputs in the child session, which people may write
// to as well.
func (e *Engine) awaitRun(ctx context.Context, tenant parley.TenantID, child parley.SessionID) (parley.ChildEnded,
	error) {
	f := e.Feed.Session(tenant, child, 0)
	defer f.Close()
	ended := parley.ChildEnded{Child: child}
	state := parley.NewState(tenant, child)
	var run parley.RunID
	var text strings.Builder
	for {
		items, err := f.Next(ctx)
		if err != nil {
			return ended, err
		}
		for _, i := range items {
			state = parley.Fold(state, i.Event)
			switch b := i.Body.(type) {
			case parley.RunStarted:
				if b.Request == parley.ChildRequest {
					run = i.Run
				}
			case parley.InputWithdrawn:
				if b.Request == parley.ChildRequest {
					ended.Outcome, ended.Result = parley.Cancelled, "The sub-agent was stopped before it began."
					return ended, nil
				}
			}
			if run == 0 || i.Run != run {
				continue
			}
			switch b := i.Body.(type) {
			case parley.TurnStarted:
				text.Reset()
			case parley.OutputFinished:
				if b.Kind == parley.Text {
					text.WriteString(b.Text)
				}
			case parley.RunFinished:
				ended.Outcome, ended.Usage, ended.Result = b.Outcome, b.Usage, text.String()
				ended.Sources = state.Sources
				if b.Outcome != parley.Completed {
					ended.Result = strings.TrimSpace(fmt.Sprintf("The sub-agent did not finish (%s). %s\n%s", b.Outcome,
						b.Message, ended.Result))
				}
				return ended, nil
			}
		}
	}
}

// stopChild cancels a child's run and waits until none of its work is alive.
func (a *actor) stopChild(ctx context.Context, step parley.StopChild) parley.ReportBody {
	err := a.retry(ctx, func() error {
		st, err := a.engine.Store.Tenant(a.tenant).Session(ctx, step.Child)
		switch {
		case err != nil && parley.CodeOf(err) == parley.CodeNotFound:
			return nil // it never began
		case err != nil:
			return err
		}
		err = a.engine.submitInternal(ctx, a.tenant, step.Child, st.Summary.Owner, "",
			parley.CancelRun{Request: parley.ChildRequest})
		if code := parley.CodeOf(err); err != nil && code != parley.CodeNotFound && code != parley.CodeClosed {
			return err
		}
		return a.engine.awaitRest(ctx, key{a.tenant, step.Child})
	})
	if err != nil {
		if ctx.Err() == nil && !a.engine.draining.Load() {
			a.log.Error("a sub-agent could not be stopped and is left alone", "child", step.Child, "error", err)
		} else {
			return nil
		}
	}
	return parley.ChildEnded{Child: step.Child, Outcome: parley.Cancelled}
}

// submitInternal submits a command of the engine on behalf of a session's owner. It skips
// the permission check: the command follows from a session that the owner may
// use.
func (e *Engine) submitInternal(ctx context.Context, tenant parley.TenantID, session parley.SessionID,
	owner parley.PrincipalID, id parley.CommandID, do parley.CommandBody) error {
	c := parley.Command{ID: id, Tenant: tenant, Session: session, By: owner, At: e.Now(), Do: do}
	who := port.Principal{ID: owner, Tenant: tenant}
	_, err := e.route(ctx, key{tenant, session}, &request{who: who, command: c, internal: true})
	return err
}

// awaitRest waits until all work of a session that is no longer wanted has ended.
func (e *Engine) awaitRest(ctx context.Context, k key) error {
	_, err := e.route(ctx, k, &request{rest: true})
	return err
}

// status returns the status of a session as clients see it. A session that
// waits for sub-agents waits for a person if all its sub-agents do.
func (e *Engine) status(ctx context.Context, tenant parley.TenantID, m port.Summary) (parley.Status, error) {
	if m.Status != parley.StatusDelegated {
		return m.Status, nil
	}
	logs := e.Store.Tenant(tenant)
	runs, err := logs.Runs(ctx, port.RunQuery{Parent: &parley.Origin{Session: m.ID, Run: m.Run}, Open: true,
		Limit: parley.MaxChildren})
	if err != nil || len(runs) == 0 {
		return parley.StatusRunning, err
	}
	for _, r := range runs {
		if r.Waiting {
			continue
		}
		st, err := logs.Session(ctx, r.Session)
		if err != nil {
			return parley.StatusRunning, err
		}
		if below, err := e.status(ctx, tenant, st.Summary); err != nil || below != parley.StatusWaiting {
			return parley.StatusRunning, err
		}
	}
	return parley.StatusWaiting, nil
}
