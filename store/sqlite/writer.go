package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"strings"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// writer holds the connection and the statements of the write goroutine.
type writer struct {
	conn       *sql.Conn
	lease      string
	key        rules.AuditKey
	vault      rules.Vault
	heads      map[parley.TenantID]*head // of tenants with recent writes
	headsInUse map[parley.TenantID]*head // heads that the transaction under way uses
	rows       map[sessionKey]sessionRow // of sessions with recent writes

	// Events of the transaction under way that are not inserted yet, as
	// eventColumns values each. One command inserts several events.
	pending   []any
	addEvents [len(eventRows)]*command
	texts     []saidText // texts of the pending events
	inserted  []saidText // texts of the transaction's inserted events, which are indexed at its end

	findSession, getHead    *sql.Stmt
	begin, end, undo        *command
	openSession             *command
	moveSession, moveHead   *command
	setHead                 *command
	addReceipt              *command
	addDefinition           *command
	setSnapshot, setContext *command
	setDue, clearDue        *command
	addAudit, addHole       *command
	addEffect, setEffects   *command
	rowStatements
	commands []*command // all commands above
}

// eventRows are the numbers of events that the commands addEvents insert.
var eventRows = [...]int{16, 4, 1}

const eventColumns = 12

type sessionKey struct {
	tenant parley.TenantID
	id     parley.SessionID
}

// sessionRow holds the columns of a session that seldom change. Only this
// process writes, so the cached values are correct. If they have not changed,
// an append updates only numbers and touches no index.
type sessionRow struct {
	no      int64
	summary port.Summary // without the fields that every append changes
	recent  int64        // the second of the last change, which is the first sort key of lists
}

// maxRows is the maximum size of the caches rows and heads.
const maxRows = 4096

// fence accepts a batch only if it continues at the head and its epoch is not older.
const fence = ` WHERE tenant = ? AND no = ? AND head = ? AND epoch <= ?`

