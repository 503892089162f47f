package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A trial is a server under load that gets into trouble and out of it again.
// Some clients write and follow over HTTP all the time, and some sockets were
// opened before the trouble.
type trial struct {
	*server
	clients  []*client
	sockets  []*socket
	accepted atomic.Int64 // inputs of the clients
	refused  map[string]bool
	stopLoad func()
	stopAll  func() // stops the followers, too
}

func newTrial(t *testing.T, s *server) *trial {
	t.Helper()
	x := &trial{server: s.in(t), refused: map[string]bool{}}
	load, stopLoad := context.WithCancel(context.Background())
	watch, stopWatching := context.WithCancel(context.Background())
	var loading, watching sync.WaitGroup
	x.stopLoad = func() { stopLoad(); loading.Wait() }
	x.stopAll = func() { x.stopLoad(); stopWatching(); watching.Wait() }
	t.Cleanup(x.stopAll)
	for range 4 {
		c := &client{t: t, url: "http://" + s.address + "/api/v1/sessions", session: uuid.NewString(),
			seen: make([][]string, 1)}
		x.clients = append(x.clients, c)
		loading.Go(func() { x.load(load, c) })
		watching.Go(func() { c.follow(watch, 0) })
	}
	n := startNode(t)
	for range 3 {
		c := n.dial(s, newThread())
		c.ask("repeat before")
		c.completed()
		x.sockets = append(x.sockets, c)
	}
	await(t, patience, "the load to be accepted", func() bool { return x.accepted.Load() > 8 })
	return x
}

