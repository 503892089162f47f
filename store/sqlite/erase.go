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

// rewriteAtOnce is the largest database that Rewrite rewrites without force. A database of this size is rewritten
// before waiting appends time out.
const rewriteAtOnce = 64 << 20

// eraseRows deletes the rows that refer to a session by its id.
var eraseRows = []string{
	`DELETE FROM marks WHERE tenant = ? AND session = ?`,
	`DELETE FROM snapshots WHERE tenant = ? AND session = ?`, `DELETE FROM receipts WHERE tenant = ? AND session = ?`,
	`DELETE FROM due WHERE tenant = ? AND session = ?`, `DELETE FROM holes WHERE tenant = ? AND session = ?`,
	`DELETE FROM runs WHERE tenant = ? AND session = ?`, `DELETE FROM cards WHERE tenant = ? AND session = ?`,
	`DELETE FROM webhooks WHERE tenant = ? AND session = ?`,
	`DELETE FROM effects WHERE tenant = ? AND session_key = ?`,
	`DELETE FROM timers WHERE tenant = ? AND session_key = ?`,
}

func (s *Store) Erase(ctx context.Context, tenant parley.TenantID, e port.Erasure) error {
	return s.outsideTransaction(ctx, func(ctx context.Context) error {
		return s.w.commit(
			[]*queuedBatch{{inTransaction: func(ctx context.Context, w *writer) error { return w.erase(ctx, tenant, e) }}})
	})
}

// erase overwrites the deleted data with zeros. It also writes the tenant's head, so that no position is used twice.
func (w *writer) erase(ctx context.Context, tenant parley.TenantID, e port.Erasure) (err error) {
	if _, err := w.conn.ExecContext(ctx, `PRAGMA secure_delete = ON`); err != nil {
		return err
	}
	defer func() {
		_, off := w.conn.ExecContext(ctx, `PRAGMA secure_delete = OFF`)
		err = errors.Join(err, off)
	}()
	h, err := w.head(ctx, tenant)
	if err != nil {
		return err
	}
	h.changed = true
	if err := w.mayErase(ctx, tenant, e); err != nil {
		return err
	}
	for _, id := range e.Sessions {
		if err := w.eraseSession(ctx, tenant, id); err != nil {
			return err
		}
	}
	for _, event := range e.Events {
		if err := w.replace(ctx, tenant, event); err != nil {
			return err
		}
	}
	for id, title := range e.Titles {
		if _, err := w.conn.ExecContext(ctx, `UPDATE sessions SET title = ?3 WHERE tenant = ?1 AND id = ?2`, tenant, id,
			title); err != nil {
			return err
		}
	}
	for _, digest := range e.Definitions {
		if _, err := w.conn.ExecContext(ctx, `DELETE FROM definitions WHERE tenant = ?1 AND digest = ?2
			AND NOT EXISTS (SELECT 1 FROM events WHERE tenant = ?1 AND position > ?3 AND instr(body, ?2) > 0)`, tenant,
			digest, e.Read); err != nil {
			return err
		}
	}
	if e.User != "" {
		for _, text := range []string{`DELETE FROM contexts WHERE tenant = ? AND principal = ?`,
			`DELETE FROM tickets WHERE tenant = ? AND principal = ?`,
			`DELETE FROM marks WHERE tenant = ? AND principal = ?`} {
			if _, err := w.conn.ExecContext(ctx, text, tenant, e.User); err != nil {
				return err
			}
		}
	}
	if err := w.noteErasure(ctx, tenant, e); err != nil {
		return err
	}
	return w.audit(ctx, &queuedBatch{Batch: port.Batch{Tenant: tenant, Audit: e.Audit}})
}

