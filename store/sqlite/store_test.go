package sqlite

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"parley"
	"parley/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Reopener {
		dir := t.TempDir()
		return func(t testing.TB) parley.Store {
			s, err := Open(context.Background(), dir, "a test")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
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
		if err := s.w.conn.QueryRowContext(context.Background(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", pragma, got, err, want)
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
		b := parley.Batch{Tenant: "acme", Session: id, Epoch: 1, Summary: parley.Summary{ID: id, Root: id, Head: 2}, Events: []parley.Event{
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
		`UPDATE events SET body = '{"title":' WHERE session LIKE '%0' AND seq = 2`,
		`DELETE FROM events WHERE session LIKE '%1' AND seq = 1`,
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
		case want != "" && (parley.CodeOf(err) != parley.CodeCorrupt || !strings.Contains(err.Error(), want) || strings.Contains(parley.MessageOf(err), "seq")):
			t.Errorf("session %d: %v", i, err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	storetest.Bench(b, func(t testing.TB) parley.Store {
		s, err := Open(context.Background(), t.TempDir(), "a benchmark")
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// BenchmarkSync is the least a durable append can cost on this disk.
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