func newWriter(ctx context.Context, db *sql.DB, lease string) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{conn: conn, lease: lease, heads: map[parley.TenantID]*head{}, headsInUse: map[parley.TenantID]*head{},
		rows: map[sessionKey]sessionRow{}}
	for stmt, text := range map[**sql.Stmt]string{
		&w.findSession: `SELECT no FROM sessions WHERE tenant = ? AND id = ?`,
		&w.getHead:     `SELECT ` + lastPosition + `, audit_no, audit_hash FROM tenants t WHERE tenant = ?`,
	} {
		if *stmt, err = conn.PrepareContext(ctx, text); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	texts := map[**command]string{
		&w.begin: `BEGIN IMMEDIATE`, &w.end: `COMMIT`, &w.undo: `ROLLBACK`,
		&w.openSession: `INSERT INTO sessions (root, owner, agent, title, transient, deleted, opened_at, recent, status,
			run, head, epoch, updated_at, bytes, tenant, id, project)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		&w.moveSession: `UPDATE sessions SET root = ?, owner = ?, agent = ?, title = ?, transient = ?, deleted = ?,
			opened_at = ?, recent = ?,
			status = ?, run = ?, head = ?, epoch = ?, updated_at = ?, bytes = bytes + ?` + fence,
		&w.moveHead: `UPDATE sessions SET status = ?, run = ?, head = ?, epoch = ?, updated_at = ?,
			bytes = bytes + ?` + fence,
		&w.setHead: `INSERT INTO tenants (tenant, position, audit_no, audit_hash) VALUES (?, ?, ?, ?)
			ON CONFLICT (tenant) DO UPDATE SET position = excluded.position, audit_no = excluded.audit_no, audit_hash =
			excluded.audit_hash`,
		&w.addHole: `INSERT INTO holes (tenant, session, first, last) VALUES (?, ?, ?, ?)`,
		&w.addAudit: `INSERT INTO audit (tenant, no, at, by, action, resource, resource_id, source, metadata, hash)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		&w.addReceipt: `INSERT INTO receipts (tenant, session, command, by, digest, first, last)
			VALUES (?, ?, ?, ?, ?, ?, ?)`,
		&w.addDefinition: `INSERT INTO definitions (tenant, digest, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
		&w.setSnapshot: `INSERT INTO snapshots (tenant, session, seq, version, body) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (tenant, session) DO UPDATE SET seq = excluded.seq, version = excluded.version,
			body = excluded.body`,
		&w.setDue: `INSERT INTO due (tenant, session, at, reason, lease) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (tenant, session) DO UPDATE SET at = excluded.at, reason = excluded.reason,
			lease = excluded.lease`,
		&w.clearDue: `DELETE FROM due WHERE tenant = ? AND session = ?`,
		&w.addEffect: `INSERT INTO effects (tenant, session_key, id, run, type, payload, dedupe_key, status, created_at,
			updated_at, target, next_attempt_at)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'pending', ?8, ?8, ?9, 0)`,
		&w.setContext: `INSERT INTO contexts (tenant, agent, principal, body, at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (tenant, agent, principal) DO UPDATE SET body = excluded.body, at = excluded.at`,
		&w.setEffects: `UPDATE effects INDEXED BY effects_owed
			SET status = 'completed', updated_at = ?1, attempts = max(attempts, 1), last_attempt_at = ?1, leased_until =
			NULL
			WHERE tenant = ?2 AND session_key = ?3 AND run = ?4 AND type = 'send_message' AND status IN ('pending',
			'executing')`,
	}
	for i, rows := range eventRows {
		// OR FAIL: SQLite needs no statement journal, because the whole transaction is rolled back on error.
		texts[&w.addEvents[i]] = `INSERT OR FAIL INTO events (tenant, session, seq, position, root, at, run, by, type, version,
			piece, body) VALUES ` + strings.Repeat(`(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?), `, rows-1) +
			`(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	}
	maps.Copy(texts, w.rowStatements.texts())
	maps.Copy(texts, w.hookStatements.texts())
	for c, text := range texts {
		if *c, err = newCommand(ctx, conn, text); err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.commands = append(w.commands, *c)
	}
	return w, nil
}

func (w *writer) close() error {
	var errs []error
	for _, c := range w.commands {
		errs = append(errs, c.Close())
	}
	w.commands = nil
	return errors.Join(append(errs, w.conn.Close())...)
}

// commit stores a group in one transaction. On error it stores nothing.
func (w *writer) commit(group []*queuedBatch) (err error) {
	ctx := context.Background() // a late commit is better than half a commit
	if _, err := w.begin.ExecContext(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			w.rollBack(ctx) // the first error is the one to report
		}
	}()
	clear(w.headsInUse)
	for _, b := range group {
		if b.inTransaction == nil {
			err = w.add(ctx, b)
		} else if err = w.insertPending(ctx); err == nil { // the function may read these events, but not the index
			err = b.inTransaction(ctx, w)
		}
		if err != nil {
			return err
		}
	}
	if err := w.insertPending(ctx); err != nil {
		return err
	}
	if err := w.indexSaid(ctx); err != nil {
		return err
	}
	for tenant, h := range w.headsInUse {
		if !h.changed {
			continue
		}
		h.changed = false
		if _, err := w.setHead.ExecContext(ctx, tenant, h.position, h.auditNo, h.auditHash); err != nil {
			return err
		}
	}
	_, err = w.end.ExecContext(ctx)
	return err
}

// rollBack ends a transaction and discards its changes. If the rollback fails,
// the next BEGIN fails too.
func (w *writer) rollBack(ctx context.Context) {
	clear(w.rows)
	clear(w.heads)
	clear(w.headsInUse)
	clear(w.pending)
	w.pending, w.texts, w.inserted = w.pending[:0], nil, nil
	_, _ = w.undo.ExecContext(ctx)
}

