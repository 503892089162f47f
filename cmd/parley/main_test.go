package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"go.uber.org/goleak"

	"parley/config"
	"parley/pdf"
	"parley/sandbox"
	"parley/store/postgres/pgtest"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	pdf.Main()
	if filepath.Base(os.Args[0]) == programName {
		main() // runs parley as its own process, for TestScripts
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "tenant-tools" {
		serveTenantTools(os.Args[2])
	}
	if len(os.Args) > 1 && slices.Contains([]string{"serve", "export", "import"}, os.Args[1]) {
		main() // runs parley as its own process, for TestBenchSmoke
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "bench-model" {
		serveBenchModel(os.Args[2])
	}
	// The tests wait more than they compute: for the disk, and for the demo model,
	// which streams at the pace of a real one. A flag on the command line takes
	// precedence.
	if !racing {
		_ = flag.Set("test.parallel", "6") // every test binary has this flag
	}
	occupantWithin = 5 * time.Second
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.Stop()
		os.Exit(code)
	}))
}

func noEnv(string) (string, bool) { return "", false }

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"--version"}, {"serve", "--version"}} {
		var out bytes.Buffer
		p := &program{ctx: context.Background(), stdout: &out, stderr: io.Discard}
		if err := p.run(args, noEnv); err != nil || !strings.HasPrefix(out.String(), "parley dev go") ||
			strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%v: %q, %v", args, out.String(), err)
		}
	}
}

func TestNoCommandPrintsHelp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &program{ctx: context.Background(), stdout: &out, stderr: io.Discard}
	if err := p.run(nil, noEnv); err != nil || !strings.Contains(out.String(), "serve") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// riddles are words that a help text must not use in place of a noun.
var riddles = regexp.MustCompile(`(?i)\b(who|whom|whoever|what|whatever|somebody|nobody|everybody|parted)\b`)

// TestHelpIsPlain checks that the help of every flag and command has no
// riddles, and states a default that a placeholder hides.
func TestHelpIsPlain(t *testing.T) {
	k, err := kong.New(&commands{}, kong.Name("parley"), config.Environment(noEnv))
	if err != nil {
		t.Fatal(err)
	}
	plain := func(name, help string) {
		if !strings.HasSuffix(help, ".") && !strings.HasSuffix(help, ")") || riddles.MatchString(help) {
			t.Errorf("%s: %q", name, help)
		}
	}
	var look func(n *kong.Node)
	look = func(n *kong.Node) {
		for _, f := range n.Flags {
			plain(n.Name+" --"+f.Name, f.Help)
			if f.HasDefault && f.PlaceHolder != "" && !strings.Contains(f.Help, "efault:") {
				t.Errorf("%s --%s does not state its default, %s", n.Name, f.Name, f.Default)
			}
		}
		for _, p := range n.Positional {
			plain(n.Name+" "+p.Name, p.Help)
		}
		for _, child := range n.Children {
			plain(child.Name, child.Help)
			look(child)
		}
	}
	look(k.Model.Node)
}

var address = regexp.MustCompile(`address=(\S+)`)

// serve runs a server until stop is called or the test ends, and returns its
// address.
func serve(t *testing.T, args ...string) (addr string, stop func()) {
	t.Helper()
	return serveLogged(t, noEnv, io.Discard, args...)
}

// serveLogged runs a server and writes its log to log, which may be read after
// stop.
func serveLogged(t *testing.T, env func(string) (string, bool), log io.Writer, args ...string) (addr string,
	stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	logs, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		p := &program{ctx: ctx, stdout: io.Discard, stderr: w}
		done <- p.run(append([]string{"serve"}, args...), env)
		w.Close()
	}()
	ready := make(chan string, 1)
	go func() {
		defer close(ready)
		for lines := bufio.NewScanner(io.TeeReader(logs, log)); lines.Scan(); {
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				ready <- m[1]
			}
		}
	}()
	addr, ok := <-ready
	if !ok {
		t.Fatal(<-done)
	}
	return addr, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for range ready {
		}
	}
}

// A person runs parley chat at a terminal.
type person struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *io.PipeReader
	chunk chan string
	text  string
	done  chan error
}

