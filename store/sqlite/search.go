package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"

	"parley"
	"parley/port"
	"parley/store/rules"
)

const (
	// One row of VALUES needs no statement journal. With one, FTS5 writes its index to disk for every row.
	addSaid    = `INSERT INTO said (rowid, whose, words) VALUES (?, ?, ?)`
	forgetSaid = `DELETE FROM said WHERE rowid IN (SELECT e.no FROM events e JOIN sessions s ON s.no = e.session
		WHERE e.tenant = ?1 AND s.tenant = ?1 AND s.id = ?2 AND e.type IN ('InputReceived', 'OutputFinished'))`
)

// saidText is a text to be indexed.
type saidText struct {
	event   int64 // number of its event; while the event is pending, its index among the pending ones
	session int64 // number of its session
	whose   string
	words   string
}

// noteText remembers the text of the last pending event for the full-text index. Texts of a deleted session are not
// indexed, including those that are still pending.
func (w *writer) noteText(b *queuedBatch, session int64, e parley.Event) {
	if b.Summary.Deleted {
		deleted := func(t saidText) bool { return t.session == session }
		w.texts, w.inserted = slices.DeleteFunc(w.texts, deleted), slices.DeleteFunc(w.inserted, deleted)
		return
	}
	if words := rules.IndexText(port.SearchText(e)); words != "" {
		w.texts = append(w.texts, saidText{int64(len(w.pending)/eventColumns - 1), session, whose(b.Tenant, b.Summary.Owner),
			words})
	}
}

// indexSaid adds the texts of the inserted events to the full-text index. It runs after all other statements of the
// transaction, because FTS5 writes its index to disk before each statement that has a statement journal.
func (w *writer) indexSaid(ctx context.Context) error {
	defer func() { w.inserted = nil }()
	for _, t := range w.inserted {
		if _, err := w.addSaid.ExecContext(ctx, t.event, t.whose, t.words); err != nil {
			return err
		}
	}
	return nil
}

// whose returns two index terms: one finds all messages of a tenant, the other all messages of an owner. A search with
// such a term does not read messages of other tenants or owners.
func whose(tenant parley.TenantID, owner parley.PrincipalID) string {
	return tenantWord(tenant) + " " + ownerWord(tenant, owner)
}

func tenantWord(tenant parley.TenantID) string { return "t" + digest(string(tenant)) }

