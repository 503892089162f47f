package parley

import (
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"time"
)

// A Principal is who asks: a user or a service, of one tenant.
type Principal struct {
	ID     PrincipalID
	Tenant TenantID
	Roles  []UserRole
}

// A UserRole is a set of permissions. Tokens name roles. A role that is none of
// these permits nothing.
type UserRole string

const (
	RoleLocal        UserRole = "local"     // the one principal of local mode; no token can name it
	RoleOrgAdmin     UserRole = "org_admin" // everything within its tenant
	RoleDeptHead     UserRole = "dept_head"
	RoleStandardUser UserRole = "standard_user"
	RoleReadOnly     UserRole = "read_only"
)

// ParseUserRole reads a role that a token can name. The error lists these roles.
func ParseUserRole(text string) (UserRole, error) {
	switch role := UserRole(text); role {
	case RoleOrgAdmin, RoleDeptHead, RoleStandardUser, RoleReadOnly:
		return role, nil
	}
	return "", fmt.Errorf("%.80s is not a role; use %s, %s, %s, %s", text,
		RoleOrgAdmin, RoleDeptHead, RoleStandardUser, RoleReadOnly)
}

// A Visit is a connection that was let in.
type Visit struct {
	Who Principal
	// Watch makes the context of everything the connection does. It ends, with
	// an *Error in its cause, when the visitor is no longer who they were.
	Watch func(context.Context) (context.Context, context.CancelFunc)
	// Message says whether another message may be sent now. It is for one
	// goroutine.
	Message func() error
	// Leave must be called when the connection has ended.
	Leave func()
}

// An Identity is a principal and how long it is known to be that.
type Identity struct {
	Principal
	Issued  time.Time // zero: unknown
	Expires time.Time // zero: never
	TokenID string    // jti; may be empty
	Ticket  bool      // came by a ticket
}

// A TicketHash is what is kept of a ticket. Who reads it cannot use it.
type TicketHash [sha256.Size]byte

// A TicketClaim is what a ticket stands for: who it was given to, for which
// agent (empty: any) and for pages of which origin (empty: none, but whoever is
// not a browser).
type TicketClaim struct {
	Identity
	Agent  string
	Origin string
	Until  time.Time
}

// A Revocation says that tokens of a principal issued at a time or before it are
// no longer good: the principal was put out, or its roles changed and the
// tokens tell the old ones.
type Revocation struct {
	Tenant    TenantID
	Principal PrincipalID
	Before    time.Time
	// SparesAdmins: tokens with the role org_admin stay good. The person who
	// revokes has a lower role.
	SparesAdmins bool
}

// An Action is what a principal wants to do; an Authorizer knows who may.
type Action string

const (
	ActRead            Action = "agents:read"    // follow, list, look
	ActMessage         Action = "agents:message" // talk to an agent, answer it, stop it
	ActAdmin           Action = "agents:write"   // halt, reopen; implies agents:message
	ActSettings        Action = "tenant:write"   // change what holds for everybody of the tenant
	ActReadAudit       Action = "audit:read"
	ActReadUsers       Action = "users:read"
	ActWriteUsers      Action = "users:write"
	ActReadDepartments Action = "departments:read"
)

// A Resource is what an action is about. Its Kind says which fields count; a
// resource without a kind is denied.
type Resource struct {
	Kind    ResourceKind
	Tenant  TenantID
	Session SessionID   // of OneSession; of OwnSessions, if it is about one
	Owner   PrincipalID // of OneSession
	Agent   string      // of OneAgent
	Allow   *AgentAllow // of OneAgent
}

type ResourceKind int

const (
	_            ResourceKind = iota
	OneSession                // exists, and is its Owner's
	OwnSessions               // whatever is the principal's own: sessions it has, and one it is about to open
	EverySession              // all of the tenant, whoever owns them
	OneAgent                  // somebody to talk to, within its Allow
	WholeTenant               // what belongs to nobody in particular: the audit, users, departments
)

var (
	tenantPattern  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	sessionPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

func (t TenantID) Valid() bool { return tenantPattern.MatchString(string(t)) }

// Valid reports whether the id is a UUID of version 4 in lower case.
func (s SessionID) Valid() bool { return sessionPattern.MatchString(string(s)) }

// A UserContext is what a user wants an agent to know in every session of theirs.
type UserContext struct {
	Agent string
	User  PrincipalID
	Text  string
	At    time.Time // when it was given
}
