package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect/dialecttest"
	"parley/port"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// serving creates a database that is up to date. It returns its URL for the
// owner, and for a role that may serve it.
func serving(t testing.TB) (owner, server string) {
	t.Helper()
	return granted(t, migrated(t))
}

func granted(t testing.TB, database string) (owner, server string) {
	t.Helper()
	ctx := context.Background()
	role, server := pgtest.Role(t, database, "")
	for range 2 { // granting twice must be harmless
		if err := Grant(ctx, database, role); err != nil {
			t.Fatal(err)
		}
	}
	return database, server
}

// TestAServingRoleCanServe runs the whole suite under row-level security.
func TestAServingRoleCanServe(t *testing.T) {
	template := migrated(t)
	storetest.Run(t, func(t testing.TB) storetest.Reopener {
		_, url := granted(t, pgtest.Copy(t, template))
		return func(t testing.TB) port.Store { return open(t, url) }
	})
}

// query returns the values of one column.
func query[T any](t testing.TB, conn *pgx.Conn, text string, args ...any) []T {
	t.Helper()
	rows, _ := conn.Query(context.Background(), text, args...)
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return list
}

const tenantTables = `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
	WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace AND a.attname = 'tenant' AND NOT a.attisdropped ORDER BY 1`

// TestEveryTableWithATenantIsGuarded checks the tables of all migrations.
func TestEveryTableWithATenantIsGuarded(t *testing.T) {
	owner, _ := serving(t)
	conn := connect(t, owner)
	tables := query[string](t, conn, tenantTables)
	if len(tables) < 12 {
		t.Errorf("only %q have a tenant", tables)
	}
	const mine = `(tenant = substr(NULLIF(current_setting('parley.tenant'::text, true), ''::text), 2))`
	for _, table := range tables {
		if !query[bool](t, conn, `SELECT relrowsecurity AND relforcerowsecurity FROM pg_class WHERE oid = $1::regclass`,
			table)[0] {
			t.Errorf("%s has no row-level security, or not for its owner", table)
		}
		policies := query[string](t, conn,
			`SELECT policyname || ' ' || cmd FROM pg_policies WHERE tablename = $1 AND permissive = 'PERMISSIVE' AND roles = '{public}' ORDER BY 1 DESC`, table)
		want := map[string][]string{
			"cards": {"tenant ALL", "maintenance SELECT"}, "effects": {"tenant ALL", "maintenance SELECT"},
			"due": {"tenant ALL", "maintenance SELECT"}, "tenants": {"tenant ALL", "maintenance SELECT"},
			"revocations": {"tenant ALL", "maintenance SELECT"}, "setups": {"tenant ALL", "maintenance SELECT"},
			"tickets": {"tenant ALL", "maintenance_take DELETE", "maintenance SELECT"},
			"inbox":   {"tenant ALL", "maintenance_end DELETE", "maintenance SELECT"},
		}[table]
		if want == nil {
			want = []string{"tenant ALL"}
		}
		if !slices.Equal(policies, want) {
			t.Errorf("%s has the policies %q, want %q", table, policies, want)
		}
		if n := query[int](t, conn,
			`SELECT count(*) FROM pg_policies WHERE tablename = $1 AND policyname = 'tenant' AND qual = $2 AND with_check = $2`, table, mine)[0]; n != 1 {
			t.Errorf("%s: %q", table,
				query[string](t, conn,
					`SELECT coalesce(qual, '') || ', check ' || coalesce(with_check, '') FROM pg_policies WHERE tablename = $1`, table))
		}
	}
}

