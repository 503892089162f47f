package postgres

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
	"parley/store/rules"
)

const (
	addSaid = `INSERT INTO said (tenant, session, seq, position, owner, words)
		VALUES ($1, $2, $3, $4, $5, $6::text::tsvector) ON CONFLICT DO NOTHING`
	forgetSaid = `DELETE FROM said WHERE tenant = $1 AND session = $2`
)

// hear adds the text of an event to the full-text index.
func hear(trip *pgx.Batch, w *waiting, e parley.Event, position int64) {
	if vector := rules.IndexVector(port.SearchText(e)); vector != "" {
		trip.Queue(addSaid, text(w.Tenant), text(w.Session), int64(e.Seq), position, text(w.Summary.Owner), vector)
	}
}

// As for pages of events, the server adds up the sizes.
const (
	passagesHead = `SELECT session, title, owner, seq, position, at, type, version, body, matched FROM (
		SELECT *, count(*) OVER () AS matched, sum(octet_length(body)) OVER (ORDER BY position DESC
			ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before FROM (SELECT p.session, s.title, p.owner, p.seq, p.position, e.at, e.type, e.version, e.body
		FROM said p JOIN sessions s ON s.tenant = p.tenant AND s.id = p.session
			JOIN events e ON e.tenant = p.tenant AND e.session = p.session AND e.seq = p.seq
		WHERE p.tenant = $1 AND p.position < $2 AND p.words @@ $3::text::tsquery AND NOT s.deleted AND NOT s.transient
			AND ($4::text[] IS NULL OR s.project = ANY($4))`
	passagesTail = ` ORDER BY p.position DESC LIMIT $5) AS rows) AS page WHERE before < $6 ORDER BY position DESC`

	allPassages = passagesHead + passagesTail
	ownPassages = passagesHead + ` AND p.owner = $7` + passagesTail
)

func (t tenant) Search(ctx context.Context, q port.SearchQuery) (found port.Found, err error) {
	unsearched, _, err := one(ctx, t.s, of(t.id), pgx.RowTo[int64], `SELECT unsearched FROM tenants WHERE tenant = $1`,
		text(t.id))
	if err != nil {
		return found, err
	}
	found.Indexing = unsearched > 0
	terms := rules.Terms(q.Text)
	if len(terms) == 0 || q.Limit <= 0 {
		return found, nil
	}
	before := int64(q.Before)
	if before <= 0 {
		before = math.MaxInt64
	}
	query, args := allPassages, []any{text(t.id), before, rules.VectorQuery(terms), keysOf(q.Project), q.Limit + 1,
		rules.PageBytes}
	if q.Owner != "" {
		query, args = ownPassages, append(args, text(q.Owner))
	}
	type row struct {
		port.Passage
		event   parley.Event
		matched int // number of matching rows, up to the limit of the count
	}
	rows, err := list(ctx, t.s, of(t.id), func(r pgx.CollectableRow) (p row, err error) {
		var b rules.Body
		err = r.Scan((*text)(&p.Session), (*text)(&p.Title), (*text)(&p.Owner), (*int64)(&p.Seq),
			(*int64)(&p.Position), &p.At, &b.Type, &b.Version, &b.JSON, &p.matched)
		p.At, p.event = p.At.UTC(), parley.Event{Session: p.Session, Root: p.Session}
		if body, bad := b.Decode(); bad == nil {
			p.event.Body = body // otherwise only this session has the error
		}
		return p, err
	}, query, args...)
	if err != nil {
		return found, err
	}
	shown := rows[:min(len(rows), q.Limit)]
	for _, p := range shown {
		var ok bool
		if p.Text, p.Marks, ok = rules.PassageOf(port.SearchText(p.event), terms); ok {
			p.From = port.SpeakerOf(p.event)
			found.Passages = append(found.Passages, p.Passage)
		}
	}
	if n := len(shown); n > 0 && shown[0].matched > n {
		found.Next = shown[n-1].Position
	}
	return found, nil
}

// earlierPage is the maximum number of events that one IndexEarlier reads.
const earlierPage = 500

const unsearchedTenants = `SELECT tenant FROM tenants WHERE unsearched > 0 LIMIT 1`

// IndexEarlier locks the tenant's head, as an append does. So a session is deleted either before the page or after it.
// Nodes that index at the same time take turns.
func (s *Store) IndexEarlier(ctx context.Context) (messages int, more bool, err error) {
	tenants, err := list(ctx, s, maintenance, func(row pgx.CollectableRow) (id parley.TenantID, err error) {
		return id, row.Scan((*text)(&id))
	}, unsearchedTenants)
	if err != nil || len(tenants) == 0 {
		return 0, false, err
	}
	inTime, cancel := s.patience(ctx)
	defer cancel()
	err = pgx.BeginFunc(inTime, s.pool, func(tx pgx.Tx) error {
		messages, err = indexEarlier(inTime, tx, tenants[0])
		return err
	})
	return messages, err == nil, unavailable(ctx, err)
}

func indexEarlier(ctx context.Context, tx pgx.Tx, id parley.TenantID) (messages int, err error) {
	in := of(id)
	if _, err := tx.Exec(ctx, `SELECT set_config($1, $2, true)`, in.setting, in.value); err != nil {
		return 0, err
	}
	var upto int64
	if err := tx.QueryRow(ctx, `SELECT unsearched FROM tenants WHERE tenant = $1 FOR UPDATE`, text(id)).
		Scan(&upto); err != nil || upto == 0 {
		return 0, err
	}
	after := max(upto-earlierPage, 0)
	rows, err := tx.Query(ctx, `SELECT e.session, e.seq, e.position, s.owner, e.type, e.version, e.body
		FROM events e JOIN sessions s ON s.tenant = e.tenant AND s.id = e.session
		WHERE e.tenant = $1 AND e.position > $2 AND e.position <= $3 AND e.type IN ('InputReceived', 'OutputFinished')
		AND e.root = e.session AND NOT s.deleted`, text(id), after, upto)
	if err != nil {
		return 0, err
	}
	trip := &pgx.Batch{}
	var session, owner text
	var seq, position int64
	var b rules.Body
	if _, err := pgx.ForEachRow(rows, []any{&session, &seq, &position, &owner, &b.Type, &b.Version, &b.JSON},
		func() error {
			body, bad := b.Decode()
			if bad != nil {
				return nil // only this session has the error
			}
			e := parley.Event{Session: parley.SessionID(session), Root: parley.SessionID(session), Body: body}
			if vector := rules.IndexVector(port.SearchText(e)); vector != "" {
				trip.Queue(addSaid, text(id), session, seq, position, owner, vector)
				messages++
			}
			return nil
		}); err != nil {
		return 0, err
	}
	trip.Queue(`UPDATE tenants SET unsearched = $2 WHERE tenant = $1`, text(id), after)
	return messages, tx.SendBatch(ctx, trip).Close()
}
