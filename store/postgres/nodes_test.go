package postgres

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// TestNothingBecomesVisibleLate checks that a reader that pages by position
// while two nodes append sees every event, in order. If a later position became
// visible before an earlier one, the reader would skip the earlier one.
func TestNothingBecomesVisibleLate(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Database(t)
	nodes := []*Store{open(t, url), open(t, url)}
	const sessions, each = 8, 40

	done := make(chan struct{})
	var seen []parley.Event
	var reader sync.WaitGroup
	reader.Go(func() {
		after := parley.Position(0)
		for last := false; ; {
			page, err := nodes[0].Tenant(acme).Tree(ctx, "", after, 7)
			if err != nil {
				t.Error(err)
				return
			}
			if len(page) == 0 && last {
				return
			}
			for _, e := range page {
				if e.Position <= after {
					t.Errorf("position %d after %d", e.Position, after)
				}
				after = e.Position
			}
			seen = append(seen, page...)
			select {
			case <-done:
				last = true
			default:
			}
		}
	})
	var writers sync.WaitGroup
	for i := range sessions {
		writers.Go(func() {
			for seq := range parley.Seq(each) {
				if res, err := nodes[i%2].Append(ctx, batch(storetest.ID(i), seq)); err != nil || res.Fenced {
					t.Errorf("session %d: %+v, %v", i, res, err)
					return
				}
			}
		})
	}
	writers.Wait()
	close(done)
	reader.Wait()
	next := map[parley.SessionID]parley.Seq{}
	for _, e := range seen {
		if next[e.Session]++; e.Seq != next[e.Session] {
			t.Fatalf("session %s: seq %d where %d is next", e.Session, e.Seq, next[e.Session])
		}
	}
	if len(seen) != sessions*each {
		t.Errorf("%d of %d events were seen", len(seen), sessions*each)
	}
}

// TestFencingBetweenNodes lets two nodes race for every next event of a
// session.
func TestFencingBetweenNodes(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Database(t)
	nodes := []*Store{open(t, url), open(t, url)}
	id := storetest.ID(1)
	const rounds = 30
	for seq := range parley.Seq(rounds) {
		var fenced [2]bool
		var wg sync.WaitGroup
		for i, s := range nodes {
			wg.Go(func() {
				res, err := s.Append(ctx, batch(id, seq))
				if err != nil {
					t.Error(err)
				}
				fenced[i] = res.Fenced
			})
		}
		wg.Wait()
		if fenced[0] == fenced[1] {
			t.Fatalf("after %d: fenced %v", seq, fenced)
		}
	}
	if n := len(log(t, nodes[0], id)); n != rounds {
		t.Errorf("%d events, want %d", n, rounds)
	}
	taken := batch(id, rounds)
	taken.Epoch = 2
	mustAppend(t, nodes[1], taken)
	if res, err := nodes[0].Append(ctx, batch(id, rounds+1)); err != nil || !res.Fenced {
		t.Errorf("a node whose session was taken: %+v, %v", res, err)
	}
}

func TestOpensAtOnce(t *testing.T) {
	url := pgtest.Database(t)
	epochs := make([]string, 6)
	var wg sync.WaitGroup
	for i := range epochs {
		wg.Go(func() {
			s, err := Open(context.Background(), url)
			if err != nil {
				t.Error(err)
				return
			}
			epochs[i] = s.Epoch()
			s.Close()
		})
	}
	wg.Wait()
	for _, e := range epochs {
		if e == "" || e != epochs[0] {
			t.Fatalf("epochs %q", epochs)
		}
	}
}

func TestLeases(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Database(t)
	a, b := open(t, url, WithLease(time.Hour)), open(t, url, WithLease(time.Hour)) // too long for a beat in between
	hold := batch(storetest.ID(1), 0)
	hold.Due = &port.DueChange{Due: parley.Due{At: t0, Reason: "run"}, Held: true}
	mustAppend(t, a, hold)
	wait := batch(storetest.ID(2), 0)
	wait.Due = &port.DueChange{Due: parley.Due{At: t0.Add(24 * time.Hour), Reason: "card"}}
	mustAppend(t, a, wait)

	check := func(s *Store, what string, due int, within time.Duration) {
		t.Helper()
		got, next, err := s.DueBefore(ctx, t0, 10)
		if err != nil || len(got) != due {
			t.Errorf("%s: %v is due, %v", what, got, err)
		}
		if within > 0 && (!next.After(t0) || next.After(t0.Add(within))) {
			t.Errorf("%s: to look again after %v, want within %v", what, next.Sub(t0), within)
		}
	}
	conn := connect(t, url)
	const unseen = `UPDATE nodes SET seen_at = clock_timestamp() - $2::interval WHERE id = $1`
	check(b, "a living node holds it", 0, time.Hour)
	exec(t, conn, unseen, a.node, 59*time.Minute)
	check(b, "the node is late", 0, time.Minute)
	exec(t, conn, unseen, a.node, 61*time.Minute)
	check(b, "the node is dead", 1, 0)
	check(a, "the node itself knows better", 0, 0)
	if err := a.beat(ctx); err != nil {
		t.Fatal(err)
	}
	check(b, "the node was not dead", 0, time.Hour)
	a.Close()
	check(b, "the node has left", 1, 24*time.Hour)
	if _, next, err := b.DueBefore(ctx, t0, 10); err != nil || !next.Equal(t0.Add(24*time.Hour)) {
		t.Errorf("alone, a node looks again when something is due: %v, %v", next, err)
	}
}

