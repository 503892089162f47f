package parley

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An agent that is idle while a mission is active is prompted. What it is told and
// after how long is chosen by the mission, by an override of the project, or by its
// own definition.

// An IdleChoice is what somebody wants of an agent that is idle. What is nil was
// not chosen; a blank prompt means none.
type IdleChoice struct {
	Prompt  *string `json:"idle_prompt,omitempty"`
	Seconds *int64  `json:"idle_interval_secs,omitempty"`
}

// Check says what is wrong with a choice.
func (c IdleChoice) Check() error {
	switch {
	case c.Prompt != nil && len(*c.Prompt) > MaxIdlePrompt:
		return Errorf(CodeTooLarge, "idle_prompt is longer than %d bytes.", MaxIdlePrompt)
	case c.Seconds != nil && (*c.Seconds < 1 || *c.Seconds > int64(MaxIdleInterval/time.Second)):
		return Errorf(CodeInvalid, "idle_interval_secs must be a whole number from 1 to %d.",
			int64(MaxIdleInterval/time.Second))
	}
	return nil
}

func (c IdleChoice) clean() IdleChoice {
	if c.Prompt != nil {
		text := CleanText(*c.Prompt)
		c.Prompt = &text
	}
	return c
}

func (c IdleChoice) none() bool { return c.Prompt == nil && c.Seconds == nil }

// over is a choice with another where it is silent.
func (c IdleChoice) over(other IdleChoice) IdleChoice {
	if c.Prompt == nil {
		c.Prompt = other.Prompt
	}
	if c.Seconds == nil {
		c.Seconds = other.Seconds
	}
	return c
}

// An Override is chosen for an agent in a project, whatever the mission.
type Override struct {
	Project string `json:",omitempty"`
	Agent   string
	IdleChoice
}

// Override is what was chosen for an agent.
func (t tenantFacts) Override(project, agent string) Override {
	if i, there := t.override(project, agent); there {
		return t.Overrides[i]
	}
	return Override{Project: project, Agent: agent}
}

func (t tenantFacts) override(project, agent string) (int, bool) {
	return slices.BinarySearchFunc(t.Overrides, Override{Project: project, Agent: agent}, func(a, b Override) int {
		if order := strings.Compare(a.Project, b.Project); order != 0 {
			return order
		}
		return strings.Compare(a.Agent, b.Agent)
	})
}

// Prompting is what an agent is told when it is idle, and after how long. The
// mission's word counts most, then the override, then the agent's definition. A
// blank text: it is not prompted.
func (t tenantFacts) Prompting(m Mission, a Agent) (text string, interval time.Duration) {
	var c IdleChoice
	if i := slices.IndexFunc(m.Agents, func(c MissionAgent) bool { return c.Agent == a.Name }); i >= 0 {
		c = m.Agents[i].IdleChoice
	}
	c = c.over(t.Override(m.Project, a.Name).IdleChoice)
	if a.IdlePrompt != "" {
		c = c.over(IdleChoice{Prompt: &a.IdlePrompt})
	}
	if a.IdleSeconds > 0 {
		c = c.over(IdleChoice{Seconds: &a.IdleSeconds})
	}
	if c.Prompt != nil {
		text = *c.Prompt
	}
	if interval = defaultIdleInterval; c.Seconds != nil {
		interval = time.Duration(*c.Seconds) * time.Second
	}
	return text, interval
}

// OverrideSet is everything that is chosen for the agent from now on.
type OverrideSet struct {
	Project string `json:"project,omitempty"`
	Agent   string `json:"agent"`
	IdleChoice
}

func (b OverrideSet) fold(s State, e Event) State {
	t := s.Facts
	i, there := t.override(b.Project, b.Agent)
	list := slices.Clone(t.Overrides)
	if there {
		list = slices.Delete(list, i, i+1)
	}
	if !b.IdleChoice.none() {
		list = slices.Insert(list, i, Override{b.Project, b.Agent, b.IdleChoice})
	}
	if t.Overrides = list; len(list) == 0 {
		t.Overrides = nil
	}
	if m := t.Mission(b.Project); m != nil { // somebody takes care of the agent
		t = t.withIdle(m.ID, b.Agent, func(i *idlePrompting) { i.Count = 0 })
	}
	t.Watched = e.Seq
	s.Facts = t
	return s
}

