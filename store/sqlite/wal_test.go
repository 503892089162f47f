package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/store/storetest"
)

// large returns a batch of about 100 KiB.
func large(id parley.SessionID, after parley.Seq) port.Batch {
	b := input(id, after)
	if after > 0 {
		b.Events[0].Body = parley.InputReceived{Content: strings.Repeat("x", 100<<10), Busy: parley.Queue}
	}
	return b
}

// TestTheLogIsLimited checks that the log stays small although at least one
// reader always uses it.
func TestTheLogIsLimited(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := opened(t, t.TempDir())
	appended(t, s, large(storetest.ID(1), 0))
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for after := parley.Seq(0); ctx.Err() == nil; after++ {
				if events, err := s.Tenant("acme").Events(ctx, storetest.ID(1), after, 1); err == nil &&
					len(events) == 0 {
					after = 0
				}
			}
		})
	}
	most := int64(0)
	for i := parley.Seq(1); i < 400; i++ { // 40 MiB
		appended(t, s, large(storetest.ID(1), i))
		most = max(most, s.logSize())
	}
	cancel()
	readers.Wait()
	t.Logf("at most %d KiB", most>>10)
	if most > 2*maxLog {
		t.Errorf("the write-ahead log grew to %d MiB", most>>20)
	}
}

// TestTheLogAfterALongReader checks that the log grows during a long read.
// After the read, the next commits empty the log, without a clean stop.
func TestTheLogAfterALongReader(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	appended(t, s, large(storetest.ID(1), 0))
	other, err := open(filepath.Join(dir, database), readOnly, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow(`SELECT count(*) FROM events`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	seq := parley.Seq(1)
	for ; s.logSize() < 2*maxLog; seq++ {
		appended(t, s, large(storetest.ID(1), seq))
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); s.logSize() > maxLog; seq++ {
		if time.Now().After(deadline) {
			t.Fatalf("the write-ahead log still has %d MiB", s.logSize()>>20)
		}
		appended(t, s, input(storetest.ID(1), seq))
	}
}

// TestTheReserve checks that the first start allocates the reserve and that the
// next process keeps it.
func TestTheReserve(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		s := opened(t, dir)
		if !s.reserve.held {
			t.Skip("room cannot be reserved on this file system")
		}
		if info, err := os.Stat(filepath.Join(dir, reserveFile)); err != nil || info.Size() != reserveSize ||
			info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		s.Close()
	}
}
