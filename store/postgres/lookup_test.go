package postgres

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/store/postgres/pgtest"
	"parley/store/rules"
	"parley/store/storetest"
)

// TestUnknownCommits checks that a batch whose commit got no answer is neither
// lost nor stored twice, and that Append reports the true outcome.
func TestUnknownCommits(t *testing.T) {
	for name, f := range map[string]fault{"not committed": beforeCommit, "committed": afterCommit} {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t, pgtest.Database(t))
			s := open(t, p.url)
			const sessions, rounds = 8, 6
			positions := make([][]parley.Position, sessions)
			for seq := range parley.Seq(rounds) {
				if seq > 0 {
					p.arm(f)
				}
				var wg sync.WaitGroup
				for i := range sessions {
					wg.Go(func() {
						res, err := s.Append(context.Background(), batch(storetest.ID(i), seq))
						if err != nil || res.Fenced {
							t.Errorf("round %d: %+v, %v", seq, res, err)
						}
						positions[i] = append(positions[i], res.Positions...)
					})
				}
				wg.Wait()
				if cuts := p.heal(); seq > 0 && cuts != 1 {
					t.Fatalf("round %d: %d lines were cut", seq, cuts)
				}
			}
			for i := range sessions {
				var got []parley.Position
				for _, e := range log(t, s, storetest.ID(i)) {
					got = append(got, e.Position)
				}
				if !slices.Equal(got, positions[i]) {
					t.Errorf("session %d: stored at %v, answered %v", i, got, positions[i])
				}
			}
		})
	}
}

// TestCommitsThatCannotBeLookedUp checks that Append reports an unknown outcome
// in bounded time.
func TestCommitsThatCannotBeLookedUp(t *testing.T) {
	p := newProxy(t, pgtest.Database(t))
	s := open(t, p.url, WithTimeout(2*time.Second))
	id := storetest.ID(1)
	mustAppend(t, s, batch(id, 0))
	p.arm(thenDown)
	if res, err := s.Append(context.Background(), batch(id, 1)); parley.CodeOf(err) != parley.CodeUnavailable ||
		res.Positions != nil {
		t.Errorf("a commit of unknown fate: %+v, %v", res, err)
	}
	if cuts := p.heal(); cuts != 1 {
		t.Fatalf("%d lines were cut", cuts)
	}
	if n := len(log(t, s, id)); n != 2 {
		t.Fatalf("%d events, want 2", n)
	}
	for deadline := time.Now().Add(time.Minute); s.Ready(t.Context()) != nil && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // until the store has noticed
	}
	mustAppend(t, s, batch(id, 2))
}

// TestAnotherHistory checks a failover to a server without the latest
// transactions: the new server may report the id of another transaction as
// committed.
func TestAnotherHistory(t *testing.T) {
	s := open(t, pgtest.Database(t))
	w := &waiting{Batch: batch(storetest.ID(1), 0), bodies: []rules.Body{{Type: "SessionOpened", Version: 1,
		JSON: []byte(`{"owner":"ann"}`)}}}
	tx := &transaction{store: s, group: []*waiting{w}}
	if err := tx.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := tx.lookUp(io.EOF); err != nil {
		t.Errorf("what was committed: %v", err)
	}
	w.Events[0].At = t0.Add(time.Microsecond)
	if err := tx.lookUp(io.EOF); !errors.Is(err, io.EOF) || errors.Is(err, errAborted) {
		t.Errorf("something else in its place: %v", err)
	}
}
