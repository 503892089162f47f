package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley"
	"parley/pacing"
	"parley/port"
)

// watchMission reports agents that were idle for their interval while a mission
// is active. Its step names the last fact that says which agents and intervals
// these are. If that fact changes, a new step replaces this one.
func (a *actor) watchMission(ctx context.Context, step parley.WatchMission) parley.ReportBody {
	e := a.engine
	if !e.Autonomy.Enabled {
		e.Log.Info("a mission is set, but no idle agent is prompted: AUTONOMY_ENABLED is not true", "tenant", a.tenant,
			"mission", step.Mission)
		<-ctx.Done()
		return nil
	}
	schedule := idleSchedule{}
	for {
		next, err := a.reportIdle(ctx, step.Mission, schedule)
		wait := e.Retry
		switch {
		case err == nil && next.IsZero():
			<-ctx.Done() // no agent is to be prompted before a fact changes
		case err == nil:
			wait = min(lookAtClock, max(next.Sub(e.Now()), time.Millisecond)) // clocks are set, and machines sleep
		case ctx.Err() == nil:
			a.log.Warn("idle agents cannot be determined", "error", err)
		}
		if !pacing.Sleep(ctx, wait) {
			return nil
		}
	}
}

// reportIdle reports the agents that are due, and says when to look again.
func (a *actor) reportIdle(ctx context.Context, id parley.MissionID, schedule idleSchedule) (next time.Time,
	err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New(a.panicked(p))
		}
	}()
	e := a.engine
	s, err := e.tenantState(ctx, a.tenant)
	m := s.Facts.ActiveMission(id)
	if err != nil || m == nil {
		return time.Time{}, err // the mission is over, so this step is about to end
	}
	var idlers []idleAgent
	found := map[string]parley.AgentFoundIdle{}
	for _, agent := range e.Agents.Of(m.Project).List(a.tenant) {
		idler, report, err := a.idleState(ctx, s, *m, agent)
		if err != nil {
			return time.Time{}, err
		}
		if report.Agent != "" {
			idlers, found[agent.Name] = append(idlers, idler), report
		}
	}
	now := e.Now()
	var due []string
	due, next = schedule.due(idlers, now)
	for _, agent := range due {
		select {
		case a.reports <- report{Report: parley.Report{At: now, Body: found[agent]},
			step: parley.WatchMission{Mission: id, Since: s.Facts.Watched}}:
		case <-ctx.Done():
			return next, nil
		}
	}
	return next, nil
}

// longRun is how long ago a run may have begun to be counted as activity when it ends.
const longRun = 24 * time.Hour

// idleState returns the idle time of an agent, and the report for when it is due.
// If the report names no agent, the agent is not prompted until a fact changes.
func (a *actor) idleState(ctx context.Context, s parley.State, m parley.Mission, agent parley.Agent) (i idleAgent,
	found parley.AgentFoundIdle, err error) {
	e := a.engine
	text, interval := s.Facts.Prompting(m, agent)
	who := port.Principal{ID: m.By, Tenant: a.tenant, Roles: m.Roles}
	if parley.IsBlank(text) || s.Facts.IsStopped(m.Project, agent.Name) ||
		e.Access.Permit(who, parley.ActMessage, port.Resource{Kind: port.OneAgent, Tenant: a.tenant,
			Agent: agent.Name, Allow: agent.Allow}) != nil {
		return i, found, nil
	}
	done := m.Prompted(agent.Name)
	i = idleAgent{name: agent.Name, interval: max(interval, e.Prompts.Interval), since: done.Last}
	found = parley.AgentFoundIdle{Mission: m.ID, Agent: agent.Name, Last: done.Last, Most: e.Prompts.Prompts}
	// The session is read before the activity: if it holds a message of a person, the activity includes the run that
	// answers it.
	session, err := load(ctx, e.Store, a.tenant, parley.IdleSession(m.ID, agent.Name), e.Snapshot)
	if err != nil && parley.CodeOf(err) != parley.CodeCorrupt {
		return i, found, err
	}
	corrupt := err != nil
	activity, err := e.Store.Tenant(a.tenant).Activity(ctx, e.projects.at(a.tenant, m.Project).Project, agent.Name,
		e.Now().Add(-i.interval-longRun))
	if err != nil {
		return i, found, err
	}
	if activity.Last.After(i.since) {
		i.since = activity.Last
	}
	if corrupt {
		i.held = true // its session cannot be written
		return i, found, nil
	}
	there := session.state
	found.Heard = done.Count > 0 && there.Owner != "" && there.Autonomous == 0
	unreachable := agent.Elsewhere() && e.Remotes != nil && e.Remotes.Unreachable(a.tenant, agent) != nil
	taken := there.Owner != "" && there.Owner != m.By
	if taken {
		a.log.Warn("an idle agent is not prompted: the session has another owner", "agent", agent.Name, "session",
			there.ID)
	}
	i.held = activity.Open || unreachable || there.Deleted || there.Halted != "" || taken
	return i, found, nil
}

