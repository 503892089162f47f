package feed

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"parley/store/sqlite"
)

// BenchmarkFollow appends one event at a time to a session that many follow, and
// waits until all have it. The events are durable.
func BenchmarkFollow(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("followers=%d", n), func(b *testing.B) {
			f := newBench(b)
			var wg sync.WaitGroup
			got := make(chan struct{}, n)
			ctx, cancel := context.WithCancel(context.Background())
			for range n {
				follower := f.Session(acme, id(1), 0)
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
	defer f.Close()
	for range length / 100 {
		f.write(1, 1, 100, "some twenty bytes ok", false)
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
