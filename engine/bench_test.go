package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/store/sqlite"
)

// BenchmarkOpen loads sessions of different lengths. With snapshots the length
// makes no difference.
func BenchmarkOpen(b *testing.B) {
	store, err := sqlite.Open(context.Background(), b.TempDir(), "a benchmark")
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	for i, length := range []parley.Seq{100, 10_000, 100_000} {
		id := parley.SessionID(fmt.Sprintf("44444444-4444-4444-8444-%012x", i))
		writeLong(b, store, id, length)
		b.Run(fmt.Sprintf("events=%d", length), func(b *testing.B) {
			for b.Loop() {
				s, err := load(context.Background(), store, acme, id, 200)
				if err != nil || s.state.Head < length {
					b.Fatal(s, err)
				}
			}
		})
	}
}

// BenchmarkFold folds whole logs: what opening would cost without snapshots.
func BenchmarkFold(b *testing.B) {
	for _, length := range []parley.Seq{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("events=%d", length), func(b *testing.B) {
			log, _ := longLog(b, length)
			b.ResetTimer()
			for b.Loop() {
				state := parley.NewState(acme, log[0].Session)
				for _, e := range log {
					state = parley.Fold(state, e)
				}
				if state.Head < length {
					b.Fatal(state.Head)
				}
			}
			b.ReportMetric(float64(b.N*len(log))/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkLastTen reads the end of sessions of different lengths.
func BenchmarkLastTen(b *testing.B) {
	for _, length := range []parley.Seq{100, 100_000} {
		b.Run(fmt.Sprintf("events=%d", length), func(b *testing.B) {
			log, store := longLog(b, length)
			head := log[len(log)-1].Seq
			b.ResetTimer()
			for b.Loop() {
				last, err := store.Tenant(acme).Events(context.Background(), log[0].Session, head-10, 256)
				if err != nil || len(last) != 10 {
					b.Fatal(len(last), err)
				}
			}
		})
	}
}

// longLog returns a log of a given length and the store that holds it.
func longLog(b *testing.B, length parley.Seq) (log []parley.Event, store port.Store) {
	store, err := sqlite.Open(context.Background(), b.TempDir(), "a benchmark")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	const id = parley.SessionID("44444444-4444-4444-8444-444444444444")
	writeLong(b, store, id, length)
	for {
		page, err := store.Tenant(acme).Events(context.Background(), id, parley.Seq(len(log)), 1000)
		if err != nil {
			b.Fatal(err)
		}
		if len(page) == 0 {
			return log, store
		}
		log = append(log, page...)
	}
}

// writeLong writes a session of runs with a hundred pieces each.
func writeLong(t testing.TB, store port.Store, id parley.SessionID, length parley.Seq) {
	s, err := load(context.Background(), store, acme, id, 200)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	take := func(in parley.In) {
		if _, err := s.apply(context.Background(), entry{in: in, mayContinue: always}); err != nil {
			t.Fatal(err)
		}
	}
	take(parley.Command{By: "ann", At: now, Do: parley.OpenSession{}})
	for s.state.Head < length {
		take(parley.Command{By: "ann", At: now,
			Do: parley.SubmitInput{Content: "go on", Agent: parley.AgentRef{Name: "puppet"}}})
		// Pieces go into the log without a commit each.
		var events []parley.Event
		state := s.state
		for range 90 {
			more, err := parley.Decide(state, parley.Report{At: now, Run: state.Run.ID, Turn: state.Run.Turn.ID,
				Body: parley.ModelPiece{Kind: parley.Text, Text: "some twenty bytes ok"}})
			if err != nil {
				t.Fatal(err)
			}
			events, state = append(events, more...), fold(state, more)
		}
		if err := s.append(context.Background(), entry{}, events, state, s.nextSteps(state, now)); err != nil {
			t.Fatal(err)
		}
		take(parley.Report{At: now, Run: state.Run.ID, Turn: state.Run.Turn.ID,
			Body: parley.ModelEnded{Stop: parley.StopEnd}})
	}
}

// TestLongSessionsAreOpenedFromTheirSnapshot checks that only the end of a log
// is read, however long the log is.
func TestLongSessionsAreOpenedFromTheirSnapshot(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func() port.Store) {
		store := &counting{Store: open()}
		defer store.Close()
		const id = parley.SessionID("55555555-5555-4555-8555-555555555555")
		writeLong(t, store, id, 3000)
		store.read = 0
		s, err := load(context.Background(), store, acme, id, 200)
		if err != nil {
			t.Fatal(err)
		}
		if store.read > 300 {
			t.Errorf("%d of %d events were read", store.read, s.state.Head)
		}
	})
}

// counting counts the events that are read.
type counting struct {
	port.Store
	read int
}

func (c *counting) Tenant(id parley.TenantID) port.TenantStore {
	return countingTenant{c.Store.Tenant(id), c}
}

type countingTenant struct {
	port.TenantStore
	c *counting
}

func (t countingTenant) Events(ctx context.Context, id parley.SessionID, after parley.Seq, limit int) ([]parley.Event,
	error) {
	events, err := t.TenantStore.Events(ctx, id, after, limit)
	t.c.read += len(events)
	return events, err
}