// deliverPrompt submits an idle prompt to its session. It is idempotent, so
// that it can be repeated after a crash: the command's id names the event that
// promised the prompt.
func (a *actor) deliverPrompt(ctx context.Context, step parley.DeliverPrompt) parley.ReportBody {
	err := a.retry(ctx, func() error { return a.submitPrompt(ctx, step.Prompt) })
	if ctx.Err() != nil || a.engine.draining.Load() {
		return nil // the step comes again after the next start, if the prompt is still wanted
	}
	done := parley.PromptDelivered{Prompt: step.Prompt}
	if err != nil {
		a.log.Info("an idle agent was not prompted", "prompt", step.Prompt, "error", err)
		done.Code, done.Message = parley.CodeOf(err), parley.MessageOf(err)
	}
	return done
}

func (a *actor) submitPrompt(ctx context.Context, prompt parley.Seq) error {
	event, err := a.engine.fact(ctx, a.tenant, prompt)
	if err != nil {
		return err
	}
	s, err := a.engine.tenantState(ctx, a.tenant)
	if err != nil {
		return err
	}
	b, _ := event.Body.(parley.AgentPrompted)
	m := s.Facts.ActiveMission(b.Mission)
	if m == nil {
		return errMissionOver
	}
	a.engine.Log.Info("an idle agent is prompted", "agent", b.Agent, "session", b.Session, "number", b.Number)
	return a.engine.submitInternal(ctx, a.tenant, b.Session, m.By, parley.CommandID(parley.Ref(a.session, prompt)),
		parley.PromptAgent{Mission: m.ID, Agent: parley.AgentRef{Name: b.Agent}, Prompt: prompt})
}

var errMissionOver = parley.Errorf(parley.CodeClosed, "The mission is over.")

// preparePrompt prepares an idle prompt in the session that gets it. It checks here,
// not at the sender, whether the prompt is still wanted: in between, a person
// may have cleared the mission or stopped the agent, and was told so. The text
// is read here, too, and does not count for the command's digest: a command
// that is repeated after the text has changed is the same prompt.
func (a *actor) preparePrompt(do parley.PromptAgent) (*parley.Agent, parley.PromptAgent, error) {
	e := a.engine
	s, err := e.tenantState(e.ctx, a.tenant)
	m := s.Facts.ActiveMission(do.Mission)
	if err == nil && m == nil {
		err = errMissionOver
	}
	if err == nil && !e.Autonomy.Enabled { // it was enabled when the prompt was promised
		err = parley.Errorf(parley.CodeClosed, "Autonomy is off: this server was started without AUTONOMY_ENABLED=true.")
	}
	if err == nil {
		err = e.checkNotStopped(e.ctx, a.tenant, m.Project, do.Agent.Name)
	}
	if err != nil {
		return nil, do, err
	}
	p, err := a.projectFor(m.Project)
	if err != nil {
		return nil, do, err
	}
	agent, err := a.agentFor(p, do.Agent.Name)
	do.Agent, do.Goal, do.Project = p.ref(agent), m.Text, e.projects.nameToRecord(a.tenant, p)
	if do.Text, _ = s.Facts.Prompting(*m, agent); err == nil && parley.IsBlank(do.Text) {
		err = parley.Errorf(parley.CodeClosed, "The agent has no idle prompt any more.")
	}
	return &agent, do, err
}

