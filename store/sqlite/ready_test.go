package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/store/storetest"
)

// input returns a batch that appends one large input to a session. If after is
// 0, the batch opens the session first.
func input(id parley.SessionID, after parley.Seq) port.Batch {
	var body parley.EventBody = parley.InputReceived{Content: strings.Repeat("x", 10_000), Busy: parley.Queue}
	if after == 0 {
		body = parley.SessionOpened{Owner: "ann"}
	}
	at := time.Unix(1_700_000_000, 0).UTC()
	return port.Batch{Tenant: "acme", Session: id, Epoch: 1, After: after,
		Events:  []parley.Event{{Session: id, Seq: after + 1, Root: id, At: at, Body: body}},
		Summary: port.Summary{ID: id, Root: id, Owner: "ann", Head: after + 1, OpenedAt: at, UpdatedAt: at}}
}

func opened(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(context.Background(), dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func appended(t *testing.T, s *Store, b port.Batch) {
	t.Helper()
	if res, err := s.Append(context.Background(), b); err != nil || res.Fenced {
		t.Fatalf("append after %d: %+v, %v", b.After, res, err)
	}
}

// execWriter executes a statement on the connection of the write goroutine.
func execWriter(t *testing.T, s *Store, statement string) {
	t.Helper()
	if _, err := s.w.conn.ExecContext(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}

// TestReadyFollowsAppends checks that a store whose appends fail is not ready,
// although a smaller commit would succeed. The store becomes ready when appends
// work again.
func TestReadyFollowsAppends(t *testing.T) {
	ctx := context.Background()
	s := opened(t, t.TempDir())
	appended(t, s, input(storetest.ID(1), 0))
	execWriter(t, s, `PRAGMA max_page_count = 1`) // SQLite takes the present size instead, so no page can be added
	after := parley.Seq(1)
	var failed error
	for ; failed == nil && after < 100; after++ {
		_, failed = s.Append(ctx, input(storetest.ID(1), after))
	}
	if parley.CodeOf(failed) != parley.CodeUnavailable {
		t.Fatalf("append to a full database: %v", failed)
	}
	for i := range 10 {
		if err := s.Ready(ctx); parley.CodeOf(err) != parley.CodeUnavailable {
			t.Fatalf("ready %d: %v", i, err)
		}
	}
	// The success of a smaller commit is not enough.
	if err := s.inTransaction(ctx, func(context.Context, *writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(ctx); err == nil {
		t.Error("a smaller commit made the store ready")
	}
	execWriter(t, s, fmt.Sprint(`PRAGMA max_page_count = `, 1<<30))
	if err := s.Ready(ctx); err != nil {
		t.Errorf("after the trouble: %v", err)
	}
	// A rehearsal leaves nothing behind.
	events, err := s.Tenant("acme").Events(ctx, storetest.ID(1), 0, 1000)
	if err != nil || parley.Seq(len(events)) != after-1 {
		t.Errorf("%d events, %v; want %d", len(events), err, after-1)
	}
	appended(t, s, input(storetest.ID(1), after-1))
	if tenants, err := s.Tenants(ctx); err != nil || len(tenants) != 1 {
		t.Errorf("%v, %v", tenants, err)
	}
}

// TestATruncatedFileIsNotReady checks that a store whose file was truncated is
// not ready, even before the next write.
func TestATruncatedFileIsNotReady(t *testing.T) {
	ctx := context.Background()
	for _, left := range []int64{0, 4096} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			dir := t.TempDir()
			s := opened(t, dir)
			for i := range parley.Seq(10) {
				appended(t, s, input(storetest.ID(1), i))
			}
			execWriter(t, s, `PRAGMA wal_checkpoint(TRUNCATE)`)
			appended(t, s, input(storetest.ID(1), 10))
			if err := os.Truncate(filepath.Join(dir, database), left); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := s.Ready(ctx); parley.CodeOf(err) != parley.CodeCorrupt {
					t.Errorf("ready: %v", err)
				}
				if _, err := s.Append(ctx, input(storetest.ID(1), 11)); parley.CodeOf(err) != parley.CodeCorrupt {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
}

// TestAFileThatSQLiteShortensIsReady runs VACUUM in another process, which
// makes the file smaller.
func TestAFileThatSQLiteShortensIsReady(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	for i := range parley.Seq(50) {
		appended(t, s, input(storetest.ID(1), i))
	}
	other, err := open(filepath.Join(dir, database), "_pragma=busy_timeout(5000)", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, database))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	execWriter(t, s, `PRAGMA wal_checkpoint(TRUNCATE)`)
	appended(t, s, input(storetest.ID(2), 0)) // the store notes the size of the file
	before := size()
	for _, statement := range []string{`DELETE FROM events WHERE seq > 1`, `VACUUM`,
		`PRAGMA wal_checkpoint(TRUNCATE)`} {
		if _, err := other.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if after := size(); after >= before {
		t.Fatalf("the file has %d bytes, and had %d", after, before)
	}
	appended(t, s, input(storetest.ID(2), 1))
	if err := s.Ready(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestADamagedDatabaseIsNotReady makes SQLite report a corrupt file.
func TestADamagedDatabaseIsNotReady(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := opened(t, dir)
	appended(t, s, input(storetest.ID(1), 0))
	other, err := open(filepath.Join(dir, database), "_pragma=busy_timeout(5000)&_pragma=writable_schema(1)", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Exec(`UPDATE sqlite_schema SET rootpage = 100000 WHERE name = 'events'`); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(`PRAGMA schema_version = 4711`); err != nil { // others read the schema again
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.Append(ctx, input(storetest.ID(1), 1)); parley.CodeOf(err) != parley.CodeCorrupt {
			t.Errorf("append: %v", err)
		}
		if err := s.Ready(ctx); parley.CodeOf(err) != parley.CodeCorrupt {
			t.Errorf("ready: %v", err)
		}
	}
}

func TestALogWithoutItsEnd(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	storetest.MissingEnd(t, s, func(id parley.SessionID, after parley.Seq) {
		db, err := open(filepath.Join(dir, database), "_pragma=busy_timeout(5000)", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(`DELETE FROM events WHERE session = (SELECT no FROM sessions WHERE id = ?) AND seq > ?`,
			id, after); err != nil {
			t.Fatal(err)
		}
	})
}
