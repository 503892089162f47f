package parley

import (
	"context"
	"time"
)

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

// A RevocationStore keeps revocations across restarts, and lets several servers
// know of them.
type RevocationStore interface {
	// Append keeps the Revocation of a batch, with its audit record.
	Append(context.Context, Batch) (Appended, error)
	// Revocations lists those whose Before is after a time: the latest of a
	// principal, and the latest that spares administrators.
	Revocations(ctx context.Context, after time.Time) ([]Revocation, error)
}

// An Authorizer says who may do what. It returns nil to permit, CodeForbidden,
// or CodeNotFound where even existence is not to be known.
type Authorizer interface {
	Permit(who Principal, action Action, on Resource) error
}