// head caches the state of a tenant: the last position assigned, and the end of
// its audit chain. Its row is written for the first event and for the audit.
// Later positions are those of the last event, so most commits do not touch the
// row's page.
type head struct {
	position  int64
	auditNo   int64
	auditHash string
	changed   bool // the row has to be written
}

// lastPosition is the last position assigned to the tenant in row t.
const lastPosition = `max(t.position, coalesce((SELECT max(e.position) FROM events e WHERE e.tenant = t.tenant), 0))`

func (w *writer) head(ctx context.Context, tenant parley.TenantID) (*head, error) {
	h := w.heads[tenant]
	if h == nil {
		h = &head{}
		err := w.getHead.QueryRowContext(ctx, tenant).Scan(&h.position, &h.auditNo, &h.auditHash)
		if h.changed = errors.Is(err, sql.ErrNoRows); err != nil && !h.changed {
			return nil, err
		}
		if len(w.heads) >= maxRows {
			clear(w.heads)
			maps.Copy(w.heads, w.headsInUse)
		}
		w.heads[tenant] = h
	}
	w.headsInUse[tenant] = h
	return h, nil
}

func (w *writer) audit(ctx context.Context, b *queuedBatch) error {
	if len(b.Audit) == 0 {
		return nil
	}
	h, err := w.head(ctx, b.Tenant)
	if err != nil {
		return err
	}
	for _, r := range rules.Chain(w.key, b.Tenant, h.auditNo, h.auditHash, b.Audit) {
		if _, err := w.addAudit.ExecContext(ctx, r.Tenant, r.No, micros(r.At), r.By, r.Action, r.Resource, r.ID,
			r.Source, string(r.Metadata), r.Hash); err != nil {
			return err
		}
		h.auditNo, h.auditHash, h.changed = r.No, r.Hash, true
	}
	return nil
}

func (w *writer) context(ctx context.Context, b *queuedBatch) error {
	if b.Context == nil {
		return nil
	}
	_, err := w.setContext.ExecContext(ctx, b.Tenant, b.Context.Agent, b.Context.User, b.Context.Text,
		micros(b.Context.At))
	return err
}