// SetOverride replaces what was chosen for an agent; choosing nothing takes
// it back.
type SetOverride struct {
	Project string
	Agent   string
	IdleChoice
}

func (do SetOverride) Rules() Rules {
	r := Rules{Action: ActAdmin, Tenant: true, Agents: []string{do.Agent}, Project: do.Project}
	if do.Prompt != nil {
		r.Orders = []string{*do.Prompt}
	}
	return r
}

func (do SetOverride) decide(d *decision, _ Command) error {
	_, there := d.s.Facts.override(do.Project, do.Agent)
	choice := do.IdleChoice.clean()
	if err := choice.Check(); err != nil {
		return err
	}
	switch {
	case !ValidAgentName(do.Agent):
		return Errorf(CodeInvalid, "%.63q is no name of an agent.", do.Agent)
	case choice.none() && !there:
		return nil
	case !there && len(d.s.Facts.Overrides) >= maxOverrides:
		return Errorf(CodeLimited, "%d agents have overrides already; take one back first.", maxOverrides)
	}
	d.emitTenant(OverrideSet{Project: do.Project, Agent: do.Agent, IdleChoice: choice})
	return nil
}

// An Idle is how far the prompting of an agent under a mission got.
type idlePrompting struct {
	Agent  string
	Count  int       // prompts since somebody spoke to it in that session, or chose anew
	Last   time.Time // by the clock
	Prompt Seq       `json:",omitempty"` // its AgentPrompted that is not settled
}

// Prompted is how far the prompting of an agent got.
func (m Mission) Prompted(agent string) idlePrompting {
	if i, there := m.prompted(agent); there {
		return m.Idle[i]
	}
	return idlePrompting{Agent: agent}
}

func (m Mission) prompted(agent string) (int, bool) {
	return slices.BinarySearchFunc(m.Idle, agent,
		func(i idlePrompting, agent string) int { return strings.Compare(i.Agent, agent) })
}

// withIdle changes how far the prompting of an agent got.
func (t tenantFacts) withIdle(mission MissionID, agent string, change func(*idlePrompting)) tenantFacts {
	t.Missions = slices.Clone(t.Missions)
	m := t.ActiveMission(mission)
	if m == nil {
		return t
	}
	m.Idle = slices.Clone(m.Idle)
	i, there := m.prompted(agent)
	if !there {
		m.Idle = slices.Insert(m.Idle, i, idlePrompting{Agent: agent})
	}
	change(&m.Idle[i])
	return t
}

// AgentPrompted: an idle agent is to be prompted, in this session, which will
// say what it was told: not everybody who may read agents is to know. Number
// counts from the last word of a person.
type AgentPrompted struct {
	Mission MissionID `json:"mission"`
	Project string    `json:"project,omitempty"`
	Agent   string    `json:"agent"`
	Session SessionID `json:"session"`
	Number  int       `json:"number"`
	At      time.Time `json:"at"` // by the clock, which may have been set back since the event before
}

func (b AgentPrompted) fold(s State, e Event) State {
	s.Facts = s.Facts.withIdle(b.Mission, b.Agent, func(i *idlePrompting) {
		i.Count, i.Last, i.Prompt = b.Number, b.At,
			e.Seq
	})
	return s
}