func ownerWord(tenant parley.TenantID, owner parley.PrincipalID) string {
	return "o" + digest(string(tenant)+"\x00"+string(owner))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

const (
	passagesOf = `SELECT s.id, s.title, s.owner, e.seq, e.position, e.at, e.type, e.version, e.body
		FROM said CROSS JOIN events e ON e.no = said.rowid CROSS JOIN sessions s ON s.no = e.session
		WHERE said MATCH ? AND said.rowid <= coalesce((SELECT p.no FROM events p
			WHERE p.tenant = ? AND p.position < ? ORDER BY p.position DESC LIMIT 1), 0)
		AND e.tenant = ? AND s.tenant = e.tenant AND s.deleted = 0 AND s.transient = 0`
	newestFirst = ` ORDER BY said.rowid DESC LIMIT ? + 0`
)

func (t tenant) Search(ctx context.Context, q port.SearchQuery) (found port.Found, err error) {
	var unsearched int64
	if err := t.s.read.QueryRowContext(ctx, `SELECT unsearched FROM store`).Scan(&unsearched); err != nil {
		return found, unavailable(err)
	}
	found.Indexing = unsearched > 0
	terms := rules.Terms(q.Text)
	if len(terms) == 0 || q.Limit <= 0 {
		return found, nil
	}
	match := `whose : ` + tenantWord(t.id) + ` AND words : (` + rules.MatchQuery(terms) + `)`
	if q.Owner != "" {
		match = `whose : ` + ownerWord(t.id, q.Owner) + ` AND words : (` + rules.MatchQuery(terms) + `)`
	}
	before := int64(q.Before)
	if before <= 0 {
		before = math.MaxInt64
	}
	text, args := passagesOf, []any{match, t.id, before, t.id}
	text, args = ofProject(text, ` AND s.project`, args, q.Project)
	rows, err := t.s.read.QueryContext(ctx, text+newestFirst, append(args, q.Limit+1)...)
	if err != nil {
		return found, unavailable(err)
	}
	defer rows.Close()
	read, last := 0, parley.Position(0) // rows read, and the position of the last one
	for bytes := rules.PageBytes; rows.Next(); read++ {
		if read == q.Limit || bytes <= 0 {
			found.Next = last
			break
		}
		p := port.Passage{}
		var at int64
		var body rules.Body
		if err := rows.Scan(&p.Session, &p.Title, &p.Owner, &p.Seq, &p.Position, &at, &body.Type, &body.Version,
			&body.JSON); err != nil {
			return found, unavailable(err)
		}
		p.At, last = fromMicros(at), p.Position
		bytes -= len(body.JSON)
		event := parley.Event{Session: p.Session, Root: p.Session}
		if event.Body, err = body.Decode(); err != nil {
			continue // only this session has the error
		}
		var ok bool
		if p.Text, p.Marks, ok = rules.PassageOf(port.SearchText(event), terms); ok {
			p.From = port.SpeakerOf(event)
			found.Passages = append(found.Passages, p)
		}
	}
	return found, unavailable(rows.Err())
}

// earlierPage is the maximum number of events that one IndexEarlier reads. It limits how long appends wait meanwhile.
const earlierPage = 500

const earlierSaid = `SELECT e.no, e.tenant, s.id, s.owner, e.type, e.version, e.body
	FROM events e JOIN sessions s ON s.no = e.session
	WHERE e.no > ?1 AND e.no <= ?2 AND e.type IN ('InputReceived', 'OutputFinished') AND e.root IS NULL AND s.deleted = 0
	ORDER BY e.no DESC`

func (s *Store) IndexEarlier(ctx context.Context) (messages int, more bool, err error) {
	err = s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
		messages, more, err = w.indexEarlier(ctx)
		return err
	})
	return messages, more, err
}

func (w *writer) indexEarlier(ctx context.Context) (messages int, more bool, err error) {
	var upto int64
	if err := w.conn.QueryRowContext(ctx, `SELECT unsearched FROM store`).Scan(&upto); err != nil || upto == 0 {
		return 0, false, err
	}
	after := max(upto-earlierPage, 0)
	texts, err := w.earlierTexts(ctx, after, upto)
	if err != nil {
		return 0, false, err
	}
	for _, t := range texts {
		if _, err := w.addSaid.ExecContext(ctx, t.event, t.whose, t.words); err != nil {
			return 0, false, err
		}
	}
	_, err = w.conn.ExecContext(ctx, `UPDATE store SET unsearched = ?`, after)
	return len(texts), after > 0, err
}

// An earlierText is a text whose event has been in the store for longer.
type earlierText struct {
	event        int64 // number of the event
	whose, words string
}

func (w *writer) earlierTexts(ctx context.Context, after, upto int64) (list []earlierText, err error) {
	rows, err := w.conn.QueryContext(ctx, earlierSaid, after, upto)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t earlierText
		var tenant parley.TenantID
		var id parley.SessionID
		var owner parley.PrincipalID
		var b rules.Body
		if err := rows.Scan(&t.event, &tenant, &id, &owner, &b.Type, &b.Version, &b.JSON); err != nil {
			return nil, err
		}
		body, bad := b.Decode()
		if bad != nil {
			continue // only this session has the error
		}
		t.whose = whose(tenant, owner)
		t.words = rules.IndexText(port.SearchText(parley.Event{Session: id, Root: id, Body: body}))
		if t.words != "" {
			list = append(list, t)
		}
	}
	return list, rows.Err()
}