// screenOrders screens texts that models get again and again. A text that would
// only be flagged in a message is refused.
func (a *actor) screenOrders(who port.Principal, c parley.Command, texts ...string) error {
	for _, text := range texts {
		_, err := a.engine.screenText(a.engine.ctx, who, screening{
			name: "text", text: text, strict: true,
			record: parley.Audit{Resource: "tenant", Source: c.Via},
			more:   map[string]any{"what": "mission"},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Missions implements port.Door.
func (e *Engine) Missions(ctx context.Context, who port.Principal, project string, limit int) ([]port.MissionInfo,
	error) {
	s, err := e.tenantStateFor(ctx, who)
	if err != nil {
		return nil, err
	}
	wanted := func(of string) bool { return of == project || project == port.EveryProject }
	gone := func(root string) bool {
		_, there := e.projects.find(who.Tenant, root)
		return !there
	}
	list := []port.MissionInfo{}
	for _, m := range slices.Backward(s.Facts.Missions) {
		if !wanted(m.Project) {
			continue
		}
		info := port.MissionInfo{ID: m.ID, Project: m.Project, Gone: gone(m.Project), Text: m.Text, Agents: m.Agents,
			By: m.By, At: m.At}
		for _, idle := range m.Idle {
			info.Prompted = append(info.Prompted,
				port.PromptedAgent{Agent: idle.Agent, Session: parley.IdleSession(m.ID, idle.Agent),
					Count: idle.Count, Last: idle.Last})
		}
		list = append(list, info)
	}
	for _, ended := range slices.Backward(s.Facts.Ended) {
		if len(list) >= limit {
			break
		}
		if !wanted(ended.Project) {
			continue
		}
		event, err := e.fact(ctx, who.Tenant, parley.Seq(ended.ID))
		if err != nil {
			return nil, err
		}
		if b, ok := event.Body.(parley.MissionSet); ok {
			list = append(list, port.MissionInfo{ID: ended.ID, Project: ended.Project, Gone: gone(ended.Project),
				Text: b.Text, Agents: b.Agents, By: event.By, At: event.At, Ended: ended.At})
		}
	}
	return list, nil
}

// fact returns an event of the tenant's session by its seq.
func (e *Engine) fact(ctx context.Context, tenant parley.TenantID, seq parley.Seq) (parley.Event, error) {
	events, err := e.Store.Tenant(tenant).Events(ctx, parley.TenantSession, seq-1, 1)
	if err == nil && len(events) == 0 {
		err = parley.Errorf(parley.CodeCorrupt, "A part of the tenant's log cannot be read.")
	}
	if err != nil {
		return parley.Event{}, err
	}
	return events[0], nil
}

// Override implements port.Door.
func (e *Engine) Override(ctx context.Context, who port.Principal, project, agent string) (parley.Override, error) {
	s, err := e.tenantStateFor(ctx, who)
	if err == nil {
		_, err = e.Agents.Of(project).Agent(who.Tenant, agent)
	}
	return s.Facts.Override(project, agent), err
}

// tenantStateFor returns the state of the tenant's session if the principal may read it.
func (e *Engine) tenantStateFor(ctx context.Context, who port.Principal) (parley.State, error) {
	if err := e.permit(ctx, who, "", parley.ActRead,
		port.Resource{Kind: port.WholeTenant, Tenant: who.Tenant}); err != nil {
		return parley.State{}, err
	}
	s, err := e.tenantState(ctx, who.Tenant)
	if away, ok := errors.AsType[*awayError](err); ok {
		err = parley.Errorf(parley.CodeUnavailable, "%s", away.why)
	}
	return s, err
}
