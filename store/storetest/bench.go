package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// Bench measures appends of one event each, by different numbers of sessions at
// once. If commits are shared, events per second grow with the number of
// writers.
func Bench(b *testing.B, open Reopener) {
	for _, writers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			store := open(b)
			defer store.Close()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ResetTimer()
			for i := range writers {
				wg.Go(func() {
					for seq := parley.Seq(0); left.Add(-1) >= 0; seq++ {
						one := batch(ID(i), seq, 1)
						one.Summary.UpdatedAt = time.Now() // as in a server
						if res, err := store.Append(context.Background(), one); err != nil || res.Fenced {
							b.Error(res, err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchLists measures a page of the list of sessions, of all owners and of one
// owner with few sessions, for different numbers of sessions.
func BenchLists(b *testing.B, open Reopener) {
	for _, sessions := range []int{100, 1_000, 10_000} {
		store := open(b)
		var wg sync.WaitGroup
		var next atomic.Int64
		for range 64 {
			wg.Go(func() {
				for i := int(next.Add(1)); i <= sessions; i = int(next.Add(1)) {
					batch := batch(ID(i), 0, 1)
					batch.Summary.UpdatedAt = t0.Add(time.Duration(i) * 50 * time.Millisecond)
					batch.Summary.Title = "A conversation about something"
					if i%(sessions/10) == 0 {
						batch.Summary.Owner = "bob"
					}
					if _, err := store.Append(context.Background(), batch); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for name, q := range map[string]port.SessionQuery{"all": {Limit: 50}, "owner": {Limit: 50, Owner: "bob"}} {
			b.Run(fmt.Sprintf("%s/sessions=%d", name, sessions), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					list, err := store.Tenant(tenant).Sessions(context.Background(), q)
					if err != nil || len(list) < 10 {
						b.Fatal(len(list), err)
					}
				}
			})
		}
		store.Close()
	}
}
