package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// maxTries is the maximum number of tries to store a group after transient
// errors. No try begins later than two timeouts after the first.
const maxTries = 4

// errAborted: the connection was lost, and the database has nothing of the
// transaction.
var errAborted = errors.New("the transaction was cut off and has left nothing")

// store stores a group in one transaction. If it returns an error, nothing is
// stored, unless the database could not be asked about the outcome.
func (s *Store) store(group []*waiting) error {
	start := time.Now()
	for try := 1; ; try++ {
		t := &transaction{store: s, group: group}
		err := t.run(context.Background()) // a late commit is better than half a commit
		if slow(err) {
			s.suspend(err)
		}
		if t.unknown {
			err = t.lookUp(err)
		}
		if err == nil {
			t.answer()
			if tell := s.observer.Load(); tell != nil {
				(*tell)(len(group), time.Since(start))
			}
			return nil
		}
		stale := try == 1 && t.claiming && sqlState(err) == readOnly // only the old connection is read-only
		again := stale || clash(err) || errors.Is(err, errAborted) || t.claiming && lost(err)
		if !again || try == maxTries || time.Since(start) > 2*s.timeout {
			return err
		}
		time.Sleep(rand.N(10 * time.Millisecond << try)) // random: conflicting transactions must not retry in step
	}
}

// transaction is one try to store a group. All batches of the group belong to
// one tenant.
type transaction struct {
	store *Store
	group []*waiting

	rehearsal bool // end with a rollback

	claiming bool   // no statement was sent that could commit
	unknown  bool   // a commit was sent, but no answer came back
	id       string // the server's id of the transaction

	moved []bool // by index in group: the batch is not fenced
	first int64  // position of the first event of the group

	auditNo   int64 // number of the last row of the tenant's chain
	auditHash string
}

// run uses two round trips. The first takes the tenant's head and advances the
// heads of the sessions, which shows the fenced batches. The second adds all
// rows of the other batches and commits. A fenced batch leaves a gap in the
// positions.
func (t *transaction) run(base context.Context) error {
	t.claiming = true
	ctx, cancel := t.store.patience(base)
	defer cancel()
	conn, err := t.store.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := conn.SendBatch(ctx, t.claim()).Close(); err != nil {
		if sqlState(err) == readOnly {
			// A connection that began while the database was read-only stays
			// read-only; a new one does not.
			t.store.pool.Reset()
		}
		return t.rollBack(ctx, conn, err)
	}
	t.claiming = false
	ctx, cancel = t.store.patience(base)
	defer cancel()
	if err := conn.SendBatch(ctx, t.fill()).Close(); err != nil {
		t.unknown = !refused(err)
		return t.rollBack(ctx, conn, err)
	}
	return nil
}

