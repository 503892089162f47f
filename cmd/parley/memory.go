package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"syscall"
	"time"
)

// An idleMemory gives memory back to the system when the server falls idle.
// Without it, the garbage of the last busy minute would stay until the next
// collection, which an idle server starts after two minutes, and its pages longer.
type idleMemory struct {
	allocated   func() uint64 // bytes so far
	release     func()
	tick        <-chan time.Time
	stop, ended chan struct{}
	stopTicker  func()
}

// A server is idle if it allocates less than quietBytes between two looks. What was
// allocated since the last release is worth another from worthBytes on: a release
// takes some 20 ms of processor.
const (
	lookForIdle = time.Second
	quietBytes  = 256 << 10
	worthBytes  = 4 << 20
)

func newIdleMemory() *idleMemory {
	ticker := time.NewTicker(lookForIdle)
	return &idleMemory{allocated: allocatedBytes, release: releaseMemory, tick: ticker.C,
		stop: make(chan struct{}), stopTicker: ticker.Stop}
}

func releaseMemory() {
	debug.FreeOSMemory()
	unmapBinary()
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

// unmapBinary gives up the pages of this program's own file that are mapped. Start-up
// touches most of them, the kernel maps their neighbours too, and few are needed
// later: those are mapped again, from memory, when they are next used. A mapping
// with a page that differs from the file is left alone.
func unmapBinary() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer file.Close()
	var from, to uintptr // of the mapping under way; zero: it is not of the program, or can be written
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			// 00400000-01d42000 r-xp 00000000 fe:01 4711 /bin/parley
			from, to = 0, 0
			if strings.HasSuffix(lines.Text(), " "+program) && !strings.Contains(fields[1], "w") {
				if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err != nil {
					from, to = 0, 0
				}
			}
		case from != 0 && len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0":
			// An error means that the pages stay.
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}
