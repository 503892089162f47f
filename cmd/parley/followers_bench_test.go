package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"parley/store/sqlite"
)

// crowdVariable tells the test binary that a benchmark starts where to connect,
// how often, and whether all clients follow one thread.
const crowdVariable = "PARLEY_TEST_CROWD"

// A crowd is many clients of thread chat in a separate process, so that the
// benchmark's process contains only the server.
type crowd struct {
	b     *testing.B
	lines *bufio.Scanner
	all   int // number of messages that all clients have received
}

func (c *town) crowd(b *testing.B, n int, thread string) *crowd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrowd$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", crowdVariable, c.url, n, thread))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill() // the clients are no longer needed
		_ = cmd.Wait()
	})
	w := &crowd{b: b, lines: bufio.NewScanner(out)}
	w.next("ready")
	return w
}

// next waits for a line of output.
func (w *crowd) next(line string) {
	for w.lines.Scan() {
		if w.lines.Text() == line {
			return
		}
	}
	w.b.Fatalf("the clients are gone before %q", line)
}

// have waits until all clients have received n messages.
func (w *crowd) have(n int) {
	for ; w.all < n; w.all++ {
		w.next("received")
	}
}

// TestCrowd runs the clients of a crowd. It prints "ready" when all clients have
// entered, and "received" for each message that all of them have received.
func TestCrowd(t *testing.T) {
	var url, thread string
	var n int
	if _, err := fmt.Sscan(os.Getenv(crowdVariable), &url, &n, &thread); err != nil {
		t.Skip("only a benchmark starts this")
	}
	received := make([]atomic.Int32, 1<<20)
	var entered, wg sync.WaitGroup
	room := make(chan struct{}, 16)
	for i := range n {
		entered.Add(1)
		wg.Go(func() {
			room <- struct{}{}
			id := thread
			if thread == "each" {
				id = fmt.Sprintf("33333333-3333-4333-8333-%012x", i)
			}
			conn, _, err := websocket.Dial(context.Background(), url+"?threadId="+id, nil)
			if err == nil {
				err = conn.Write(context.Background(), websocket.MessageText, []byte(`{"type":"fence"}`))
			}
			if err == nil {
				_, _, err = conn.Read(context.Background())
			}
			<-room
			entered.Done()
			if err != nil {
				t.Error(err)
				return
			}
			for k := 0; ; k++ {
				if _, _, err := conn.Read(context.Background()); err != nil {
					return
				}
				if int(received[k].Add(1)) == n {
					fmt.Println("received")
				}
			}
		})
	}
	entered.Wait()
	fmt.Println("ready")
	wg.Wait()
}

func benchmarkTown(b *testing.B) *town {
	store, err := sqlite.Open(context.Background(), b.TempDir(), "a benchmark")
	if err != nil {
		b.Fatal(err)
	}
	return newTown(b, store)
}

// BenchmarkFanOut publishes chunks of an answer to clients of one thread. The
// chunks are in the store already, and each is some 190 bytes as a frame. At most
// window chunks are in flight.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{200, 1000} {
		for _, window := range []int{1, 32} {
			b.Run(fmt.Sprintf("followers=%d/window=%d", n, window), func(b *testing.B) {
				c := benchmarkTown(b)
				const thread = "33333333-3333-4333-8333-333333333333"
				w := c.crowd(b, n, thread)
				talk := c.talk(thread)
				talk.asks("r")
				var chunks []string
				for range b.N {
					chunks = append(chunks, strings.Repeat("x", 120))
				}
				talk.answers("first")
				w.have(2) // the first chunk and chat.started
				talk.quiet = true
				events := talk.answers(chunks...)
				b.ResetTimer()
				begin := processor()
				sent := 0
				for k := range events {
					for ; sent < min(k+window, len(events)); sent++ {
						c.feed.Publish(mayor.Tenant, events[sent:sent+1])
					}
					w.have(k + 3)
				}
				b.StopTimer()
				deliveries := float64(len(events) * n)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64((processor()-begin).Nanoseconds())/1000/deliveries, "µs-processor/delivery")
				b.ReportMetric(deliveries/b.Elapsed().Seconds(), "deliveries/s")
			})
		}
	}
}

// BenchmarkIdle connects clients that then stay silent. It reports the memory of
// the process for each connection: right away, and after collections that return
// unused memory.
func BenchmarkIdle(b *testing.B) {
	const n = 2000
	for _, thread := range []string{"each", "33333333-3333-4333-8333-333333333333"} {
		b.Run(map[bool]string{true: "a-thread-each", false: "one-thread"}[thread == "each"], func(b *testing.B) {
			for b.Loop() {
				c := benchmarkTown(b)
				debug.FreeOSMemory()
				before := resident(b)
				c.crowd(b, n, thread)
				at := resident(b)
				for range 4 { // one collection halves a stack at most
					debug.FreeOSMemory()
				}
				b.ReportMetric(float64(at-before)/n/1024, "KB/connection")
				b.ReportMetric(float64(resident(b)-before)/n/1024, "KB-in-use/connection")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// resident returns the resident memory of this process in bytes.
func resident(b *testing.B) int {
	status, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("there is no /proc")
	}
	pages, err := strconv.Atoi(strings.Fields(string(status))[1])
	if err != nil {
		b.Fatal(err)
	}
	return pages * os.Getpagesize()
}