// noteErasure records that an erasure has begun or ended.
func (w *writer) noteErasure(ctx context.Context, tenant parley.TenantID, e port.Erasure) error {
	if b := e.Begun; b != nil {
		names, err := json.Marshal(b.Artifacts)
		if err != nil {
			return err
		}
		if _, err := w.conn.ExecContext(ctx, `INSERT INTO erasures (tenant, principal, by, at, artifacts)
			VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (tenant, principal) DO UPDATE SET artifacts = excluded.artifacts`,
			tenant, b.User, b.By, micros(b.At), string(names)); err != nil {
			return err
		}
	}
	if e.Ended == "" {
		return nil
	}
	_, err := w.conn.ExecContext(ctx, `DELETE FROM erasures WHERE tenant = ? AND principal = ?`, tenant, e.Ended)
	return err
}

func (t tenant) BegunErasures(ctx context.Context) (list []port.BegunErasure, err error) {
	rows, err := t.s.read.QueryContext(ctx, `SELECT principal, by, at, artifacts FROM erasures WHERE tenant = ?
		ORDER BY at, principal`, t.id)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var b port.BegunErasure
		var at int64
		var names []byte
		if err := rows.Scan(&b.User, &b.By, &at, &names); err != nil {
			return nil, unavailable(err)
		}
		b.At = fromMicros(at)
		if err := json.Unmarshal(names, &b.Artifacts); err != nil {
			return nil, unavailable(err)
		}
		list = append(list, b)
	}
	return list, unavailable(rows.Err())
}

// mayErase refuses to erase sessions that are under a legal hold, that have a run, or that have changed since e.Before.
func (w *writer) mayErase(ctx context.Context, tenant parley.TenantID, e port.Erasure) error {
	for _, id := range e.Touched() {
		var held, open bool
		var updated int64
		err := w.conn.QueryRowContext(ctx, `SELECT `+isHeld+`, run <> 0, updated_at FROM sessions s
			WHERE tenant = ? AND id = ?`, tenant, id).Scan(&held, &open, &updated)
		switch {
		case ignore(err, sql.ErrNoRows) != nil:
			return err
		case held:
			return rules.Held(id)
		case !e.Before.IsZero() && (open || updated >= micros(e.Before)):
			return rules.Changed(id)
		}
	}
	return nil
}

func (w *writer) eraseSession(ctx context.Context, tenant parley.TenantID, id parley.SessionID) error {
	var no int64
	err := w.findSession.QueryRowContext(ctx, tenant, id).Scan(&no)
	if err != nil {
		return ignore(err, sql.ErrNoRows)
	}
	delete(w.rows, sessionKey{tenant, id})
	if _, err := w.forgetSaid.ExecContext(ctx, tenant, id); err != nil { // the statement reads the events
		return err
	}
	if _, err := w.conn.ExecContext(ctx, `DELETE FROM events WHERE tenant = ? AND session = ?`, tenant,
		no); err != nil {
		return err
	}
	for _, statement := range eraseRows {
		if _, err := w.conn.ExecContext(ctx, statement, tenant, id); err != nil {
			return err
		}
	}
	_, err = w.conn.ExecContext(ctx, `DELETE FROM sessions WHERE tenant = ? AND no = ?`, tenant, no)
	return err
}

// replace changes the body of an event, and the row of a run that it ends. It also raises the session's epoch, so that a process that has the session
// loaded reads it again.
func (w *writer) replace(ctx context.Context, tenant parley.TenantID, e parley.Event) error {
	_, _, body, err := parley.EncodeBody(e.Body)
	if err != nil {
		return err
	}
	var no int64
	if err := w.findSession.QueryRowContext(ctx, tenant, e.Session).Scan(&no); err != nil {
		return ignore(err, sql.ErrNoRows)
	}
	delete(w.rows, sessionKey{tenant, e.Session})
	for _, change := range []struct {
		text string
		args []any
	}{
		{`UPDATE sessions SET epoch = epoch + 1, bytes = bytes + ?3 - (SELECT length(CAST(body AS BLOB)) FROM events
			WHERE tenant = ?1 AND session = ?2 AND seq = ?4) WHERE tenant = ?1 AND no = ?2`,
			[]any{tenant, no, len(body), e.Seq}},
		{`UPDATE events SET body = ?4 WHERE tenant = ?1 AND session = ?2 AND seq = ?3`,
			[]any{tenant, no, e.Seq, string(body)}},
		{`DELETE FROM said WHERE rowid = (SELECT no FROM events WHERE tenant = ?1 AND session = ?2 AND seq = ?3)`,
			[]any{tenant, no, e.Seq}},
		{`DELETE FROM snapshots WHERE tenant = ? AND session = ?`, []any{tenant, e.Session}},
	} {
		if _, err := w.conn.ExecContext(ctx, change.text, change.args...); err != nil {
			return err
		}
	}
	if end, ok := e.Body.(parley.RunFinished); ok {
		_, err = w.conn.ExecContext(ctx, `UPDATE runs SET message = ?4 WHERE tenant = ?1 AND session = ?2 AND run = ?3`,
			tenant, e.Session, e.Run, end.Message)
	}
	return err
}