func newPerson(t *testing.T, args ...string) *person {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &person{t: t, in: inW, out: outR, chunk: make(chan string, 1024), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { // needed if leave was not called
		cancel()
		inW.Close()
	})
	go func() {
		p := &program{ctx: ctx, stdin: inR, stdout: outW, stderr: outW}
		c.done <- p.run(append([]string{"chat"}, args...), noEnv)
		outW.Close()
	}()
	go func() {
		defer close(c.chunk)
		buf := make([]byte, 4096)
		for {
			n, err := outR.Read(buf)
			if n > 0 {
				c.chunk <- string(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

// see waits for text and discards the output up to its end. It returns the output
// before the text.
func (c *person) see(text string) string {
	c.t.Helper()
	timeout := time.After(time.Minute)
	for {
		if before, after, ok := strings.Cut(c.text, text); ok {
			c.text = after
			return before
		}
		select {
		case s, ok := <-c.chunk:
			if !ok {
				c.t.Fatalf("the program ended; %q was not printed, only %q", text, c.text)
			}
			c.text += s
		case <-timeout:
			c.t.Fatalf("%q was not printed, only %q", text, c.text)
		}
	}
}

func (c *person) enter(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// leave ends the input, as Ctrl-D does, and waits for the program.
func (c *person) leave() {
	c.t.Helper()
	c.in.Close()
	for s := range c.chunk {
		c.text += s
	}
	if err := <-c.done; err != nil {
		c.t.Error(err)
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", workspace)
	defer stop()
	c := newPerson(t, "--server", addr)
	c.see("> ")
	c.enter("say hello there")
	if got := c.see("\n> "); got != "hello there" {
		t.Errorf("printed %q", got)
	}
	c.enter("write some text to note.txt")
	c.see("note.txt")
	c.see("[s]top: ")
	c.enter("what?")
	c.see("y, a, n, e or s: ")
	c.enter("YES")
	c.see("\n> ")
	c.enter("ask me")
	c.see("Your answer: ")
	c.enter("")
	c.see("Your answer: ")
	c.enter("1")
	c.see("\n> ")
	c.enter("fail")
	c.see(")\n> ")
	c.enter("say goodbye")
	c.see("\n> ")
	c.leave()
}

// TestChatSurvivesARestart: the server is restarted in the middle of an answer,
// and the person sees one complete answer.
func TestChatSurvivesARestart(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { chatSurvivesARestart(t) })
	t.Run("postgres", func(t *testing.T) { chatSurvivesARestart(t, "--database-url", pgtest.Database(t)) })
}

func chatSurvivesARestart(t *testing.T, args ...string) {
	args = append(args, "--data", t.TempDir(), "--workspace", t.TempDir(), "--drain", "1ms")
	addr, stop := serve(t, append(args, "--listen", "127.0.0.1:0")...)
	c := newPerson(t, "--server", addr)
	c.see("> ")
	asked := time.Now()
	c.enter("say ready")
	c.see("\n> ")
	to := countFor(time.Since(asked))
	c.enter(fmt.Sprint("count to ", to))
	begun := c.see(" 20") + " 20"
	stop()
	lost := c.see("\n(the server is gone")
	_, stop = serve(t, append(args, "--listen", strings.TrimPrefix(addr, "http://"))...)
	defer stop()
	c.see(")\n")
	got := begun + lost + c.see("\n> ")
	var want []string
	for i := range to {
		want = append(want, strconv.Itoa(i+1))
	}
	if strings.TrimSpace(got) != strings.Join(want, " ") {
		t.Errorf("printed %q", got)
	}
	c.leave()
}

// countFor returns a number to count to that takes the demo model more than ten times as long as something took on this
// machine now. A test that acts in the middle of an answer asks for it.
func countFor(took time.Duration) int { return 60 + 10*int(took/(20*time.Millisecond)) }

func TestChatWithoutAServer(t *testing.T) {
	t.Parallel()
	p := &program{ctx: context.Background(), stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
	if err := p.run([]string{"chat", "--server", "http://127.0.0.1:1"}, noEnv); err == nil ||
		!strings.Contains(err.Error(), "parley serve") {
		t.Errorf("%v", err)
	}
}

func TestChatRefusesBadThreads(t *testing.T) {
	t.Parallel()
	p := &program{ctx: context.Background(), stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
	if err := p.run([]string{"chat", "--thread", "3f0c…"}, noEnv); err == nil ||
		!strings.Contains(err.Error(), "not the id of a thread") {
		t.Errorf("%v", err)
	}
}
