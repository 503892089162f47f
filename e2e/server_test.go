package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/store/storetest"
)

// A server is one process of `parley serve` in a test.
type server struct {
	t *testing.T
	*process
}

type process struct {
	o       options
	cmd     *exec.Cmd
	address string        // host:port
	log     *list[string] // lines of standard error
	exited  chan struct{} // closed when the process is gone and err is set
	err     error
}

// options of a server. Empty fields get defaults.
type options struct {
	listen          string
	data, workspace string
	drain           time.Duration
	env             []string
	within          []string // a command that gets the server's command line as arguments and then runs it
	binary          string
}

// startServer starts a server and waits until it is ready. At the end of the
// test it stops a server that still runs, which must then exit without an
// error.
func startServer(t *testing.T, o options) *server {
	t.Helper()
	if o.listen == "" {
		o.listen = "127.0.0.1:0"
	}
	if o.data == "" {
		o.data = storetest.Dir(t)
	}
	if o.workspace == "" {
		o.workspace = t.TempDir()
	}
	if o.binary == "" {
		o.binary = binary(t)
	}
	if o.drain == 0 {
		o.drain = 100 * time.Millisecond // tests that leave a run behind should not wait for it
	}
	s := launch(t, o)
	t.Cleanup(func() {
		if s.running() {
			s.stop()
		}
		if t.Failed() {
			t.Logf("the log of process %d, serving on %s:\n%s", s.cmd.Process.Pid, s.address, tail(s.log.all(), 60))
		}
	})
	s.address = s.readyAddress()
	return s
}

// launch starts the process with an environment and working directory of its
// own, so that no variable or .env of the user who runs the tests has an
// effect.
func launch(t *testing.T, o options) *server {
	t.Helper()
	s := &server{t, &process{o: o, log: newList[string](), exited: make(chan struct{})}}
	args := append(o.within[:len(o.within):len(o.within)], o.binary, "serve", "--listen", o.listen, "--data", o.data,
		"--workspace", o.workspace, "--drain", o.drain.String())
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Dir = o.workspace
	s.cmd.Env = append([]string{"LOG_LEVEL=debug"}, o.env...)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.exited)
		readLines(stderr, s.log)
		s.err = s.cmd.Wait()
	}()
	return s
}

// readLines appends lines to a list until the reader ends.
func readLines(r io.Reader, lines *list[string]) {
	defer lines.end()
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadString('\n')
		if line != "" {
			lines.add(strings.TrimSuffix(line, "\n"))
		}
		if err != nil {
			return
		}
	}
}

var readyLine = regexp.MustCompile(`msg="parley is ready" address=http://(\S+)`)

func (s *server) readyAddress() string {
	s.t.Helper()
	line, err := s.log.find(within(s.t, patience), readyLine.MatchString)
	if err != nil {
		s.t.Fatalf("the server is not ready: %v; it said:\n%s", err, tail(s.log.all(), 50))
	}
	return readyLine.FindStringSubmatch(line)[1]
}

// in returns the same server for a subtest.
func (s *server) in(t *testing.T) *server { return &server{t, s.process} }

func (s *server) running() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// logged waits until the server's log has some words so many times.
func (s *server) logged(words string, times int) {
	s.t.Helper()
	if _, err := s.log.find(within(s.t, patience), func(line string) bool {
		if strings.Contains(line, words) {
			times--
		}
		return times == 0
	}); err != nil {
		s.t.Fatalf("waiting for %q in the server's log: %v", words, err)
	}
}

// stopWithin is the time that supervisors usually allow for a stop.
const stopWithin = 10 * time.Second

// stop ends the server gracefully.
func (s *server) stop() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	s.ended()
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Errorf("process %d: %v", s.cmd.Process.Pid, err)
	}
}

// ended waits for a server that was told to stop.
func (s *server) ended() {
	s.t.Helper()
	select {
	case <-s.exited:
		if s.err != nil {
			s.t.Errorf("the server did not end well: %v", s.err)
		}
	case <-time.After(stopWithin):
		s.t.Errorf("the server did not end within %v of SIGTERM", stopWithin)
		s.kill()
	}
}

// kill ends the server as a crash would.
func (s *server) kill() {
	s.t.Helper()
	s.signal(syscall.SIGKILL)
	<-s.exited
}

// again starts a server with the data and workspace of one that has ended.
func (s *server) again() *server {
	s.t.Helper()
	return startServer(s.t, s.o)
}

// ways are the two ways a server can end.
var ways = []struct {
	name string
	end  func(*server)
}{
	{"SIGTERM", (*server).stop},
	{"kill -9", (*server).kill},
}

// browser makes each request as a new client, and so leaves nothing open.
var browser = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// request sends a request and leaves the body to the caller.
func (s *server) request(ctx context.Context, method, path string, header http.Header, body string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header = header.Clone()
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	response, err := browser.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

// get sends a request and reads the whole answer.
func (s *server) get(path string, header http.Header) (status int, body string) {
	s.t.Helper()
	response := s.request(within(s.t, patience), http.MethodGet, path, header, "")
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatalf("GET %s: %v", path, err)
	}
	return response.StatusCode, string(raw)
}

// run runs another command of the binary and returns its output.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return runWith(t, nil, "", args...)
}

// runWith is run with variables and standard input.
func runWith(t *testing.T, env []string, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	program := binary(t) // building it may take longer than the command's deadline
	cmd := exec.CommandContext(within(t, patience), program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = t.TempDir(), append([]string{"LOG_LEVEL=debug"}, env...), strings.NewReader(stdin)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func tail(lines []string, n int) string {
	if cut := len(lines) - n; cut > 0 {
		lines = append([]string{fmt.Sprintf("(%d lines before)", cut)}, lines[cut:]...)
	}
	return strings.Join(lines, "\n")
}
