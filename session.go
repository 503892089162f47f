package parley

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
)

// A session is opened once, by its first command. It may be renamed, halted and
// reopened, and ends with its deletion.
type (
	SessionOpened struct {
		Owner     PrincipalID `json:"owner"`
		Agent     string      `json:"agent,omitempty"`
		Title     string      `json:"title,omitempty"`
		Name      string      `json:"name,omitempty"` // the client's name for the session, if it is not the id
		Transient bool        `json:"transient,omitempty"`
		Project   string      `json:"project,omitempty"` // root of its project; empty: the tenant's first, if any
		Parent    *Origin     `json:"parent,omitempty"`  // of a sub-agent's session
		Hooks     []HookRef   `json:"hooks,omitempty"`   // of the sessions above, to call if a person is needed
		Off       []string    `json:"off,omitempty"`     // MCP servers that the session does not use
	}
	SessionRenamed struct {
		Title string `json:"title"`
		// Agent: its model wrote the title, at this cost. Empty: a person wrote
		// it.
		Agent string `json:"agent,omitempty"`
		Usage Usage  `json:"usage,omitzero"`
	}
	SessionHalted struct {
		Reason string `json:"reason"`
	}
	SessionReopened struct{}
	SessionDeleted  struct{}
)

func (b SessionOpened) fold(s State, e Event) State {
	s.Owner, s.Agent, s.Title, s.Transient, s.OpenedAt = b.Owner, b.Agent, b.Title, b.Transient, e.At
	s.Root, s.Parent, s.Above, s.Project, s.Off = e.Root, b.Parent, b.Hooks, b.Project, b.Off
	return s
}

func (b SessionRenamed) fold(s State, _ Event) State {
	s.Title, s.Unnamed, s.Titling = b.Title, false, nil
	return s
}

func (b SessionHalted) fold(s State, _ Event) State {
	s.Halted, s.Evaluate, s.Titling = b.Reason, nil, nil
	return s
}

func (SessionReopened) fold(s State, _ Event) State {
	s.Halted = ""
	return s
}

func (SessionDeleted) fold(s State, _ Event) State {
	s.Deleted, s.Evaluate, s.Titling, s.Unreported, s.Undoing = true, nil, nil, 0, 0
	return s
}

func (SessionDeleted) rowOf(Event) rowChange { return RowsGone{} }

var errNoSession = Errorf(CodeNotFound, "There is no such session.")

// isOpen returns the reason why a session accepts no commands.
func (d *decision) isOpen(halted bool) error {
	switch {
	case d.s.Owner == "" || d.s.Deleted:
		return errNoSession
	case d.s.Halted != "" && !halted:
		return Errorf(CodeClosed, "This session was halted: %s.", d.s.Halted)
	}
	return nil
}

// OpenSession opens the session, or does nothing if it is open already.
type OpenSession struct {
	Agent     string
	Title     string
	Name      string `json:",omitempty"` // the client's name for the session, if it is not the id
	Transient bool
	Project   string `json:",omitempty"` // root or id; the engine replaces an id by the root
	// Of a sub-agent's session; only the engine sets these.
	Parent *Origin   `json:",omitempty"`
	Root   SessionID `json:",omitempty"`
	Hooks  []HookRef `json:",omitempty"`
	Off    []string  `json:",omitempty"`
}

func (do OpenSession) Rules() Rules {
	r := Rules{Action: ActMessage, Opens: true,
		Limits: []limit{{"title", len(do.Title), MaxNote}, nameLimit(do.Name), agentLimit(do.Agent)}}
	if do.Parent != nil || do.Root != "" {
		r.Wrong = Errorf(CodeInvalid, "Only an agent starts sub-agents.")
	}
	return r
}

