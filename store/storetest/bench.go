package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"parley"
)

// Bench measures appends of one event each by so many sessions at once. Where
// commits are shared, events per second grow with the writers.
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
						if res, err := store.Append(context.Background(), batch(ID(i), seq, 1)); err != nil ||
							res.Fenced {
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
