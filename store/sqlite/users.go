package sqlite

import (
	"context"
	"database/sql"

	"parley"
	"parley/port"
)

// listUsers jumps from one user to the next by the indexes sessions_owned and audit_by, so its cost does not depend on
// the number of sessions and audit rows.
const listUsers = `WITH RECURSIVE people (id) AS (
	SELECT min(id) FROM (SELECT min(by) AS id FROM audit WHERE tenant = ?1 AND by > ?2
		UNION ALL SELECT min(owner) FROM sessions WHERE tenant = ?1 AND owner > ?2 AND deleted = 0 AND transient = 0)
	UNION ALL
	SELECT (SELECT min(id) FROM (SELECT min(by) AS id FROM audit WHERE tenant = ?1 AND by > people.id
		UNION ALL SELECT min(owner) FROM sessions WHERE tenant = ?1 AND owner > people.id AND deleted = 0
			AND transient = 0))
	FROM people WHERE people.id IS NOT NULL
	LIMIT ?3 + 0)
	SELECT id,
		(SELECT count(*) FROM sessions s WHERE s.tenant = ?1 AND s.owner = people.id AND s.deleted = 0
			AND s.transient = 0 AND s.root = s.id),
		max(coalesce((SELECT at FROM audit WHERE tenant = ?1 AND by = people.id ORDER BY no DESC LIMIT 1), 0),
			coalesce((SELECT s.updated_at FROM sessions s WHERE s.tenant = ?1 AND s.owner = people.id AND s.deleted = 0
				AND s.transient = 0 ORDER BY s.recent DESC LIMIT 1), 0))
	FROM people WHERE id IS NOT NULL`

func (t tenant) Users(ctx context.Context, after parley.PrincipalID, limit int) (list []port.UserInfo, err error) {
	rows, err := t.s.read.QueryContext(ctx, listUsers, t.id, after, limit)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var u port.UserInfo
		var seen int64
		if err := rows.Scan(&u.ID, &u.Conversations, &seen); err != nil {
			return nil, unavailable(err)
		}
		u.SeenAt = fromMicros(seen)
		list = append(list, u)
	}
	return list, unavailable(rows.Err())
}

const listWebhooks = `SELECT w.session, s.title, s.owner, w.url, w.sealed, w.finished, w.needed, w.set_at, w.gone_at
	FROM webhooks w JOIN sessions s ON s.tenant = w.tenant AND s.id = w.session
	WHERE w.tenant = ?1 AND w.session > ?2 AND s.deleted = 0 AND (?3 = '' OR s.owner = ?3)
	ORDER BY w.session LIMIT ?4 + 0`

func (t tenant) Webhooks(ctx context.Context, q port.WebhookQuery) (list []port.SessionWebhook, err error) {
	rows, err := t.s.read.QueryContext(ctx, listWebhooks, t.id, q.After, q.Owner, q.Limit)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		one, err := t.scanWebhook(rows)
		if err != nil {
			return nil, unavailable(err)
		}
		list = append(list, one)
	}
	return list, unavailable(rows.Err())
}

func (t tenant) scanWebhook(rows *sql.Rows) (one port.SessionWebhook, err error) {
	var h port.StoredWebhook
	var set, gone int64
	if err := rows.Scan(&one.Session, &one.Title, &one.Owner, &h.URL, &h.Sealed, &h.Hook.Finished, &h.Hook.Needed, &set,
		&gone); err != nil {
		return one, err
	}
	h.At, h.Gone = fromMicros(set), fromMicros(gone)
	h, err = t.s.vault.OpenHook(t.id, one.Session, h)
	one.WebhookInfo = h.Info()
	return one, err
}
