package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// list reads rows in a scope, in one round trip. A connection that was lost
// while idle in the pool says nothing about the server, so list tries another
// one.
func list[T any](ctx context.Context, s *Store, in scope, scan pgx.RowToFunc[T], query string, args ...any) (all []T,
	err error) {
	if err := s.refusing(); slow(err) {
		return nil, cmp.Or(ctx.Err(), err) // the database would not answer this query either
	}
	inTime, cancel := s.patience(ctx)
	defer cancel()
	for try := 1; ; try++ {
		trip := &pgx.Batch{}
		in.enter(trip)
		trip.Queue(query, args...).Query(func(rows pgx.Rows) (err error) {
			all, err = pgx.CollectRows(rows, scan)
			return err
		})
		err := s.pool.SendBatch(inTime, trip).Close()
		if err == nil {
			return all, nil
		}
		if !lost(err) || try == 2 {
			shown := unavailable(ctx, err)
			if parley.CodeOf(shown) == parley.CodeUnavailable && !refused(err) {
				s.ill(err, nil) // the server is unreachable, so appends would fail too
			}
			return nil, shown
		}
	}
}

// one reads at most one row.
func one[T any](ctx context.Context, s *Store, in scope, scan pgx.RowToFunc[T], query string, args ...any) (row T,
	found bool, err error) {
	all, err := list(ctx, s, in, scan, query, args...)
	if len(all) > 0 {
		row = all[0]
	}
	return row, len(all) > 0, err
}

func (s *Store) Tenant(id parley.TenantID) port.TenantStore { return tenant{s, id} }

type tenant struct {
	s  *Store
	id parley.TenantID
}

const summaryColumns = `id, root, owner, agent, title, status, run, transient, deleted, head, opened_at, updated_at,
	epoch, project`

// livingHolder is the holder of a session if it is another node than $3 and was
// seen within $4, and empty otherwise.
const livingHolder = `CASE WHEN holder IN ('', $3) THEN '' ELSE coalesce((SELECT n.id FROM nodes n
	WHERE n.id = holder AND n.seen_at > clock_timestamp() - $4::interval), '') END`

func scanSession(row pgx.CollectableRow) (port.Stored, error) { return scanStored(row) }

func scanHeld(row pgx.CollectableRow) (st port.Stored, err error) {
	var holder string
	st, err = scanStored(row, &holder)
	st.Holder = holder
	return st, err
}

func scanStored(row pgx.CollectableRow, more ...any) (st port.Stored, err error) {
	m := &st.Summary
	err = row.Scan(append([]any{(*text)(&m.ID), (*text)(&m.Root), (*text)(&m.Owner), (*text)(&m.Agent),
		(*text)(&m.Title), (*text)(&m.Status),
		(*int64)(&m.Run), &m.Transient, &m.Deleted, (*int64)(&m.Head), &m.OpenedAt, &m.UpdatedAt, &st.Epoch,
		(*text)(&m.Project)}, more...)...)
	m.OpenedAt, m.UpdatedAt = m.OpenedAt.UTC(), m.UpdatedAt.UTC()
	return st, err
}

