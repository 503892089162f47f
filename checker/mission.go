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
		c.must(!parley.IsBlank(b.Text) && len(b.Text) <= parley.MaxMission, "says %d bytes", len(b.Text))
		if c.missions == nil {
			c.missions = map[string]*mission{}
		}
		c.missions[b.Project] = &mission{parley.MissionID(e.Seq), map[string]parley.AgentPrompted{},
			map[string]parley.Seq{}}
	case parley.MissionCleared:
		m := c.missions[b.Project]
		c.must(m != nil && m.id == b.Mission, "mission %d is not active", b.Mission)
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
			c.fail("mission %d is not active", b.Mission)
			return
		}
		c.must(m.open[b.Agent] == 0, "prompt %d is not settled", m.open[b.Agent])
		c.must(b.Number == 1 || b.Number == m.prompts[b.Agent].Number+1, "number %d follows %d", b.Number,
			m.prompts[b.Agent].Number)
		c.must(b.Session == parley.IdleSession(b.Mission, b.Agent), "is for session %s", b.Session)
		m.prompts[b.Agent], m.open[b.Agent] = b, e.Seq
	case parley.PromptSettled:
		settled := false
		for _, m := range c.missions {
			if m.id == b.Mission && m.open[b.Agent] == b.Prompt && b.Prompt != 0 {
				delete(m.open, b.Agent)
				settled = true
			}
		}
		c.must(settled, "prompt %d is not open", b.Prompt)
	case parley.InputReceived:
		idle := strings.HasPrefix(b.Request, parley.IdleNamed)
		c.must(idle == (b.Mission != 0) && (!idle || b.Synthetic), "is named %q, of mission %d, synthetic %v",
			b.Request, b.Mission, b.Synthetic)
		c.must(!idle || c.run == 0 && len(c.waiting) == 0, "something goes on")
		c.must(!idle || e.Session == parley.IdleSession(b.Mission, b.Agent.Name), "an idle prompt in another session")
	}
}
