package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley"
	"parley/dialect/dialecttest"
	"parley/port"
	"parley/store/storetest"
)

// TestAnUpgradeKnowsRunsAndCards checks that the migration derives the same
// rows from stored events as Append does from new ones.
func TestAnUpgradeKnowsRunsAndCards(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s, err := Open(ctx, dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	logs := rapid.Custom(dialecttest.AnyLog)
	var some [][]parley.Event
	logsTried := 2000
	if testing.Short() {
		logsTried = 200
	}
	for seed := range logsTried {
		some = append(some, logs.Example(seed))
	}
	storetest.Rederived(t, s, some, func() {
		db, err := open(filepath.Join(dir, "parley.db"), "", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, statement := range []string{
			`DROP TABLE runs`, `DROP TABLE cards`, `DROP TABLE timers`, `DROP TABLE webhooks`,
			`DROP INDEX effects_hooks`, `DROP INDEX effects_recent`, `DROP INDEX effects_open`,
			`DROP INDEX effects_owed`, `CREATE INDEX effects_status ON effects (tenant, session_key, status)`,
			`ALTER TABLE effects DROP COLUMN target`, `ALTER TABLE effects DROP COLUMN next_attempt_at`,
			`ALTER TABLE effects DROP COLUMN attempts`, `ALTER TABLE effects DROP COLUMN last_attempt_at`,
			`ALTER TABLE effects DROP COLUMN leased_until`, `ALTER TABLE effects DROP COLUMN why`,
			`ALTER TABLE revocations DROP COLUMN sparing_admins`, `ALTER TABLE sessions DROP COLUMN project`,
			`DROP TABLE said`, `DROP TABLE marks`, `ALTER TABLE store DROP COLUMN unsearched`,
			`DROP TABLE erasures`, `DROP TABLE releases`, `DROP TABLE legal_holds`, `DROP INDEX sessions_children`, `DROP TABLE usage`,
			`ALTER TABLE sessions DROP COLUMN bytes`,
			`DROP INDEX sessions_listed`, `DROP INDEX sessions_owned`, `DROP TABLE secret_keys`,
			`DROP TABLE setups`, `DROP INDEX audit_session`,
			`ALTER TABLE sessions RENAME COLUMN recent TO hour`,
			`CREATE INDEX sessions_recent ON sessions (tenant, hour DESC)`,
			`DELETE FROM goose_db_version WHERE version_id >= 6`,
			// The migration skips a body that cannot be read.
			`INSERT INTO events (tenant, session, seq, position, at, run, by, type, version, piece, body)
				SELECT 'acme', no, head + 1, 1000000, 1, run, '', 'RunStarted', 1, 0, '{"agent":' FROM sessions ORDER BY no LIMIT 1`,
			`INSERT INTO events (tenant, session, seq, position, at, run, by, type, version, piece, body)
				SELECT 'acme', no, head + 1, 1000001, 1, run, '', 'ApprovalDecided', 1, 0, '{"card":' FROM sessions WHERE run <> 0 ORDER BY no DESC LIMIT 1`,
		} {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		if _, err := migrate(ctx, db, ""); err != nil {
			t.Fatal(err)
		}
	})
}

// TestListsUseIndexes checks that lists of runs, cards and running sessions use
// an index, so that they read no more rows than they return, except for rows
// that further filters exclude.
func TestListsUseIndexes(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, t.TempDir(), "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	acme := s.Tenant("acme")
	runs := func(index string, q port.RunQuery) {
		t.Helper()
		if _, err := acme.Runs(ctx, q); err != nil {
			t.Fatal(err)
		}
		planned(t, s, index)
	}
	runs("runs_recent (tenant=?)", port.RunQuery{})
	runs("runs_recent (tenant=? AND started_at<?)", port.RunQuery{Before: time.Now()})
	runs("runs_owned (tenant=? AND owner=?)", port.RunQuery{Owner: "ann"})
	runs("runs_open (tenant=?)", port.RunQuery{Open: true})
	runs("runs_open (tenant=?)", port.RunQuery{Open: true, Owner: "ann"})
	runs("runs_open (tenant=? AND session=?)", port.RunQuery{Open: true, Session: storetest.ID(1)})
	runs("PRIMARY KEY (tenant=? AND session=?)", port.RunQuery{Session: storetest.ID(1)})
	runs("PRIMARY KEY (tenant=? AND session=?)", port.RunQuery{Session: storetest.ID(1), Owner: "ann"})
	runs("PRIMARY KEY (tenant=? AND session=? AND run=?)", port.RunQuery{Session: storetest.ID(1), Run: 3})
	runs("runs_children (tenant=? AND parent_session=? AND parent_run=?)",
		port.RunQuery{Parent: &parley.Origin{Session: storetest.ID(1), Run: 3}})
	runs("runs_children (tenant=? AND parent_session=? AND parent_run=?)",
		port.RunQuery{Parent: &parley.Origin{Session: storetest.ID(1), Run: 3}, Owner: "ann", Open: true})
	cards := func(index string, q port.CardQuery) {
		t.Helper()
		if _, err := acme.Cards(ctx, q); err != nil {
			t.Fatal(err)
		}
		planned(t, s, index, "events_seq (session=? AND seq=?)")
	}
	cards("cards_asked (tenant=?)", port.CardQuery{})
	cards("cards_asked (tenant=?)", port.CardQuery{Kind: parley.CardApproval})
	cards("cards_owned (tenant=? AND owner=?)", port.CardQuery{Owner: "ann"})
	cards("PRIMARY KEY (tenant=? AND session=?)", port.CardQuery{Session: storetest.ID(1)})
	cards("cards_asked (tenant=?)", port.CardQuery{Root: storetest.ID(1)})
	for index, q := range map[string]port.SessionQuery{
		"sessions_listed (tenant=?)": {}, "sessions_owned (tenant=? AND owner=?)": {Owner: "ann"}} {
		if _, err := acme.Sessions(ctx, q); err != nil {
			t.Fatal(err)
		}
		planned(t, s, index, "USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY")
	}
	if _, err := acme.Sessions(ctx, port.SessionQuery{Viewer: "ann"}); err != nil {
		t.Fatal(err)
	}
	planned(t, s, "sessions_listed (tenant=?)", "SEARCH marks USING PRIMARY KEY (tenant=? AND session=? AND "+
		"principal=?)",
		"USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY")
	if _, err := acme.Sessions(ctx, port.SessionQuery{Running: true, Owner: "ann"}); err != nil {
		t.Fatal(err)
	}
	planned(t, s, "runs_open (tenant=?)", "sqlite_autoindex_sessions_1 (tenant=? AND id=?)")
	for index, look := range map[string]func() error{
		"effects_owed (tenant=? AND session_key=?)": func() error {
			_, err := acme.Undelivered(ctx, storetest.ID(1), time.Now())
			return err
		},
		"effects_open (tenant=?)": func() error {
			_, err := acme.Expire(ctx, time.Now(), time.Now())
			return err
		},
		"effects_recent (tenant=?)": func() error {
			_, err := acme.Effects(ctx, port.EffectQuery{})
			return err
		},
		"timers_due (tenant=? AND status=?)": func() error {
			_, err := acme.Timers(ctx, port.TimerQuery{Status: parley.TimerPending})
			return err
		},
		"timers_latest (tenant=?)": func() error {
			_, err := acme.Timers(ctx, port.TimerQuery{})
			return err
		},
		"timers_owned (tenant=? AND owner=?)": func() error {
			_, err := acme.Timers(ctx, port.TimerQuery{Owner: "ann"})
			return err
		},
	} {
		if err := look(); err != nil {
			t.Fatal(err)
		}
		planned(t, s, index)
	}
}

// planned checks the query plan of the statement that was prepared last, and
// forgets the statement.
func planned(t *testing.T, s *Store, indexes ...string) {
	t.Helper()
	s.read.mu.Lock()
	defer s.read.mu.Unlock()
	for text := range s.read.prepared {
		delete(s.read.prepared, text)
		given := strings.Count(strings.ReplaceAll(text, "?1", ""), "?") + min(strings.Count(text, "?1"), 1)
		rows, err := s.read.db.Query("EXPLAIN QUERY PLAN "+text, make([]any, given)...)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		defer rows.Close()
		plan := ""
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan += detail + "\n"
		}
		for _, index := range indexes {
			if !strings.Contains(plan, index) {
				t.Errorf("%s\nis carried out without %s:\n%s", text, index, plan)
			}
		}
		if strings.Contains(plan, "SCAN") {
			t.Errorf("%s\nscans:\n%s", text, plan)
		}
	}
}

// TestEarlierMessagesAreIndexed checks that messages from before an upgrade are
// indexed in pages.
func TestEarlierMessagesAreIndexed(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s, err := Open(ctx, dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	storetest.EarlierIsSearched(t, s, func() {
		db, err := open(filepath.Join(dir, "parley.db"), "", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, statement := range []string{`DELETE FROM said WHERE rowid > 0`,
			`UPDATE store SET unsearched = (SELECT max(no) FROM events)`} {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestDeletedSessionsLeaveTheIndex(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, t.TempDir(), "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	storetest.DeletedLeaveTheIndex(t, s, func() (n int) {
		if err := s.read.db.QueryRowContext(ctx, `SELECT count(*) FROM said`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	})
}