func (t tenant) Session(ctx context.Context, id parley.SessionID) (port.Stored, error) {
	st, found, err := one(ctx, t.s, of(t.id), scanHeld,
		`SELECT `+summaryColumns+`, `+livingHolder+` FROM sessions WHERE tenant = $1 AND id = $2`, text(t.id), text(id),
		t.s.node, t.s.lease)
	if err == nil && !found {
		err = parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	return st, err
}

func (t tenant) Sessions(ctx context.Context, q port.SessionQuery) ([]port.Summary, error) {
	query := `SELECT ` + summaryColumns + ` FROM sessions WHERE tenant = $1 AND NOT deleted`
	if q.Running {
		query = `SELECT ` + summaryColumns + ` FROM sessions WHERE tenant = $1 AND NOT deleted
			AND id IN (SELECT session FROM runs WHERE tenant = $1 AND outcome = '')`
	}
	args := []any{text(t.id)}
	scan := scanSession
	if q.Viewer != "" {
		query, scan, args = viewedSessions(q), scanViewed, append(args, text(q.Viewer))
	}
	and := func(condition string, arg any) {
		args = append(args, arg)
		query += fmt.Sprintf(condition, len(args))
	}
	if q.Owner != "" {
		and(` AND owner = $%d`, text(q.Owner))
	}
	if q.Root != "" {
		and(` AND root = $%d`, text(q.Root))
	}
	if keys := keysOf(q.Project); keys != nil {
		and(` AND project = ANY($%d)`, keys)
	}
	if !q.Transient {
		query += ` AND NOT transient`
	}
	if q.Search != "" {
		and(` AND title ILIKE $%d ESCAPE '\'`,
			text("%"+strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(q.Search)+"%"))
	}
	and(` ORDER BY recent DESC, updated_at DESC, id LIMIT $%d`, q.Limit)
	return list(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (port.Summary, error) {
		st, err := scan(row)
		return st.Summary, err
	}, query, args...)
}

const eventColumns = `session, seq, position, root, at, run, by, type, version, body`

// page selects up to a number of events in an order, and stops after the event
// that fills $2 bytes. The server adds up the sizes without reading the bodies,
// so the events left out cost nothing.
const (
	page   = `SELECT ` + eventColumns + ` FROM (SELECT *, sum(octet_length(body)) OVER (ORDER BY `
	pageOf = ` ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before FROM (SELECT ` + eventColumns +
		` FROM events WHERE tenant = $1 AND `
	pageEnd = `) AS rows) AS page WHERE before < $2 ORDER BY `

	eventsPage = page + `seq` + pageOf + `session = $3 AND seq > $4 ORDER BY seq LIMIT $5` + pageEnd + `seq`
	tenantPage = page + `position` + pageOf + `position > $3 ORDER BY position LIMIT $4` + pageEnd + `position`
	treePage   = page + `position` + pageOf + `root = $3 AND position > $4 ORDER BY position LIMIT $5` + pageEnd +
		`position`
)

func (t tenant) Events(ctx context.Context, id parley.SessionID, after parley.Seq, limit int) ([]parley.Event, error) {
	events, bad, err := t.events(ctx, eventsPage, text(t.id), rules.PageBytes, text(id), int64(after), limit)
	if err == nil {
		err = cmp.Or(t.gaps(ctx, id).Page(after, events, limit), bad)
	}
	if err != nil {
		return nil, err
	}
	return events, nil
}

func (t tenant) EventsWithoutChunks(ctx context.Context, id parley.SessionID, after parley.Seq) (
	[]parley.Event, error) {
	events, bad, err := t.events(ctx,
		`SELECT `+eventColumns+
			` FROM events WHERE tenant = $1 AND session = $2 AND seq > $3 AND NOT piece ORDER BY seq`, text(t.id),
		text(id), int64(after))
	if err == nil {
		err = cmp.Or(bad, t.gaps(ctx, id).End(after, events))
	}
	return events, err
}

func (t tenant) Tree(ctx context.Context, root parley.SessionID, after parley.Position, limit int) (
	events []parley.Event, err error) {
	if root == "" {
		events, _, err = t.events(ctx, tenantPage, text(t.id), rules.PageBytes, int64(after), limit)
	} else {
		events, _, err = t.events(ctx, treePage, text(t.id), rules.PageBytes, text(root), int64(after), limit)
	}
	return events, err
}

// events reads events. It returns a row that cannot be decoded as Unreadable;
// bad is the error of the first such row.
func (t tenant) events(ctx context.Context, query string, args ...any) (events []parley.Event, bad, err error) {
	type row struct {
		parley.Event
		bad error
	}
	rows, err := list(ctx, t.s, of(t.id), func(r pgx.CollectableRow) (e row, err error) {
		var name string
		var version int
		var body []byte
		if err := r.Scan((*text)(&e.Session), (*int64)(&e.Seq), (*int64)(&e.Position), (*text)(&e.Root), &e.At,
			(*int64)(&e.Run), (*text)(&e.By),
			&name, &version, &body); err != nil {
			return e, err
		}
		e.At = e.At.UTC()
		if e.Body, err = parley.DecodeBody(name, version, body); err != nil {
			e.Body, e.bad = parley.Unreadable{Type: name}, rules.Corrupt(e.Session, e.Seq, err)
		}
		return e, nil
	}, query, args...)
	for _, r := range rows {
		events = append(events, r.Event)
		if bad == nil {
			bad = r.bad
		}
	}
	return events, bad, err
}

func (t tenant) Position(ctx context.Context) (parley.Position, error) {
	p, _, err := one(ctx, t.s, of(t.id), pgx.RowTo[int64], `SELECT position FROM tenants WHERE tenant = $1`, text(t.id))
	return parley.Position(p), err
}

func (t tenant) Snapshot(ctx context.Context, id parley.SessionID) (parley.Snapshot, bool, error) {
	return one(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (s parley.Snapshot, err error) {
		return s, row.Scan((*int64)(&s.Seq), &s.Version, &s.Body)
	}, `SELECT seq, version, body FROM snapshots WHERE tenant = $1 AND session = $2`, text(t.id), text(id))
}

func (t tenant) Receipt(ctx context.Context, id parley.SessionID, command parley.CommandID) (port.StoredReceipt, bool,
	error) {
	return one(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (port.StoredReceipt, error) {
		r := port.StoredReceipt{Receipt: port.Receipt{Session: id, Command: command}}
		return r, row.Scan((*text)(&r.By), (*text)(&r.Digest), (*int64)(&r.First), (*int64)(&r.Last))
	}, `SELECT by, digest, first, last FROM receipts WHERE tenant = $1 AND session = $2 AND command = $3`, text(t.id),
		text(id), text(command))
}

func (t tenant) Definition(ctx context.Context, digest string) (a parley.Agent, err error) {
	body, found, err := one(ctx, t.s, of(t.id), pgx.RowTo[[]byte],
		`SELECT body FROM definitions WHERE tenant = $1 AND digest = $2`, text(t.id), text(digest))
	switch {
	case err != nil:
		return a, err
	case !found:
		return a, parley.Errorf(parley.CodeNotFound, "The definition of this agent is not stored.")
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return a, &parley.Error{Code: parley.CodeCorrupt, Message: "A stored definition cannot be read.", Err: err}
	}
	return a, nil
}

func (t tenant) Context(ctx context.Context, agent string, user parley.PrincipalID) (port.UserContext, bool, error) {
	return one(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (port.UserContext, error) {
		c := port.UserContext{Agent: agent, User: user}
		err := row.Scan((*text)(&c.Text), &c.At)
		c.At = c.At.UTC()
		return c, err
	}, `SELECT body, at FROM contexts WHERE tenant = $1 AND agent = $2 AND principal = $3`, text(t.id), text(agent),
		text(user))
}

func (t tenant) Undelivered(ctx context.Context, id parley.SessionID, after time.Time) ([]parley.Bookmark, error) {
	return list(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (b parley.Bookmark, err error) {
		var last *time.Time
		if err = row.Scan((*int64)(&b.Effect), (*int64)(&b.Run), &b.Attempts, &last, &b.CreatedAt); last != nil {
			b.LastAttemptAt = last.UTC()
		}
		b.CreatedAt = b.CreatedAt.UTC()
		return b, err
	}, `SELECT id, run, attempts, last_attempt_at, created_at FROM effects
		WHERE tenant = $1 AND session_key = $2 AND type = 'send_message' AND status IN ('pending', 'executing')
		AND created_at > $3 ORDER BY id`, text(t.id), text(id), after)
}

// Delivered does not go through a group: its order relative to appends does not
// matter, and it is idempotent.
func (t tenant) Delivered(ctx context.Context, id parley.SessionID, at time.Time, runs ...parley.RunID) error {
	which := make([]int64, len(runs))
	for i, run := range runs {
		which[i] = int64(run)
	}
	_, err := list(ctx, t.s, of(t.id), pgx.RowTo[int64],
		`UPDATE effects SET status = 'completed', updated_at = $4, attempts = greatest(attempts, 1), last_attempt_at =
			$4, leased_until = NULL
			WHERE tenant = $1 AND session_key = $2 AND run = ANY($3) AND type = 'send_message' AND status IN ('pending',
			'executing') RETURNING id`,
		text(t.id), text(id), which, at)
	return err
}

// Define stores a definition without a batch. A definition without references
// is harmless: it is found only by its digest.
func (s *Store) Define(ctx context.Context, id parley.TenantID, a parley.Agent) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = list(ctx, s, of(id), pgx.RowTo[string], addDefinition+` RETURNING digest`, text(id), a.Digest(), body)
	return err
}
