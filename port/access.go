package port

import (
	"context"
	"crypto/sha256"
	"time"

	"parley"
)

// A Principal is a user or a service, of one tenant.
type Principal struct {
	ID     parley.PrincipalID
	Tenant parley.TenantID
	Roles  []parley.UserRole
}

// An Identity is a principal, and until when it is proven.
type Identity struct {
	Principal
	Issued  time.Time // zero: unknown
	Expires time.Time // zero: never
	TokenID string    // jti; may be empty
	Ticket  bool      // proven by a ticket
}

// A Visit is an admitted connection.
type Visit struct {
	Who Principal
	// Watch derives the context of everything that the connection does. The
	// context ends, with an *Error as its cause, when the visitor's identity is
	// no longer valid.
	Watch func(context.Context) (context.Context, context.CancelFunc)
	// Message reports whether the visitor may send another message now. Only
	// one goroutine may call it.
	Message func() error
	// Leave must be called when the connection has ended.
	Leave func()
}

// An Authorizer decides whether a principal may perform an action. It returns
// nil to permit, CodeForbidden, or CodeNotFound if the principal must not even
// know that the resource exists.
type Authorizer interface {
	Permit(who Principal, action parley.Action, on Resource) error
}

// A Resource is the object of an action. Its Kind determines which fields
// count. A resource without a kind is denied.
type Resource struct {
	Kind    ResourceKind
	Tenant  parley.TenantID
	Session parley.SessionID   // of OneSession; of OwnSessions, if the action is about one session
	Owner   parley.PrincipalID // of OneSession
	Agent   string             // of OneAgent
	Allow   *parley.AgentAllow // of OneAgent
}

type ResourceKind int

const (
	_            ResourceKind = iota
	OneSession                // an existing session, which belongs to Owner
	OwnSessions               // the principal's own sessions, including one that it is about to open
	EverySession              // all sessions of the tenant, of every owner
	OneAgent                  // an agent, within its Allow
	WholeTenant               // data of the tenant that has no single owner: the audit, users, departments
)

// A TicketHash is the stored form of a ticket. It cannot be used as a ticket.
type TicketHash [sha256.Size]byte

// A TicketClaim is the meaning of a ticket: the identity that got it, its agent
// (empty: any), and the origin of the pages that may use it. With an empty
// origin, no page may use it, only clients that are not browsers.
type TicketClaim struct {
	Identity
	Agent  string
	Origin string
	Until  time.Time
}

// A TicketStore keeps tickets until they are used. It may drop them once they
// have expired, and not earlier.
type TicketStore interface {
	// PutTicket stores a ticket, which expires within MaxTicketLife. If the
	// principal has too many unused tickets, it returns CodeLimited.
	PutTicket(ctx context.Context, hash TicketHash, claim TicketClaim, expires time.Time) error
	// TakeTicket removes a ticket and returns it, in one step. Of any number of
	// calls for one ticket, on any number of servers, exactly one gets it.
	TakeTicket(ctx context.Context, hash TicketHash) (TicketClaim, bool, error)
}

// A Revocation invalidates the tokens of a principal that were issued at a time
// or earlier. The principal was removed, or its roles changed and the tokens
// contain the old roles.
type Revocation struct {
	Tenant    parley.TenantID
	Principal parley.PrincipalID
	Before    time.Time
	// SparesAdmins: tokens with the role org_admin stay valid, because the
	// person who revokes has a lower role.
	SparesAdmins bool
}

// A RevocationStore keeps revocations across restarts, and shares them between
// servers.
type RevocationStore interface {
	// Append stores the Revocation of a batch, with its audit record.
	Append(context.Context, Batch) (Appended, error)
	// Revocations lists the revocations with a Before after the given time: for
	// each principal the latest one, and the latest one that spares
	// administrators.
	Revocations(ctx context.Context, after time.Time) ([]Revocation, error)
}

// A UserContext is text that a user wants an agent to know in every session of
// that user.
type UserContext struct {
	Agent string
	User  parley.PrincipalID
	Text  string
	At    time.Time // when the user set it
}