// twoTenants gives two tenants a row in every table, and the server a row in its own audit.
func twoTenants(t *testing.T, s *Store) {
	t.Helper()
	ctx := context.Background()
	for _, tenant := range []parley.TenantID{acme, "rival"} {
		b := batch(storetest.ID(1), 0)
		b.Tenant = tenant
		b.Events = append(b.Events, parley.Event{Session: b.Session, Seq: 3, Root: b.Session, At: t0,
			Body: parley.EffectEnqueued{Type: "x"}},
			parley.Event{Session: b.Session, Seq: 4, Root: b.Session, At: t0, Run: 4, Body: parley.RunStarted{}},
			parley.Event{Session: b.Session, Seq: 5, Root: b.Session, At: t0, Run: 4, Body: parley.ApprovalRequested{}},
			parley.Event{Session: b.Session, Seq: 6, Root: b.Session, At: t0, Run: 4, Body: parley.TimerSet{At: t0}},
			parley.Event{Session: b.Session, Seq: 7, Root: b.Session, At: t0,
				Body: parley.InputReceived{Content: "hello"}})
		b.Trimmed, b.Summary.Head = true, 7
		b.Receipt = &port.StoredReceipt{Receipt: port.Receipt{Session: b.Session, Command: "c", First: 1, Last: 3}}
		b.Agent = &parley.Agent{Name: "helper"}
		b.Snapshot = &parley.Snapshot{Seq: 3, Version: 1, Body: []byte(`{}`)}
		b.Due = &port.DueChange{Due: parley.Due{At: t0, Reason: "run"}}
		b.Audit = []parley.Audit{{At: t0, Action: "x", Metadata: []byte(`{}`)}}
		b.Marks = &port.MarkChange{User: "ann", Session: b.Session, ReadAt: t0}
		b.Hold = &port.HoldChange{LegalHold: port.LegalHold{Kind: port.HoldUser, ID: "ann", Reason: "x", At: t0}}
		b.Setup = &port.Setup{Kind: port.SetupModel, Name: "openai", Sealed: []byte("x"), By: "ann", At: t0}
		b.Context = &port.UserContext{Agent: "helper", User: "ann", Text: "x", At: t0}
		b.Webhook = &port.StoredWebhook{URL: "https://x.example", Hook: parley.HookOf("x.example:443", nil),
			Sealed: []byte("x"), At: t0}
		mustAppend(t, s, b)
		claim := port.TicketClaim{Identity: port.Identity{Principal: port.Principal{ID: "ann", Tenant: tenant}},
			Until: t0}
		if err := s.PutTicket(ctx, port.TicketHash{byte(len(tenant))}, claim, t0); err != nil {
			t.Fatal(err)
		}
		if err := s.Post(ctx, port.Letter{Tenant: tenant, Session: b.Session, Command: "c", Node: "x",
			Body: []byte("sealed")}); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.Reserve(ctx, tenant, port.Quotas{Tenant: port.Quota{Tokens: 1}}, t0,
			port.Hold{User: "ann", Tokens: 1}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		mustAppend(t, s, port.Batch{Tenant: tenant, Revocation: &port.Revocation{Tenant: tenant, Principal: "ann",
			Before: t0}})
	}
	mustAppend(t, s, port.Batch{Audit: []parley.Audit{{At: t0, Action: "x", Metadata: []byte(`{}`)}}})
}

// eraseBoth records, as the owner, that an erasure of each tenant has begun: a server may only read these rows.
func eraseBoth(t *testing.T, owner string) {
	t.Helper()
	conn := connect(t, owner)
	for _, tenant := range []parley.TenantID{acme, "rival"} {
		exec(t, conn, `begin`)
		exec(t, conn, `SELECT set_config($1, $2, true)`, of(tenant).setting, of(tenant).value)
		exec(t, conn, `INSERT INTO erasures (tenant, principal, by, at, artifacts) VALUES ($1, 'ann', 'bob', now(), '[]')`,
			text(tenant))
		exec(t, conn, `commit`)
	}
}

// in calls do in a transaction with a scope, and rolls it back.
func in(t testing.TB, conn *pgx.Conn, s scope, do func()) {
	t.Helper()
	exec(t, conn, `begin`)
	exec(t, conn, `SELECT set_config($1, $2, true)`, s.setting, s.value)
	do()
	exec(t, conn, `rollback`)
}

// TestOtherTenantsRowsAreInvisible checks that even SQL without a tenant condition returns no rows of other tenants.
func TestOtherTenantsRowsAreInvisible(t *testing.T) {
	owner, server := serving(t)
	twoTenants(t, open(t, server))
	eraseBoth(t, owner)
	conn := connect(t, server)
	tables := query[string](t, connect(t, owner), tenantTables)
	for _, table := range tables {
		for _, c := range []struct {
			what string
			in   scope
			want []string
		}{
			{"one tenant", of(acme), []string{"acme"}},
			{"another", of("rival"), []string{"rival"}},
			{"one that is not there", of("acm"), nil},
			{"a pattern", of("%"), nil},
			{"no tenant", scope{"parley.tenant", ""}, nil},
			{"a name without the sign", scope{"parley.tenant", "acme"}, nil},
			{"maintenance", maintenance, []string{"", "acme", "rival"}},
			{"an unknown scope", scope{"parley.scope", "all"}, nil},
		} {
			if c.what == "maintenance" &&
				!slices.Contains([]string{"cards", "due", "effects", "inbox", "setups", "tenants", "tickets",
					"revocations"}, table) {
				c.want = nil
			}
			in(t, conn, c.in, func() {
				got := query[string](t, conn, `SELECT DISTINCT tenant FROM `+table+` ORDER BY 1`)
				if table != "tenants" {
					c.want = slices.DeleteFunc(slices.Clone(c.want), func(s string) bool { return s == "" })
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%s shows %s rows of %q, want %q", table, c.what, got, c.want)
				}
			})
		}
		if n := query[int](t, conn, `SELECT count(*) FROM `+table)[0]; n != 0 {
			t.Errorf("%s shows %d rows after transactions that were bound", table, n)
		}
		if n := query[int](t, connect(t, server), `SELECT count(*) FROM `+table)[0]; n != 0 {
			t.Errorf("%s shows %d rows to a new connection", table, n)
		}
	}
	in(t, conn, of(""), func() {
		if got := query[string](t, conn, `SELECT tenant FROM audit`); !slices.Equal(got, []string{""}) {
			t.Errorf("the server's own chain is of %q", got)
		}
	})
}

// TestOtherTenantsRowsCannotBeWritten checks that a tenant cannot insert or delete rows of another, or give its own
// rows away.
func TestOtherTenantsRowsCannotBeWritten(t *testing.T) {
	owner, server := serving(t)
	twoTenants(t, open(t, server))
	eraseBoth(t, owner)
	conn := connect(t, server)
	refused := func(what, statement string) {
		t.Helper()
		in(t, conn, of(acme), func() {
			_, err := conn.Exec(context.Background(), statement)
			// A server may not write to erasures at all.
			if sqlState(err) != "42501" || !strings.Contains(err.Error(), "row-level security") &&
				!strings.Contains(err.Error(), "permission denied for table erasures") {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	for _, table := range query[string](t, connect(t, owner), tenantTables) {
		columns := strings.Join(
			query[string](t, conn,
				`SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0
			AND attgenerated = '' AND attname <> 'tenant' ORDER BY attnum`, table), ", ")
		refused("a row of another in "+table, `INSERT INTO `+table+` (tenant, `+columns+`) SELECT 'rival', `+columns+
			` FROM `+table)
		in(t, conn, of(acme), func() {
			tag, err := conn.Exec(context.Background(), `DELETE FROM `+table+` WHERE tenant = 'rival'`)
			if sqlState(err) != "42501" && (err != nil || tag.RowsAffected() != 0) {
				// some tables do not grant DELETE at all
				t.Errorf("%s: %d rows of another were deleted, %v", table, tag.RowsAffected(), err)
			}
		})
	}
	refused("a session given away", `UPDATE sessions SET tenant = 'rival'`)
	in(t, conn, maintenance, func() {
		if tag, err := conn.Exec(context.Background(), `UPDATE due SET lease = 'mine'`); err != nil ||
			tag.RowsAffected() != 0 {
			t.Errorf("maintenance has changed %d rows, %v", tag.RowsAffected(), err)
		}
	})
}

// TestRowsCannotReferToOtherTenants checks that a row cannot refer to a session of
// another tenant: to the writer, that session does not exist.
func TestRowsCannotReferToOtherTenants(t *testing.T) {
	_, server := serving(t)
	s := open(t, server)
	b := batch(storetest.ID(7), 0)
	b.Tenant = "rival"
	mustAppend(t, s, b)
	conn := connect(t, server)
	point := func(id parley.SessionID) (said string) {
		in(t, conn, of(acme), func() {
			_, err := conn.Exec(context.Background(),
				`INSERT INTO due (tenant, session, at, reason, lease) VALUES ('acme', $1, now(), 'run', '')`, text(id))
			if sqlState(err) != "23503" { // foreign_key_violation
				t.Errorf("%v", err)
				return
			}
			said = strings.ReplaceAll(err.Error(), string(id), "ID")
		})
		return said
	}
	if foreign, absent := point(storetest.ID(7)), point(storetest.ID(8)); foreign != absent {
		t.Errorf("another's: %s\nnobody's: %s", foreign, absent)
	}
}

// TestAConnectionForgetsItsTenant covers transactions that failed half way, too.
func TestAConnectionForgetsItsTenant(t *testing.T) {
	ctx := context.Background()
	_, server := serving(t)
	s := open(t, server, WithConnections(1))
	twoTenants(t, s)
	seen := func(what string) {
		t.Helper()
		var rows int
		var tenant string
		if err := s.pool.QueryRow(ctx,
			`SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM audit) + (SELECT count(*) FROM due),
			coalesce(current_setting('parley.tenant', true), '') || coalesce(current_setting('parley.scope', true), '')`).Scan(&rows, &tenant); err != nil || rows != 0 || tenant != "" {
			t.Errorf("after %s the connection sees %d rows of %q, %v", what, rows, tenant, err)
		}
	}
	seen("commits")
	again := batch(storetest.ID(1), 7)
	again.Receipt = &port.StoredReceipt{Receipt: port.Receipt{Session: again.Session, Command: "c"}}
	if _, err := s.Append(ctx, again); parley.CodeOf(err) != parley.CodeUnavailable {
		t.Fatalf("a second receipt under one id: %v", err)
	}
	seen("a commit that failed")
	if events := log(t, s, storetest.ID(2)); len(events) > 0 {
		t.Errorf("%v", events)
	}
	seen("a read")
	if _, err := list(ctx, s, of(acme), pgx.RowTo[int], `SELECT 1 / (seq - 1)::int FROM events WHERE tenant = $1`,
		text(acme)); err == nil {
		t.Fatal("a division by zero went well")
	}
	seen("a read that failed")
	if due, _, err := s.DueBefore(ctx, t0, 10); err != nil || len(due) != 2 {
		t.Errorf("%v, %v", due, err)
	}
	seen("maintenance")
	if got := s.pool.Stat().NewConnsCount(); got != 1 {
		t.Errorf("%d connections were used, so one was not used again", got)
	}
}

// TestServingRolePrivileges checks that a serving role has no privileges beyond serving.
func TestServingRolePrivileges(t *testing.T) {
	ctx := context.Background()
	owner, server := serving(t)
	conn := connect(t, server)
	for _, statement := range []string{
		`UPDATE audit SET action = 'x'`, `DELETE FROM audit`, `TRUNCATE audit`, `UPDATE events SET body = 'x'`,
		`DELETE FROM sessions`, `DELETE FROM tenants`,
		`DELETE FROM receipts`, `UPDATE definitions SET body = '{}'`, `UPDATE store SET epoch = 'x'`,
		`DELETE FROM goose_db_version`, `CREATE TABLE x (y TEXT)`,
		`DROP TABLE events`, `ALTER TABLE events DISABLE ROW LEVEL SECURITY`, `DROP POLICY tenant ON events`,
		`CREATE POLICY all_of_it ON events USING (true)`,
	} {
		in(t, conn, of(acme), func() {
			if _, err := conn.Exec(ctx, statement); sqlState(err) != "42501" {
				t.Errorf("%s: %v", statement, err)
			}
		})
	}
	admin := connect(t, owner)
	tables := query[string](t, admin, `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1`)
	for _, g := range grants {
		tables = slices.DeleteFunc(tables, func(name string) bool { return name == g.table })
	}
	if len(tables) > 0 {
		t.Errorf("nobody has said what a server may do with %q", tables)
	}
	bypassing, _ := pgtest.Role(t, owner, "BYPASSRLS")
	for role, want := range map[string]parley.Code{"nobody": parley.CodeNotFound, "postgres": parley.CodeInvalid,
		bypassing: parley.CodeInvalid} {
		if role == "postgres" {
			role = query[string](t, admin, `SELECT current_user::text`)[0]
		}
		if err := Grant(ctx, owner, role); parley.CodeOf(err) != want {
			t.Errorf("granting to %s: %v", role, err)
		}
	}
}

// TestAServingRoleDoesNotMigrate checks that the error names the role that should migrate.
func TestAServingRoleDoesNotMigrate(t *testing.T) {
	ctx := context.Background()
	owner, server := serving(t)
	exec(t, connect(t, owner),
		`DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
	empty := pgtest.Database(t)
	_, nothing := pgtest.Role(t, empty, "")
	for what, url := range map[string]string{"of an older release": server, "that is empty": nothing} {
		if _, err := Open(ctx, url); parley.CodeOf(err) != parley.CodeUnavailable ||
			!strings.Contains(err.Error(), "not up to date") {
			t.Errorf("a database %s: %v", what, err)
		}
	}
	owner = pgtest.Database(t)
	if _, _, err := Migrate(ctx, owner); err != nil {
		t.Fatal(err)
	}
	_, stranger := pgtest.Role(t, owner, "")
	if _, err := Open(ctx, stranger); parley.CodeOf(err) != parley.CodeUnavailable ||
		!strings.Contains(parley.MessageOf(err), "lacks a right") {
		t.Errorf("a role that nothing was granted to: %v", err)
	}
}

// TestRowLevelSecurityBindsOwner checks row-level security for a single role that migrates and serves, which is as
// common.
func TestRowLevelSecurityBindsOwner(t *testing.T) {
	admin := pgtest.Database(t)
	role, url := pgtest.Role(t, admin, "")
	exec(t, connect(t, admin), `GRANT ALL ON SCHEMA public TO `+role)
	open(t, url).Close()
	s := open(t, url)
	twoTenants(t, s)
	if s.Bypasses() {
		t.Error("the owner is said not to be bound")
	}
	if n := query[int](t, connect(t, url), `SELECT count(*) FROM events`)[0]; n != 0 {
		t.Errorf("the owner sees %d rows", n)
	}
	events, err := s.Tenant(acme).EventsWithoutChunks(context.Background(), storetest.ID(1), 0)
	if err != nil || len(events) != 6 {
		t.Errorf("%v, %v", events, err)
	}
	_, free := pgtest.Role(t, admin, "BYPASSRLS IN ROLE "+role)
	for what, url := range map[string]string{"a superuser": admin, "who has BYPASSRLS": free} {
		if !open(t, url).Bypasses() {
			t.Errorf("%s is said to be bound", what)
		}
	}
}

// TestAnUpgradeKnowsRunsAndCards checks that the migration derives the same
// rows from stored events as Append does from new ones. It runs as an owner
// under row-level security.
func TestAnUpgradeKnowsRunsAndCards(t *testing.T) {
	ctx := context.Background()
	admin := pgtest.Database(t)
	role, url := pgtest.Role(t, admin, "")
	exec(t, connect(t, admin), `GRANT ALL ON SCHEMA public TO `+role)
	s := open(t, url)
	logs := rapid.Custom(dialecttest.AnyLog)
	var some [][]parley.Event
	for seed := range 2000 {
		some = append(some, logs.Example(seed))
	}
	storetest.Rederived(t, s, some, func() {
		conn := connect(t, admin)
		for _, statement := range []string{
			`DROP TABLE runs`, `DROP TABLE cards`, `DROP TABLE timers`, `DROP TABLE webhooks`,
			`DROP INDEX effects_hooks`, `DROP POLICY maintenance ON effects`, `DROP INDEX effects_recent`,
			`DROP INDEX effects_open`, `DROP INDEX effects_owed`,
			`CREATE INDEX effects_status ON effects (tenant, session_key, status)`,
			`ALTER TABLE effects DROP COLUMN target, DROP COLUMN next_attempt_at, DROP COLUMN attempts, DROP COLUMN last_attempt_at, DROP COLUMN leased_until, DROP COLUMN why`, `ALTER TABLE revocations DROP COLUMN sparing_admins`, `ALTER TABLE sessions DROP COLUMN project, DROP COLUMN holder, DROP COLUMN bytes`,
			`DROP TABLE erasures`, `DROP TABLE usage`, `DROP TABLE holds`, `DROP TABLE legal_holds`, `DROP INDEX sessions_children`,
			`DROP TABLE releases`, `DROP TABLE secret_keys`,
			`DROP TABLE setups`, `DROP INDEX audit_session`,
			`DROP TABLE inbox`, `DROP TABLE key_mark`, `ALTER TABLE tenants DROP COLUMN facts`,
			`DROP TABLE said`, `DROP TABLE marks`, `ALTER TABLE tenants DROP COLUMN unsearched`,
			`ALTER TABLE nodes DROP COLUMN since, DROP COLUMN address, DROP COLUMN version, DROP COLUMN agents,
				DROP COLUMN sessions, DROP COLUMN draining, DROP COLUMN projects`,
			`DELETE FROM goose_db_version WHERE version_id >= 7`,
			// The migration skips a body that cannot be read.
			`INSERT INTO events (tenant, session, seq, position, root, at, run, by, type, version, piece, body)
				SELECT 'acme', id, head + 1, 1000000, root, now(), run, '', 'RunFinished', 1, false, '{"outcome":' FROM sessions WHERE run = 0 ORDER BY id LIMIT 1`,
			`INSERT INTO events (tenant, session, seq, position, root, at, run, by, type, version, piece, body)
				SELECT 'acme', id, head + 1, 1000001, root, now(), run, '', 'ApprovalDecided', 1, false, '{"card":' FROM sessions WHERE run <> 0 ORDER BY id DESC LIMIT 1`,
		} {
			exec(t, conn, statement)
		}
		if _, _, err := Migrate(ctx, url); err != nil {
			t.Fatal(err)
		}
	})
}

// TestEarlierMessagesAreIndexed checks that messages from before an upgrade are indexed in pages, by a role under
// row-level security.
func TestEarlierMessagesAreIndexed(t *testing.T) {
	owner, server := serving(t)
	storetest.EarlierIsSearched(t, open(t, server), func() {
		conn := connect(t, owner)
		exec(t, conn, `DELETE FROM said`)
		exec(t, conn, `UPDATE tenants SET unsearched = position`)
	})
}

func TestDeletedSessionsLeaveTheIndex(t *testing.T) {
	owner, server := serving(t)
	storetest.DeletedLeaveTheIndex(t, open(t, server), func() int {
		return query[int](t, connect(t, owner), `SELECT count(*) FROM said`)[0]
	})
}