// rollBack rolls the transaction back. If it cannot, it closes the connection,
// and the server ends the transaction.
func (t *transaction) rollBack(ctx context.Context, conn *pgxpool.Conn, cause error) error {
	if refused(cause) {
		if _, err := conn.Exec(ctx, "rollback"); err == nil {
			return cause
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Conn().Close(ctx) // cause is the error to report
	return cause
}

const (
	takePositions = `INSERT INTO tenants AS t (tenant, position) VALUES ($1, $2)
		ON CONFLICT (tenant) DO UPDATE SET position = t.position + excluded.position
		RETURNING position, pg_current_xact_id()::text, audit_no, audit_hash`
	openSession = `INSERT INTO sessions (tenant, id, root, owner, agent, title, status, run, transient, deleted, head,
		epoch, opened_at, updated_at, bytes, project, holder)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) ON CONFLICT DO NOTHING`
	moveSession = `UPDATE sessions SET root = $3, owner = $4, agent = $5, title = $6, status = $7, run = $8, transient =
		$9, deleted = $10,
		head = $11, epoch = $12, opened_at = $13, updated_at = $14, bytes = bytes + $15, holder = $17
		WHERE tenant = $1 AND id = $2 AND head = $16 AND (epoch < $12 OR epoch = $12 AND holder IN ('', $18))`
	addEvent = `INSERT INTO events (tenant, session, seq, position, root, at, run, by, type, version, piece, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	addEffect = `INSERT INTO effects (tenant, session_key, id, run, type, payload, dedupe_key, status, created_at,
		updated_at, target, next_attempt_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8, $8, $9, 'epoch')`
	addReceipt = `INSERT INTO receipts (tenant, session, command, by, digest, first, last)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`
	addDefinition = `INSERT INTO definitions (tenant, digest, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	setSnapshot   = `INSERT INTO snapshots (tenant, session, seq, version, body) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant, session) DO UPDATE SET seq = excluded.seq, version = excluded.version,
		body = excluded.body`
	setDue = `INSERT INTO due (tenant, session, at, reason, lease) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant, session) DO UPDATE SET at = excluded.at, reason = excluded.reason, lease = excluded.lease`
	addHole  = `INSERT INTO holes (tenant, session, first, last) VALUES ($1, $2, $3, $4)`
	addAudit = `INSERT INTO audit (tenant, no, at, by, action, resource, resource_id, source, metadata, hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	clearDue   = `DELETE FROM due WHERE tenant = $1 AND session = $2`
	setContext = `INSERT INTO contexts (tenant, agent, principal, body, at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant, agent, principal) DO UPDATE SET body = excluded.body, at = excluded.at`
)

// claim builds the first round trip.
func (t *transaction) claim() *pgx.Batch {
	var events int64
	for _, w := range t.group {
		events += int64(len(w.Events))
	}
	t.moved = make([]bool, len(t.group))
	trip := &pgx.Batch{}
	trip.Queue("begin")
	of(t.group[0].Tenant).enter(trip)
	trip.Queue(takePositions, text(t.group[0].Tenant), events).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&t.first, &t.id, &t.auditNo, &t.auditHash)
		t.first -= events - 1
		return err
	})
	for i, w := range t.group {
		if w.Session == "" { // the batch has only audit records and tenant data
			t.moved[i] = true
			continue
		}
		m := w.Summary
		statement := openSession
		args := []any{text(w.Tenant), text(w.Session), text(m.Root), text(m.Owner), text(m.Agent), text(m.Title),
			text(m.Status), int64(m.Run),
			m.Transient, m.Deleted, int64(m.Head), w.Epoch, m.OpenedAt, m.UpdatedAt, w.bytes()}
		if w.After > 0 {
			statement, args = moveSession, append(args, int64(w.After), t.holder(w), t.store.node)
		} else {
			args = append(args, text(m.Project), t.holder(w))
		}
		trip.Queue(statement, args...).Exec(func(tag pgconn.CommandTag) error {
			t.moved[i] = tag.RowsAffected() == 1
			return nil
		})
	}
	return trip
}

// holder returns the node that holds the session after a batch.
func (t *transaction) holder(w *waiting) string {
	if w.Leave {
		return ""
	}
	return t.store.node
}

// fill builds the second round trip.
func (t *transaction) fill() *pgx.Batch {
	trip := &pgx.Batch{}
	position := t.first
	for i, w := range t.group {
		if t.moved[i] {
			t.add(trip, w, position)
		}
		position += int64(len(w.Events))
	}
	if last := t.auditNo; t.audit(trip) > last {
		trip.Queue(`UPDATE tenants SET audit_no = $2, audit_hash = $3 WHERE tenant = $1`, text(t.group[0].Tenant),
			t.auditNo, t.auditHash)
	}
	if t.rehearsal {
		trip.Queue("rollback")
	} else {
		trip.Queue("commit")
	}
	return trip
}

// audit adds the audit records of the group, and returns the number of the last
// row.
func (t *transaction) audit(trip *pgx.Batch) int64 {
	for i, w := range t.group {
		if !t.moved[i] {
			continue
		}
		for _, r := range rules.Chain(t.store.key, w.Tenant, t.auditNo, t.auditHash, w.Audit) {
			trip.Queue(addAudit, text(r.Tenant), r.No, r.At, text(r.By), text(r.Action), text(r.Resource), text(r.ID),
				text(r.Source), string(r.Metadata), r.Hash)
			t.auditNo, t.auditHash = r.No, r.Hash
		}
	}
	return t.auditNo
}

// add adds all rows of a batch.
func (t *transaction) add(trip *pgx.Batch, w *waiting, position int64) {
	if c := w.Context; c != nil {
		trip.Queue(setContext, text(w.Tenant), text(c.Agent), text(c.User), text(c.Text), c.At)
	}
	if w.Marks != nil {
		mark(trip, w.Tenant, *w.Marks)
	}
	if w.Hold != nil {
		hold(trip, w.Tenant, *w.Hold)
	}
	if w.Setup != nil {
		t.store.keepSetup(trip, w.Tenant, *w.Setup)
	}
	if w.Revocation != nil {
		revoke(trip, w.Tenant, *w.Revocation)
	}
	if w.Session == "" {
		return
	}
	t.store.keepWebhook(trip, w)
	tenant, session, last := text(w.Tenant), text(w.Session), w.After
	for i, e := range w.Events {
		if w.Trimmed && e.Seq > last+1 {
			trip.Queue(addHole, tenant, session, int64(last+1), int64(e.Seq-1))
		}
		last = e.Seq
		b := w.bodies[i]
		trip.Queue(addEvent, tenant, session, int64(e.Seq), position+int64(i), text(e.Root), e.At, int64(e.Run),
			text(e.By), b.Type, b.Version, e.IsPiece(), b.JSON)
		if effect, ok := e.Body.(parley.EffectEnqueued); ok {
			run, target := effect.Row(e.Run)
			trip.Queue(addEffect, tenant, session, int64(e.Seq), int64(run), text(effect.Type), b.JSON,
				text(parley.Ref(w.Session, e.Seq)), e.At, text(target))
		}
		hear(trip, w, e, position+int64(i))
		keep(trip, w, e)
	}
	if r := w.Receipt; r != nil {
		trip.Queue(addReceipt, tenant, session, text(r.Command), text(r.By), text(r.Digest), int64(r.First),
			int64(r.Last))
	}
	if w.Letter != "" {
		trip.Queue(endLetter, tenant, session, text(w.Letter))
	}
	if w.Session == parley.TenantSession && len(w.Events) > 0 {
		trip.Queue(setFacts, tenant, int64(w.Summary.Head))
	}
	if w.Agent != nil {
		trip.Queue(addDefinition, tenant, w.Agent.Digest(), w.agent)
	}
	if snap := w.Snapshot; snap != nil {
		trip.Queue(setSnapshot, tenant, session, int64(snap.Seq), snap.Version, string(snap.Body))
	}
	switch due := w.Due; {
	case due == nil:
	case due.Clear:
		trip.Queue(clearDue, tenant, session)
	case due.Held:
		trip.Queue(setDue, tenant, session, due.At, text(due.Reason), t.store.node)
	default:
		trip.Queue(setDue, tenant, session, due.At, text(due.Reason), "")
	}
}

// answer sets the result of each batch.
func (t *transaction) answer() {
	position := parley.Position(t.first)
	for i, w := range t.group {
		w.result = port.Appended{Fenced: !t.moved[i]}
		for range w.Events {
			if t.moved[i] {
				w.result.Positions = append(w.result.Positions, position)
			}
			position++
		}
	}
}