// Rewrite rewrites the database without the deleted data, and empties the write-ahead log. Unless force is set, it does
// not rewrite a database that is so large that appends would wait for too long.
func (s *Store) Rewrite(ctx context.Context, force bool) (done bool, err error) {
	err = s.outsideTransaction(ctx, func(ctx context.Context) error {
		var pages, size int64
		if err := s.w.conn.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&pages); err != nil {
			return err
		}
		if err := s.w.conn.QueryRowContext(ctx, `PRAGMA page_size`).Scan(&size); err != nil {
			return err
		}
		if done = force || pages*size <= rewriteAtOnce; done {
			// The full-text index only marks entries as deleted; optimize rewrites it.
			for _, statement := range []string{`INSERT INTO said (said) VALUES ('optimize')`, `VACUUM`} {
				if _, err := s.w.conn.ExecContext(ctx, statement); err != nil {
					return err
				}
			}
		}
		return s.emptyForSure(ctx)
	})
	return done && err == nil, err
}

// emptyForSure empties the write-ahead log, which still holds the old pages. It retries for a moment while readers use
// the log.
func (s *Store) emptyForSure(ctx context.Context) (err error) {
	for range 40 {
		if err = emptyLog(ctx, s.w.conn); err == nil {
			return nil
		}
		if !errors.Is(err, errReaders) {
			return err
		}
		time.Sleep(awaitReaders)
	}
	return &parley.Error{Code: parley.CodeOverloaded, Err: err,
		Message: "The data is erased, and the write-ahead log still holds copies, because the database is being read.",
		Hint:    "repeat the request when no backup or export is running"}
}

// outsideTransaction makes the write goroutine call do outside any transaction. Appends wait meanwhile.
func (s *Store) outsideTransaction(ctx context.Context, do func(context.Context) error) error {
	w := &queuedBatch{done: make(chan struct{})}
	w.outsideTransaction = func() error {
		far := time.Now().Add(time.Hour)
		s.commitDeadline.Store(&far)
		defer s.commitDeadline.Store(nil)
		if err := s.checkFiles(); err != nil {
			return err
		}
		return do(context.WithoutCancel(ctx))
	}
	if s.hangs() {
		return unstorable(errHangs)
	}
	if err := s.enqueue(ctx, w); err != nil {
		return err
	}
	<-w.done
	return w.err
}

const ownedBy = `SELECT id, root, owner, agent, title, status, run, transient, deleted, head, opened_at, updated_at
	FROM sessions WHERE tenant = ? AND owner = ? ORDER BY no`

func (t tenant) Owned(ctx context.Context, owner parley.PrincipalID) (list []port.Summary, err error) {
	rows, err := t.s.read.QueryContext(ctx, ownedBy, t.id, owner)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var m port.Summary
		var opened, updated int64
		if err := rows.Scan(&m.ID, &m.Root, &m.Owner, &m.Agent, &m.Title, &m.Status, &m.Run, &m.Transient, &m.Deleted,
			&m.Head, &opened, &updated); err != nil {
			return nil, unavailable(err)
		}
		m.OpenedAt, m.UpdatedAt = fromMicros(opened), fromMicros(updated)
		list = append(list, m)
	}
	return list, unavailable(rows.Err())
}
