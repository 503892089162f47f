package bench

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram counts durations in buckets that are less than one percent wide,
// up to half an hour. It may be used concurrently.
type histogram struct {
	buckets [(41 - subBits) << subBits]atomic.Int64
	n       atomic.Int64
	max     atomic.Int64
}

// subBits is the number of bits for the buckets within a power of two.
const subBits = 7

func bucketOf(ns int64) int {
	if ns < 1<<subBits {
		return int(max(ns, 0))
	}
	shift := bits.Len64(uint64(ns)) - subBits - 1
	return (shift+1)<<subBits + int(ns>>shift) - 1<<subBits
}

// valueOf returns the middle of a bucket.
func valueOf(bucket int) int64 {
	if bucket < 1<<subBits {
		return int64(bucket)
	}
	shift := bucket>>subBits - 1
	low := int64(bucket&(1<<subBits-1)|1<<subBits) << shift
	return low + int64(1)<<shift/2
}

func (h *histogram) record(ns int64) {
	h.buckets[min(bucketOf(ns), len(h.buckets)-1)].Add(1)
	h.n.Add(1)
	for {
		old := h.max.Load()
		if ns <= old || h.max.CompareAndSwap(old, ns) {
			return
		}
	}
}

func (h *histogram) count() int64 { return h.n.Load() }

// quantile returns the duration that a share q of the values does not exceed,
// or 0 if there are no values.
func (h *histogram) quantile(q float64) time.Duration {
	want, sum := int64(q*float64(h.count())), int64(0)
	for i := range h.buckets {
		sum += h.buckets[i].Load()
		if sum > want {
			return time.Duration(min(valueOf(i), h.max.Load()))
		}
	}
	return time.Duration(h.max.Load())
}

func (h *histogram) ms(q float64) float64 { return float64(h.quantile(q)) / 1e6 }
