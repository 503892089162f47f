package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
)

var (
	_ port.TicketStore     = (*Store)(nil)
	_ port.RevocationStore = (*Store)(nil)
)

const (
	takeTicket    = `DELETE FROM tickets WHERE hash = ? RETURNING claim`
	setRevocation = `INSERT INTO revocations (tenant, principal, before, sparing_admins) VALUES (?, ?, ?, ?)
		ON CONFLICT (tenant, principal) DO UPDATE SET before = max(before, excluded.before), sparing_admins =
		max(sparing_admins, excluded.sparing_admins)`
	listRevocations = `SELECT tenant, principal, before, sparing_admins FROM revocations
		WHERE before > ?1 OR sparing_admins > ?1`
)

func (s *Store) PutTicket(ctx context.Context, hash port.TicketHash, claim port.TicketClaim,
	expires time.Time) error {
	body, err := json.Marshal(claim)
	if err != nil {
		return err
	}
	var kept int64
	err = s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
		expired := micros(expires.Add(-parley.MaxTicketLife))
		if _, err := w.conn.ExecContext(ctx, `DELETE FROM tickets WHERE tenant = ? AND expires_at <= ?`, claim.Tenant,
			expired); err != nil {
			return err
		}
		res, err := w.conn.ExecContext(ctx,
			`INSERT INTO tickets (hash, tenant, principal, expires_at, claim) SELECT ?1, ?2, ?3, ?4, ?5
			WHERE (SELECT count(*) FROM tickets WHERE tenant = ?2
			AND principal = ?3) < ?6`, hash[:], claim.Tenant, claim.ID, micros(expires), string(body), parley.MaxTickets)
		if err != nil {
			return err
		}
		kept, err = res.RowsAffected()
		return err
	})
	if err == nil && kept == 0 {
		err = parley.Errorf(parley.CodeLimited, "Too many tickets wait to be used.")
	}
	return err
}

func (s *Store) TakeTicket(ctx context.Context, hash port.TicketHash) (claim port.TicketClaim, found bool,
	err error) {
	var body []byte
	err = s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
		err := w.conn.QueryRowContext(ctx, takeTicket, hash[:]).Scan(&body)
		found = !errors.Is(err, sql.ErrNoRows)
		return ignore(err, sql.ErrNoRows)
	})
	if err != nil || !found {
		return port.TicketClaim{}, false, err
	}
	if err := json.Unmarshal(body, &claim); err != nil {
		return port.TicketClaim{}, false,
			&parley.Error{Code: parley.CodeCorrupt, Message: "A stored ticket cannot be read.", Err: err}
	}
	return claim, true, nil
}

func (w *writer) revoke(ctx context.Context, b *queuedBatch) error {
	r := b.Revocation
	if r == nil {
		return nil
	}
	before, sparing := micros(r.Before), int64(0)
	if r.SparesAdmins {
		before, sparing = sparing, before
	}
	_, err := w.conn.ExecContext(ctx, setRevocation, b.Tenant, r.Principal, before, sparing)
	return err
}

func (s *Store) Revocations(ctx context.Context, after time.Time) (list []port.Revocation, err error) {
	rows, err := s.read.QueryContext(ctx, listRevocations, micros(after))
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r port.Revocation
		var before, sparing int64
		if err := rows.Scan(&r.Tenant, &r.Principal, &before, &sparing); err != nil {
			return nil, unavailable(err)
		}
		list = append(list, rules.Revocations(r, fromMicros(before), fromMicros(sparing), after)...)
	}
	return list, unavailable(rows.Err())
}
