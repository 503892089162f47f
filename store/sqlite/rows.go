package sqlite

import (
	"context"
	"database/sql"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// rowStatements maintain the rows of runs, cards and timers.
type rowStatements struct {
	addRun, endRun             *command
	addCard, endCard, endCards *command
	endPlan                    *command
	forgetRuns, forgetCards    *command

	addTimer, moveTimer, endTimer, forgetTimers *command
	dropEffect, addUsage                        *command
	addSaid, forgetSaid, setMarks, forgetMarks  *command
	hookStatements
}

func (w *rowStatements) texts() map[**command]string {
	return map[**command]string{
		&w.addUsage: addUsage,
		&w.addRun: `INSERT INTO runs (tenant, session, run, owner, agent, request, parent_session, parent_run,
			parent_call, parent_depth,
			outcome, code, message, input_tokens, output_tokens, cached_tokens, written_tokens, cost_micros, started_at,
			ended_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', '', 0, 0, 0, 0, 0, ?, 0)`,
		&w.endRun: `UPDATE runs SET outcome = ?, code = ?, message = ?, input_tokens = ?, output_tokens = ?,
			cached_tokens = ?, written_tokens = ?, cost_micros = ?, ended_at = ?
			WHERE tenant = ? AND session = ? AND run = ?`,
		&w.addCard: `INSERT INTO cards (tenant, session, seq, kind, run, call, owner, asked_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		&w.endCard:     `DELETE FROM cards WHERE tenant = ? AND session = ? AND seq = ?`,
		&w.endCards:    `DELETE FROM cards WHERE tenant = ? AND session = ? AND run = ?`,
		&w.endPlan:     `DELETE FROM cards WHERE tenant = ? AND session = ? AND kind = 'plan'`,
		&w.forgetRuns:  `DELETE FROM runs WHERE tenant = ? AND session = ?`,
		&w.forgetCards: `DELETE FROM cards WHERE tenant = ? AND session = ?`,
		&w.addTimer: `INSERT INTO timers (tenant, session_key, id, run, owner, agent, source, payload, status, why,
			fire_at, created_at, updated_at)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'pending', '', ?9, ?10, ?10)`,
		&w.moveTimer: `UPDATE timers SET fire_at = ?, why = ?, updated_at = ? WHERE tenant = ? AND session_key = ?
			AND id = ?`,
		&w.endTimer: `UPDATE timers SET status = ?, why = ?, updated_at = ? WHERE tenant = ? AND session_key = ?
			AND id = ?`,
		&w.addSaid:      addSaid,
		&w.forgetSaid:   forgetSaid,
		&w.setMarks:     setMarks,
		&w.forgetMarks:  `DELETE FROM marks WHERE tenant = ? AND session = ?`,
		&w.forgetTimers: `DELETE FROM timers WHERE tenant = ? AND session_key = ?`,
		&w.dropEffect: `UPDATE effects SET status = 'cancelled', why = ?, updated_at = ?
			WHERE tenant = ? AND session_key = ? AND id = ? AND status IN ('pending', 'executing')`,
	}
}

// updateRows updates the rows of a session for one of its events.
func (w *rowStatements) updateRows(ctx context.Context, b *queuedBatch, e parley.Event) (err error) {
	switch row := e.Row().(type) {
	case parley.RunOpened:
		parent := make([]any, 4)
		if o := b.Parent; o != nil {
			parent = []any{o.Session, o.Run, o.Call, o.Depth}
		}
		args := append([]any{b.Tenant, b.Session, row.Run, b.Summary.Owner, row.Agent, row.Request}, parent...)
		_, err = w.addRun.ExecContext(ctx, append(args, micros(e.At))...)
	case parley.RunClosed:
		if _, err = w.endRun.ExecContext(ctx, row.Outcome, row.Code, row.Message, row.Usage.Input, row.Usage.Output,
			row.Usage.Cached, row.Usage.Written, row.Usage.CostMicros, micros(e.At),
			b.Tenant, b.Session, row.Run); err == nil {
			_, err = w.endCards.ExecContext(ctx, b.Tenant, b.Session, row.Run)
		}
	case parley.CardOpened:
		_, err = w.addCard.ExecContext(ctx, b.Tenant, b.Session, row.Seq, row.Kind, row.Run, row.Call, b.Summary.Owner,
			micros(e.At))
	case parley.CardClosed:
		_, err = w.endCard.ExecContext(ctx, b.Tenant, b.Session, row.Seq)
	case parley.PlanNoted:
		if _, err = w.endPlan.ExecContext(ctx, b.Tenant, b.Session); err == nil && row.Waits {
			_, err = w.addCard.ExecContext(ctx, b.Tenant, b.Session, row.Seq, parley.CardPlan, 0, 0, b.Summary.Owner,
				micros(e.At))
		}
	case parley.TimerOpened:
		_, err = w.addTimer.ExecContext(ctx, b.Tenant, b.Session, row.Timer, row.Run, b.Summary.Owner, row.Agent.Name,
			row.By, string(row.Payload()), micros(row.At), micros(e.At))
	case parley.TimerMoved:
		_, err = w.moveTimer.ExecContext(ctx, micros(row.At), row.Why, micros(e.At), b.Tenant, b.Session, row.Timer)
	case parley.TimerClosed:
		_, err = w.endTimer.ExecContext(ctx, row.Status, row.Why, micros(e.At), b.Tenant, b.Session, row.Timer)
	case parley.EffectClosed:
		_, err = w.dropEffect.ExecContext(ctx, row.Why, micros(e.At), b.Tenant, b.Session, row.Effect)
	case parley.UsageAdded:
		_, err = w.addUsage.ExecContext(ctx, b.Tenant, port.Day(e.At), b.Summary.Owner, row.Sessions, row.Calls,
			row.Input, row.Output, row.Cached, row.Written, row.CostMicros)
	case parley.RowsGone:
		for _, forget := range []*command{w.forgetRuns, w.forgetCards, w.forgetTimers, w.dropWebhook, w.forgetSaid,
			w.forgetMarks} {
			if _, err = forget.ExecContext(ctx, b.Tenant, b.Session); err != nil {
				break
			}
		}
	}
	return err
}

const (
	runColumns = `r.session, s.root, s.project, r.run, r.owner, r.agent, r.request, r.parent_session, coalesce(r.parent_run, 0),
		coalesce(r.parent_call, 0),
		coalesce(r.parent_depth, 0), r.outcome, r.code, r.message, r.input_tokens, r.output_tokens, r.cached_tokens,
		r.written_tokens, r.cost_micros, r.started_at, r.ended_at,
		s.run = r.run AND s.status = 'waiting'`
	// SQLite keeps the order of a cross join: it reads the rows of runs first.
	ofRuns = ` CROSS JOIN sessions s ON s.tenant = r.tenant AND s.id = r.session WHERE r.tenant = ?`

	// Without INDEXED BY, SQLite prefers an index in the order of the result to an index that finds the rows.
	runsOf     = `SELECT ` + runColumns + ` FROM runs r` + ofRuns
	openRunsOf = `SELECT ` + runColumns + ` FROM runs r INDEXED BY runs_open` + ofRuns + ` AND r.outcome = ''`
	childrenOf = `SELECT ` + runColumns + ` FROM runs r INDEXED BY runs_children` + ofRuns +
		` AND r.parent_session = ? AND r.parent_run = ?`
)

func (t tenant) Runs(ctx context.Context, q port.RunQuery) ([]port.RunInfo, error) {
	text, args, order := runsOf, []any{t.id}, ` ORDER BY r.started_at DESC, r.session DESC, r.run DESC LIMIT ? + 0`
	switch {
	case q.Parent != nil:
		text, args = childrenOf, append(args, q.Parent.Session, q.Parent.Run)
		if q.Open {
			text += ` AND r.outcome = ''`
		}
	case q.Open:
		text = openRunsOf
	}
	if q.Owner != "" {
		text, args = text+` AND r.owner = ?`, append(args, q.Owner)
	}
	if q.Agent != "" {
		text, args = text+` AND r.agent = ?`, append(args, q.Agent)
	}
	if q.Session != "" {
		// the order of a single session, too
		text, args, order = text+` AND r.session = ?`, append(args, q.Session), ` ORDER BY r.run DESC LIMIT ? + 0`
		if q.Run != 0 {
			text, args = text+` AND r.run = ?`, append(args, q.Run)
		}
	}
	text, args = ofProject(text, ` AND s.project`, args, q.Project)
	if !q.Before.IsZero() {
		text, args = text+` AND r.started_at < ?`, append(args, micros(q.Before))
	}
	rows, err := t.s.read.QueryContext(ctx, text+order, append(args, q.Limit)...)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	var list []port.RunInfo
	for rows.Next() {
		var r port.RunInfo
		var parent sql.NullString
		var o parley.Origin
		var started, ended int64
		if err := rows.Scan(&r.Session, &r.Root, &r.Project, &r.Run, &r.Owner, &r.Agent, &r.Request, &parent, &o.Run,
			&o.Call, &o.Depth,
			&r.Outcome, &r.Code, &r.Message, &r.Usage.Input, &r.Usage.Output, &r.Usage.Cached, &r.Usage.Written,
			&r.Usage.CostMicros, &started, &ended, &r.Waiting); err != nil {
			return nil, unavailable(err)
		}
		if parent.Valid {
			o.Session = parley.SessionID(parent.String)
			r.Parent = &o
		}
		r.StartedAt, r.EndedAt = fromMicros(started), fromMicros(ended)
		list = append(list, r)
	}
	return list, unavailable(rows.Err())
}

const cardsOf = `SELECT c.kind, c.session, s.root, s.project, c.run, c.seq, c.call, c.owner, c.asked_at, r.agent, e.position,
	e.type, e.version, e.body, k.type, k.version, k.body
	FROM cards c CROSS JOIN sessions s ON s.tenant = c.tenant AND s.id = c.session
		CROSS JOIN runs r ON r.tenant = c.tenant AND r.session = c.session AND r.run = c.run
		CROSS JOIN events e ON e.tenant = c.tenant AND e.session = s.no AND e.seq = c.seq
		CROSS JOIN events k ON k.tenant = c.tenant AND k.session = s.no AND k.seq = c.call
	WHERE c.tenant = ?`

// Plans belong to no run. The query leaves out the plans of sub-agents, which wait for no person once the sub-agent's
// run has ended.
const plansOf = `SELECT c.kind, c.session, s.root, s.project, c.run, c.seq, c.call, c.owner, c.asked_at, '', e.position,
	e.type, e.version, e.body, e.type, e.version, e.body
	FROM cards c CROSS JOIN sessions s ON s.tenant = c.tenant AND s.id = c.session AND s.root = s.id
		CROSS JOIN events e ON e.tenant = c.tenant AND e.session = s.no AND e.seq = c.seq
	WHERE c.tenant = ?`

func (t tenant) Cards(ctx context.Context, q port.CardQuery) ([]port.CardInfo, error) {
	text, args, order := cardsOf, []any{t.id}, ` ORDER BY c.asked_at, c.session, c.seq LIMIT ? + 0`
	if q.Kind == parley.CardPlan {
		text = plansOf
	}
	if q.Owner != "" {
		text, args = text+` AND c.owner = ?`, append(args, q.Owner)
	}
	if q.Session != "" {
		// the unary + stops SQLite from using the index on asked_at
		text, args, order = text+` AND c.session = ?`, append(args, q.Session),
			` ORDER BY +c.asked_at, c.seq LIMIT ? + 0`
	}
	if q.Root != "" {
		text, args = text+` AND s.root = ?`, append(args, q.Root)
	}
	text, args = ofProject(text, ` AND s.project`, args, q.Project)
	if q.Kind != "" {
		text, args = text+` AND c.kind = ?`, append(args, q.Kind)
	}
	rows, err := t.s.read.QueryContext(ctx, text+order, append(args, q.Limit)...)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	var list []port.CardInfo
	for bytes := rules.PageBytes; bytes > 0 && rows.Next(); {
		var c port.CardInfo
		var asked int64
		var card, call rules.Body
		if err := rows.Scan(&c.Kind, &c.Session, &c.Root, &c.Project, &c.Run, &c.Seq, &c.Call, &c.Owner, &asked,
			&c.Agent,
			&c.Position,
			&card.Type, &card.Version, &card.JSON, &call.Type, &call.Version, &call.JSON); err != nil {
			return nil, unavailable(err)
		}
		c.AskedAt = fromMicros(asked)
		bytes -= len(card.JSON) + len(call.JSON)
		if rules.ReadCard(&c, card, call) {
			list = append(list, c)
		}
	}
	return list, unavailable(rows.Err())
}
