package checker

import (
	"strings"

	"parley"
)

// mission is the state of an active mission in a log.
type mission struct {
	id      parley.MissionID
	prompts map[string]parley.AgentPrompted // the last prompt of each agent
	open    map[string]parley.Seq           // prompts that are not settled
}

// missionEvent checks missions and idle prompts.
func (c *check) missionEvent(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.MissionSet:
		c.must(!parley.IsBlank(b.Text) && len(b.Text) <= parley.MaxMission, "the mission has %d bytes; expected a "+
			"text of at most %d", len(b.Text), parley.MaxMission)
		if c.missions == nil {
			c.missions = map[string]*mission{}
		}
		c.missions[b.Project] = &mission{parley.MissionID(e.Seq), map[string]parley.AgentPrompted{},
			map[string]parley.Seq{}}
	case parley.MissionCleared:
		m := c.missions[b.Project]
		c.must(m != nil && m.id == b.Mission, "mission %d is not active in project %q", b.Mission, b.Project)
		delete(c.missions, b.Project)
	case parley.OverrideSet:
		if m := c.missions[b.Project]; m != nil {
			last := m.prompts[b.Agent]
			last.Number = 0
			m.prompts[b.Agent] = last
		}
	case parley.AgentPrompted:
		m := c.missions[b.Project]
		if m == nil || m.id != b.Mission {
			c.fail("mission %d is not active in project %q", b.Mission, b.Project)
			return
		}
		c.must(m.open[b.Agent] == 0, "prompt %d of this agent must be settled first", m.open[b.Agent])
		c.must(b.Number == 1 || b.Number == m.prompts[b.Agent].Number+1, "expected prompt number 1 or %d, "+
			"found %d", m.prompts[b.Agent].Number+1, b.Number)
		c.must(b.Session == parley.IdleSession(b.Mission, b.Agent), "it is for session %s, which is not the "+
			"agent's session for idle prompts", b.Session)
		m.prompts[b.Agent], m.open[b.Agent] = b, e.Seq
	case parley.PromptSettled:
		settled := false
		for _, m := range c.missions {
			if m.id == b.Mission && m.open[b.Agent] == b.Prompt && b.Prompt != 0 {
				delete(m.open, b.Agent)
				settled = true
			}
		}
		c.must(settled, "mission %d has no open prompt %d", b.Mission, b.Prompt)
	case parley.InputReceived:
		idle := strings.HasPrefix(b.Request, parley.IdleNamed)
		c.must(idle == (b.Mission != 0) && (!idle || b.Synthetic), "an idle prompt, and no other input, must "+
			"have a mission and a request that begins with %q, and be synthetic; found mission %d, request %q, "+
			"synthetic %t", parley.IdleNamed, b.Mission, b.Request, b.Synthetic)
		c.must(!idle || c.run == 0 && len(c.waiting) == 0, "an idle prompt must come when no run is open and no input "+
			"waits; open is run %d (0: none), and %d inputs wait", c.run, len(c.waiting))
		c.must(!idle || e.Session == parley.IdleSession(b.Mission, b.Agent.Name), "session %s is not the agent's "+
			"session for idle prompts", e.Session)
	}
}
