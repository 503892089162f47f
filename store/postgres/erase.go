package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
	"parley/store/rules"
)

const ownedBy = `SELECT ` + summaryColumns + ` FROM sessions WHERE tenant = $1 AND owner = $2 ORDER BY opened_at, id`

func (t tenant) Owned(ctx context.Context, owner parley.PrincipalID) (sessions []port.Summary, err error) {
	rows, err := list(ctx, t.s, of(t.id), scanSession, ownedBy, text(t.id), text(owner))
	for _, st := range rows {
		sessions = append(sessions, st.Summary)
	}
	return sessions, err
}

// eraseSession deletes all rows of the sessions in $2. Deleting a session also deletes its row in due.
var eraseSession = []string{
	`DELETE FROM events WHERE tenant = $1 AND session = ANY($2)`,
	`DELETE FROM snapshots WHERE tenant = $1 AND session = ANY($2)`,
	`DELETE FROM receipts WHERE tenant = $1 AND session = ANY($2)`,
	`DELETE FROM holes WHERE tenant = $1 AND session = ANY($2)`,
	`DELETE FROM runs WHERE tenant = $1 AND session = ANY($2)`,
	`DELETE FROM cards WHERE tenant = $1 AND session = ANY($2)`,
	`DELETE FROM webhooks WHERE tenant = $1 AND session = ANY($2)`,
	`DELETE FROM effects WHERE tenant = $1 AND session_key = ANY($2)`,
	`DELETE FROM timers WHERE tenant = $1 AND session_key = ANY($2)`,
	`DELETE FROM said WHERE tenant = $1 AND session = ANY($2)`,
	`DELETE FROM marks WHERE tenant = $1 AND session = ANY($2)`,
	`DELETE FROM inbox WHERE tenant = $1 AND session = ANY($2)`,
	`DELETE FROM sessions WHERE tenant = $1 AND id = ANY($2)`,
}

const (
	replaceEvent   = `UPDATE events SET body = $4 WHERE tenant = $1 AND session = $2 AND seq = $3`
	replaceMessage = `UPDATE runs SET message = $4 WHERE tenant = $1 AND session = $2 AND run = $3`
	fenceSession   = `UPDATE sessions SET epoch = epoch + 1, holder = '',
		bytes = bytes + octet_length($4::text) - (SELECT octet_length(body) FROM events
			WHERE tenant = $1 AND session = $2 AND seq = $3) WHERE tenant = $1 AND id = $2`
	inTheWay = `SELECT id, ` + isHeld + `, run <> 0, updated_at FROM sessions s
		WHERE tenant = $1 AND id = ANY($2)`
	forgetSnapshot   = `DELETE FROM snapshots WHERE tenant = $1 AND session = $2`
	forgetWords      = `DELETE FROM said WHERE tenant = $1 AND session = $2 AND seq = $3`
	forgetDefinition = `DELETE FROM definitions WHERE tenant = $1 AND digest = $2 AND NOT EXISTS (SELECT FROM events
		WHERE tenant = $1 AND position > $3 AND strpos(body, $2) > 0)`
	retitleSession = `UPDATE sessions SET title = $3 WHERE tenant = $1 AND id = $2`
	noteErasure    = `INSERT INTO erasures (tenant, principal, by, at, artifacts) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant, principal) DO UPDATE SET artifacts = excluded.artifacts`
	endErasure = `DELETE FROM erasures WHERE tenant = $1 AND principal = $2`
)

func (t tenant) BegunErasures(ctx context.Context) ([]port.BegunErasure, error) {
	return list(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (b port.BegunErasure, err error) {
		var names []byte
		if err := row.Scan((*text)(&b.User), (*text)(&b.By), &b.At, &names); err != nil {
			return b, err
		}
		b.At = b.At.UTC()
		return b, json.Unmarshal(names, &b.Artifacts)
	}, `SELECT principal, by, at, artifacts FROM erasures WHERE tenant = $1 ORDER BY at, principal`, text(t.id))
}

