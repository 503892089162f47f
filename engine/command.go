package engine

import (
	"cmp"
	"time"

	"parley"
	"parley/port"
)

// command checks the rules of a command, prepares it, and commits the events
// that it leads to. A command with an id that was used before gets the first
// receipt.
func (a *actor) command(r *request) (port.Receipt, error) {
	who, c := r.who, r.command
	rules := c.Do.Rules()
	if !r.internal {
		if err := a.engine.permit(a.engine.ctx, who, c.Via, rules.Action, a.resource()); err != nil {
			return port.Receipt{}, err
		}
	}
	if err := a.checkScope(rules); err != nil {
		return port.Receipt{}, err
	}
	en := entry{letter: r.letter}
	if c.ID != "" {
		first, ok, err := a.earlierReceipt(who, c)
		if err != nil || ok {
			return first, err
		}
		en.receipt = &port.StoredReceipt{Receipt: port.Receipt{Session: a.session, Command: c.ID},
			Digest: digest(c.Do), By: who.ID}
	}
	if err := a.screenCommand(who, c, rules); err != nil {
		return port.Receipt{}, err
	}
	var err error
	if en.in, en.agent, err = a.prepare(r); err != nil {
		return port.Receipt{}, err
	}
	settle, err := a.admit(r)
	if err != nil {
		return port.Receipt{}, err
	}
	defer settle()
	if do, ok := c.Do.(parley.SetWebhook); ok {
		en.webhook = &port.StoredWebhook{URL: do.URL, Sealed: do.Sealed, Hook: do.Hook,
			At: c.At.UTC().Truncate(time.Microsecond)}
	}
	events, err := a.apply(en)
	if err != nil {
		return port.Receipt{}, err
	}
	receipt := port.Receipt{Session: a.session, Command: c.ID, Last: a.s.state.Head}
	if len(events) > 0 {
		receipt.First = events[0].Seq
	}
	return receipt, nil
}

