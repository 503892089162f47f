package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"parley"
	"parley/port"
)

const setMarks = `INSERT INTO marks (tenant, session, principal, pinned, archived, read_at)
	SELECT ?1, ?2, ?3, coalesce(?4, 0), coalesce(?5, 0), ?6 FROM sessions WHERE tenant = ?1 AND id = ?2 AND deleted = 0
	ON CONFLICT (tenant, session, principal) DO UPDATE SET pinned = coalesce(?4, pinned),
		archived = coalesce(?5, archived), read_at = max(read_at, excluded.read_at)`

func (w *writer) marks(ctx context.Context, b *queuedBatch) error {
	m := b.Marks
	if m == nil {
		return nil
	}
	_, err := w.setMarks.ExecContext(ctx, b.Tenant, m.Session, m.User, optional(m.Pinned), optional(m.Archived),
		micros(m.ReadAt))
	return err
}

func optional(b *bool) any {
	if b == nil {
		return nil
	}
	return *b
}

const (
	markColumns = `coalesce(m.pinned, 0), coalesce(m.archived, 0), coalesce(m.read_at, 0),
		coalesce((SELECT r.ended_at FROM runs r WHERE r.tenant = s.tenant AND r.session = s.id
			ORDER BY r.run DESC LIMIT 1), 0)`
	allViewed = `SELECT ` + summaryColumns + `, ` + markColumns + ` FROM sessions s
		LEFT JOIN (SELECT session, pinned, archived, read_at FROM marks WHERE tenant = ?1 AND principal = ?2) m
			ON m.session = s.id
		WHERE s.tenant = ?1 AND s.deleted = 0`
)

// viewedSessions returns the query that lists sessions with the marks of a user, filtered by those marks if q asks for
// it.
func viewedSessions(q port.SessionQuery) string {
	text := allViewed
	if q.Pinned {
		text += ` AND m.pinned = 1`
	}
	switch q.Archived {
	case port.NotArchived:
		text += ` AND coalesce(m.archived, 0) = 0`
	case port.OnlyArchived:
		text += ` AND m.archived = 1`
	}
	return text
}

// storedMarks receives the columns markColumns.
type storedMarks struct {
	pinned, archived bool
	read, ended      int64
}

// with returns a scan function that appends these columns to the columns of its caller.
func (m *storedMarks) with(scan func(...any) error) func(...any) error {
	return func(into ...any) error { return scan(append(into, &m.pinned, &m.archived, &m.read, &m.ended)...) }
}

func (m *storedMarks) marks() port.Marks {
	return port.MarksAt(m.pinned, m.archived, fromMicros(m.read), fromMicros(m.ended))
}

func (t tenant) Marks(ctx context.Context, user parley.PrincipalID, id parley.SessionID) (port.Marks, error) {
	var m storedMarks
	err := m.with(t.s.read.QueryRowContext(ctx, `SELECT `+markColumns+` FROM sessions s
		LEFT JOIN (SELECT session, pinned, archived, read_at FROM marks WHERE tenant = ?1 AND principal = ?2) m
			ON m.session = s.id
		WHERE s.tenant = ?1 AND s.id = ?3`, t.id, user, id).Scan)()
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return port.Marks{}, unavailable(err)
	}
	return m.marks(), nil
}
