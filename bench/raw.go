package bench

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Raw contains the limits of the machine, measured in the same repeat.
type Raw struct {
	SyncPerSecond float64 `json:"sync_per_s"` // appends of 189 bytes, each followed by fdatasync
	SyncP50       float64 `json:"sync_p50_us"`
	SyncP99       float64 `json:"sync_p99_us"`
	TripP50       float64 `json:"tcp_round_trip_p50_us"` // 200 bytes on the loopback
	TripP99       float64 `json:"tcp_round_trip_p99_us"`
}

func measureRaw(dir string, short bool) (r Raw, err error) {
	within := time.Second
	if short {
		within = 20 * time.Millisecond
	}
	syncs, err := measureSync(dir, within)
	if err != nil {
		return r, err
	}
	trips, err := measureTrips(within / 2)
	if err != nil {
		return r, err
	}
	us := func(h *histogram, q float64) float64 { return float64(h.quantile(q)) / 1e3 }
	return Raw{SyncPerSecond: float64(syncs.count()) / within.Seconds(), SyncP50: us(syncs, 0.5),
		SyncP99: us(syncs, 0.99), TripP50: us(trips, 0.5), TripP99: us(trips, 0.99)}, nil
}

func measureSync(dir string, within time.Duration) (*histogram, error) {
	f, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, line := &histogram{}, make([]byte, 189)
	for end := time.Now().Add(within); time.Now().Before(end); {
		from := clock()
		if _, err := f.Write(line); err != nil {
			return nil, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return nil, err
		}
		h.record(clock() - from)
	}
	return h, nil
}

func measureTrips(within time.Duration) (*histogram, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c) // until the client closes
			_ = c.Close()
		}
	}()
	defer func() { _ = l.Close(); <-echoed }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	h, msg := &histogram{}, make([]byte, 200)
	for end := time.Now().Add(within); time.Now().Before(end); {
		from := clock()
		if _, err := c.Write(msg); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(c, msg); err != nil {
			return nil, err
		}
		h.record(clock() - from)
	}
	return h, nil
}