func (do OpenSession) decide(d *decision, c Command) error {
	switch {
	case d.s.Deleted:
		return Errorf(CodeClosed, "This session was deleted.")
	case d.s.Owner != "":
		return nil
	case c.By == "":
		return Errorf(CodeForbidden, "A session needs an owner.")
	case d.s.ID.named() && d.s.ID != NamedSession(d.s.Tenant, c.By, do.Name):
		return errNoSession
	}
	if do.Parent != nil {
		d.s.Root = do.Root
	}
	d.emit(0, SessionOpened{Owner: c.By, Agent: do.Agent, Title: titleOf(CleanText(do.Title)), Name: CleanText(do.Name),
		Transient: do.Transient, Project: do.Project, Parent: do.Parent, Hooks: do.Hooks, Off: do.Off})
	return nil
}

type RenameSession struct{ Title string }

func (do RenameSession) Rules() Rules {
	return Rules{Action: ActMessage, Halted: true, Limits: []limit{{"title", len(do.Title), MaxNote}}}
}

func (do RenameSession) decide(d *decision, _ Command) error {
	title := CleanText(do.Title)
	if IsBlank(title) || len([]rune(title)) > maxTitleRunes {
		return Errorf(CodeInvalid, "A title has 1 to %d characters.", maxTitleRunes)
	}
	if title != d.s.Title || d.s.Titling != nil {
		d.emit(0, SessionRenamed{Title: title})
	}
	return nil
}

// HaltSession ends everything that is under way, until a ReopenSession.
type HaltSession struct{ Reason string }

func (do HaltSession) Rules() Rules {
	return Rules{Action: ActAdmin, Limits: []limit{{"reason", len(do.Reason), MaxNote}}}
}

func (do HaltSession) decide(d *decision, _ Command) error {
	reason := CleanText(do.Reason)
	if IsBlank(reason) {
		reason = "by an operator"
	}
	d.halt(reason)
	return nil
}

type ReopenSession struct{}

func (ReopenSession) Rules() Rules { return Rules{Action: ActAdmin, Halted: true} }

func (ReopenSession) decide(d *decision, _ Command) error {
	if d.s.Halted != "" {
		d.emit(0, SessionReopened{})
	}
	return nil
}

type DeleteSession struct{}

func (DeleteSession) Rules() Rules { return Rules{Action: ActMessage, Halted: true} }

func (DeleteSession) decide(d *decision, _ Command) error {
	d.delete()
	return nil
}

// halt ends everything that is under way; only a person can reopen the session.
func (d *decision) halt(reason string) {
	d.endRun(Halted, CodeClosed, "The session was halted: "+reason+".")
	d.withdrawAll(WithdrawnByHalt)
	d.cancelTimers(timerByHalt, func(timerState) bool { return true })
	d.stopCompacting()
	d.emit(0, SessionHalted{reason})
}

// delete marks the session as deleted, and ends everything in it.
func (d *decision) delete() {
	d.endRun(Cancelled, "", "")
	d.withdrawAll(WithdrawnByDelete)
	d.cancelTimers(timerByDelete, func(timerState) bool { return true })
	d.stopCompacting()
	d.emit(0, SessionDeleted{})
}

// titleOf returns the first line of a text, shortened to maxTitleRunes.
func titleOf(content string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(content), "\n")
	n, cut := 0, 0
	for i := range line {
		if n++; n == maxTitleRunes {
			cut = i
		}
		if n > maxTitleRunes {
			return string([]rune(line[:cut])) + "…" // invalid UTF-8 becomes valid
		}
	}
	return strings.Clone(line) // so that the title does not hold all of a long message
}

// expires returns when a session is deleted automatically. Only transient
// sessions without open work or timers are. Transient sessions of sub-agents
// stay with their conversation.
func (s State) expires() (at time.Time, does bool) {
	does = s.Transient && s.Root == s.ID && s.quiet() && len(s.Timers) == 0
	return s.LastAt.Add(keepTransient), does
}

// derivedSession returns an id that depends only on a text. It is a UUID of
// version 4, as all ids of sessions are.
func derivedSession(format string, args ...any) SessionID {
	sum := sha256.Sum256(fmt.Appendf(nil, format, args...))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	return SessionID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}
