package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
)

// listUsers jumps from one user to the next by the indexes sessions_owned and audit_by, so its cost does not depend on
// the number of sessions and audit rows.
const listUsers = `WITH RECURSIVE people (id) AS (
	(SELECT min(id) FROM (SELECT min(by) AS id FROM audit WHERE tenant = $1 AND by > $2
		UNION ALL SELECT min(owner) FROM sessions WHERE tenant = $1 AND owner > $2 AND NOT deleted AND NOT transient) f)
	UNION ALL
	SELECT (SELECT min(id) FROM (SELECT min(by) AS id FROM audit WHERE tenant = $1 AND by > people.id
		UNION ALL SELECT min(owner) FROM sessions WHERE tenant = $1 AND owner > people.id AND NOT deleted
			AND NOT transient) n)
	FROM people WHERE people.id IS NOT NULL)
	SELECT id,
		(SELECT count(*) FROM sessions s WHERE s.tenant = $1 AND s.owner = people.id AND NOT s.deleted
			AND NOT s.transient AND s.root = s.id),
		greatest((SELECT at FROM audit WHERE tenant = $1 AND by = people.id ORDER BY no DESC LIMIT 1),
			(SELECT max(s.updated_at) FROM sessions s WHERE s.tenant = $1 AND s.owner = people.id AND NOT s.deleted
				AND NOT s.transient))
	FROM people WHERE id IS NOT NULL LIMIT $3`

func (t tenant) Users(ctx context.Context, after parley.PrincipalID, limit int) ([]port.UserInfo, error) {
	return list(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (u port.UserInfo, err error) {
		err = row.Scan((*text)(&u.ID), &u.Conversations, &u.SeenAt)
		u.SeenAt = u.SeenAt.UTC()
		return u, err
	}, listUsers, text(t.id), text(after), limit)
}

const listWebhooks = `SELECT w.session, s.title, s.owner, w.url, w.sealed, w.finished, w.needed, w.set_at, w.gone_at
	FROM webhooks w JOIN sessions s ON s.tenant = w.tenant AND s.id = w.session
	WHERE w.tenant = $1 AND w.session > $2 AND NOT s.deleted AND ($3 = '' OR s.owner = $3)
	ORDER BY w.session LIMIT $4`

func (t tenant) Webhooks(ctx context.Context, q port.WebhookQuery) ([]port.SessionWebhook, error) {
	return list(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (one port.SessionWebhook, err error) {
		var h port.StoredWebhook
		var gone *time.Time
		if err := row.Scan((*text)(&one.Session), (*text)(&one.Title), (*text)(&one.Owner), (*text)(&h.URL), &h.Sealed,
			&h.Hook.Finished, &h.Hook.Needed, &h.At, &gone); err != nil {
			return one, err
		}
		if h.At = h.At.UTC(); gone != nil {
			h.Gone = gone.UTC()
		}
		h, err = t.s.vault.OpenHook(t.id, one.Session, h)
		one.WebhookInfo = h.Info()
		return one, err
	}, listWebhooks, text(t.id), text(q.After), text(q.Owner), q.Limit)
}