func (s *Store) Erase(ctx context.Context, tenant parley.TenantID, e port.Erasure) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		trip := &pgx.Batch{}
		of(tenant).enter(trip)
		var no int64
		var hash string
		queueAuditEnd(trip, tenant, &no, &hash)
		texts := func(ids []parley.SessionID) []text {
			list := []text{}
			for _, id := range ids {
				list = append(list, text(id))
			}
			return list
		}
		var refusal error
		trip.Queue(inTheWay, text(tenant), texts(e.Touched())).Query(func(rows pgx.Rows) error {
			var id parley.SessionID
			var held, open bool
			var updated time.Time
			_, err := pgx.ForEachRow(rows, []any{(*text)(&id), &held, &open, &updated}, func() error {
				switch {
				case held:
					refusal = rules.Held(id)
				case !e.Before.IsZero() && (open || !updated.Before(e.Before)):
					refusal = rules.Changed(id)
				}
				return nil
			})
			return err
		})
		if err := errors.Join(tx.SendBatch(ctx, trip).Close(), refusal); err != nil {
			return err
		}
		trip = &pgx.Batch{}
		for _, statement := range eraseSession {
			trip.Queue(statement, text(tenant), texts(e.Sessions))
		}
		for _, event := range e.Events {
			_, _, body, err := parley.EncodeBody(event.Body)
			if err != nil {
				return err
			}
			args := []any{text(tenant), text(event.Session), int64(event.Seq), string(body)}
			trip.Queue(fenceSession, args...)
			trip.Queue(replaceEvent, args...)
			trip.Queue(forgetSnapshot, args[:2]...)
			trip.Queue(forgetWords, args[:3]...)
			if end, ok := event.Body.(parley.RunFinished); ok {
				trip.Queue(replaceMessage, text(tenant), text(event.Session), int64(event.Run), text(end.Message))
			}
		}
		for id, title := range e.Titles {
			trip.Queue(retitleSession, text(tenant), text(id), text(title))
		}
		for _, digest := range e.Definitions {
			trip.Queue(forgetDefinition, text(tenant), text(digest), int64(e.Read))
		}
		if e.User != "" {
			trip.Queue(`DELETE FROM contexts WHERE tenant = $1 AND principal = $2`, text(tenant), text(e.User))
			trip.Queue(`DELETE FROM tickets WHERE tenant = $1 AND principal = $2`, text(tenant), text(e.User))
			trip.Queue(`DELETE FROM marks WHERE tenant = $1 AND principal = $2`, text(tenant), text(e.User))
		}
		if b := e.Begun; b != nil {
			names, err := json.Marshal(b.Artifacts)
			if err != nil {
				return err
			}
			trip.Queue(noteErasure, text(tenant), text(b.User), text(b.By), b.At, string(names))
		}
		if e.Ended != "" {
			trip.Queue(endErasure, text(tenant), text(e.Ended))
		}
		if err := tx.SendBatch(ctx, trip).Close(); err != nil {
			return err
		}
		return s.record(ctx, tx, tenant, no, hash, e.Audit)
	})
	if parley.CodeOf(err) == parley.CodeConflict {
		return err
	}
	return cmp.Or(mayNot(err), unavailable(ctx, err))
}

// mayNot returns an error that explains that the role of the server may not delete sessions. It returns nil if err has
// another cause.
func mayNot(err error) error {
	if sqlState(err) != notPermitted {
		return nil
	}
	return &parley.Error{Code: parley.CodeForbidden, Err: err,
		Message: "The database role of this server may not erase anything. Nothing was erased.",
		Hint:    "start a server with the role that owns the tables, and erase there"}
}

// notPermitted is the SQLSTATE of insufficient_privilege. A role that was granted only the rights for serving may not
// delete sessions.
const notPermitted = "42501"

// rewritten lists the tables that hold messages of users, or names that occur in them.
var rewritten = []string{"events", "sessions", "snapshots", "receipts", "holes", "runs", "cards", "webhooks", "effects",
	"timers", "inbox", "said", "marks", "contexts", "tickets", "due", "definitions"}

// Rewrite rewrites the tables without deleted data. Each table is locked meanwhile, so Rewrite does nothing unless
// force is set. Only the owner of the tables may run it. The write-ahead log of the database, and its archive, keep the
// deleted data for as long as the operator has configured.
func (s *Store) Rewrite(ctx context.Context, force bool) (bool, error) {
	if !force {
		return false, nil
	}
	_, err := s.pool.Exec(ctx, `VACUUM (FULL) `+strings.Join(rewritten, ", "))
	return err == nil, unavailable(ctx, err)
}
