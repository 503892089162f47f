package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"go.uber.org/goleak"

	"parley"
	"parley/port"
	"parley/store/rules"
	"parley/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Reopener {
		dir := storetest.Dir(t)
		return func(t testing.TB) port.Store {
			s, err := Open(context.Background(), dir, "a test")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
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
		countDue:          "doctor counts work, of whomever",
		countBacklog:      "metrics count what waits, of whomever",
		dueHooks:          "webhooks of every tenant are told by one",
		freeHooks:         "as freeLeases",
		freeLeases:        "leases are of processes, and whoever starts is the only one",
		countSnapshots:    "upgrade-check counts those of all tenants",
		rewriteSecrets[0]: "all webhooks are written anew once they are encrypted",
		rewriteSecrets[1]: "as rewriteSecrets[0]",
		rewriteSecrets[2]: "as rewriteSecrets[0]",
		rewriteSecrets[4]: "all setups are written anew once they are encrypted",
		rewriteSecrets[5]: "as rewriteSecrets[4]",
		rewriteSecrets[6]: "as rewriteSecrets[4]",
		allSetups:         "the server loads the setups of every tenant; their values are sealed",
		sessionsCutOff:    "a backup is verified as a whole",
		listTenants:       "says which tenants there are",
		earlierSaid:       "earlier messages are indexed in the order of their events; each under its tenant",
		behindTenants:     "retention is the server's; what it deletes it deletes tenant by tenant",
	})
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(context.Background(), dir, "process 4711 on 127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = Open(context.Background(), dir, "another")
	if err == nil || !strings.Contains(err.Error(), "process 4711 on 127.0.0.1:8080") {
		t.Errorf("a second store on one folder: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "parley.lock")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time a lock file exists, but no process holds the lock
		if other, err := Open(context.Background(), dir, "another"); err == nil {
			other.Close()
			t.Fatal("without the lock file a second store was opened")
		}
	}
	s.Close()
	s, err = Open(context.Background(), dir, "the next")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestPowerLossIsSurvived(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(context.Background(), dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal"} {
		var got string
		if err := s.w.conn.QueryRowContext(context.Background(), "PRAGMA "+pragma).Scan(&got); err != nil ||
			got != want {
			t.Errorf("%s is %s, %v; want %s", pragma, got, err, want)
		}
	}
}

// TestTheDatabaseIsPrivate checks the file mode, whatever the mode of the
// folder, and whatever mode the file had before.
func TestTheDatabaseIsPrivate(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := Open(context.Background(), dir, "a test")
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "parley.db*"))
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s is %v, %v", filepath.Base(name), info.Mode(), err)
			}
		}
		s.Close()
		if err := os.Chmod(filepath.Join(dir, "parley.db"), 0o644); err != nil { // the mode from an earlier release
			t.Fatal(err)
		}
	}
}

