package port

import (
	"context"
	"crypto/sha256"
	"time"

	"parley"
)

// A Principal is who asks: a user or a service, of one tenant.
type Principal struct {
	ID     parley.PrincipalID
	Tenant parley.TenantID
	Roles  []parley.UserRole
}

// An Identity is a principal and how long it is known to be that.
type Identity struct {
	Principal
	Issued  time.Time // zero: unknown
	Expires time.Time // zero: never
	TokenID string    // jti; may be empty
	Ticket  bool      // came by a ticket
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

// An Authorizer says who may do what. It returns nil to permit, CodeForbidden,
// or CodeNotFound where even existence is not to be known.
type Authorizer interface {
	Permit(who Principal, action parley.Action, on Resource) error
}

// A Resource is what an action is about. Its Kind says which fields count; a
// resource without a kind is denied.
type Resource struct {
	Kind    ResourceKind
	Tenant  parley.TenantID
	Session parley.SessionID   // of OneSession; of OwnSessions, if it is about one
	Owner   parley.PrincipalID // of OneSession
	Agent   string             // of OneAgent
	Allow   *parley.AgentAllow // of OneAgent
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

// A TicketStore keeps tickets until they are taken. It may forget them once they
// have expired, and must not before.
type TicketStore interface {
	// PutTicket keeps a ticket, which expires within MaxTicketLife. If too many
	// of its principal wait to be used it is refused with CodeLimited.
	PutTicket(ctx context.Context, hash TicketHash, claim TicketClaim, expires time.Time) error
	// TakeTicket removes a ticket and returns it, in one step: of any number
	// of calls for one ticket, on any number of servers, one gets it.
	TakeTicket(ctx context.Context, hash TicketHash) (TicketClaim, bool, error)
}

// A Revocation says that tokens of a principal issued at a time or before it are
// no longer good: the principal was put out, or its roles changed and the
// tokens tell the old ones.
type Revocation struct {
	Tenant    parley.TenantID
	Principal parley.PrincipalID
	Before    time.Time
	// SparesAdmins: tokens with the role org_admin stay good. The person who
	// revokes has a lower role.
	SparesAdmins bool
}

// A RevocationStore keeps revocations across restarts, and lets several servers
// know of them.
type RevocationStore interface {
	// Append keeps the Revocation of a batch, with its audit record.
	Append(context.Context, Batch) (Appended, error)
	// Revocations lists those whose Before is after a time: the latest of a
	// principal, and the latest that spares administrators.
	Revocations(ctx context.Context, after time.Time) ([]Revocation, error)
}

// A UserContext is what a user wants an agent to know in every session of theirs.
type UserContext struct {
	Agent string
	User  parley.PrincipalID
	Text  string
	At    time.Time // when it was given
}
