package parley

import "time"

// In is the argument of Decide: a Command from outside or a Report from one of
// the session's own workers.
type In interface{ in() }

// A Command is a request to a session.
type Command struct {
	ID      CommandID // empty: a new id for each attempt
	Tenant  TenantID
	Session SessionID
	By      PrincipalID
	At      time.Time
	Via     string // how it arrived; for the audit
	Do      CommandBody
}

// Values of Command.Via.
const (
	ViaWebSocket = "websocket"
	ViaHTTP      = "http"
)

func (Command) in() {}

// A CommandBody is one of a closed set. Each type is in the file of its
// subject, together with its rules and its decide method.
type CommandBody interface {
	Rules() Rules
	// decide emits the events of the command, or returns why it is refused.
	decide(*decision, Command) error
}

// Rules are the conditions that must hold before a command reaches its session.
// The engine applies them to commands from outside. Decide applies Tenant, Opens
// and Halted to every command.
type Rules struct {
	Action Action // the permission that the sender needs
	Tenant bool   // the command goes to the tenant's session; other commands go to conversations
	Opens  bool   // the session need not exist
	Halted bool   // a halted session accepts it, too
	Starts bool   // it starts work, so it is refused while the server stops

	ServerOnly string // only the server sends it: the error message for clients
	Wrong      error  // why the command is invalid, whatever the session
	Limits     []limit

	Agents  []string // agents that must exist
	Project string   // project of these agents; empty: any project
	Answers bool     // it answers the agent that is running: the sender must be allowed to talk to that agent
	Says    []string // texts for the model, which are screened like a message
	Orders  []string // instructions for agents, refused even if the sentinel would only flag them
}

// A limit is the size of one part of a command, and its maximum.
type limit struct {
	what       string
	size, most int
}

// Check applies the rules that do not depend on the session.
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

// Limits that several commands share.
func requestLimit(request string) limit { return limit{"id of a request", len(request), MaxName} }
func agentLimit(name string) limit      { return limit{"name of an agent", len(name), MaxName} }
func nameLimit(name string) limit       { return limit{"name of a session", len(name), MaxNote} }
func noteLimit(note string) limit       { return limit{"note", len(note), MaxNote} }

// Check validates a command from outside, without looking at its session.
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
