package parley

import "time"

// In is what enters a session: a Command from outside or a Report from one of
// the session's own workers.
type In interface{ in() }

// A Command is what somebody wants of a session.
type Command struct {
	ID      CommandID // empty: new each time
	Tenant  TenantID
	Session SessionID
	By      PrincipalID
	At      time.Time
	Via     string // how it came; for the record
	Do      CommandBody
}

// Ways for a command to come.
const (
	ViaWebSocket = "websocket"
	ViaHTTP      = "http"
)

func (Command) in() {}

// A CommandBody is one of a closed set. Each type stands in the file of its
// subject, together with its rules and with what it comes to.
type CommandBody interface {
	Rules() Rules
	// decide records what the command comes to, or says why it is refused.
	decide(*decision, Command) error
}

// Rules are what must hold before a command reaches its session. The engine
// applies them to commands from outside. Decide applies Tenant, Opens and Halted
// to every command.
type Rules struct {
	Action Action // the permission that the sender needs
	Tenant bool   // it goes to the tenant's session; the others go to conversations
	Opens  bool   // the session need not exist
	Halted bool   // a halted session takes it, too
	Starts bool   // it starts work, so nobody may send it while the server stops

	ServerOnly string // only the server sends it: what others are told
	Wrong      error  // what is wrong with the command by itself
	Limits     []limit

	Agents  []string // that must exist
	Project string   // in which they must; empty: in any
	Answers bool     // it answers the agent that is running: the sender must be allowed to talk to that agent
	Says    []string // texts for the model, which are screened like a message
	Orders  []string // texts for every prompt of agents, which are refused even if they would only be flagged
}

// A limit is the size of one part of a command, and the most it may be.
type limit struct {
	what       string
	size, most int
}

// Check applies the rules that need no knowledge of the session.
func (r Rules) Check() error {
	switch {
	case r.ServerOnly != "":
		return Errorf(CodeInvalid, "%s", r.ServerOnly)
	case r.Wrong != nil:
		return r.Wrong
	}
	for _, l := range r.Limits {
		if l.size > l.most {
			return Errorf(CodeTooLarge, "The %s is longer than %d bytes.", l.what, l.most)
		}
	}
	return nil
}

// Limits that several commands have.
func requestLimit(request string) limit { return limit{"id of a request", len(request), MaxName} }
func agentLimit(name string) limit      { return limit{"name of an agent", len(name), MaxName} }
func nameLimit(name string) limit       { return limit{"name of a session", len(name), MaxNote} }
func noteLimit(note string) limit       { return limit{"note", len(note), MaxNote} }

// Check says what is wrong with a command from outside, before anybody looks at
// its session.
func (c Command) Check() error {
	switch {
	case c.Do == nil:
		return Errorf(CodeInvalid, "The request has no command.")
	case !c.Tenant.Valid() || c.By == "":
		return Errorf(CodeForbidden, "This request names no user or no tenant.")
	case !c.Session.Valid():
		return Errorf(CodeInvalid, "A session's id is a UUID of version 4.")
	}
	rules := c.Do.Rules()
	rules.Limits = append([]limit{requestLimit(string(c.ID))}, rules.Limits...)
	return rules.Check()
}
