package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"parley"
)

var (
	_ parley.TicketStore     = (*Store)(nil)
	_ parley.RevocationStore = (*Store)(nil)
)

const (
	takeTicket      = `DELETE FROM tickets WHERE hash = ? RETURNING claim`
	listRevocations = `SELECT tenant, principal, before FROM revocations WHERE before > ?`
)

func (s *Store) PutTicket(ctx context.Context, hash parley.TicketHash, claim parley.TicketClaim, expires time.Time) error {
	body, err := json.Marshal(claim)
	if err != nil {
		return err
	}
	var kept int64
	err = s.also(ctx, func(ctx context.Context, w *writer) error {
		expired := micros(expires.Add(-parley.MaxTicketLife))
		if _, err := w.conn.ExecContext(ctx, `DELETE FROM tickets WHERE tenant = ? AND expires_at <= ?`, claim.Tenant, expired); err != nil {
			return err
		}
		res, err := w.conn.ExecContext(ctx, `INSERT INTO tickets (hash, tenant, principal, expires_at, claim) SELECT ?1, ?2, ?3, ?4, ?5
			WHERE (SELECT count(*) FROM tickets WHERE tenant = ?2 AND principal = ?3) < ?6`, hash[:], claim.Tenant, claim.ID, micros(expires), string(body), parley.MaxTickets)
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

func (s *Store) TakeTicket(ctx context.Context, hash parley.TicketHash) (claim parley.TicketClaim, found bool, err error) {
	var body []byte
	err = s.also(ctx, func(ctx context.Context, w *writer) error {
		err := w.conn.QueryRowContext(ctx, takeTicket, hash[:]).Scan(&body)
		found = !errors.Is(err, sql.ErrNoRows)
		return ignore(err, sql.ErrNoRows)
	})
	if err != nil || !found {
		return parley.TicketClaim{}, false, err
	}
	if err := json.Unmarshal(body, &claim); err != nil {
		return parley.TicketClaim{}, false, &parley.Error{Code: parley.CodeCorrupt, Message: "A stored ticket cannot be read.", Err: err}
	}
	return claim, true, nil
}

func (s *Store) SaveRevocation(ctx context.Context, r parley.Revocation) error {
	return s.also(ctx, func(ctx context.Context, w *writer) error {
		_, err := w.conn.ExecContext(ctx, `INSERT INTO revocations (tenant, principal, before) VALUES (?, ?, ?)
			ON CONFLICT (tenant, principal) DO UPDATE SET before = max(before, excluded.before)`, r.Tenant, r.Principal, micros(r.Before))
		return err
	})
}

func (s *Store) Revocations(ctx context.Context, after time.Time) (list []parley.Revocation, err error) {
	rows, err := s.read.QueryContext(ctx, listRevocations, micros(after))
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r parley.Revocation
		var before int64
		if err := rows.Scan(&r.Tenant, &r.Principal, &before); err != nil {
			return nil, unavailable(err)
		}
		r.Before = fromMicros(before)
		list = append(list, r)
	}
	return list, unavailable(rows.Err())
}
