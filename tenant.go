package parley

import "slices"

// The session of a tenant is no conversation: it holds facts that concern all of
// them. It opens itself with the first fact, takes no inputs, and is not renamed,
// halted or deleted. Everybody of the tenant who may read agents may read it.

// ForTenant reports whether a command is about the tenant as a whole. Such
// commands go to its TenantSession, and nothing else does.
func ForTenant(do CommandBody) bool {
	switch do.(type) {
	case StartAgent, StopAgent, MakeAgent, DeleteAgent, NoteAgents, ChangeSettings, AcceptTools,
		SetMission, ClearMission, SetOverride:
		return true
	}
	return false
}

// decideTenant is command for the tenant's session. To who takes it for a
// conversation it is not there.
func (d *decision) decideTenant(c Command) error {
	if !ForTenant(c.Do) {
		return Errorf(CodeNotFound, "There is no such session.")
	}
	if c.By == "" {
		return Errorf(CodeForbidden, "Nobody in particular asks for this.")
	}
	switch do := c.Do.(type) {
	case StartAgent:
		return d.setAgent(do.Agent, AgentStarted{do.Agent}, d.s.IsStopped(do.Agent))
	case StopAgent:
		return d.setAgent(do.Agent, AgentStopped{do.Agent}, !d.s.IsStopped(do.Agent))
	case MakeAgent:
		return d.makeAgent(do.Agent)
	case DeleteAgent:
		return d.deleteAgent(do.Agent)
	case NoteAgents:
		return d.noteAgents(do)
	case ChangeSettings:
		return d.changeSettings(do)
	case AcceptTools:
		return d.acceptTools(do)
	case SetMission:
		return d.setMission(do)
	case ClearMission:
		return d.clearMission(do)
	case SetOverride:
		return d.setOverride(do)
	}
	return Errorf(CodeInvalid, "Unknown command %T.", c.Do)
}

// setAgent says what became of an agent, if that is news.
func (d *decision) setAgent(name string, body EventBody, news bool) error {
	if name == "" {
		return Errorf(CodeInvalid, "Say which agent.")
	}
	if news {
		d.emitTenant(body)
	}
	return nil
}

// emitTenant opens the tenant's session before the first fact.
func (d *decision) emitTenant(body EventBody) {
	if d.s.Owner == "" {
		d.emit(0, SessionOpened{Owner: d.by})
	}
	d.emit(0, body)
}

// foldTenant folds facts of a tenant.
func (s State) foldTenant(e Event) State {
	switch e.Body.(type) {
	case AgentStarted, AgentStopped, AgentChanged:
		s.Watched = e.Seq
	}
	switch b := e.Body.(type) {
	case AgentStarted:
		if i, there := slices.BinarySearch(s.Stopped, b.Agent); there {
			if s.Stopped = slices.Delete(slices.Clone(s.Stopped), i, i+1); len(s.Stopped) == 0 {
				s.Stopped = nil // as it is when it is read back from a snapshot
			}
		}
	case AgentStopped:
		if i, there := slices.BinarySearch(s.Stopped, b.Agent); !there {
			s.Stopped = slices.Insert(slices.Clone(s.Stopped), i, b.Agent)
		}
	case AgentChanged:
		s = s.foldMade(b)
	case SettingsChanged:
		s.Settings = withSettings(s.Settings, b.Values)
	case ToolsAccepted:
		s.Accepted = withTools(s.Accepted, b)
	case MissionSet, MissionCleared, OverrideSet, AgentPrompted, PromptSettled:
		s = s.foldMission(e)
	}
	return s
}

// IsStopped reports whether an agent is stopped, given the state of its tenant's
// session. One that nobody has stopped runs.
func (s State) IsStopped(agent string) bool {
	_, stopped := slices.BinarySearch(s.Stopped, agent)
	return stopped
}