// PromptSettled: the session has taken the prompt or, with a code, not.
type PromptSettled struct {
	Mission MissionID `json:"mission"`
	Agent   string    `json:"agent"`
	Prompt  Seq       `json:"prompt"`
	Code    Code      `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
}

func (b PromptSettled) fold(s State, _ Event) State {
	s.Facts = s.Facts.withIdle(b.Mission, b.Agent, func(i *idlePrompting) { i.Prompt = 0 })
	return s
}

// AgentFoundIdle: an agent was idle for its interval while a mission is
// active. Last is when it was last prompted for it, as far as was known.
type AgentFoundIdle struct {
	Mission MissionID
	Agent   string
	Last    time.Time
	Heard   bool // a person spoke to it since, in the session it is prompted in
	Most    int  // prompts without that
}

// decide promises the agent its prompt, unless what led to it is no longer so.
func (b AgentFoundIdle) decide(d *decision, _ Report) {
	m := d.s.Facts.ActiveMission(b.Mission)
	if m == nil || d.s.Facts.IsStopped(m.Project, b.Agent) {
		return
	}
	idle := m.Prompted(b.Agent)
	if idle.Prompt != 0 || !idle.Last.Equal(b.Last) {
		return // it was prompted meanwhile
	}
	number := idle.Count + 1
	if b.Heard {
		number = 1
	}
	if number > b.Most {
		return
	}
	d.emit(0, AgentPrompted{Mission: m.ID, Project: m.Project, Agent: b.Agent, Session: IdleSession(m.ID, b.Agent),
		Number: number, At: d.at.UTC().Truncate(time.Microsecond)})
}

// DeliverPrompt: have the session of an idle prompt take it.
type DeliverPrompt struct{ Prompt Seq }

func (DeliverPrompt) step() {}

// PromptDelivered: the session of an idle prompt has taken it or, with a
// code, not.
type PromptDelivered struct {
	Prompt  Seq
	Code    Code
	Message string
}

func (b PromptDelivered) decide(d *decision, _ Report) {
	for _, m := range d.s.Facts.Missions {
		for _, idle := range m.Idle {
			if idle.Prompt == b.Prompt && b.Prompt != 0 {
				d.emit(0, PromptSettled{Mission: m.ID, Agent: idle.Agent, Prompt: b.Prompt, Code: b.Code,
					Message: b.Message})
				return
			}
		}
	}
}

// IdleSession is where an agent is prompted under a mission. It follows from
// both, so that whoever prompts again after a crash does it there.
func IdleSession(mission MissionID, agent string) SessionID {
	return derivedSession("idle prompts of mission %d for %s", mission, agent)
}

// IdleNamed begins the names of inputs that idle prompts are.
const IdleNamed = "timer_idle_"

// PromptAgent is the engine's own, to the session of a mission and an agent:
// the agent is idle. Prompt is the Seq of the AgentPrompted that says so.
type PromptAgent struct {
	Mission MissionID
	Agent   AgentRef
	Prompt  Seq

	// What the engine found out about it.
	Goal    string // the mission's text
	Project string `json:",omitempty"` // and its project
	Text    string // the agent's idle prompt
}

func (PromptAgent) Rules() Rules {
	return Rules{Action: ActMessage, Opens: true, ServerOnly: "Only the server prompts idle agents."}
}

// decide opens the session, which takes no prompt while something else goes on.
func (do PromptAgent) decide(d *decision, c Command) error {
	if d.s.Owner == "" && !d.s.Deleted {
		if err := (OpenSession{Agent: do.Agent.Name, Title: "Mission: " + do.Goal, Project: do.Project}).decide(d, c); err != nil {
			return err
		}
	}
	switch {
	case d.s.Deleted:
		return Errorf(CodeClosed, "This session was deleted.")
	case d.s.Owner != c.By:
		// Ids can be guessed, and whoever opens a session reads it.
		return Errorf(CodeClosed, "This session has another owner than the mission.")
	case d.s.Halted != "":
		return Errorf(CodeClosed, "This session was halted: %s.", d.s.Halted)
	case !d.s.quiet():
		return Errorf(CodeConflict, "Something else goes on in the session.")
	}
	d.emit(0, InputReceived{Content: do.content(), Request: fmt.Sprint(IdleNamed, do.Prompt), Agent: do.Agent,
		Busy: Queue, Command: c.ID,
		Synthetic: true, Mission: do.Mission})
	return nil
}

func (do PromptAgent) content() string {
	return "[Mission] " + do.Goal + "\n\n[Your standing instruction] " + do.Text
}
