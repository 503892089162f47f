package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// TestServerCrash kills the server while sessions are written. After an error,
// a writer reads how far its session got, as an actor does, and continues.
func TestServerCrash(t *testing.T) {
	ctx := context.Background()
	server := pgtest.Own(t)
	s := open(t, server.Database(t))
	const sessions, before, after = 8, 20, 20
	var written, failed atomic.Int64
	half, relaunched := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			id := storetest.ID(i)
			for seq, left := parley.Seq(0), after; left > 0; {
				res, err := s.Append(ctx, batch(id, seq))
				if err != nil {
					failed.Add(1)
					if code := parley.CodeOf(err); code != parley.CodeUnavailable {
						t.Errorf("%v", err)
						return
					}
					<-relaunched
					st, err := s.Tenant(acme).Session(ctx, id)
					if code := parley.CodeOf(err); err != nil && code != parley.CodeNotFound {
						t.Errorf("session %d after the restart: %v", i, err)
						return
					}
					if head := st.Summary.Head; head != seq && head != seq+1 {
						t.Errorf("session %d: %d events were acknowledged, and the head is %d", i, seq, head)
					}
					seq = st.Summary.Head
					continue
				}
				if res.Fenced {
					t.Errorf("session %d was fenced", i)
					return
				}
				seq++
				if written.Add(1) == sessions*before {
					close(half)
				}
				select {
				case <-relaunched:
					left--
				default:
				}
			}
		})
	}
	<-half
	server.Crash()
	if err := server.Launch(); err != nil {
		t.Fatal(err)
	}
	close(relaunched)
	wg.Wait()
	t.Logf("%d batches acknowledged, %d not", written.Load(), failed.Load())
	for i := range sessions {
		if n := len(log(t, s, storetest.ID(i))); n < after {
			t.Errorf("session %d has %d events", i, n)
		}
	}
}

// TestConnectionsThatWereCut checks that connections that were cut while idle cause no errors.
func TestConnectionsThatWereCut(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Database(t)
	s := open(t, url)
	conn := connect(t, url)
	for seq := range parley.Seq(5) {
		mustAppend(t, s, batch(storetest.ID(1), 2*seq))
		exec(t, conn, cutAll)
		mustAppend(t, s, batch(storetest.ID(1), 2*seq+1))
		exec(t, conn, cutAll)
		if st, err := s.Tenant(acme).Session(ctx, storetest.ID(1)); err != nil || st.Summary.Head != 2*seq+2 {
			t.Fatalf("%+v, %v", st, err)
		}
	}
}

// cutAll closes all other connections and waits until they are gone.
const cutAll = `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`

// hastily is a short timeout in which even a busy machine can connect and commit.
const hastily = time.Second

// TestServerThatHangs freezes the server: connections stay open but get no
// answer, so only timeouts of the store help.
func TestServerThatHangs(t *testing.T) {
	server := pgtest.Own(t)
	s := open(t, server.Database(t), WithTimeout(hastily))
	mustAppend(t, s, batch(storetest.ID(1), 0))
	thaw, err := server.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	defer thaw()
	refusedInTime(t, s)
	thaw()
	deadline := time.Now().Add(20 * time.Second)
	for seq := parley.Seq(1); ; { // until the connections that hung are closed
		res, err := s.Append(context.Background(), batch(storetest.ID(1), seq))
		if err == nil && !res.Fenced {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the server came back: %+v, %v", res, err)
		}
	}
}

// refusedInTime checks that an append and a read fail soon. The limit is
// generous for slow machines; a hang would last forever.
func refusedInTime(t *testing.T, s *Store) {
	t.Helper()
	start := time.Now()
	if _, err := s.Append(context.Background(), batch(storetest.ID(1), 1)); parley.CodeOf(
		err) != parley.CodeUnavailable {
		t.Errorf("append: %v", err)
	}
	if _, err := s.Tenant(acme).Session(context.Background(), storetest.ID(1)); parley.CodeOf(
		err) != parley.CodeUnavailable {
		t.Errorf("read: %v", err)
	}
	if took := time.Since(start); took > 25*hastily {
		t.Errorf("it took %v", took)
	}
}

// healed waits until the store has noticed that the database works again.
func healed(t *testing.T, s *Store) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); s.Ready(context.Background()) != nil; time.Sleep(
		time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the database is well, and the store is not:", s.Ready(context.Background()))
		}
	}
}

func TestNoConnectionLeft(t *testing.T) {
	ctx := context.Background()
	s := open(t, pgtest.Database(t), WithConnections(1), WithTimeout(hastily))
	mustAppend(t, s, batch(storetest.ID(1), 0))
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	refusedInTime(t, s)
	short, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Tenant(acme).Session(short, storetest.ID(1)); err != context.Canceled {
		t.Errorf("a caller that has left: %v", err)
	}
	conn.Release()
	healed(t, s)
	mustAppend(t, s, batch(storetest.ID(1), 1))
}

// TestTenantThatIsHeld locks a tenant's head. Appends to this tenant fail in
// time, and other tenants are not affected.
func TestTenantThatIsHeld(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Database(t)
	hasty, patient := open(t, url, WithTimeout(hastily)), open(t, url, WithTimeout(time.Minute))
	mustAppend(t, hasty, batch(storetest.ID(1), 0))
	conn, watch := connect(t, url), connect(t, url)
	exec(t, conn, `BEGIN`)
	exec(t, conn, `SELECT FROM tenants FOR UPDATE`)

	start := time.Now()
	var wg sync.WaitGroup
	for i := range 20 { // as one group or as many: all of them fail
		wg.Go(func() {
			if _, err := hasty.Append(ctx, batch(storetest.ID(2+i), 0)); parley.CodeOf(err) != parley.CodeUnavailable {
				t.Errorf("append to a tenant that is held: %v", err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(start); took > 50*hastily {
		t.Errorf("it took %v", took)
	}

	wg.Go(func() {
		next := batch(storetest.ID(1), 1)
		next.Epoch++ // as if another process wrote
		if res, err := patient.Append(ctx, next); err != nil || res.Fenced {
			t.Errorf("append to a tenant that is let go: %+v, %v", res, err)
		}
	})
	await(t, watch,
		`SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	other := batch(storetest.ID(1), 0)
	other.Tenant = "rival"
	mustAppend(t, patient, other)
	exec(t, conn, `ROLLBACK`)
	wg.Wait()
}

// TestDeadlock makes the database choose the store's transaction as the victim of a deadlock.
func TestDeadlock(t *testing.T) {
	url := pgtest.Database(t)
	s := open(t, url, WithTimeout(20*time.Second))
	mustAppend(t, s, batch(storetest.ID(1), 0))
	conn, watch := connect(t, url), connect(t, url)
	exec(t, conn, `SET deadlock_timeout = '1min'`)
	exec(t, conn, `BEGIN`)
	exec(t, conn, `SELECT FROM sessions FOR UPDATE`)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if res, err := s.Append(context.Background(), batch(storetest.ID(1), 1)); err != nil || res.Fenced {
			t.Errorf("%+v, %v", res, err)
		}
	}()
	await(t, watch,
		`SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	exec(t, conn, `SELECT FROM tenants FOR UPDATE`) // the store has locked it, and waits for conn
	exec(t, conn, `COMMIT`)
	<-done
	if n := len(log(t, s, storetest.ID(1))); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
	await(t, watch, `SELECT deadlocks > 0 FROM pg_stat_database WHERE datname = current_database()`)
}
