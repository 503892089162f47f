package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"parley"
)

// maxGroup bounds a commit, and so the time a batch waits for its neighbours.
const maxGroup = 256

// waiting is a batch on its way into a commit, encoded by who brought it.
type waiting struct {
	parley.Batch
	bodies []stored
	agent  []byte
	also   func(context.Context, *writer) error // instead of a batch

	result parley.Appended
	err    error
	done   chan struct{}
}

type stored struct {
	name    string
	version int
	body    []byte
}

func (s *Store) Append(ctx context.Context, b parley.Batch) (parley.Appended, error) {
	w := &waiting{Batch: b, bodies: make([]stored, len(b.Events)), done: make(chan struct{})}
	for i, e := range b.Events {
		var err error
		if w.bodies[i].name, w.bodies[i].version, w.bodies[i].body, err = parley.EncodeBody(e.Body); err != nil {
			return parley.Appended{}, err
		}
	}
	if b.Agent != nil {
		var err error
		if w.agent, err = json.Marshal(b.Agent); err != nil {
			return parley.Appended{}, err
		}
	}
	return s.put(ctx, w)
}

// put brings something into a commit and waits for it.
func (s *Store) put(ctx context.Context, w *waiting) (parley.Appended, error) {
	if err := s.enqueue(ctx, w); err != nil {
		return parley.Appended{}, err
	}
	// The commit is under way; only its outcome is the truth now, so ctx no
	// longer matters.
	<-w.done
	return w.result, w.err
}

func (s *Store) enqueue(ctx context.Context, w *waiting) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return parley.Errorf(parley.CodeUnavailable, "The server is stopping.")
	}
	select {
	case s.queue <- w:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write is the only goroutine that writes. It ends when Close has closed the
// queue and every batch in it was answered.
func (s *Store) write() {
	defer close(s.done)
	for first := range s.queue {
		group := []*waiting{first}
		for len(group) < maxGroup {
			select {
			case w, ok := <-s.queue:
				if ok {
					group = append(group, w)
					continue
				}
			default:
			}
			break
		}
		s.commit(group)
	}
}

// commit answers every batch of the group. If the group fails, each batch is
// tried alone, so that one that cannot be stored does not take others with it.
func (s *Store) commit(group []*waiting) {
	err := s.w.commit(group)
	if err != nil && len(group) > 1 {
		for _, w := range group {
			s.commit([]*waiting{w})
		}
		return
	}
	for _, w := range group {
		if err != nil {
			w.result, w.err = parley.Appended{}, &parley.Error{Code: parley.CodeUnavailable,
				Message: "The server cannot store anything right now.", Err: err,
				Hint: "see that the disk of the data folder is writable and not full"}
		}
		close(w.done)
	}
}

// writer holds the connection and the statements of the write goroutine.
type writer struct {
	conn  *sql.Conn
	lease string

	openSession, moveSession *sql.Stmt
	takePositions            *sql.Stmt
	addEvent, addReceipt     *sql.Stmt
	addDefinition            *sql.Stmt
	setSnapshot              *sql.Stmt
	setDue, clearDue         *sql.Stmt
	addEffect, setEffects    *sql.Stmt
}

func newWriter(ctx context.Context, db *sql.DB, lease string) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{conn: conn, lease: lease}
	for stmt, text := range map[**sql.Stmt]string{
		&w.openSession: `INSERT INTO sessions (root, owner, agent, title, status, run, transient, deleted, head, epoch, opened_at, updated_at, tenant, id)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		&w.moveSession: `UPDATE sessions SET root = ?, owner = ?, agent = ?, title = ?, status = ?, run = ?, transient = ?, deleted = ?, head = ?, epoch = ?, opened_at = ?, updated_at = ?
			WHERE tenant = ? AND id = ? AND head = ? AND epoch <= ?`,
		&w.takePositions: `INSERT INTO tenants (tenant, position) VALUES (?1, ?2)
			ON CONFLICT (tenant) DO UPDATE SET position = position + ?2 RETURNING position`,
		&w.addEvent: `INSERT INTO events (tenant, session, seq, position, root, at, run, by, type, version, piece, body)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		&w.addReceipt:    `INSERT INTO receipts (tenant, session, command, by, digest, first, last) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		&w.addDefinition: `INSERT INTO definitions (tenant, digest, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
		&w.setSnapshot: `INSERT INTO snapshots (tenant, session, seq, version, body) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (tenant, session) DO UPDATE SET seq = excluded.seq, version = excluded.version, body = excluded.body`,
		&w.setDue: `INSERT INTO due (tenant, session, at, reason, lease) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (tenant, session) DO UPDATE SET at = excluded.at, reason = excluded.reason, lease = excluded.lease`,
		&w.clearDue: `DELETE FROM due WHERE tenant = ? AND session = ?`,
		&w.addEffect: `INSERT INTO effects (tenant, session_key, id, run, type, payload, dedupe_key, status, created_at, updated_at)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'pending', ?8, ?8)`,
		&w.setEffects: `UPDATE effects SET status = ?, updated_at = ? WHERE tenant = ? AND session_key = ? AND run = ? AND status = 'pending'`,
	} {
		if *stmt, err = conn.PrepareContext(ctx, text); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return w, nil
}

// commit stores a group in one transaction. Nothing of it is stored on error.
func (w *writer) commit(group []*waiting) (err error) {
	ctx := context.Background() // half a commit is worse than a late one
	if _, err := w.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = w.conn.ExecContext(ctx, "ROLLBACK") // the first error is the one that tells
		}
	}()
	for _, b := range group {
		add := w.add
		if b.also != nil {
			add = func(ctx context.Context, b *waiting) error { return b.also(ctx, w) }
		}
		if err := add(ctx, b); err != nil {
			return err
		}
	}
	_, err = w.conn.ExecContext(ctx, "COMMIT")
	return err
}