// TestATicketIsTakenOnOneNode checks that only one node gets a ticket, however
// many ask at once.
func TestATicketIsTakenOnOneNode(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Database(t)
	nodes := []*Store{open(t, url), open(t, url)}
	for i := range 30 {
		hash := port.TicketHash{byte(i)}
		claim := port.TicketClaim{Identity: port.Identity{Principal: port.Principal{ID: "ann", Tenant: acme}},
			Until: t0}
		if err := nodes[i%2].PutTicket(ctx, hash, claim, t0); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		won := make([]bool, 4)
		for n := range won {
			wg.Go(func() {
				var err error
				if _, won[n], err = nodes[n%2].TakeTicket(ctx, hash); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(slices.DeleteFunc(won, func(w bool) bool { return !w })); n != 1 {
			t.Errorf("%d have taken one ticket", n)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	url := pgtest.Database(t)
	s := open(t, url, WithLease(100*time.Millisecond))
	conn := connect(t, url)
	await(t, conn, `SELECT count(*) = 1 FROM nodes`)
	exec(t, conn, `UPDATE nodes SET seen_at = 'epoch'`)
	await(t, conn, `SELECT seen_at > 'epoch' FROM nodes`)
	exec(t, conn, `DELETE FROM nodes`) // as if another node took it for dead
	await(t, conn, `SELECT count(*) = 1 FROM nodes`)
	exec(t, conn, `INSERT INTO nodes VALUES ('long dead', 'epoch')`)
	open(t, url)
	await(t, conn, `SELECT count(*) = 2 FROM nodes`)
	s.Close()
	await(t, conn, `SELECT count(*) = 1 FROM nodes`)
}

// TestABeatThatIsCommittedLate checks that a new term begins if a beat began in time, but was committed so late that
// other nodes have taken this one for dead meanwhile.
func TestABeatThatIsCommittedLate(t *testing.T) {
	ctx := context.Background()
	url := pgtest.Database(t)
	const lease, left = time.Hour, 3 * time.Second // too long for a beat in between
	a, b := open(t, url, WithLease(lease), WithTimeout(time.Minute)), open(t, url, WithLease(lease))
	conn, watch := connect(t, url), connect(t, url)
	a.beats.term.Store(&term{number: 1, beaten: sinceBoot() - (lease - left)})
	exec(t, conn, `UPDATE nodes SET seen_at = clock_timestamp() - $2::interval WHERE id = $1`, a.node, lease-left)
	exec(t, conn, `BEGIN`)
	exec(t, conn, `SELECT FROM nodes WHERE id = $1 FOR UPDATE`, a.node)
	done := make(chan error, 1)
	go func() { done <- a.beat(ctx) }() // it waits for the row
	await(t, watch, `SELECT count(*) = 1 FROM nodes WHERE seen_at <= clock_timestamp() - interval '1 hour'`)
	if err := b.beat(ctx); err != nil || len(b.Others()) != 0 {
		t.Fatalf("the other node sees %v, %v", b.Others(), err)
	}
	exec(t, conn, `COMMIT`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if number, err := a.Term(ctx); err != nil || number == 1 {
		t.Errorf("the node was taken for dead, and is in term %d, as before, %v", number, err)
	}
}

// TestARestartedNodeTakesItsLeasesBack checks that the lock in the folder shows
// that the previous process is dead. As long as that process lives, it keeps
// its leases.
func TestARestartedNodeTakesItsLeasesBack(t *testing.T) {
	ctx := context.Background()
	url, dir := pgtest.Database(t), t.TempDir()
	due := func(s *Store) int {
		t.Helper()
		list, _, err := s.DueBefore(ctx, t0, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	first := open(t, url, WithFolder(dir), WithLease(time.Hour))
	hold := batch(storetest.ID(1), 0)
	hold.Due = &port.DueChange{Due: parley.Due{At: t0, Reason: "run"}, Held: true}
	mustAppend(t, first, hold)
	beside, elsewhere := open(t, url, WithFolder(dir), WithLease(time.Hour)),
		open(t, url, WithFolder(t.TempDir()), WithLease(time.Hour))
	for _, s := range []*Store{beside, elsewhere} {
		if n := due(s); n != 0 {
			t.Errorf("%d sessions of a living node are free", n)
		}
	}
	if len(first.Others()) != 0 || len(beside.Others()) != 1 || len(elsewhere.Others()) != 2 {
		t.Errorf("others: %v, %v, %v", first.Others(), beside.Others(), elsewhere.Others())
	}
	beside.Close()
	elsewhere.Close()
	first.held.Close() // as the system does when the process dies
	next := open(t, url, WithFolder(dir), WithLease(time.Hour))
	if n := due(next); n != 1 {
		t.Errorf("%d sessions of the dead node are free, want 1", n)
	}
	if len(next.Others()) != 0 {
		t.Errorf("%v others", next.Others())
	}
}
