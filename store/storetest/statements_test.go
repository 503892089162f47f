package storetest

import (
	"testing"
	"testing/fstest"
)

// TestStatementsAreJudged checks statements that must pass and statements that
// must fail.
func TestStatementsAreJudged(t *testing.T) {
	tables, err := tenantTables(fstest.MapFS{
		"migrations/0001.sql": {Data: []byte("-- +goose Up\nCREATE TABLE nodes (id TEXT);\nCREATE TABLE old (x TEXT, " +
			"-- ;\n tenant TEXT);\nCREATE TABLE gone (tenant TEXT);\n-- +goose Down\nDROP TABLE old;")},
		"migrations/0002.sql": {Data: []byte("ALTER TABLE old RENAME TO events;\nDROP TABLE gone;\nCREATE TABLE " +
			"sessions (no INTEGER, tenant TEXT NOT NULL, PRIMARY KEY (tenant, no));\nCREATE INDEX i ON nodes (tenant);\nCREATE TABLE due (id TEXT);\nALTER TABLE due ADD COLUMN tenant TEXT;")},
	})
	if err != nil || len(tables) != 3 || !tables["events"] || !tables["sessions"] || !tables["due"] {
		t.Fatalf("tables with a tenant: %v, %v", tables, err)
	}
	for text, fine := range map[string]bool{
		`SELECT body FROM events WHERE tenant = ? AND id = ?`:                                                           true,
		`SELECT body FROM events WHERE id = ?`:                                                                          false,
		`select body from "events" e where e.id = ?`:                                                                    false,
		`SELECT body FROM events -- WHERE tenant = ?`:                                                                   false,
		`SELECT body FROM events WHERE tenant = ? OR id = ?`:                                                            false,
		`SELECT body FROM events WHERE tenant = ? AND (id = ? OR id = ?)`:                                               true,
		`SELECT body FROM events WHERE NOT tenant = ?`:                                                                  false,
		`SELECT body FROM events WHERE tenant <> ?`:                                                                     false,
		`SELECT body FROM events WHERE tenant = tenant`:                                                                 false,
		`SELECT body FROM events WHERE tenant = 'acme'`:                                                                 false,
		`SELECT tenant = ? FROM events`:                                                                                 false,
		`SELECT 1 FROM events e JOIN sessions s ON s.no = e.id WHERE e.tenant = $1`:                                     false,
		`SELECT 1 FROM events e JOIN sessions s ON s.no = e.id WHERE e.tenant = $1 AND s.tenant = e.tenant`:             true,
		`SELECT 1 FROM events e JOIN sessions s ON s.tenant = e.tenant`:                                                 false,
		`SELECT 1 FROM events e JOIN sessions s ON s.tenant = e.tenant WHERE $1 = s.tenant`:                             true,
		`SELECT 1 FROM events e LEFT JOIN sessions s ON s.no = 1 AND e.tenant = $1 WHERE s.tenant = $1`:                 false,
		`SELECT 1 FROM nodes, events AS e WHERE e.id = $1`:                                                              false,
		`SELECT 1 FROM events e, sessions s WHERE tenant = $1`:                                                          false,
		`SELECT (SELECT count(*) FROM due) FROM events WHERE tenant = $1`:                                               false,
		`SELECT 1 FROM events WHERE tenant = $1 UNION ALL SELECT 1 FROM events`:                                         false,
		`SELECT 1 FROM events WHERE tenant = $1 AND EXISTS (SELECT 1 FROM due d WHERE d.tenant = events.tenant)`:        true,
		`SELECT 1 FROM events WHERE tenant = $1 AND EXISTS (SELECT 1 FROM due WHERE tenant = tenant)`:                   false,
		`WITH d AS (SELECT * FROM due) SELECT 1 FROM events WHERE tenant = $1`:                                          false,
		`WITH d AS (DELETE FROM due WHERE tenant = $1) INSERT INTO events (tenant, id) VALUES ($1, $2)`:                 true,
		`SELECT * FROM (SELECT id FROM events WHERE tenant = $1) AS x WHERE x.id > 2`:                                   true,
		`SELECT * FROM (SELECT id, tenant FROM events) AS x WHERE x.tenant = $1`:                                        false,
		`UPDATE events SET body = ? WHERE tenant = ?`:                                                                   true,
		`UPDATE events SET body = ? WHERE id = ?`:                                                                       false,
		`UPDATE events SET id = ?, tenant = ? WHERE tenant = ?`:                                                         false,
		`UPDATE events SET body = s.title FROM sessions s WHERE events.tenant = ?`:                                      false,
		`DELETE FROM events WHERE id = ?`:                                                                               false,
		`DELETE FROM events WHERE tenant = $1 RETURNING id`:                                                             true,
		`INSERT INTO events (id, tenant) VALUES (?, ?)`:                                                                 true,
		`INSERT INTO events (id, tenant) VALUES (?, 'acme')`:                                                            false,
		`INSERT INTO events (id, tenant) VALUES (?, ?), (?, 'acme')`:                                                    false,
		`INSERT INTO events (id) VALUES (?)`:                                                                            false,
		`INSERT INTO events VALUES (?, ?)`:                                                                              false,
		`INSERT INTO events (id, tenant) SELECT no, tenant FROM sessions WHERE tenant = ?`:                              true,
		`INSERT INTO events (id, tenant) SELECT no, tenant FROM sessions`:                                               false,
		`INSERT INTO events (id, tenant) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET id = excluded.id`:                 false,
		`INSERT INTO events (id, tenant) VALUES (?, ?) ON CONFLICT (id, tenant) DO UPDATE SET id = excluded.id`:         true,
		`INSERT INTO events (id, tenant) VALUES (?, ?) ON CONFLICT (id, tenant) DO UPDATE SET tenant = excluded.tenant`: false,
		`INSERT INTO nodes (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET id = excluded.id`:                             true,
		`SELECT id FROM nodes`:          true,
		` AND id = $%d`:                 true,
		` AND id = $%d OR true`:         false,
		` ORDER BY id LIMIT ?`:          true,
		` OR id = ?`:                    false,
		` FROM events WHERE tenant = ?`: false,
		` WHERE tenant = ?`:             false,
		`Nothing was stored.`:           true,
		`and so on`:                     true,
	} {
		if wrong := judge(text, tables).wrong; (len(wrong) == 0) != fine {
			t.Errorf("%s: %q", text, wrong)
		}
	}
}
