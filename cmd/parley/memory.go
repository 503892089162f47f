package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// An idleMemory returns memory to the system when the server becomes idle.
// Otherwise the garbage of the last busy minute would stay until the next
// collection, which an idle server starts after two minutes, and its pages would
// stay even longer.
type idleMemory struct {
	allocated   func() uint64 // total bytes so far
	release     func()
	tick        <-chan time.Time
	stop, ended chan struct{}
	stopTicker  func()
}

// A server is idle if it allocates less than quietBytes in the interval
// lookForIdle. Memory is released only if at least worthBytes were allocated since
// the last release, because a release takes some 20 ms of processor time.
const (
	lookForIdle = 500 * time.Millisecond
	quietBytes  = 128 << 10
	worthBytes  = 4 << 20
)

func newIdleMemory() *idleMemory {
	ticker := time.NewTicker(lookForIdle)
	return &idleMemory{allocated: allocatedBytes, release: debug.FreeOSMemory, tick: ticker.C,
		stop: make(chan struct{}), stopTicker: ticker.Stop}
}

func allocatedBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func (m *idleMemory) Start() {
	m.ended = make(chan struct{})
	go m.run()
}

func (m *idleMemory) run() {
	defer close(m.ended)
	last, released := m.allocated(), uint64(0)
	for {
		select {
		case <-m.stop:
			return
		case <-m.tick:
		}
		now := m.allocated()
		if now-last < quietBytes && now-released >= worthBytes {
			m.release()
			released = now
		}
		last = now
	}
}

func (m *idleMemory) Close(context.Context) error {
	m.stopTicker()
	if m.ended != nil {
		close(m.stop)
		<-m.ended
		m.ended = nil
	}
	return nil
}
