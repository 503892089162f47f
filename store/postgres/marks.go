package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
)

const (
	setMarks = `INSERT INTO marks AS m (tenant, session, principal, pinned, archived, read_at)
		SELECT $1, $2, $3, coalesce($4::boolean, false), coalesce($5::boolean, false), $6::timestamptz
		FROM sessions WHERE tenant = $1 AND id = $2 AND NOT deleted
		ON CONFLICT (tenant, session, principal) DO UPDATE SET pinned = coalesce($4, m.pinned),
			archived = coalesce($5, m.archived), read_at = greatest(m.read_at, excluded.read_at)`
	forgetMarks = `DELETE FROM marks WHERE tenant = $1 AND session = $2`

	markColumns = `coalesce(m.pinned, false), coalesce(m.archived, false), m.read_at,
		(SELECT r.ended_at FROM runs r WHERE r.tenant = s.tenant AND r.session = s.id ORDER BY r.run DESC LIMIT 1)`
	allViewed = `SELECT ` + summaryColumns + `, ` + markColumns + ` FROM sessions s
		LEFT JOIN (SELECT session, pinned, archived, read_at FROM marks WHERE tenant = $1 AND principal = $2) m
			ON m.session = s.id
		WHERE s.tenant = $1 AND NOT s.deleted`
)

func mark(trip *pgx.Batch, tenant parley.TenantID, m port.MarkChange) {
	var read *time.Time
	if !m.ReadAt.IsZero() {
		read = &m.ReadAt
	}
	trip.Queue(setMarks, text(tenant), text(m.Session), text(m.User), m.Pinned, m.Archived, read)
}

// viewedSessions returns the query that lists sessions with the marks of a user, filtered by those marks if q asks for
// it.
func viewedSessions(q port.SessionQuery) string {
	query := allViewed
	if q.Pinned {
		query += ` AND m.pinned`
	}
	switch q.Archived {
	case port.NotArchived:
		query += ` AND NOT coalesce(m.archived, false)`
	case port.OnlyArchived:
		query += ` AND m.archived`
	}
	return query
}

// storedMarks receives the columns markColumns.
type storedMarks struct {
	pinned, archived bool
	read, ended      *time.Time
}

func (m *storedMarks) into() []any { return []any{&m.pinned, &m.archived, &m.read, &m.ended} }

func (m *storedMarks) marks() port.Marks {
	var read, ended time.Time
	if m.read != nil && m.ended != nil {
		read, ended = *m.read, *m.ended
	}
	return port.MarksAt(m.pinned, m.archived, read, ended)
}

func scanViewed(row pgx.CollectableRow) (st port.Stored, err error) {
	var m storedMarks
	st, err = scanStored(row, m.into()...)
	st.Summary.Marks = m.marks()
	return st, err
}

func (t tenant) Marks(ctx context.Context, user parley.PrincipalID, id parley.SessionID) (port.Marks, error) {
	m, _, err := one(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (port.Marks, error) {
		var m storedMarks
		err := row.Scan(m.into()...)
		return m.marks(), err
	}, `SELECT `+markColumns+` FROM sessions s
		LEFT JOIN (SELECT session, pinned, archived, read_at FROM marks WHERE tenant = $1 AND principal = $2) m
			ON m.session = s.id
		WHERE s.tenant = $1 AND s.id = $3`, text(t.id), text(user), text(id))
	return m, err
}
