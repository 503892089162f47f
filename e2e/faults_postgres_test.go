package e2e

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/store/postgres/pgtest"
)

// TestDatabaseTrouble is TestDiskTrouble for a database that goes away, hangs
// or becomes read-only. A hung database looks like a slow one, so the first
// refusal takes as long as a statement may. Later requests do not wait for
// that.
func TestDatabaseTrouble(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t) // other tests share one database
	launch := func(t *testing.T) func() {
		return func() {
			if err := database.Launch(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, b := range []trouble{
		{"shut", func(x *trial) func() {
			database.Shut()
			return launch(x.t)
		}, atOnce, atOnce, healed},
		{"killed", func(x *trial) func() {
			if err := database.Kill(); err != nil {
				x.t.Fatal(err)
			}
			return launch(x.t)
		}, atOnce, atOnce, healed},
		{"hangs", func(x *trial) func() {
			thaw, err := database.Freeze()
			if err != nil {
				x.t.Fatal(err)
			}
			x.t.Cleanup(thaw)
			return thaw
		}, 5*time.Second + atOnce, atOnce, healed},
		{"read-only", func(x *trial) func() {
			address := strings.TrimPrefix(x.o.env[0], "PARLEY_DATABASE_URL=")
			// A connection keeps the default of its start. The existing
			// connections end here; the server must end those that it opens
			// meanwhile.
			administer(x.t, address, `ALTER DATABASE %s SET default_transaction_read_only = on`,
				`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '%s' AND pid <> pg_backend_pid()`)
			return func() { administer(x.t, address, `ALTER DATABASE %s RESET default_transaction_read_only`) }
		}, atOnce, atOnce, healed},
	} {
		t.Run(b.name, func(t *testing.T) {
			o := options{env: []string{"PARLEY_DATABASE_URL=" + database.Database(t)}}
			newTrial(t, startServer(t, o)).during(b)
		})
	}
}

// TestAppendTrouble: heartbeats and reads work, but appends fail.
func TestAppendTrouble(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for _, b := range []trouble{
		{"no room", func(x *trial) func() { // the error of PostgreSQL, although other statements still succeed
			address := strings.TrimPrefix(x.o.env[0], "PARLEY_DATABASE_URL=")
			statements(x.t, address, `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$`,
				`CREATE TRIGGER full_disk BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION full_disk()`)
			return func() { statements(x.t, address, `DROP TRIGGER full_disk ON events`) }
		}, atOnce, atOnce, healed},
		{"locked", func(x *trial) func() {
			conn, err := pgx.Connect(context.Background(), strings.TrimPrefix(x.o.env[0], "PARLEY_DATABASE_URL="))
			if err != nil {
				x.t.Fatal(err)
			}
			unlock := sync.OnceFunc(func() { conn.Close(context.Background()) })
			x.t.Cleanup(unlock)
			if _, err := conn.Exec(within(x.t, patience), `BEGIN; LOCK TABLE events IN EXCLUSIVE MODE`); err != nil {
				x.t.Fatal(err)
			}
			return unlock
		}, 5*time.Second + atOnce, 2*5*time.Second + atOnce, healed}, // it may wait behind a request that waits as long
	} {
		t.Run(b.name, func(t *testing.T) {
			o := options{env: []string{"PARLEY_DATABASE_URL=" + database.Database(t)}}
			newTrial(t, startServer(t, o)).during(b)
		})
	}
}

// statements runs statements in a database.
func statements(t *testing.T, address string, list ...string) {
	t.Helper()
	ctx := within(t, patience)
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, s := range list {
		if _, err := conn.Exec(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
}

// administer runs a statement about a database, whose name replaces %s, from
// another database.
func administer(t *testing.T, address string, statements ...string) {
	t.Helper()
	ctx := within(t, patience)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	conn, err := pgx.Connect(ctx, u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, s := range statements {
		if _, err := conn.Exec(ctx, strings.ReplaceAll(s, "%s", name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAKilledServerOnPostgreSQLGoesOnAtOnce: a server that is started again in
// the same data folder does not wait for the leases of its previous process.
func TestAKilledServerOnPostgreSQLGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t).Database(t)
	s := startServer(t, options{env: []string{"PARLEY_DATABASE_URL=" + address}})
	c := startNode(t).dial(s, newThread())
	c.ask("count to 60")
	c.pieces(2)
	s.kill()
	statements(t, address, `UPDATE nodes SET seen_at = now() + interval '1 hour'`) // no lease expires by itself
	s = s.again()
	took := await(t, patience, "the run to go on",
		func() bool { return len(of("TurnFinished", s.events(c.thread))) > 0 })
	t.Logf("the run went on after %v", took)
}