func (w *writer) add(ctx context.Context, b *queuedBatch) error {
	if b.Session == "" {
		return errors.Join(w.context(ctx, b), w.marks(ctx, b), w.hold(ctx, b), w.setup(ctx, b), w.revoke(ctx, b),
			w.audit(ctx, b))
	}
	no, err := w.moveSessionHead(ctx, b)
	if err != nil {
		return err
	}
	if b.result.Fenced = no == 0; b.result.Fenced {
		return nil
	}
	if err := w.events(ctx, b, no); err != nil {
		return err
	}
	if err := w.audit(ctx, b); err != nil {
		return err
	}
	if err := errors.Join(w.context(ctx, b), w.marks(ctx, b), w.revoke(ctx, b)); err != nil {
		return err
	}
	if err := w.webhook(ctx, b); err != nil {
		return err
	}
	if r := b.Receipt; r != nil {
		if _, err := w.addReceipt.ExecContext(ctx, b.Tenant, b.Session, r.Command, r.By, r.Digest, r.First,
			r.Last); err != nil {
			return err
		}
	}
	if b.Agent != nil {
		if _, err := w.addDefinition.ExecContext(ctx, b.Tenant, b.Agent.Digest(), string(b.agent)); err != nil {
			return err
		}
	}
	if snap := b.Snapshot; snap != nil {
		if _, err := w.setSnapshot.ExecContext(ctx, b.Tenant, b.Session, snap.Seq, snap.Version,
			string(snap.Body)); err != nil {
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

// moveSessionHead advances the session's head if the head is still where the batch starts.
// It returns the session's number, or 0 if the batch is fenced.
func (w *writer) moveSessionHead(ctx context.Context, b *queuedBatch) (int64, error) {
	key, m := sessionKey{b.Tenant, b.Session}, b.Summary
	updated := micros(m.UpdatedAt)
	args := make([]any, 0, 18)
	row := sessionRow{summary: m, recent: updated / time.Second.Microseconds()}
	row.summary.Status, row.summary.Run, row.summary.Head, row.summary.UpdatedAt = "", 0, 0, time.Time{}

	last, known := w.rows[key]
	if !known && b.After > 0 {
		err := w.findSession.QueryRowContext(ctx, b.Tenant, b.Session).Scan(&last.no)
		if err != nil {
			return 0, ignore(err, sql.ErrNoRows)
		}
	}
	row.no = last.no
	move := w.moveHead
	if b.After == 0 || last != row {
		move = w.moveSession
		args = append(args, m.Root, m.Owner, m.Agent, m.Title, m.Transient, m.Deleted, micros(m.OpenedAt), row.recent)
	}
	args = append(args, string(m.Status), int64(m.Run), int64(m.Head), b.Epoch, updated, b.size, string(b.Tenant))
	if b.After == 0 {
		move, args = w.openSession, append(args, b.Session, m.Project)
	} else {
		args = append(args, row.no, int64(b.After), b.Epoch)
	}
	res, err := move.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return 0, err
	}
	if b.After == 0 {
		if row.no, err = res.LastInsertId(); err != nil {
			return 0, err
		}
	}
	if len(w.rows) >= maxRows {
		clear(w.rows)
	}
	w.rows[key] = row
	return row.no, nil
}

// ignore returns nil if err is harmless, and err otherwise.
func ignore(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}

func (w *writer) events(ctx context.Context, b *queuedBatch, session int64) error {
	if len(b.Events) == 0 {
		return nil
	}
	h, err := w.head(ctx, b.Tenant)
	if err != nil {
		return err
	}
	b.result.Positions = make([]parley.Position, len(b.Events))
	last := b.After
	for i, e := range b.Events {
		if b.Trimmed && e.Seq > last+1 {
			if _, err := w.addHole.ExecContext(ctx, b.Tenant, b.Session, last+1, e.Seq-1); err != nil {
				return err
			}
		}
		last = e.Seq
		h.position++
		b.result.Positions[i] = parley.Position(h.position)
		var root any // NULL: the session is its own root
		if e.Root != b.Session {
			root = string(e.Root)
		}
		t := b.bodies[i]
		w.pending = append(w.pending, string(b.Tenant), session, int64(e.Seq), h.position, root, micros(e.At),
			int64(e.Run), string(e.By), t.Type, int64(t.Version), e.IsPiece(), string(t.JSON))
		w.noteText(b, session, e)
		if len(w.pending) == eventRows[0]*eventColumns {
			if err := w.insertPending(ctx); err != nil {
				return err
			}
		}
		if effect, ok := e.Body.(parley.EffectEnqueued); ok {
			key := parley.Ref(b.Session, e.Seq)
			run, target := effect.Row(e.Run)
			if _, err := w.addEffect.ExecContext(ctx, b.Tenant, b.Session, e.Seq, run, effect.Type, string(t.JSON), key,
				micros(e.At), target); err != nil {
				return err
			}
		}
		if err := w.updateRows(ctx, b, e); err != nil {
			return err
		}
	}
	return nil
}

// insertPending inserts the pending events. Their numbers follow each other, because only this connection writes.
func (w *writer) insertPending(ctx context.Context) error {
	rest, last := w.pending, int64(0)
	for i, add := range w.addEvents {
		for n := eventRows[i] * eventColumns; len(rest) >= n; rest = rest[n:] {
			res, err := add.ExecContext(ctx, rest[:n]...)
			if err == nil {
				last, err = res.LastInsertId()
			}
			if err != nil {
				return err
			}
		}
	}
	first := last - int64(len(w.pending)/eventColumns) + 1
	for _, t := range w.texts {
		t.event += first
		w.inserted = append(w.inserted, t)
	}
	clear(w.pending)
	w.pending, w.texts = w.pending[:0], nil
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
