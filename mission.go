package parley

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A mission is what the agents of a project work towards while nobody talks to
// them. It is a fact of the tenant: one is active per project, and a new one ends
// the one before. While it is, an agent that has an idle prompt and was idle for
// its interval is prompted, in a session of its own for this mission.
//
// A prompt is two facts of the tenant's session: AgentPrompted, which promises
// it, and PromptSettled, once the agent's session has taken or refused it. What
// is promised and not settled is delivered again after a crash, under the same
// command id, which has one effect.

// A MissionID is the Seq of its MissionSet.
type MissionID Seq

// A Mission that is active.
type Mission struct {
	ID      MissionID
	Project string `json:",omitempty"`
	Text    string
	Agents  []MissionAgent `json:",omitempty"`
	By      PrincipalID    // whose its sessions are
	Roles   []string       `json:",omitempty"` // of By when it was set: agents that do not talk to them are not prompted
	At      time.Time
	Idle    []Idle `json:",omitempty"` // agents that were prompted, by name
}

// An EndedMission is found in the log by its ID.
type EndedMission struct {
	ID      MissionID
	Project string `json:",omitempty"`
	At      time.Time
}

// An IdleChoice is what somebody wants of an agent that is idle. What is nil was
// not chosen; a blank prompt means none.
type IdleChoice struct {
	Prompt  *string `json:"idle_prompt,omitempty"`
	Seconds *int64  `json:"idle_interval_secs,omitempty"`
}

// A MissionAgent is what a mission says of an agent.
type MissionAgent struct {
	Agent string `json:"agent"`
	IdleChoice
}

// An Override is chosen for an agent in a project, whatever the mission.
type Override struct {
	Project string `json:",omitempty"`
	Agent   string
	IdleChoice
}

// An Idle is how far the prompting of an agent under a mission got.
type Idle struct {
	Agent  string
	Count  int       // prompts since somebody spoke to it in that session, or chose anew
	Last   time.Time // by the clock
	Prompt Seq       `json:",omitempty"` // its AgentPrompted that is not settled
}

const (
	MaxMission       = 16 << 10 // bytes of its text
	MaxMissionAgents = 32       // that it says something of
	MaxEndedMissions = 100      // that are listed; the log has all
	MaxIdlePrompt    = 4 << 10  // bytes
	MaxOverrides     = 100      // of a tenant
	MaxIdleInterval  = 30 * 24 * time.Hour
	// DefaultIdleInterval holds for agents of which nobody says anything else.
	DefaultIdleInterval = time.Minute
)

// IdleLimits are the operator's.
type IdleLimits struct {
	Interval time.Duration // the least; what is chosen shorter is made this
	Prompts  int           // to one agent under one mission with no word of a person in between
}

// DefaultIdleLimits hold where nothing else is said.
func DefaultIdleLimits() IdleLimits { return IdleLimits{30 * time.Second, 10} }

