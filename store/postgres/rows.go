package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
	"parley/store/rules"
)

const (
	addRun = `INSERT INTO runs (tenant, session, run, owner, agent, request, parent_session, parent_run, parent_call,
		parent_depth,
		outcome, code, message, input_tokens, output_tokens, cached_tokens, written_tokens, cost_micros, started_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '', '', '', 0, 0, 0, 0, 0, $11)`
	endRun = `UPDATE runs SET outcome = $4, code = $5, message = $6, input_tokens = $7, output_tokens = $8,
		cached_tokens = $9, written_tokens = $10, cost_micros = $11, ended_at = $12
		WHERE tenant = $1 AND session = $2 AND run = $3`
	addCard = `INSERT INTO cards (tenant, session, seq, kind, run, call, owner, asked_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	endCard     = `DELETE FROM cards WHERE tenant = $1 AND session = $2 AND seq = $3`
	endCards    = `DELETE FROM cards WHERE tenant = $1 AND session = $2 AND run = $3`
	endPlan     = `DELETE FROM cards WHERE tenant = $1 AND session = $2 AND kind = 'plan'`
	forgetRuns  = `DELETE FROM runs WHERE tenant = $1 AND session = $2`
	forgetCards = `DELETE FROM cards WHERE tenant = $1 AND session = $2`

	addTimer = `INSERT INTO timers (tenant, session_key, id, run, owner, agent, source, payload, status, why, fire_at,
		created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'pending', '', $9, $10, $10)`
	moveTimer = `UPDATE timers SET fire_at = $4, why = $5, updated_at = $6 WHERE tenant = $1 AND session_key = $2
		AND id = $3`
	endTimer = `UPDATE timers SET status = $4, why = $5, updated_at = $6 WHERE tenant = $1 AND session_key = $2
		AND id = $3`
	forgetTimers = `DELETE FROM timers WHERE tenant = $1 AND session_key = $2`
	dropEffect   = `UPDATE effects SET status = 'cancelled', why = $4, updated_at = $5
		WHERE tenant = $1 AND session_key = $2 AND id = $3 AND status IN ('pending', 'executing')`
)

// keep updates the rows of a session for one of its events.
func keep(trip *pgx.Batch, w *waiting, e parley.Event) {
	tenant, session := text(w.Tenant), text(w.Session)
	switch row := e.Row().(type) {
	case parley.RunOpened:
		parent := make([]any, 4)
		if o := w.Parent; o != nil {
			parent = []any{text(o.Session), int64(o.Run), int64(o.Call), o.Depth}
		}
		args := append([]any{tenant, session, int64(row.Run), text(w.Summary.Owner), text(row.Agent),
			text(row.Request)}, parent...)
		trip.Queue(addRun, append(args, e.At)...)
	case parley.RunClosed:
		trip.Queue(endRun, tenant, session, int64(row.Run), text(row.Outcome), text(row.Code), text(row.Message),
			row.Usage.Input, row.Usage.Output, row.Usage.Cached, row.Usage.Written, row.Usage.CostMicros, e.At)
		trip.Queue(endCards, tenant, session, int64(row.Run))
	case parley.CardOpened:
		trip.Queue(addCard, tenant, session, int64(row.Seq), text(row.Kind), int64(row.Run), int64(row.Call),
			text(w.Summary.Owner), e.At)
	case parley.CardClosed:
		trip.Queue(endCard, tenant, session, int64(row.Seq))
	case parley.UsageAdded:
		trip.Queue(addUsage, tenant, port.Day(e.At), text(w.Summary.Owner), row.Sessions, row.Calls, row.Input,
			row.Output, row.Cached, row.Written, row.CostMicros)
	case parley.PlanNoted:
		trip.Queue(endPlan, tenant, session)
		if row.Waits {
			trip.Queue(addCard, tenant, session, int64(row.Seq), string(parley.CardPlan), int64(0), int64(0),
				text(w.Summary.Owner), e.At)
		}
	case parley.RowsGone:
		trip.Queue(forgetRuns, tenant, session)
		trip.Queue(forgetCards, tenant, session)
		trip.Queue(forgetTimers, tenant, session)
		trip.Queue(dropWebhook, tenant, session)
		trip.Queue(forgetSaid, tenant, session)
		trip.Queue(forgetMarks, tenant, session)
	case parley.TimerOpened:
		trip.Queue(addTimer, tenant, session, int64(row.Timer), int64(row.Run), text(w.Summary.Owner),
			text(row.Agent.Name), text(row.By), row.Payload(), row.At, e.At)
	case parley.TimerMoved:
		trip.Queue(moveTimer, tenant, session, int64(row.Timer), row.At, text(row.Why), e.At)
	case parley.TimerClosed:
		trip.Queue(endTimer, tenant, session, int64(row.Timer), text(row.Status), text(row.Why), e.At)
	case parley.EffectClosed:
		trip.Queue(dropEffect, tenant, session, int64(row.Effect), text(row.Why), e.At)
	}
}

const runsOf = `SELECT r.session, s.root, s.project, r.run, r.owner, r.agent, r.request, r.parent_session, coalesce(r.parent_run,
	0), coalesce(r.parent_call, 0),
		coalesce(r.parent_depth, 0), r.outcome, r.code, r.message, r.input_tokens, r.output_tokens, r.cached_tokens,
		r.written_tokens, r.cost_micros, r.started_at, r.ended_at,
		s.run = r.run AND s.status = 'waiting'
	FROM runs r JOIN sessions s ON s.tenant = r.tenant AND s.id = r.session WHERE r.tenant = $1`

func (t tenant) Runs(ctx context.Context, q port.RunQuery) ([]port.RunInfo, error) {
	query, args := runsOf, []any{text(t.id)}
	and := func(condition string, arg any) {
		args = append(args, arg)
		query += fmt.Sprintf(condition, len(args))
	}
	if q.Open {
		query += ` AND r.outcome = ''`
	}
	if q.Owner != "" {
		and(` AND r.owner = $%d`, text(q.Owner))
	}
	if q.Agent != "" {
		and(` AND r.agent = $%d`, text(q.Agent))
	}
	if q.Session != "" {
		and(` AND r.session = $%d`, text(q.Session))
		if q.Run != 0 {
			and(` AND r.run = $%d`, int64(q.Run))
		}
	}
	if q.Parent != nil {
		and(` AND r.parent_session = $%d`, text(q.Parent.Session))
		and(` AND r.parent_run = $%d`, int64(q.Parent.Run))
	}
	if keys := keysOf(q.Project); keys != nil {
		and(` AND s.project = ANY($%d)`, keys)
	}
	if !q.Before.IsZero() {
		and(` AND r.started_at < $%d`, q.Before)
	}
	if q.Session != "" {
		and(` ORDER BY r.run DESC LIMIT $%d`, q.Limit) // the order of a single session, too
	} else {
		and(` ORDER BY r.started_at DESC, r.session DESC, r.run DESC LIMIT $%d`, q.Limit)
	}
	return list(ctx, t.s, of(t.id), scanRun, query, args...)
}

func scanRun(row pgx.CollectableRow) (r port.RunInfo, err error) {
	var parent *string
	var o parley.Origin
	var ended *time.Time
	err = row.Scan((*text)(&r.Session), (*text)(&r.Root), (*text)(&r.Project), (*int64)(&r.Run), (*text)(&r.Owner),
		(*text)(&r.Agent), (*text)(&r.Request), &parent, (*int64)(&o.Run), (*int64)(&o.Call), &o.Depth,
		(*text)(&r.Outcome), (*text)(&r.Code), (*text)(&r.Message), &r.Usage.Input, &r.Usage.Output,
		&r.Usage.Cached, &r.Usage.Written, &r.Usage.CostMicros, &r.StartedAt, &ended, &r.Waiting)
	if parent != nil {
		o.Session = parley.SessionID(fromColumn(*parent))
		r.Parent = &o
	}
	if r.StartedAt = r.StartedAt.UTC(); ended != nil {
		r.EndedAt = ended.UTC()
	}
	return r, err
}

// As for pages of events, the server adds up the sizes. Plans belong to no run and no call. The query leaves out the
// plans of sub-agents, which wait for no person once the sub-agent's run has ended.
const (
	cardsHead = `SELECT kind, session, root, project, run, seq, call, owner, asked_at, agent, position, card_type, card_version,
		card_body, call_type, call_version, call_body FROM (
		SELECT *, sum(size) OVER (ORDER BY asked_at, session, seq ROWS UNBOUNDED PRECEDING) - size AS before FROM (
		SELECT c.kind, c.session, s.root, s.project, c.run, c.seq, c.call, c.owner, c.asked_at, coalesce(r.agent, '') AS agent,
		e.position, octet_length(e.body) + coalesce(octet_length(k.body), 0) AS size,
			e.type AS card_type, e.version AS card_version, e.body AS card_body, coalesce(k.type, e.type) AS call_type,
			coalesce(k.version, e.version) AS call_version, coalesce(k.body, e.body) AS call_body
		FROM cards c JOIN sessions s ON s.tenant = c.tenant AND s.id = c.session
			LEFT JOIN (SELECT * FROM runs WHERE tenant = $1) AS r ON r.session = c.session AND r.run = c.run
			JOIN events e ON e.tenant = c.tenant AND e.session = c.session AND e.seq = c.seq
			LEFT JOIN (SELECT * FROM events WHERE tenant = $1) AS k ON k.session = c.session AND k.seq = c.call
		WHERE c.tenant = $1 AND CASE WHEN c.kind = 'plan' THEN $3::text = 'plan' AND s.root = s.id
				ELSE r.run IS NOT NULL AND k.seq IS NOT NULL AND ($3::text = '' OR c.kind = $3) END
			AND ($5::text[] IS NULL OR s.project = ANY($5))`
	cardsTail = ` ORDER BY c.asked_at, c.session, c.seq LIMIT $4) AS rows) AS page WHERE before < $2
		ORDER BY asked_at, session, seq`

	allCards     = cardsHead + cardsTail
	ownCards     = cardsHead + ` AND c.owner = $6` + cardsTail
	sessionCards = cardsHead + ` AND c.session = $6 AND ($7::text = '' OR c.owner = $7)` + cardsTail
	treeCards    = cardsHead + ` AND s.root = $6 AND ($7::text = '' OR c.owner = $7)` + cardsTail
)

func (t tenant) Cards(ctx context.Context, q port.CardQuery) ([]port.CardInfo, error) {
	type row struct {
		port.CardInfo
		good bool
	}
	query, args := allCards, []any{text(t.id), rules.PageBytes, text(q.Kind), q.Limit, keysOf(q.Project)}
	switch {
	case q.Session != "":
		query, args = sessionCards, append(args, text(q.Session), text(q.Owner))
	case q.Root != "":
		query, args = treeCards, append(args, text(q.Root), text(q.Owner))
	case q.Owner != "":
		query, args = ownCards, append(args, text(q.Owner))
	}
	rows, err := list(ctx, t.s, of(t.id), func(r pgx.CollectableRow) (c row, err error) {
		var card, call rules.Body
		if err := r.Scan((*text)(&c.Kind), (*text)(&c.Session), (*text)(&c.Root), (*text)(&c.Project),
			(*int64)(&c.Run), (*int64)(&c.Seq), (*int64)(&c.Call), (*text)(&c.Owner), &c.AskedAt, (*text)(&c.Agent),
			(*int64)(&c.Position), &card.Type, &card.Version, &card.JSON, &call.Type, &call.Version,
			&call.JSON); err != nil {
			return c, err
		}
		c.AskedAt = c.AskedAt.UTC()
		c.good = rules.ReadCard(&c.CardInfo, card, call)
		return c, nil
	}, query, args...)
	var cards []port.CardInfo
	for _, r := range rows {
		if r.good {
			cards = append(cards, r.CardInfo)
		}
	}
	return cards, err
}
