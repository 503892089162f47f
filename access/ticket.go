package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"parley"
	"parley/port"
)

// TicketLife is how long a ticket can be used. It is well below
// parley.MaxTicketLife.
const TicketLife = 30 * time.Second

// The types that stores see are defined in port.
type (
	TicketHash  = port.TicketHash
	TicketClaim = port.TicketClaim
	TicketStore = port.TicketStore
)

// Tickets issues tickets. A ticket stands for a token once, in the address of a
// WebSocket, where a token would end up in logs.
type Tickets struct {
	store TicketStore
	now   func() time.Time
}

func NewTickets(store TicketStore, now func() time.Time) *Tickets { return &Tickets{store, now} }

// Issue issues a ticket to an identity that was proven with a token. A ticket
// cannot be used to get another ticket, and does not outlive the token.
func (t *Tickets) Issue(ctx context.Context, id Identity, agent, origin string) (ticket string, expires time.Time,
	err error) {
	if id.Ticket {
		return "", time.Time{}, parley.Errorf(parley.CodeForbidden,
			"A request with a ticket cannot get another ticket; send a token.")
	}
	expires = t.now().Add(TicketLife)
	if !id.Expires.IsZero() && id.Expires.Before(expires) {
		expires = id.Expires
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	ticket = base64.RawURLEncoding.EncodeToString(secret[:])
	claim := TicketClaim{Identity: id, Agent: agent, Origin: origin, Until: expires}
	if err := t.store.PutTicket(ctx, hashTicket(ticket), claim, expires); err != nil {
		return "", time.Time{}, err
	}
	return ticket, expires, nil
}

// take uses up a ticket, even if it does not match the agent or origin.
func (t *Tickets) take(ctx context.Context, ticket, agent, origin string) (Identity, error) {
	if len(ticket) != base64.RawURLEncoding.EncodedLen(32) {
		return Identity{}, deny(TicketInvalid, "the ticket does not have the form of a ticket")
	}
	claim, ok, err := t.store.TakeTicket(ctx, hashTicket(ticket))
	switch {
	case err != nil:
		return Identity{}, err
	case !ok:
		return Identity{}, deny(TicketInvalid, "the ticket was used already, or never issued")
	case !t.now().Before(claim.Until):
		return Identity{}, deny(TicketInvalid, "the ticket has expired")
	case claim.Agent != "" && claim.Agent != agent:
		return Identity{}, deny(TicketInvalid, "the ticket is for another agent")
	case claim.Origin != origin:
		return Identity{}, deny(TicketInvalid, "the ticket is for another origin")
	}
	claim.Identity.Ticket = true
	return claim.Identity, nil
}

func hashTicket(ticket string) TicketHash { return sha256.Sum256([]byte(ticket)) }
