package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley"
	"parley/access"
	"parley/engine"
	"parley/feed"
	"parley/port"
	"parley/provider"
	"parley/provider/openai"
	"parley/provider/upstream"
	"parley/screen"
	"parley/store/sqlite"
	"parley/tool"
	"parley/workspace"
)

// BenchmarkRuns measures runs in 50 parallel sessions, with answers of 20 tokens,
// over real HTTP and on a real disk. The model is a separate process, so the CPU
// time is that of the engine, the provider, the store and the feed.
func BenchmarkRuns(b *testing.B) {
	for _, pace := range []time.Duration{0, 5 * time.Millisecond} {
		b.Run(fmt.Sprintf("pace=%s", pace), func(b *testing.B) {
			r := newRunBench(b, pace)
			var left atomic.Int64
			left.Store(int64(b.N))
			before := r.spent()
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					var id parley.SessionID
					for n := 0; left.Add(-1) >= 0; n++ {
						if n%4 == 0 { // four runs for each session
							id = newSessionID()
						}
						r.run(id, "Tell me something.")
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			r.report(before, b.N)
		})
	}
}

// BenchmarkOneStream measures one session with a fast model and a commit for nearly
// every token. It also reports the delay from a token to its chunk, from the time
// that the token contains.
func BenchmarkOneStream(b *testing.B) {
	r := newRunBench(b, 10*time.Millisecond)
	id := newSessionID()
	r.run(id, "Tell me something.")
	before := r.spent()
	r.late = nil
	b.ReportAllocs()
	for b.Loop() {
		r.run(id, "Tell me something.")
	}
	r.report(before, b.N)
	r.reportLate()
}

// BenchmarkManyStreams measures 1,000 parallel sessions with 30 tokens a second
// each. One iteration is a run in every session.
func BenchmarkManyStreams(b *testing.B) {
	const streams = 1000
	r := newRunBench(b, 33*time.Millisecond)
	ids := make([]parley.SessionID, streams)
	for i := range ids {
		ids[i] = newSessionID()
	}
	before := r.spent()
	for b.Loop() {
		var wg sync.WaitGroup
		for _, id := range ids {
			wg.Go(func() { r.run(id, "Tell me something.") })
		}
		wg.Wait()
	}
	r.report(before, b.N*streams)
	r.reportLate()
}

// BenchmarkLargeInputs measures 400 sessions that all begin at once with a message
// of 1 MB. Messages that are refused because of the load are sent again. It reports
// the peak memory of the process.
func BenchmarkLargeInputs(b *testing.B) {
	r := newRunBench(b, 0)
	content := strings.Repeat("0123456789abcde\n", 1<<16)
	for b.Loop() {
		var wg sync.WaitGroup
		for range 400 {
			wg.Go(func() { r.run(newSessionID(), strings.Clone(content)) })
		}
		wg.Wait()
	}
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var kb int
		if _, err := fmt.Sscanf(line, "VmHWM: %d", &kb); err == nil {
			b.ReportMetric(float64(kb)/1024, "most-MB")
		}
	}
}

// BenchmarkTurnStart measures a run in sessions of different lengths.
func BenchmarkTurnStart(b *testing.B) {
	for _, runs := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			r := newRunBench(b, 0)
			id := newSessionID()
			for range runs {
				r.run(id, "Tell me something.")
			}
			before := r.spent()
			b.ReportAllocs()
			for b.Loop() {
				r.run(id, "Tell me something.")
			}
			r.report(before, b.N)
		})
	}
}

type runBench struct {
	b       *testing.B
	door    *engine.Engine
	commits atomic.Int64
	batches atomic.Int64
	lock    sync.Mutex
	late    []time.Duration // delays of chunks
}

