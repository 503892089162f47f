package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
)

const dueSessions = `SELECT tenant, session, at, reason FROM due
	WHERE lease = '' AND EXISTS (SELECT 1 FROM sessions s WHERE s.tenant = due.tenant AND s.id = due.session)
	ORDER BY at LIMIT ? + 0`

func (s *Store) DueBefore(ctx context.Context, now time.Time, limit int) ([]port.DueSession, time.Time, error) {
	rows, err := s.read.QueryContext(ctx, dueSessions, limit+1)
	if err != nil {
		return nil, time.Time{}, unavailable(err)
	}
	defer rows.Close()
	var due []port.DueSession
	for rows.Next() {
		var d port.DueSession
		var at int64
		if rows.Scan(&d.Tenant, &d.Session, &at, &d.Reason) != nil {
			continue // one damaged row must not hide the others
		}
		d.At = fromMicros(at)
		if d.At.After(now) || len(due) == limit {
			return due, d.At, nil
		}
		due = append(due, d)
	}
	return due, time.Time{}, unavailable(rows.Err())
}

func (s *Store) Tenant(id parley.TenantID) port.TenantStore { return tenant{s, id} }

type tenant struct {
	s  *Store
	id parley.TenantID
}

const summaryColumns = `id, root, owner, agent, title, status, run, transient, deleted, head, opened_at, updated_at,
	epoch, project`

func scanSession(scan func(...any) error) (port.Stored, error) {
	var m port.Stored
	var opened, updated int64
	err := scan(&m.Summary.ID, &m.Summary.Root, &m.Summary.Owner, &m.Summary.Agent, &m.Summary.Title, &m.Summary.Status,
		&m.Summary.Run, &m.Summary.Transient, &m.Summary.Deleted, &m.Summary.Head, &opened, &updated, &m.Epoch,
		&m.Summary.Project)
	m.Summary.OpenedAt, m.Summary.UpdatedAt = fromMicros(opened), fromMicros(updated)
	return m, err
}

