package postgres

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
	"parley/store/rules"
)

var (
	_ port.TicketStore     = (*Store)(nil)
	_ port.RevocationStore = (*Store)(nil)
)

const (
	putTicket = `WITH expired AS (DELETE FROM tickets WHERE tenant = $2 AND expires_at <= $6)
		INSERT INTO tickets (hash, tenant, principal, expires_at, claim) SELECT $1, $2, $3, $4, $5
		WHERE (SELECT count(*) FROM tickets WHERE tenant = $2 AND principal = $3 AND expires_at > $6) < $7
		ON CONFLICT (hash, tenant) DO UPDATE SET claim = excluded.claim RETURNING 1`
	takeTicket    = `DELETE FROM tickets WHERE hash = $1 RETURNING claim`
	setRevocation = `INSERT INTO revocations AS r (tenant, principal, before, sparing_admins) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant, principal) DO UPDATE SET before = greatest(r.before, excluded.before),
			sparing_admins = greatest(r.sparing_admins, excluded.sparing_admins)`
	listRevocations = `SELECT tenant, principal, before, sparing_admins FROM revocations
		WHERE before > $1 OR sparing_admins > $1`
)

func (s *Store) PutTicket(ctx context.Context, hash port.TicketHash, claim port.TicketClaim,
	expires time.Time) error {
	body, err := json.Marshal(claim)
	if err != nil {
		return err
	}
	_, kept, err := one(ctx, s, of(claim.Tenant), pgx.RowTo[int], putTicket, hash[:], text(claim.Tenant),
		text(claim.ID), expires, body,
		expires.Add(-parley.MaxTicketLife), parley.MaxTickets)
	if err == nil && !kept {
		err = parley.Errorf(parley.CodeLimited, "Too many tickets wait to be used.")
	}
	return err
}

// TakeTicket tries again if the connection is lost. If its first try has
// already taken the ticket, the second does not find it, and no caller gets it.
func (s *Store) TakeTicket(ctx context.Context, hash port.TicketHash) (claim port.TicketClaim, found bool,
	err error) {
	body, found, err := one(ctx, s, maintenance, pgx.RowTo[[]byte], takeTicket, hash[:])
	if err != nil || !found {
		return claim, false, err
	}
	if err := json.Unmarshal(body, &claim); err != nil {
		return port.TicketClaim{}, false,
			&parley.Error{Code: parley.CodeCorrupt, Message: "A stored ticket cannot be read.", Err: err}
	}
	return claim, true, nil
}

// revoke stores the revocation of a batch.
func revoke(trip *pgx.Batch, tenant parley.TenantID, r port.Revocation) {
	before, sparing := r.Before, time.Unix(0, 0)
	if r.SparesAdmins {
		before, sparing = sparing, before
	}
	trip.Queue(setRevocation, text(tenant), text(r.Principal), before, sparing)
}

func (s *Store) Revocations(ctx context.Context, after time.Time) ([]port.Revocation, error) {
	rows, err := list(ctx, s, maintenance, func(row pgx.CollectableRow) ([]port.Revocation, error) {
		var r port.Revocation
		var before, sparing time.Time
		err := row.Scan((*text)(&r.Tenant), (*text)(&r.Principal), &before, &sparing)
		return rules.Revocations(r, before.UTC(), sparing.UTC(), after), err
	}, listRevocations, after)
	return slices.Concat(rows...), err
}
