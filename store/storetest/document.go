package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley"
	"parley/port"
)

// The queries of document 002, "Inspect Pending Effects", for a person at the database.
const (
	pendingEffects = `-- View pending effects
SELECT * FROM effects WHERE status = 'pending' ORDER BY created_at;`
	effectsOfSession = `-- View effects for specific session
SELECT * FROM effects WHERE session_key = 'your-thread-id' ORDER BY created_at;`
	failedEffects = `-- View failed effects
SELECT * FROM effects WHERE status = 'failed' ORDER BY created_at DESC LIMIT 10;`
)

// Documented checks the queries of the thread chat protocol document on an empty store. ask executes a statement and
// returns the rows by column name.
func Documented(t *testing.T, store port.Store, ask func(statement string) []map[string]any) {
	ctx := context.Background()
	f := &fixture{t: t, Store: store}
	logs := store.Tenant(tenant)
	agent := parley.AgentRef{Name: "helper", Autonomy: parley.Autonomy{Enabled: true, MaxConsecutive: 3,
		MaxFollowUps: 10}}
	for i := 1; i <= 4; i++ { // the first is pending, the third is delivered
		l := f.born(ID(i), "ann", t0.Add(time.Duration(i)*time.Hour), nil)
		l.do(parley.SubmitInput{Content: "do it", Request: fmt.Sprint("r", i), Agent: agent, Deliver: true})
		if i == 1 {
			c := l.asks(parley.VerdictFollowUp)
			c.Verdict.FollowUp = parley.FollowUp{Delay: time.Minute, Reason: "because"}
			l.model(c)
		}
		run := l.state.Run.ID
		l.model()
		owed, err := logs.Undelivered(ctx, ID(i), time.Time{})
		if err != nil || len(owed) != 1 {
			t.Fatal(owed, err)
		}
		switch i {
		case 2, 4:
			err = logs.SetAside(ctx, ID(i), owed[0].Effect, port.EffectPoisoned, l.at)
		case 3:
			err = logs.Delivered(ctx, ID(i), l.at, run)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		statement string
		want      []string
	}{
		{pendingEffects, []string{"1 send_message pending 0"}},
		{failedEffects, []string{"4 send_message failed 0", "2 send_message failed 0"}},
		{strings.Replace(effectsOfSession, "your-thread-id", string(ID(3)), 1), []string{"3 send_message completed 1"}},
		{`SELECT * FROM timers WHERE status = 'pending' ORDER BY fire_at`, []string{"1  pending <nil>"}},
	} {
		var got []string
		for _, row := range ask(c.statement) {
			session := fmt.Sprint(row["session_key"])
			kind := row["type"]
			if kind == nil {
				kind = ""
			}
			got = append(got, fmt.Sprintf("%s %v %v %v", session[len(session)-1:], kind, row["status"],
				row["attempts"]))
			for _, column := range []string{"id", "session_key", "payload", "status", "created_at", "updated_at"} {
				if row[column] == nil {
					t.Errorf("%s: there is no %s in %v", c.statement, column, row)
				}
			}
			if kind != "" && row["dedupe_key"] == nil {
				t.Errorf("%s: there is no dedupe_key in %v", c.statement, row)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.statement, diff)
		}
	}
}