// checkScope checks that a command fits the actor's session, and that its project
// and agents exist. Decide checks the session, too. The early check keeps
// commands that Decide refuses from being screened and recorded.
func (a *actor) checkScope(rules parley.Rules) error {
	if rules.Tenant != (a.session == parley.TenantSession) {
		return parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	if all := a.engine.projects; rules.Project != "" {
		if _, ok := all.find(a.tenant, rules.Project); !ok {
			return all.unknown(a.tenant, rules.Project)
		}
	}
	for _, name := range rules.Agents {
		if name == "" {
			continue // Decide refuses an empty name; Agents would take it for the default agent
		}
		if err := a.checkAgentExists(rules.Project, name); err != nil {
			return err
		}
	}
	return nil
}

// earlierReceipt returns the receipt of an earlier command with the same id, if there
// was one.
func (a *actor) earlierReceipt(who port.Principal, c parley.Command) (port.Receipt, bool, error) {
	first, ok, err := a.engine.Store.Tenant(a.tenant).Receipt(a.engine.ctx, a.session, c.ID)
	if err == nil && ok && (first.Digest != digest(c.Do) || first.By != who.ID) {
		err = parley.Errorf(parley.CodeConflict, "The id %q was used for another request.", c.ID)
	}
	first.Repeated = ok
	return first.Receipt, ok, err
}

// screenCommand refuses answers of people who may not talk to the agent, and texts
// that must not reach a model.
func (a *actor) screenCommand(who port.Principal, c parley.Command, rules parley.Rules) error {
	if rules.Answers {
		if err := a.mayAnswer(who, c.Via); err != nil {
			return err
		}
	}
	if rules.Says != nil {
		if err := a.screenAnswer(who, c, rules.Says...); err != nil {
			return err
		}
	}
	return a.screenOrders(who, c, rules.Orders...)
}

// prepare completes a command with facts that Decide needs and only the engine
// knows: current agent definitions, and the roles of the sender. The agent, if
// it is not nil, is the definition that the command's events refer to.
func (a *actor) prepare(r *request) (c parley.Command, agent *parley.Agent, err error) {
	who := r.who
	c = r.command
	switch do := c.Do.(type) {
	case parley.OpenSession:
		if a.s.state.Owner != "" && do.Project == "" {
			break // it is open already; if its project is gone, it can still be read
		}
		var p *Project
		if p, err = a.projectFor(do.Project); err == nil {
			do.Project = a.engine.projects.nameToRecord(a.tenant, p)
			c.Do = do
		}
	case parley.ForkSession:
		c.Do, err = a.prepareFork(who, do)
	case parley.SubmitInput:
		agent, c.Do, err = a.prepareInput(r, do)
	case parley.ReturnToolResult:
		do.Result = a.redacted(do.Result)
		do.Finding = a.engine.findingIn(do.Result)
		c.Do = do
	case parley.DecidePlan:
		agent, c.Do, err = a.preparePlan(who, c, do)
	case parley.UndoChanges:
		err = a.mayUndo(who, c.Via, do)
	case parley.PromptAgent:
		agent, c.Do, err = a.preparePrompt(do)
	case parley.MakeAgent:
		agent, c.Do, err = a.prepareAgent(who, c, do)
	case parley.DeleteAgent:
		err = a.checkNoAgentFile(do.Agent)
	case parley.SetMission:
		do.Roles = who.Roles
		c.Do = do
	}
	return c, agent, err
}

// prepareInput finds the agent of an input and screens the input. An input of the
// engine itself is a task that an agent delegates. It was screened as that
// agent's output, and that agent's limits and lack of trust apply to it.
func (a *actor) prepareInput(r *request, in parley.SubmitInput) (*parley.Agent, parley.SubmitInput, error) {
	who, c := r.who, r.command
	p, err := a.projectFor(in.Project)
	if err != nil {
		return nil, in, err
	}
	in.Project = a.engine.projects.nameToRecord(a.tenant, p)
	agent, err := a.agentFor(p, in.Agent.Name)
	if err == nil && !r.internal {
		err = a.mayTalk(who, c.Via, agent)
	}
	if err == nil {
		err = a.engine.checkNotStopped(a.engine.ctx, a.tenant, p.Root, agent.Name)
	}
	if err == nil && !r.internal {
		agent, in, err = a.withSkill(p, agent, in)
	}
	if err == nil && !r.internal && in.Model+in.Instructions != "" {
		agent, in, err = a.withRunOverrides(who, c.Via, agent, in)
	}
	if err != nil {
		return nil, in, err
	}
	ref := p.ref(agent)
	if r.internal {
		in.Agent = ref.Within(in.Agent.Tokens, in.Agent.Seconds, in.Agent.Micros).WithoutTrust(in.Untrusted)
		return &agent, in, nil
	}
	ref.Titles = a.engine.Titles != nil && !agent.Elsewhere() && !in.Transient && a.s.state.Titled() &&
		a.engine.Titles(cmp.Or(agent.Model, a.engine.defaultModel()))
	in.Agent = ref
	if err := a.checkReadable(agent, in.Images); err != nil {
		return nil, in, err
	}
	if err := a.checkToolNames(agent, in.Tools); err != nil {
		return nil, in, err
	}
	in, err = a.screen(who, c, in)
	return &agent, in, err
}

// agentFor returns the agent that an input names, or else the session's agent. The tenant's settings fill in what its
// definition leaves open. The run keeps the result unchanged.
func (a *actor) agentFor(p *Project, name string) (parley.Agent, error) {
	if name == "" {
		name = a.s.state.Agent
	}
	agent, err := p.agents(a.engine).Agent(a.tenant, name)
	if err != nil {
		return agent, err
	}
	if agent.Autonomy = agent.Autonomy.Within(a.engine.Autonomy); a.s.state.Parent != nil {
		agent.Autonomy = parley.Autonomy{} // a sub-agent reports to its parent and to no person
	}
	settings, err := a.engine.settings(a.engine.ctx, a.tenant)
	if agent.Elsewhere() { // a remote agent chooses its model, but the tenant's approval rule applies
		agent.Approval = settings.Complete(agent).Approval
		return agent, err
	}
	return settings.Complete(agent), err
}

// withRunOverrides returns the agent with the model and the instructions of an input. The input gets a run of its own,
// unless it only names the model of the current run.
func (a *actor) withRunOverrides(who port.Principal, via string, agent parley.Agent, in parley.SubmitInput) (
	parley.Agent, parley.SubmitInput, error) {
	if agent.Address != "" {
		return agent, in, parley.Errorf(parley.CodeInvalid, "%s runs elsewhere and chooses its model itself.", agent.Name)
	}
	agent.Model = cmp.Or(in.Model, agent.Model)
	if run := a.s.state.Run; in.Instructions != "" || run == nil || run.Agent.Name != agent.Name ||
		run.Agent.Model != agent.Model {
		in.Busy = parley.Queue
	}
	agent.Instructions = cmp.Or(parley.CleanText(in.Instructions), agent.Instructions)
	return agent, in, a.engine.permit(a.engine.ctx, who, via, parley.ActAdmin,
		port.Resource{Kind: port.OneAgent, Tenant: a.tenant, Agent: agent.Name, Allow: agent.Allow})
}

// mayTalk checks whether a principal may talk to an agent.
func (a *actor) mayTalk(who port.Principal, via string, agent parley.Agent) error {
	return a.engine.permit(a.engine.ctx, who, via, parley.ActMessage,
		port.Resource{Kind: port.OneAgent, Tenant: a.tenant, Agent: agent.Name, Allow: agent.Allow})
}

// mayAnswer checks whether a principal may answer for the running agent, as it
// is defined now: a principal that may no longer talk to the agent may not
// allow its calls either. A deleted agent is checked as it was when the run
// started.
func (a *actor) mayAnswer(who port.Principal, via string) error {
	run := a.s.state.Run
	if run == nil {
		return nil
	}
	return a.mayTalkTo(who, via, run.Agent)
}

// mayTalkTo checks whether a principal may talk to the agent of a run, in the session's project.
func (a *actor) mayTalkTo(who port.Principal, via string, ref parley.AgentRef) error {
	if err := a.currentProject().missing; err != nil {
		return err // the session cannot go on without its project
	}
	agent, err := a.agents().Agent(a.tenant, ref.Name)
	if err != nil && parley.CodeOf(err) == parley.CodeNotFound {
		agent, err = a.definition(a.engine.ctx, ref)
	}
	if err != nil {
		return err
	}
	return a.mayTalk(who, via, agent)
}