// Check says what is wrong with a choice.
func (c IdleChoice) Check() error {
	switch {
	case c.Prompt != nil && len(*c.Prompt) > MaxIdlePrompt:
		return Errorf(CodeTooLarge, "idle_prompt is longer than %d bytes.", MaxIdlePrompt)
	case c.Seconds != nil && (*c.Seconds < 1 || *c.Seconds > int64(MaxIdleInterval/time.Second)):
		return Errorf(CodeInvalid, "idle_interval_secs must be a whole number from 1 to %d.", int64(MaxIdleInterval/time.Second))
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

// Prompting is what an agent is told when it is idle, and after how long. The
// mission's word counts most, then the override, then the agent's definition. A
// blank text: it is not prompted.
func (s State) Prompting(m Mission, a Agent) (text string, interval time.Duration) {
	var c IdleChoice
	if i := slices.IndexFunc(m.Agents, func(c MissionAgent) bool { return c.Agent == a.Name }); i >= 0 {
		c = m.Agents[i].IdleChoice
	}
	c = c.over(s.Override(m.Project, a.Name).IdleChoice)
	if a.IdlePrompt != "" {
		c = c.over(IdleChoice{Prompt: &a.IdlePrompt})
	}
	if a.IdleSeconds > 0 {
		c = c.over(IdleChoice{Seconds: &a.IdleSeconds})
	}
	if c.Prompt != nil {
		text = *c.Prompt
	}
	if interval = DefaultIdleInterval; c.Seconds != nil {
		interval = time.Duration(*c.Seconds) * time.Second
	}
	return text, interval
}

// Override is what was chosen for an agent, of the state of a tenant's session.
func (s State) Override(project, agent string) Override {
	if i, there := s.override(project, agent); there {
		return s.Overrides[i]
	}
	return Override{Project: project, Agent: agent}
}

func (s State) override(project, agent string) (int, bool) {
	return slices.BinarySearchFunc(s.Overrides, Override{Project: project, Agent: agent}, func(a, b Override) int {
		if order := strings.Compare(a.Project, b.Project); order != 0 {
			return order
		}
		return strings.Compare(a.Agent, b.Agent)
	})
}

// Mission is the active one of a project, of the state of a tenant's session.
func (s State) Mission(project string) *Mission {
	if i := slices.IndexFunc(s.Missions, func(m Mission) bool { return m.Project == project }); i >= 0 {
		return &s.Missions[i]
	}
	return nil
}

// ActiveMission is the one of an id, if it is active.
func (s State) ActiveMission(id MissionID) *Mission {
	if i := slices.IndexFunc(s.Missions, func(m Mission) bool { return m.ID == id }); i >= 0 {
		return &s.Missions[i]
	}
	return nil
}

// Prompted is how far the prompting of an agent got.
func (m Mission) Prompted(agent string) Idle {
	if i, there := m.prompted(agent); there {
		return m.Idle[i]
	}
	return Idle{Agent: agent}
}

func (m Mission) prompted(agent string) (int, bool) {
	return slices.BinarySearchFunc(m.Idle, agent, func(i Idle, agent string) int { return strings.Compare(i.Agent, agent) })
}

// IdleSession is where an agent is prompted under a mission. It follows from
// both, so that whoever prompts again after a crash does it there.
func IdleSession(mission MissionID, agent string) SessionID {
	sum := sha256.Sum256(fmt.Appendf(nil, "idle prompts of mission %d for %s", mission, agent))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80 // a UUID of version 4, as all sessions are
	return SessionID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// IdleNamed begins the names of inputs that idle prompts are.
const IdleNamed = "timer_idle_"

func (d *decision) setMission(do SetMission) error {
	text := CleanText(do.Text)
	switch {
	case IsBlank(text):
		return Errorf(CodeEmpty, "The text of the mission is missing.")
	case len(text) > MaxMission:
		return Errorf(CodeTooLarge, "The text of the mission is longer than %d bytes.", MaxMission)
	case len(do.Agents) > MaxMissionAgents:
		return Errorf(CodeTooLarge, "A mission says something of at most %d agents.", MaxMissionAgents)
	}
	set := MissionSet{Project: do.Project, Text: text, Roles: append([]string(nil), do.Roles...)}
	for _, a := range do.Agents {
		if err := a.Check(); err != nil {
			return err
		}
		if !ValidAgentName(a.Agent) {
			return Errorf(CodeInvalid, "%.63q is no name of an agent.", a.Agent)
		}
		if slices.ContainsFunc(set.Agents, func(b MissionAgent) bool { return b.Agent == a.Agent }) {
			return Errorf(CodeInvalid, "agents names %s twice.", a.Agent)
		}
		set.Agents = append(set.Agents, MissionAgent{a.Agent, a.IdleChoice.clean()})
	}
	d.emitTenant(set)
	return nil
}

func (d *decision) clearMission(do ClearMission) error {
	if m := d.s.Mission(do.Project); m != nil {
		d.emitTenant(MissionCleared{Mission: m.ID, Project: m.Project})
	}
	return nil
}

func (d *decision) setOverride(do SetOverride) error {
	_, there := d.s.override(do.Project, do.Agent)
	choice := do.IdleChoice.clean()
	if err := choice.Check(); err != nil {
		return err
	}
	switch {
	case !ValidAgentName(do.Agent):
		return Errorf(CodeInvalid, "%.63q is no name of an agent.", do.Agent)
	case choice.none() && !there:
		return nil
	case !there && len(d.s.Overrides) >= MaxOverrides:
		return Errorf(CodeLimited, "%d agents have overrides already; take one back first.", MaxOverrides)
	}
	d.emitTenant(OverrideSet{Project: do.Project, Agent: do.Agent, IdleChoice: choice})
	return nil
}

// foundIdle promises an agent its prompt, unless what led to it is no longer so.
func (d *decision) foundIdle(b AgentFoundIdle) {
	m := d.s.ActiveMission(b.Mission)
	if m == nil || d.s.IsStopped(b.Agent) {
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

// promptDelivered settles a prompt.
func (d *decision) promptDelivered(b PromptDelivered) {
	for _, m := range d.s.Missions {
		for _, idle := range m.Idle {
			if idle.Prompt == b.Prompt && b.Prompt != 0 {
				d.emit(0, PromptSettled{Mission: m.ID, Agent: idle.Agent, Prompt: b.Prompt, Code: b.Code, Message: b.Message})
				return
			}
		}
	}
}

// prompt is what becomes of an idle prompt in the session it is for. It opens
// itself, and takes none while something else goes on.
func (d *decision) prompt(c Command, do PromptAgent) error {
	if d.s.Owner == "" && !d.s.Deleted {
		if err := d.open(c, OpenSession{Agent: do.Agent.Name, Title: "Mission: " + do.Goal}); err != nil {
			return err
		}
	}
	switch {
	case d.s.Deleted:
		return Errorf(CodeClosed, "This session was deleted.")
	case d.s.Owner != c.By:
		// Ids can be guessed, and whoever opens a session reads it.
		return Errorf(CodeClosed, "This session belongs to somebody else than the mission.")
	case d.s.Halted != "":
		return Errorf(CodeClosed, "This session was halted: %s.", d.s.Halted)
	case !d.s.quiet():
		return Errorf(CodeConflict, "Something else goes on in the session.")
	}
	d.emit(0, InputReceived{Content: do.content(), Request: fmt.Sprint(IdleNamed, do.Prompt), Agent: do.Agent, Busy: Queue, Command: c.ID,
		Synthetic: true, Mission: do.Mission})
	return nil
}

func (do PromptAgent) content() string {
	return "[Mission] " + do.Goal + "\n\n[Your standing instruction] " + do.Text
}

// foldMission folds facts of missions.
func (s State) foldMission(e Event) State {
	switch b := e.Body.(type) {
	case MissionSet:
		s = s.endMission(b.Project, e.At)
		s.Missions = append(slices.Clip(s.Missions), Mission{ID: MissionID(e.Seq), Project: b.Project, Text: b.Text, Agents: b.Agents, By: e.By, Roles: b.Roles, At: e.At})
	case MissionCleared:
		s = s.endMission(b.Project, e.At)
	case OverrideSet:
		i, there := s.override(b.Project, b.Agent)
		list := slices.Clone(s.Overrides)
		if there {
			list = slices.Delete(list, i, i+1)
		}
		if !b.IdleChoice.none() {
			list = slices.Insert(list, i, Override{b.Project, b.Agent, b.IdleChoice})
		}
		if s.Overrides = list; len(list) == 0 {
			s.Overrides = nil
		}
		if m := s.Mission(b.Project); m != nil { // somebody takes care of it
			s = s.withIdle(m.ID, b.Agent, func(i *Idle) { i.Count = 0 })
		}
	case AgentPrompted:
		return s.withIdle(b.Mission, b.Agent, func(i *Idle) { i.Count, i.Last, i.Prompt = b.Number, b.At, e.Seq })
	case PromptSettled:
		return s.withIdle(b.Mission, b.Agent, func(i *Idle) { i.Prompt = 0 })
	}
	s.Watched = e.Seq
	return s
}

func (s State) endMission(project string, at time.Time) State {
	m := s.Mission(project)
	if m == nil {
		return s
	}
	s.Ended = append(slices.Clip(s.Ended), EndedMission{m.ID, project, at})
	s.Ended = s.Ended[max(len(s.Ended)-MaxEndedMissions, 0):]
	if s.Missions = slices.DeleteFunc(slices.Clone(s.Missions), func(m Mission) bool { return m.Project == project }); len(s.Missions) == 0 {
		s.Missions = nil
	}
	return s
}

// withIdle changes how far the prompting of an agent got.
func (s State) withIdle(mission MissionID, agent string, change func(*Idle)) State {
	s.Missions = slices.Clone(s.Missions)
	m := s.ActiveMission(mission)
	if m == nil {
		return s
	}
	m.Idle = slices.Clone(m.Idle)
	i, there := m.prompted(agent)
	if !there {
		m.Idle = slices.Insert(m.Idle, i, Idle{Agent: agent})
	}
	change(&m.Idle[i])
	return s
}

// missionSteps: idle agents are waited for, and what was promised is delivered.
func (s State) missionSteps() (steps []Step) {
	for _, m := range s.Missions {
		steps = append(steps, WatchMission{m.ID, s.Watched})
		for _, idle := range m.Idle {
			if idle.Prompt != 0 {
				steps = append(steps, DeliverPrompt{idle.Prompt})
			}
		}
	}
	return steps
}

// An Idler is an agent that may be prompted when it was idle for its interval.
type Idler struct {
	Agent    string
	Interval time.Duration
	Since    time.Time // when something was last heard of it; zero: never
	// Held: it is busy, or cannot be asked. It is not due, and cannot be before
	// another interval has passed.
	Held bool
}

// A Vigil waits for agents to be idle for long enough. It goes by what it is told
// of them and remembers only when it meant to come back, for the case that the
// clock is set.
type Vigil map[string]appointment

type appointment struct {
	since    time.Time
	interval time.Duration
	at       time.Time
}

// Look says which agents are due, each once per interval, and when to look again;
// zero: when other agents are to be looked at.
func (v Vigil) Look(list []Idler, now time.Time) (due []string, next time.Time) {
	names := map[string]bool{}
	for _, i := range list {
		names[i.Agent] = true
		meant, ok := v[i.Agent]
		switch {
		case i.Held:
			meant = appointment{i.Since, i.Interval, now.Add(i.Interval)}
		case !ok || !meant.since.Equal(i.Since) || meant.interval != i.Interval:
			meant = appointment{i.Since, i.Interval, i.Since.Add(i.Interval)}
		}
		// After a clock was set back nobody waits for it to be that late again.
		if latest := now.Add(i.Interval); meant.at.After(latest) {
			meant.at = latest
		}
		if !i.Held && !now.Before(meant.at) {
			due = append(due, i.Agent)
			meant.at = now.Add(i.Interval) // unless something is heard of it before
		}
		if v[i.Agent] = meant; next.IsZero() || meant.at.Before(next) {
			next = meant.at
		}
	}
	for name := range v {
		if !names[name] {
			delete(v, name)
		}
	}
	return due, next
}

// A MissionInfo is what lists of missions show.
type MissionInfo struct {
	ID      MissionID      `json:"id"`
	Project string         `json:"project,omitempty"`
	Text    string         `json:"text"`
	Agents  []MissionAgent `json:"agents"`
	By      PrincipalID    `json:"by"`
	At      time.Time      `json:"created_at"`
	Ended   time.Time      `json:"ended_at,omitzero"` // zero: it is active
	// Prompted are agents that were, while it is active.
	Prompted []PromptedAgent `json:"prompted,omitempty"`
}

// A PromptedAgent says where an agent is prompted, how often it was since a person
// spoke, and when it was last.
type PromptedAgent struct {
	Agent   string    `json:"agent"`
	Session SessionID `json:"session"`
	Count   int       `json:"count"`
	Last    time.Time `json:"last_at"`
}