func (t tenant) Session(ctx context.Context, id parley.SessionID) (port.Stored, error) {
	rows, err := t.s.read.QueryContext(ctx, `SELECT `+summaryColumns+` FROM sessions WHERE tenant = ? AND id = ?`, t.id,
		id)
	if err != nil {
		return port.Stored{}, unavailable(err)
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return port.Stored{}, unavailable(err)
		}
		return port.Stored{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	m, err := scanSession(rows.Scan)
	if err != nil {
		return m, rules.Corrupt(id, 0, err)
	}
	return m, nil
}

func (t tenant) Sessions(ctx context.Context, q port.SessionQuery) ([]port.Summary, error) {
	text, args := `SELECT `+summaryColumns+` FROM sessions WHERE tenant = ?1 AND deleted = 0`, []any{t.id}
	if q.Running {
		text = `SELECT ` + summaryColumns +
			` FROM sessions INDEXED BY sqlite_autoindex_sessions_1 WHERE tenant = ?1 AND deleted = 0
			AND id IN (SELECT session FROM runs WHERE tenant = ?1 AND outcome = '')`
	}
	if q.Viewer != "" {
		text, args = viewedSessions(q), append(args, q.Viewer)
	}
	if q.Owner != "" {
		text, args = text+` AND owner = ?`, append(args, q.Owner)
	}
	if q.Root != "" {
		text, args = text+` AND root = ?`, append(args, q.Root)
	}
	text, args = ofProject(text, ` AND project`, args, q.Project)
	if !q.Transient {
		text += ` AND transient = 0`
	}
	if q.Search != "" {
		text, args = text+` AND title LIKE ? ESCAPE '\'`,
			append(args, "%"+strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(q.Search)+"%")
	}
	rows, err := t.s.read.QueryContext(ctx, text+` ORDER BY recent DESC, updated_at DESC, id LIMIT ? + 0`,
		append(args, q.Limit)...)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	scan := rows.Scan
	var marks storedMarks
	if q.Viewer != "" {
		scan = marks.with(scan)
	}
	var list []port.Summary
	for rows.Next() {
		m, err := scanSession(scan)
		if err != nil {
			return nil, unavailable(err)
		}
		m.Summary.Marks = marks.marks()
		list = append(list, m.Summary)
	}
	return list, unavailable(rows.Err())
}

// ofProject limits a query to the sessions of a project.
func ofProject(query, column string, args []any, p port.Project) (string, []any) {
	keys := p.Keys()
	if len(keys) == 0 {
		return query, args
	}
	for _, key := range keys {
		args = append(args, key)
	}
	return query + column + ` IN (?` + strings.Repeat(`, ?`, len(keys)-1) + `)`, args
}

const eventsFrom = `e.seq, e.position, e.root, e.at, e.run, e.by, e.type, e.version, e.body FROM events e
	JOIN sessions s ON s.no = e.session`

// A query for a single session leaves out the session's id, which the caller knows.
const (
	anyEvents     = `SELECT s.id, ` + eventsFrom
	sessionEvents = `SELECT ` + eventsFrom
)

func (t tenant) Events(ctx context.Context, id parley.SessionID, after parley.Seq, limit int) ([]parley.Event, error) {
	events, bad, err := t.events(ctx, id, rules.PageBytes, sessionEvents+`
		WHERE s.tenant = ?1 AND s.id = ?2 AND e.tenant = ?1 AND e.seq > ?3
		ORDER BY e.seq LIMIT ?4 + 0`, t.id, id, after, limit)
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
	events, bad, err := t.events(ctx, id, math.MaxInt, sessionEvents+`
		WHERE s.tenant = ?1 AND s.id = ?2 AND e.tenant = ?1 AND e.seq > ?3 AND e.piece = 0
		ORDER BY e.seq`, t.id, id, after)
	if err == nil {
		err = cmp.Or(bad, t.gaps(ctx, id).End(after, events))
	}
	return events, err
}

// Tree merges two streams: the root's own events, found by seq, and the events
// of its descendants, found by position.
func (t tenant) Tree(ctx context.Context, root parley.SessionID, after parley.Position, limit int) ([]parley.Event,
	error) {
	query, args := anyEvents+
		` WHERE e.tenant = ? AND s.tenant = e.tenant AND e.position > ? ORDER BY e.position LIMIT ? + 0`,
		[]any{t.id, after, limit}
	if root != "" {
		seq, err := t.seqAt(ctx, root, after)
		if err != nil {
			return nil, err
		}
		query = `SELECT * FROM (SELECT * FROM (` + anyEvents + `
				WHERE s.tenant = ?1 AND s.id = ?2 AND e.tenant = ?1 AND e.seq > ?3 AND e.root IS NULL
				ORDER BY e.seq LIMIT ?5 + 0)
			UNION ALL SELECT * FROM (` + anyEvents + `
				WHERE e.tenant = ?1 AND s.tenant = ?1 AND e.root = ?2 AND e.position > ?4
				ORDER BY e.position LIMIT ?5 + 0))
			ORDER BY position LIMIT ?5 + 0`
		args = []any{t.id, root, seq, after, limit}
	}
	events, _, err := t.events(ctx, "", rules.PageBytes, query, args...)
	return events, err
}

// seqAt returns the seq of a session's last event at or before a position. Seqs
// and positions both grow along a log, so seqAt searches backwards from the
// end, where most followers are, in steps that double.
func (t tenant) seqAt(ctx context.Context, id parley.SessionID, position parley.Position) (parley.Seq, error) {
	var no, head int64
	err := t.s.read.QueryRowContext(ctx, `SELECT no, head FROM sessions WHERE tenant = ? AND id = ?`, t.id, id).Scan(
		&no, &head)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, unavailable(err)
	}
	// isAfter reports whether the last event up to seq is after the position.
	isAfter := func(seq int64) bool {
		var at parley.Position
		e := t.s.read.QueryRowContext(ctx,
			`SELECT position FROM events WHERE tenant = ? AND session = ? AND seq <= ? ORDER BY seq DESC LIMIT 1`, t.id,
			no, seq).Scan(&at)
		if e != nil && !errors.Is(e, sql.ErrNoRows) {
			err = e
		}
		return at > position
	}
	low, high := int64(0), head+1 // invariant: low is not after the position, high is
	for step := int64(1); high > 1; step *= 2 {
		probe := max(high-step, 1)
		if !isAfter(probe) {
			low = probe
			break
		}
		high = probe
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; isAfter(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return parley.Seq(low), unavailable(err)
}

// events reads a page of events, of one session or of any. It returns a row that cannot be decoded as Unreadable; bad
// is the error of the first such row.
func (t tenant) events(ctx context.Context, id parley.SessionID, bytes int, query string, args ...any) (
	events []parley.Event, bad, err error) {
	rows, err := t.s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	defer rows.Close()
	// Plain types: database/sql scans values of named types by reflection.
	var session, by, name string
	var root sql.NullString // NULL: the session is its own root
	var seq, position, at, run, version int64
	var body sql.RawBytes // decoded before the next row is read
	columns := []any{&session, &seq, &position, &root, &at, &run, &by, &name, &version, &body}
	if id != "" {
		columns = columns[1:]
	}
	for bytes > 0 && rows.Next() {
		if err := rows.Scan(columns...); err != nil {
			return nil, nil, unavailable(err)
		}
		e := parley.Event{Session: parley.SessionID(session), Seq: parley.Seq(seq), Position: parley.Position(position),
			Root: parley.SessionID(root.String),
			At:   fromMicros(at), Run: parley.RunID(run), By: parley.PrincipalID(by)}
		if id != "" {
			e.Session = id
		}
		if e.Root == "" {
			e.Root = e.Session
		}
		if e.Body, err = parley.DecodeBody(name, int(version), body); err != nil {
			e.Body = parley.Unreadable{Type: name}
			if bad == nil {
				bad = rules.Corrupt(e.Session, e.Seq, err)
			}
		}
		bytes -= len(body)
		events = append(events, e)
	}
	return events, bad, unavailable(rows.Err())
}

func (t tenant) Position(ctx context.Context) (p parley.Position, err error) {
	err = t.s.read.QueryRowContext(ctx, `SELECT `+lastPosition+` FROM tenants t WHERE tenant = ?`, t.id).Scan(&p)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return p, unavailable(err)
}

func (t tenant) Snapshot(ctx context.Context, id parley.SessionID) (s parley.Snapshot, ok bool, err error) {
	err = t.s.read.QueryRowContext(ctx, `SELECT seq, version, body FROM snapshots WHERE tenant = ? AND session = ?`,
		t.id, id).Scan(&s.Seq, &s.Version, &s.Body)
	if errors.Is(err, sql.ErrNoRows) {
		return s, false, nil
	}
	return s, err == nil, unavailable(err)
}

func (t tenant) Receipt(ctx context.Context, id parley.SessionID, command parley.CommandID) (port.StoredReceipt, bool,
	error) {
	r := port.StoredReceipt{Receipt: port.Receipt{Session: id, Command: command}}
	err := t.s.read.QueryRowContext(ctx,
		`SELECT by, digest, first, last FROM receipts WHERE tenant = ? AND session = ? AND command = ?`, t.id, id,
		command).
		Scan(&r.By, &r.Digest, &r.First, &r.Last)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, unavailable(err)
}

func (t tenant) Definition(ctx context.Context, digest string) (a parley.Agent, err error) {
	var body []byte
	err = t.s.read.QueryRowContext(ctx, `SELECT body FROM definitions WHERE tenant = ? AND digest = ?`, t.id,
		digest).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return a, parley.Errorf(parley.CodeNotFound, "The definition of this agent is not stored.")
	}
	if err != nil {
		return a, unavailable(err)
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return a, &parley.Error{Code: parley.CodeCorrupt, Message: "A stored definition cannot be read.", Err: err}
	}
	return a, nil
}

func (t tenant) Context(ctx context.Context, agent string, user parley.PrincipalID) (port.UserContext, bool, error) {
	c := port.UserContext{Agent: agent, User: user}
	var at int64
	err := t.s.read.QueryRowContext(ctx,
		`SELECT body, at FROM contexts WHERE tenant = ? AND agent = ? AND principal = ?`, t.id, agent, user).Scan(
		&c.Text, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return port.UserContext{}, false, nil
	}
	c.At = fromMicros(at)
	return c, err == nil, unavailable(err)
}

func (t tenant) Undelivered(ctx context.Context, id parley.SessionID, after time.Time) ([]parley.Bookmark, error) {
	rows, err := t.s.read.QueryContext(ctx,
		`SELECT id, run, attempts, last_attempt_at, created_at FROM effects INDEXED BY effects_owed
		WHERE tenant = ? AND session_key = ? AND type = 'send_message' AND status IN ('pending', 'executing')
		AND created_at > ? ORDER BY id`, t.id, id, micros(after))
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	var owed []parley.Bookmark
	for rows.Next() {
		var b parley.Bookmark
		var last sql.NullInt64
		var made int64
		if err := rows.Scan(&b.Effect, &b.Run, &b.Attempts, &last, &made); err != nil {
			return nil, unavailable(err)
		}
		b.LastAttemptAt, b.CreatedAt = fromMicros(last.Int64), fromMicros(made)
		owed = append(owed, b)
	}
	return owed, unavailable(rows.Err())
}

func (t tenant) Delivered(ctx context.Context, id parley.SessionID, at time.Time, runs ...parley.RunID) error {
	return t.s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
		for _, run := range runs {
			if _, err := w.setEffects.ExecContext(ctx, micros(at), t.id, id, run); err != nil {
				return err
			}
		}
		return nil
	})
}

// Define stores a definition without a batch. A definition without references
// is harmless: it is found only by its digest.
func (s *Store) Define(ctx context.Context, id parley.TenantID, a parley.Agent) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
		_, err := w.addDefinition.ExecContext(ctx, id, a.Digest(), string(body))
		return err
	})
}

func unavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, told := errors.AsType[*parley.Error](err); told {
		return err
	}
	if damaged(err) {
		return &parley.Error{Code: parley.CodeCorrupt, Message: damagedMessage, Err: err, Hint: damagedHint}
	}
	return &parley.Error{Code: parley.CodeUnavailable, Message: "The server cannot read its store right now.", Err: err,
		Hint: "see that the disk of the data folder can be read"}
}