func (w *writer) add(ctx context.Context, b *waiting) error {
	moved, err := w.move(ctx, b)
	if err != nil {
		return err
	}
	if b.result.Fenced = !moved; b.result.Fenced {
		return nil
	}
	if len(b.Events) > 0 {
		if err := w.addEvents(ctx, b); err != nil {
			return err
		}
	}
	if r := b.Receipt; r != nil {
		if _, err := w.addReceipt.ExecContext(ctx, b.Tenant, b.Session, r.Command, r.By, r.Digest, r.First, r.Last); err != nil {
			return err
		}
	}
	if b.Agent != nil {
		if _, err := w.addDefinition.ExecContext(ctx, b.Tenant, b.Agent.Digest(), string(b.agent)); err != nil {
			return err
		}
	}
	if snap := b.Snapshot; snap != nil {
		if _, err := w.setSnapshot.ExecContext(ctx, b.Tenant, b.Session, snap.Seq, snap.Version, string(snap.Body)); err != nil {
			return err
		}
	}
	switch {
	case b.Due == nil:
	case b.Due.Clear:
		_, err = w.clearDue.ExecContext(ctx, b.Tenant, b.Session)
	default:
		lease := ""
		if b.Due.Held {
			lease = w.lease
		}
		_, err = w.setDue.ExecContext(ctx, b.Tenant, b.Session, micros(b.Due.At), b.Due.Reason, lease)
	}
	return err
}

// move moves the session's head, if it still is where the batch left it.
func (w *writer) move(ctx context.Context, b *waiting) (bool, error) {
	m := b.Summary
	args := []any{m.Root, m.Owner, m.Agent, m.Title, m.Status, m.Run, m.Transient, m.Deleted, m.Head, b.Epoch, micros(m.OpenedAt), micros(m.UpdatedAt), b.Tenant, b.Session}
	stmt := w.openSession
	if b.After > 0 {
		stmt, args = w.moveSession, append(args, b.After, b.Epoch)
	}
	res, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

func (w *writer) addEvents(ctx context.Context, b *waiting) error {
	n := int64(len(b.Events))
	var last int64
	if err := w.takePositions.QueryRowContext(ctx, b.Tenant, n).Scan(&last); err != nil {
		return err
	}
	b.result.Positions = make([]parley.Position, n)
	for i, e := range b.Events {
		p := last - n + 1 + int64(i)
		b.result.Positions[i] = parley.Position(p)
		t := b.bodies[i]
		if _, err := w.addEvent.ExecContext(ctx, b.Tenant, b.Session, e.Seq, p, e.Root, micros(e.At), e.Run, e.By, t.name, t.version, parley.IsPiece(e.Body), string(t.body)); err != nil {
			return err
		}
		if effect, ok := e.Body.(parley.EffectEnqueued); ok {
			key := parley.Ref(b.Session, e.Seq)
			if _, err := w.addEffect.ExecContext(ctx, b.Tenant, b.Session, e.Seq, e.Run, effect.Type, string(t.body), key, micros(e.At)); err != nil {
				return err
			}
		}
	}
	return nil
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
