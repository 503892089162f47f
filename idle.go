package parley

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The server prompts an agent that is idle while a mission is active. The mission,
// an override of the project, or the definition of the agent determine the prompt
// and the interval.

// An IdleChoice determines the idle prompt and the interval of an agent. A nil
// field chooses nothing; a blank prompt means no prompt.
type IdleChoice struct {
	Prompt  *string `json:"idle_prompt,omitempty"`
	Seconds *int64  `json:"idle_interval_secs,omitempty"`
}

// Check validates a choice.
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

// over returns c, with nil fields filled from other.
func (c IdleChoice) over(other IdleChoice) IdleChoice {
	if c.Prompt == nil {
		c.Prompt = other.Prompt
	}
	if c.Seconds == nil {
		c.Seconds = other.Seconds
	}
	return c
}

// An Override is the choice for an agent in a project, for every mission.
type Override struct {
	Project string `json:",omitempty"`
	Agent   string
	IdleChoice
}

// Override returns the override of an agent.
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

// Prompting returns the idle prompt and the interval of an agent. The choice of
// the mission takes precedence over the override, and the override over the
// agent's definition. If the text is blank, the agent is not prompted.
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

// OverrideSet replaces the whole override of the agent.
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
	if m := t.Mission(b.Project); m != nil { // a person looks after the agent
		t = t.withIdle(m.ID, b.Agent, func(i *idlePrompting) { i.Count = 0 })
	}
	t.Watched = e.Seq
	s.Facts = t
	return s
}

// SetOverride replaces the override of an agent. An empty choice removes it.
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

// idlePrompting is the prompting state of an agent under a mission.
type idlePrompting struct {
	Agent  string
	Count  int       // prompts since a person wrote in that session or set an override
	Last   time.Time // wall-clock time
	Prompt Seq       `json:",omitempty"` // Seq of the AgentPrompted that is not settled
}

// Prompted returns the prompting state of an agent.
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

// withIdle changes the prompting state of an agent.
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

// AgentPrompted promises to prompt an idle agent in this session. The text of
// the prompt is only in that session, because not every user who may read
// agents may read it. Number counts prompts since a person last wrote.
type AgentPrompted struct {
	Mission MissionID `json:"mission"`
	Project string    `json:"project,omitempty"`
	Agent   string    `json:"agent"`
	Session SessionID `json:"session"`
	Number  int       `json:"number"`
	At      time.Time `json:"at"` // wall-clock time; the clock may have been set back since the previous event
}

func (b AgentPrompted) fold(s State, e Event) State {
	s.Facts = s.Facts.withIdle(b.Mission, b.Agent, func(i *idlePrompting) {
		i.Count, i.Last, i.Prompt = b.Number, b.At, e.Seq
	})
	return s
}

// PromptSettled: the session has accepted the prompt or, with a code, refused
// it.
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

// AgentFoundIdle reports that an agent was idle for its interval while a
// mission is active. Last is the time of its last prompt that the worker knew
// of.
type AgentFoundIdle struct {
	Mission MissionID
	Agent   string
	Last    time.Time
	Heard   bool // a person wrote since then in the session of the prompts
	Most    int  // maximum of prompts until a person writes
}

// decide promises the prompt, unless the situation has changed meanwhile.
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

// DeliverPrompt is a step: submit an idle prompt to its session.
type DeliverPrompt struct{ Prompt Seq }

func (DeliverPrompt) step() {}

// PromptDelivered reports that the session of an idle prompt has accepted it
// or, with a code, refused it.
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

// IdleSession returns the session in which an agent is prompted under a
// mission. The id depends only on these two, so a repeated prompt after a crash
// goes to the same session.
func IdleSession(mission MissionID, agent string) SessionID {
	return derivedSession("idle prompts of mission %d for %s", mission, agent)
}

// IdleNamed is the prefix of the request ids of idle prompts.
const IdleNamed = "timer_idle_"

// PromptAgent is sent by the engine to the session of a mission and an agent.
// It carries an idle prompt. Prompt is the Seq of its AgentPrompted.
type PromptAgent struct {
	Mission MissionID
	Agent   AgentRef
	Prompt  Seq

	// Set by the engine.
	Goal    string // the mission's text
	Project string `json:",omitempty"` // the mission's project
	Text    string // the agent's idle prompt
}

func (PromptAgent) Rules() Rules {
	return Rules{Action: ActMessage, Opens: true, Starts: true, ServerOnly: "Only the server prompts idle agents."}
}

// decide opens the session if necessary. The session refuses the prompt unless
// it is idle.
func (do PromptAgent) decide(d *decision, c Command) error {
	if d.s.Owner == "" && !d.s.Deleted {
		open := OpenSession{Agent: do.Agent.Name, Title: "Mission: " + do.Goal, Project: do.Project}
		if err := open.decide(d, c); err != nil {
			return err
		}
	}
	switch {
	case d.s.Deleted:
		return Errorf(CodeClosed, "This session was deleted.")
	case d.s.Owner != c.By:
		// Ids can be guessed, and the principal that opens a session can read
		// it.
		return Errorf(CodeClosed, "This session has another owner than the mission.")
	case d.s.Halted != "":
		return Errorf(CodeClosed, "This session was halted: %s.", d.s.Halted)
	case !d.s.quiet():
		return Errorf(CodeConflict, "The session is busy.")
	}
	d.emit(0, InputReceived{Content: do.content(), Request: fmt.Sprint(IdleNamed, do.Prompt), Agent: do.Agent,
		Busy: Queue, Command: c.ID, Synthetic: true, Mission: do.Mission})
	return nil
}

func (do PromptAgent) content() string {
	return "[Mission] " + do.Goal + "\n\n[Your standing instruction] " + do.Text
}