func newRunBench(b *testing.B, pace time.Duration) *runBench {
	log := slog.New(slog.DiscardHandler)
	r := &runBench{b: b}
	store, err := sqlite.Open(context.Background(), b.TempDir(), "a benchmark")
	if err != nil {
		b.Fatal(err)
	}
	store.Observe(func(batches int, _ time.Duration) {
		r.commits.Add(1)
		r.batches.Add(int64(batches))
	})
	files, err := workspace.Open(b.TempDir(), workspace.Rules{})
	if err != nil {
		b.Fatal(err)
	}
	model := openai.New(openai.Options{Account: upstream.Account{BaseURL: benchModel(b, pace)}, API: openai.Chat})
	followers := feed.New(store)
	agent := parley.Agent{Name: "helper", Instructions: "Help.", Model: "stub", Tools: []string{"*"}}
	r.door = engine.New(engine.Config{Store: store, Feed: followers, Access: access.Rules{},
		Project: engine.Project{Agents: oneAgent{agent}, Tools: tool.New(tool.Options{Files: files})},
		Model:   provider.Patient(model, log), Log: log, Now: time.Now,
		Screen: screen.New([]byte("a key of thirty-two bytes or more"), "block"),
		Window: func(string) int { return 1 << 40 }, Calls: 1024})
	r.door.Start()
	b.Cleanup(func() {
		if err := r.door.Close(context.Background()); err != nil {
			b.Error(err)
		}
		_ = followers.Close(context.Background())
		model.Close()
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return r
}

func newSessionID() parley.SessionID {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails
	return parley.SessionID(fmt.Sprintf("%x-%x-4%03x-8%03x-%x", u[:4], u[4:6], int(u[6])<<4|int(u[7]&15),
		int(u[8])<<4|int(u[9]&15), u[10:]))
}

// run submits a message and follows the session until the run has ended.
func (r *runBench) run(id parley.SessionID, content string) {
	ctx := context.Background()
	do := parley.Command{Session: id, Do: parley.SubmitInput{Content: content, Open: true}}
	receipt, err := r.door.Submit(ctx, mayor, do)
	for ; parley.CodeOf(err) == parley.CodeOverloaded; receipt, err = r.door.Submit(ctx, mayor, do) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		r.b.Error(err)
		return
	}
	f, err := r.door.Follow(ctx, mayor, port.Scope{Session: id}, port.Cursor{After: int64(receipt.First) - 1})
	if err != nil {
		r.b.Error(err)
		return
	}
	defer f.Close()
	for {
		items, err := f.Next(ctx)
		if err != nil {
			r.b.Error(err)
			return
		}
		for _, i := range items {
			switch b := i.Body.(type) {
			case parley.OutputAppended:
				if said, err := strconv.ParseInt(strings.Fields(b.Text)[0], 10, 64); err == nil {
					r.lock.Lock()
					r.late = append(r.late, time.Since(time.UnixMicro(said)))
					r.lock.Unlock()
				}
			case parley.RunFinished:
				if b.Outcome != parley.Completed {
					r.b.Error(b)
				}
				return
			}
		}
	}
}

type spent struct {
	cpu              time.Duration
	written          int64
	commits, batches int64
}

func (r *runBench) spent() (s spent) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		r.b.Fatal(err)
	}
	s.cpu = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	raw, err := os.ReadFile("/proc/self/io")
	if err != nil {
		r.b.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		_, _ = fmt.Sscanf(line, "write_bytes: %d", &s.written)
	}
	s.commits, s.batches = r.commits.Load(), r.batches.Load()
	return s
}

func (r *runBench) report(before spent, runs int) {
	s, n := r.spent(), float64(runs)
	r.b.ReportMetric(float64((s.cpu-before.cpu).Microseconds())/n, "cpu-µs/run")
	r.b.ReportMetric(float64(s.written-before.written)/1024/n, "written-KB/run")
	r.b.ReportMetric(float64(s.commits-before.commits)/n, "commits/run")
	r.b.ReportMetric(float64(s.batches-before.batches)/n, "appends/run")
}

// reportLate reports the median delay from the first token of a chunk to the chunk.
func (r *runBench) reportLate() {
	slices.Sort(r.late)
	r.b.ReportMetric(float64(r.late[len(r.late)/2].Microseconds()), "token-µs")
}

// benchModel starts a process that answers like a Chat Completions server.
func benchModel(b *testing.B, pace time.Duration) (url string) {
	cmd := exec.Command(os.Args[0], "bench-model", pace.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// serveBenchModel serves the model of benchModel. It does not return.
func serveBenchModel(pace string) {
	wait, err := time.ParseDuration(pace)
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s/v1\n", l.Addr())
	const chunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"stub",` +
		`"choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]}` + "\n\n"
	panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		flush := w.(http.Flusher).Flush
		for range 20 {
			fmt.Fprintf(w, chunk, fmt.Sprintf(`{"content":"%d "}`, time.Now().UnixMicro()), "null")
			flush()
			if wait > 0 {
				time.Sleep(wait)
			}
		}
		fmt.Fprintf(w, chunk, "{}", `"stop"`)
		fmt.Fprint(w, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"stub",`+
			`"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`+"\n\n")
		fmt.Fprint(w, "data: [DONE]\n\n")
	})))
}
