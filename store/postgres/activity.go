package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/port"
)

// activityOf reads few rows: the open runs of an agent, and its recent ones.
const (
	activityOf = `SELECT EXISTS (SELECT 1` + agentRuns + `r.outcome = ''), (SELECT max(r.ended_at)` + agentRuns +
		`r.started_at > $4)`
	agentRuns = ` FROM runs r JOIN sessions s ON s.tenant = r.tenant AND s.id = r.session
		WHERE r.tenant = $1 AND r.agent = $2 AND ($3::text[] IS NULL OR s.project = ANY($3)) AND `
)

func (t tenant) Activity(ctx context.Context, project port.Project, agent string, after time.Time) (
	port.Activity, error) {
	a, _, err := one(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (a port.Activity, err error) {
		var last *time.Time
		if err = row.Scan(&a.Open, &last); last != nil {
			a.Last = last.UTC()
		}
		return a, err
	}, activityOf, text(t.id), text(agent), keysOf(project), after)
	return a, err
}

// keysOf returns the keys of a project as stored in the column. nil stands for
// the sessions of every project.
func keysOf(p port.Project) []string {
	var keys []string
	for _, key := range p.Keys() {
		keys = append(keys, toColumn(key))
	}
	return keys
}
