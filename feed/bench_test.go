package feed

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"parley"
	"parley/port"
	"parley/store/sqlite"
)

// BenchmarkFollow appends one event at a time to a session with many followers,
// and waits until all have it. The events are durable. below/ follows with
// Below, while no child is at work; tree/ follows with Tree.
func BenchmarkFollow(b *testing.B) {
	benchmarkFollow(b, "", func(f *bench) port.Follower { return f.Session(acme, id(1), 0) })
	benchmarkFollow(b, "below/", func(f *bench) port.Follower { return f.Below(acme, id(1), 0, true) })
	benchmarkFollow(b, "tree/", func(f *bench) port.Follower { return f.Tree(acme, id(1), 0) })
}

func benchmarkFollow(b *testing.B, what string, follow func(*bench) port.Follower) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("%sfollowers=%d", what, n), func(b *testing.B) {
			f := newBench(b)
			var wg sync.WaitGroup
			got := make(chan struct{}, n)
			ctx, cancel := context.WithCancel(context.Background())
			for range n {
				follower := follow(f)
				wg.Go(func() {
					defer follower.Close()
					for {
						items, err := follower.Next(ctx)
						if err != nil {
							return
						}
						for range items {
							got <- struct{}{}
						}
					}
				})
			}
			for b.Loop() {
				f.write(1, 1, 1, "some twenty bytes ok", false)
				for range n {
					<-got
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/delivery")
			cancel()
			wg.Wait()
		})
	}
}

// BenchmarkReplay reads a stored log from its beginning.
func BenchmarkReplay(b *testing.B) {
	const length = 10_000
	store, err := sqlite.Open(context.Background(), b.TempDir(), "a benchmark")
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	f := &bench{Feed: New(store), t: b, store: store}
	defer f.Close(b.Context())
	for range length / 100 {
		f.writePieces(1, 100, "some twenty bytes ok")
	}
	for b.Loop() {
		follower := f.Session(acme, id(1), 0)
		for seen := 0; seen < length; {
			items, err := follower.Next(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			seen += len(items)
		}
		follower.Close()
	}
	b.ReportMetric(float64(length*b.N)/b.Elapsed().Seconds(), "events/s")
}

// writePieces appends chunks of an output, which make up most of a log.
func (b *bench) writePieces(s, n int, text string) {
	v, _ := b.heads.LoadOrStore(id(s), parley.Seq(0))
	head := v.(parley.Seq)
	batch := port.Batch{Tenant: acme, Session: id(s), Epoch: 1, After: head,
		Summary: port.Summary{ID: id(s), Root: id(s), Head: head + parley.Seq(n)}}
	for i := range n {
		seq := head + 1 + parley.Seq(i)
		batch.Events = append(batch.Events, parley.Event{Session: id(s), Seq: seq, Root: id(s), Run: 3,
			Body: parley.OutputAppended{Output: 7, Kind: parley.Text, Offset: int(seq) * len(text), Text: text}})
	}
	if res, err := b.store.Append(context.Background(), batch); err != nil || res.Fenced {
		b.t.Fatal(res, err)
	}
	b.heads.Store(id(s), head+parley.Seq(n))
}