// load sends one request after another, as fast as they are answered.
func (x *trial) load(ctx context.Context, c *client) {
	c.post(ctx, "", "open", fmt.Sprintf(`{"id":%q}`, c.session))
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprint("k", n)
		if c.post(ctx, "/"+c.session+"/inputs", key, `{"content":"count to 3"}`) {
			c.accepted = append(c.accepted, key)
			x.accepted.Add(1)
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// await polls until a condition holds; a process has no other way to report it.
func await(t *testing.T, d time.Duration, what string, so func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !so() {
		if time.Since(start) > d {
			t.Fatalf("waited %v in vain for %s", d, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(start)
}

// Time limits for a busy machine. A store waits five seconds for a disk or a
// database that does not answer. A refusal "at once" takes less.
const (
	atOnce = 4 * time.Second
	healed = 20 * time.Second
)

// inTime reports whether a duration is within its limit. A slow machine gets as much more time as it needs for three
// answers without the store.
func (s *server) inTime(took, most time.Duration) bool {
	s.t.Helper()
	if took <= most {
		return true
	}
	start := time.Now()
	s.get("/healthz", nil)
	return took <= most+3*time.Since(start)
}

// A trouble is a fault of the server's surroundings, and the limits of its effect on clients.
type trouble struct {
	name  string
	begin func(*trial) (heal func())
	first time.Duration // the longest wait for the first refusals
	then  time.Duration // the longest wait for later refusals
	heals time.Duration // the longest time until the end of the trouble is known
}

// during puts the server into trouble for a while. The load continues
// meanwhile, and during checks all promises.
func (x *trial) during(b trouble) {
	x.t.Helper()
	before := x.usage()
	heal := b.begin(x)
	start := time.Now()
	_, known := x.refusal(b.first)
	// A request that waited for a hung disk may be answered a moment before the store gives up on it.
	await(x.t, atOnce, "/readyz to name the trouble", func() bool {
		status, body := x.get("/readyz", nil)
		return status == http.StatusServiceUnavailable && strings.Contains(body, `"reason":"`)
	})
	var slowest time.Duration
	peak := x.usage()
	rounds := 0
	for ; rounds < 10 || time.Since(start) < 2*time.Second; rounds++ {
		for _, c := range x.sockets {
			slowest = max(slowest, x.ask(c, b.then))
		}
		if status, body := x.get("/healthz", nil); status != http.StatusOK {
			x.t.Errorf("/healthz in trouble: %d %s", status, body)
		}
		peak = peak.max(x.usage())
	}
	heal()
	healed := await(x.t, b.heals, "/readyz after the trouble", func() bool {
		status, _ := x.get("/readyz", nil)
		return status == http.StatusOK
	})
	for _, c := range x.sockets {
		c.ask("repeat after")
		if a := c.completed(); a.text != "after" {
			x.t.Errorf("after the trouble: %+v", a)
		}
	}
	atTrouble := x.accepted.Load()
	await(x.t, patience, "the load to be accepted again", func() bool { return x.accepted.Load() > atTrouble })
	x.t.Logf("%s: refused after %v, then within %v, %d times; ready again after %v; %v before, at most %v in trouble",
		b.name, known.Round(time.Millisecond), slowest.Round(time.Millisecond), rounds*len(x.sockets),
		healed.Round(time.Millisecond), before, peak)
	if peak.rss > before.rss+64<<10 || peak.fds > before.fds+64 || peak.threads > before.threads+32 {
		x.t.Errorf("%s: the server grew from %v to %v", b.name, before, peak)
	}
	x.settle()
}

// refusal opens sessions until one is refused, and returns how long that took.
func (x *trial) refusal(limit time.Duration) (body string, took time.Duration) {
	x.t.Helper()
	for deadline := time.Now().Add(10 * patience); ; { // a slow machine fills a disk slowly
		start := time.Now()
		response := x.request(within(x.t, patience), http.MethodPost, "/api/v1/sessions",
			http.Header{"Content-Type": {"application/json"}}, "{}")
		line, _ := bufio.NewReader(response.Body).ReadString('\n')
		response.Body.Close()
		took := time.Since(start)
		switch {
		case response.StatusCode == http.StatusServiceUnavailable:
			if !strings.Contains(line, `"code":"unavailable"`) {
				x.t.Errorf("refused with %s", line)
			}
			if !x.inTime(took, limit) {
				x.t.Errorf("the first refusal took %v", took)
			}
			return line, took
		case response.StatusCode >= 300:
			x.t.Fatalf("%d %s", response.StatusCode, line)
		case time.Now().After(deadline):
			x.t.Fatal("everything is accepted all the same")
		}
	}
}

// ask expects a refusal, in the words of the dialect.
func (x *trial) ask(c *socket, limit time.Duration) time.Duration {
	x.t.Helper()
	request := "req-" + uuid.NewString()
	x.refused[request] = true
	start := time.Now()
	c.askAs(request, "repeat refused")
	f := c.expect("error")
	took := time.Since(start)
	if f.RequestID != request || f.Error == "" || !x.inTime(took, limit) {
		x.t.Fatalf("a request in trouble was answered after %v with %s", took, f.raw)
	}
	return took
}

// settle ends the load and reads the logs.
func (x *trial) settle() {
	x.t.Helper()
	x.stopLoad()
	for _, c := range x.clients {
		c.check(c.settled(x.server))
	}
	x.stopAll()
	for _, c := range x.clients {
		c.compare(x.server)
	}
	for _, c := range x.sockets {
		for i, e := range x.events(c.thread) {
			if e.Seq != i+1 {
				x.t.Errorf("seq %d where %d was due", e.Seq, i+1)
			}
			if x.refused[e.Body.Request] {
				x.t.Errorf("was refused, and is there: %v", e)
			}
		}
	}
}

// A usage is the resources that a process holds.
type usage struct{ rss, threads, fds int } // rss in KiB

func (u usage) max(v usage) usage {
	return usage{max(u.rss, v.rss), max(u.threads, v.threads), max(u.fds, v.fds)}
}

func (u usage) String() string {
	return fmt.Sprintf("%d MiB, %d threads, %d files", u.rss>>10, u.threads, u.fds)
}

func (s *server) usage() (u usage) {
	s.t.Helper()
	proc := fmt.Sprintf("/proc/%d/", s.cmd.Process.Pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &u.rss) // most lines have other fields
		_, _ = fmt.Sscanf(line, "Threads: %d", &u.threads)
	}
	files, err := os.ReadDir(proc + "fd")
	if err != nil {
		s.t.Fatal(err)
	}
	u.fds = len(files)
	return u
}

// inject makes system calls of the server fail until heal is called.
func (s *server) inject(calls, fault string) (heal func()) {
	s.t.Helper()
	pid := s.cmd.Process.Pid
	strace := exec.Command("strace", "-f", "-q", "-o", os.DevNull, "-p", fmt.Sprint(pid), "-e", "trace="+calls, "-e",
		"inject="+calls+":"+fault)
	var said strings.Builder
	strace.Stderr = &said
	if err := strace.Start(); err != nil {
		s.t.Skip("system calls cannot be made to fail:", err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = strace.Wait() // its output is checked instead
	}()
	heal = sync.OnceFunc(func() {
		_ = strace.Process.Signal(os.Interrupt) // strace detaches from the server
		<-exited
	})
	s.t.Cleanup(heal)
	await(s.t, patience, "strace", func() bool {
		select {
		case <-exited:
			s.t.Skip("system calls cannot be made to fail:", said.String())
		default:
		}
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		traced := err == nil && len(tasks) > 0
		for _, task := range tasks {
			status, err := os.ReadFile(task)
			traced = traced && (err != nil || !strings.Contains(string(status), "TracerPid:\t0\n"))
		}
		return traced
	})
	return heal
}

// refusalOf sends a request that must be refused, and returns the error.
func (s *server) refusalOf(path string) (status int, code, message string) {
	s.t.Helper()
	status, body := s.get(path, nil)
	var refusal struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(body), &refusal); err != nil {
		s.t.Fatalf("GET %s: %d %s", path, status, body)
	}
	return status, refusal.Error.Code, refusal.Error.Message
}
