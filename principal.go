package parley

import (
	"regexp"
	"strconv"
	"strings"
)

// A Principal is who asks: a user or a service, of one tenant.
type Principal struct {
	ID     PrincipalID
	Tenant TenantID
	Roles  []string
}

// An Action is what a principal wants to do; an Authorizer knows who may.
type Action string

const (
	ActRead    Action = "agents:read"    // follow, list, look
	ActMessage Action = "agents:message" // talk to an agent, answer it, stop it
	ActAdmin   Action = "agents:write"   // halt, reopen
)

// A Resource is what an action is about. Owner is empty while a session does
// not exist.
type Resource struct {
	Tenant  TenantID
	Session SessionID
	Owner   PrincipalID
}

var (
	tenantPattern  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	sessionPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

func (t TenantID) Valid() bool { return tenantPattern.MatchString(string(t)) }

// Valid reports whether the id is a UUID of version 4 in lower case.
func (s SessionID) Valid() bool { return sessionPattern.MatchString(string(s)) }

// A Ref names something inside a session to the world outside: the session's id,
// a dot and the seq.
func Ref(session SessionID, seq Seq) string {
	return string(session) + "." + strconv.FormatInt(int64(seq), 10)
}

// ParseRef reads what Ref wrote.
func ParseRef(ref string) (SessionID, Seq, bool) {
	session, number, _ := strings.Cut(ref, ".")
	seq, err := strconv.ParseInt(number, 10, 64)
	ok := err == nil && seq > 0 && SessionID(session).Valid() && Ref(SessionID(session), Seq(seq)) == ref
	return SessionID(session), Seq(seq), ok
}