func TestCorruptRows(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	open := func() *Store {
		s, err := Open(ctx, dir, "a test")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	for i := range 3 {
		id := storetest.ID(i)
		b := port.Batch{Tenant: "acme", Session: id, Epoch: 1, Summary: port.Summary{ID: id, Root: id, Head: 2},
			Events: []parley.Event{
				{Session: id, Seq: 1, Root: id, Body: parley.SessionOpened{Owner: "ann"}},
				{Session: id, Seq: 2, Root: id, Body: parley.SessionRenamed{Title: "x"}},
			}}
		if _, err := s.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()

	db, err := sql.Open("sqlite", filepath.Join(dir, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, harm := range []string{
		`UPDATE events SET body = '{"title":' WHERE session = 1 AND seq = 2`,
		`DELETE FROM events WHERE session = 2 AND seq = 1`,
	} {
		if _, err := db.Exec(harm); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()

	s = open()
	defer s.Close()
	for i, want := range []string{"seq 2", "seq 1", ""} {
		_, err := s.Tenant("acme").Events(ctx, storetest.ID(i), 0, 10)
		switch {
		case want == "" && err != nil:
			t.Errorf("session %d was not harmed: %v", i, err)
		case want != "" && (parley.CodeOf(err) != parley.CodeCorrupt || !strings.Contains(err.Error(), want) ||
			strings.Contains(parley.MessageOf(err), "seq")):
			t.Errorf("session %d: %v", i, err)
		}
	}
}

// TestAnOldDatabaseIsBroughtUpToDate checks that this release reads a database of the first release.
func TestAnOldDatabaseIsBroughtUpToDate(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	db, err := open(filepath.Join(dir, "parley.db"), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(ctx, 1); err != nil {
		t.Fatal(err)
	}
	root, child := storetest.ID(1), storetest.ID(2)
	var want []parley.Event
	for i, e := range []parley.Event{
		{Session: root, Seq: 1, Root: root, By: "ann", Body: parley.SessionOpened{Owner: "ann"}},
		{Session: child, Seq: 1, Root: root, By: "ann", Body: parley.SessionOpened{Owner: "ann"}},
		{Session: root, Seq: 2, Root: root, Run: 2, Body: parley.OutputAppended{Output: 1, Text: "é"}},
	} {
		e.Position, e.At = parley.Position(i+1), time.UnixMicro(int64(7+i)).UTC()
		name, version, body, _ := parley.EncodeBody(e.Body)
		if _, err := db.Exec(`INSERT INTO events VALUES ('acme', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			e.Session, e.Seq, e.Position, e.Root, micros(e.At), e.Run, e.By, name, version, e.IsPiece(),
			string(body)); err != nil {
			t.Fatal(err)
		}
		want = append(want, e)
	}
	for _, insert := range []string{
		`INSERT INTO store VALUES ('theepoch')`,
		`INSERT INTO tenants VALUES ('acme', 3)`,
		`INSERT INTO sessions VALUES ('acme', '` + string(root) + `', '` + string(root) +
			`', 'ann', 'helper', 'first', 'idle', 0, 0, 0, 2, 4, 7, 9)`,
		`INSERT INTO sessions VALUES ('acme', '` + string(child) + `', '` + string(root) +
			`', 'ann', 'helper', 'second', 'running', 3, 1, 0, 1, 5, 8, 8)`,
		`INSERT INTO sessions VALUES ('acme', 'a connection', 'a connection', 'ann', 'helper', 'third', 'idle', 0, 1, 0, 1, 5, 8, 9)`,
	} {
		if _, err := db.Exec(insert); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()

	s, err := Open(ctx, dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	acme := s.Tenant("acme")
	tree, err := acme.Tree(ctx, root, 0, 10)
	if err != nil || !reflect.DeepEqual(tree, want) {
		t.Errorf("%+v, %v\nwant %+v", tree, err, want)
	}
	if events, err := acme.Events(ctx, root, 0, 10); err != nil ||
		!reflect.DeepEqual(events, []parley.Event{want[0], want[2]}) {
		t.Errorf("%+v, %v", events, err)
	}
	st, err := acme.Session(ctx, child)
	if err != nil || st.Epoch != 5 ||
		st.Summary != (port.Summary{ID: child, Root: root, Owner: "ann", Agent: "helper", Title: "second",
			Status: "running", Run: 3,
			Transient: true, Head: 1, OpenedAt: time.UnixMicro(8).UTC(), UpdatedAt: time.UnixMicro(8).UTC()}) {
		t.Errorf("%+v, %v", st, err)
	}
	if s.Epoch() != "theepoch" {
		t.Errorf("the epoch became %q", s.Epoch())
	}
	// Data of a connection expires after a week, even if its session is older than that.
	week := time.UnixMicro(9).Add(7 * 24 * time.Hour)
	if due, next, err := s.DueBefore(ctx, week.Add(-time.Second), 10); err != nil || len(due) != 0 ||
		!next.Equal(week) {
		t.Errorf("due are %v, next at %v, %v", due, next, err)
	}
	if due, _, err := s.DueBefore(ctx, week, 10); err != nil || len(due) != 1 || due[0].Session != "a connection" {
		t.Errorf("due are %v, %v", due, err)
	}
}

func BenchmarkAppend(b *testing.B) {
	storetest.Bench(b, func(t testing.TB) port.Store {
		s, err := Open(context.Background(), t.TempDir(), "a benchmark")
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func BenchmarkList(b *testing.B) {
	storetest.BenchLists(b, func(t testing.TB) port.Store {
		s, err := Open(context.Background(), t.TempDir(), "a benchmark")
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// BenchmarkSync measures the minimum cost of a durable append on this disk.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, 189)
	for b.Loop() {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "syncs/s")
}

// TestCommitsAreSynced checks that commits are synced, even after migrations, which are not.
func TestCommitsAreSynced(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"empty", "existing"} {
		s, err := Open(context.Background(), dir, "a test")
		if err != nil {
			t.Fatal(err)
		}
		var level int
		if err := s.w.conn.QueryRowContext(context.Background(), `PRAGMA synchronous`).Scan(&level); err != nil {
			t.Fatal(err)
		}
		if level != 2 {
			t.Errorf("%s folder: synchronous is %d, not 2 (FULL)", folder, level)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkStart opens and closes a store in an empty folder, and one that
// already has its tables.
func BenchmarkStart(b *testing.B) {
	start := func(b *testing.B, dir string) {
		s, err := Open(context.Background(), dir, "a benchmark")
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("empty", func(b *testing.B) {
		for b.Loop() {
			start(b, b.TempDir())
		}
	})
	b.Run("existing", func(b *testing.B) {
		dir := b.TempDir()
		for b.Loop() {
			start(b, dir)
		}
	})
}

// commitTogether appends batches in one commit.
func commitTogether(t *testing.T, s *Store, batches ...*queuedBatch) {
	t.Helper()
	ctx := context.Background()
	started, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.inTransaction(ctx, func(context.Context, *writer) error {
			close(started)
			<-release
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-started // batches queued from now on go into one commit
	for _, w := range batches {
		if err := s.enqueue(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	for _, w := range batches {
		if _, err := s.wait(w); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
}

// TestACommandSeesTheBatchesBeforeIt checks the order within a commit: pending
// events are inserted in groups, but before any other work of the commit that
// may read them.
func TestACommandSeesTheBatchesBeforeIt(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, t.TempDir(), "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := openingBatch()
	first.done = make(chan struct{})
	seen := 0
	commitTogether(t, s, first, &queuedBatch{done: make(chan struct{}),
		inTransaction: func(ctx context.Context, w *writer) error {
			return w.conn.QueryRowContext(ctx, `SELECT count(*) FROM events WHERE tenant = '-'`).Scan(&seen)
		}})
	if seen != 1 {
		t.Errorf("%d events were seen", seen)
	}
}

// TestACommitWritesTheIndexOnce checks that statements of a commit, like those of Delivered, do not make FTS5 write the
// texts of the batches before them, which would write the index several times.
func TestACommitWritesTheIndexOnce(t *testing.T) {
	ctx := context.Background()
	s, err := Open(ctx, t.TempDir(), "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	message := func(session parley.SessionID) *queuedBatch {
		b := openingBatch()
		b.Session, b.done = session, make(chan struct{})
		b.Summary.ID, b.Summary.Root = session, session
		b.Events = []parley.Event{{Session: session, Seq: 1, Root: session, Body: parley.InputReceived{Content: "a word"}}}
		if b.bodies, _, err = rules.EncodeBodies(b.Events); err != nil {
			t.Fatal(err)
		}
		return b
	}
	commitTogether(t, s, message("one"), &queuedBatch{done: make(chan struct{}),
		inTransaction: func(ctx context.Context, w *writer) error {
			_, err := w.setEffects.ExecContext(ctx, 0, "-", "one", 1)
			return err
		}}, message("two"))
	var texts, pages int
	if err := s.read.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM said), (SELECT count(*) FROM said_data
		WHERE id > 10)`).Scan(&texts, &pages); err != nil { // 1 and 10 are the rows with totals and structure
		t.Fatal(err)
	}
	if texts != 2 || pages != 1 {
		t.Errorf("%d texts are in %d pages of the index, want 2 in 1", texts, pages)
	}
}

func BenchmarkSearch(b *testing.B) {
	storetest.BenchSearch(b, func(t testing.TB) port.Store {
		s, err := Open(context.Background(), t.TempDir(), "a benchmark")
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
