package postgres

import (
	"context"
	"embed"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// migrated returns the name of a migrated database. Copying it is faster than
// migrating a new one for each test.
func migrated(t testing.TB) string {
	t.Helper()
	url := pgtest.Database(t)
	if _, _, err := Migrate(context.Background(), url); err != nil {
		t.Fatal(err)
	}
	return url
}

func TestStore(t *testing.T) {
	template := migrated(t)
	storetest.Run(t, func(t testing.TB) storetest.Reopener {
		url := pgtest.Copy(t, template)
		return func(t testing.TB) port.Store { return open(t, url) }
	})
}

//go:embed *.go
var source embed.FS // the sources that this test was compiled from

func TestMigrationsAreDescribed(t *testing.T) { storetest.Migrations(t, migrations) }

func TestEveryStatementNamesItsTenant(t *testing.T) {
	storetest.Statements(t, source, migrations, map[string]string{
		takeTicket:        "who brings a ticket is not known before it is taken; its hash names one",
		listRevocations:   "every server heeds those of every tenant",
		dueSessions:       "the scheduler looks for work of every tenant",
		dueHooks:          "webhooks of every tenant are told by one",
		countDue:          "doctor counts work, of whomever",
		countBacklog:      "metrics count what waits, of whomever",
		allSetups:         "a node loads the setups of every tenant; their values are sealed",
		listTenants:       "says which tenants there are",
		listPositions:     "a node looks for news of all tenants that are followed on it",
		letters:           "letters are found by the node they are for, and are sealed",
		endOldLetters:     "answers to letters that nobody came for are removed by any node",
		tenantFacts:       "nodes look at what changed of all tenants that they remember, and see numbers alone",
		unsearchedTenants: "earlier messages are indexed tenant by tenant",
		behindTenants:     "retention is the server's; what it deletes it deletes tenant by tenant",
	})
}

func BenchmarkAppend(b *testing.B) {
	storetest.Bench(b, func(t testing.TB) port.Store { return open(t, pgtest.Database(t)) })
}

func TestCorruptRows(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Database(t)
	s := open(t, url)
	for i := range 4 {
		for seq := range parley.Seq(2) {
			mustAppend(t, s, batch(storetest.ID(i), seq))
		}
	}
	conn := connect(t, url)
	exec(t, conn, `UPDATE events SET body = '{"content":' WHERE session LIKE '%0' AND seq = 2`)
	exec(t, conn, `DELETE FROM events WHERE session LIKE '%1' AND seq = 1`)
	exec(t, conn, `UPDATE events SET at = 'infinity' WHERE session LIKE '%2' AND seq = 1`)
	for i, want := range []string{"seq 2", "seq 1", "Infinity", ""} {
		_, err := s.Tenant(acme).Events(ctx, storetest.ID(i), 0, 10)
		switch {
		case want == "" && err != nil:
			t.Errorf("session %d was not harmed: %v", i, err)
		case want != "" && (parley.CodeOf(err) != parley.CodeCorrupt || !strings.Contains(err.Error(), want) ||
			strings.Contains(parley.MessageOf(err), want)):
			t.Errorf("session %d: %v", i, err)
		}
	}
	exec(t, conn, `DELETE FROM events WHERE session LIKE '%2'`)
	events, err := s.Tenant(acme).Tree(ctx, "", 0, 100)
	if err != nil || len(events) != 5 || events[1].Body != (parley.Unreadable{Type: "InputReceived"}) {
		t.Errorf("the neighbours of a row that cannot be read: %+v, %v", events, err)
	}
}

// TestPowerLossIsSurvived checks synchronous_commit for different defaults of
// the database.
func TestPowerLossIsSurvived(t *testing.T) {
	url := pgtest.Database(t)
	conn := connect(t, url)
	for _, setting := range []string{"synchronous_commit = off", "default_transaction_isolation = 'serializable'",
		"statement_timeout = 0"} {
		exec(t, conn, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET `+strings.ReplaceAll(setting, "'", "''")+
			`', current_database()); END $$`)
	}
	s := open(t, url)
	for setting, want := range map[string]string{"synchronous_commit": "on", "transaction_isolation": "read committed",
		"statement_timeout": "5s",
		"lock_timeout":      "2500ms", "idle_in_transaction_session_timeout": "5s"} {
		var got string
		if err := s.pool.QueryRow(context.Background(), "SHOW "+setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", setting, got, err, want)
		}
	}
}

func TestAddressesAreNotShown(t *testing.T) {
	for _, url := range []string{
		"postgres://ann:se cret@127.0.0.1:1/x", "postgres://ann:secret@127.0.0.1:1/x?sslmode=nonsense",
		"postgres://ann:secret@127.0.0.1:port/x",
		"host=127.0.0.1 port=1 user=ann password=secret nonsense", "postgres://ann:secret@127.0.0.1:1/x",
	} {
		_, err := Open(context.Background(), url)
		if code := parley.CodeOf(err); code != parley.CodeInvalid && code != parley.CodeUnavailable ||
			strings.Contains(err.Error(), "cret") {
			t.Errorf("%v", err)
		}
	}
}

func TestUnusableDatabasesAreRefused(t *testing.T) {
	url := pgtest.Database(t)
	exec(t, connect(t, url), `CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`)
	defer exec(t, connect(t, url), `DROP DATABASE latin WITH (FORCE)`)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), strings.Replace(url, "/"+config.Database, "/latin", 1)); err == nil ||
		!strings.Contains(parley.MessageOf(err), "LATIN1") {
		t.Errorf("a database that cannot hold every text: %v", err)
	}
}

// TestGroups checks that a group takes the waiting batches in order, up to a
// number and a size.
func TestGroups(t *testing.T) {
	s := &Store{lanes: map[parley.TenantID][]*waiting{}}
	for _, size := range append([]int{maxBytes, 1, maxBytes - 1, 1, 2 * maxBytes}, make([]int, maxGroup+1)...) {
		s.lanes[acme] = append(s.lanes[acme], &waiting{size: size})
	}
	for i, want := range []int{1, 2, 1, 1, maxGroup, 1, 0} {
		if got := len(s.next(acme)); got != want {
			t.Errorf("group %d has %d batches, want %d", i, got, want)
		}
	}
	if len(s.lanes) > 0 {
		t.Error("a lane that nobody uses is kept")
	}
}

// TestCloseAnswersAllAppends checks that each accepted batch is stored and each
// refused batch is not.
func TestCloseAnswersAllAppends(t *testing.T) {
	url := pgtest.Database(t)
	s := open(t, url)
	const sessions = 16
	heads := make([]parley.Seq, sessions)
	var started, wg sync.WaitGroup
	started.Add(sessions)
	for i := range sessions {
		wg.Go(func() {
			for ; ; heads[i]++ {
				res, err := s.Append(context.Background(), batch(storetest.ID(i), heads[i]))
				if heads[i] == 0 {
					started.Done()
				}
				if err != nil {
					if parley.MessageOf(err) != "The server is stopping." {
						t.Errorf("%v", err)
					}
					return
				}
				if res.Fenced {
					t.Error("fenced")
					return
				}
			}
		})
	}
	started.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	s = open(t, url)
	for i, head := range heads {
		if n := len(log(t, s, storetest.ID(i))); n != int(head) {
			t.Errorf("session %d: %d of %d events were answered", i, head, n)
		}
	}
}

// BenchmarkSearch uses a role under row-level security, as in production.
func BenchmarkSearch(b *testing.B) {
	storetest.BenchSearch(b, func(t testing.TB) port.Store {
		_, server := serving(t)
		return open(t, server)
	})
}
