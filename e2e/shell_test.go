package e2e

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startSandboxed starts a server that runs commands, with an agent of this
// approval mode.
func startSandboxed(t *testing.T, mode string) *server {
	t.Helper()
	return startOnPath(t, mode, os.Getenv("PATH"))
}

// startOnPath starts one that looks for programs in path, which may lack
// bubblewrap.
func startOnPath(t *testing.T, mode, path string) *server {
	t.Helper()
	workspace := t.TempDir()
	put(t, workspace, "agents/a.md", "---\napproval: "+mode+"\n---\nBe an agent with a secret.")
	put(t, workspace, "note.txt", "patience\n")
	s := startServer(t, options{workspace: workspace, env: []string{"PATH=" + path, "OPENAI_API_KEY=very-secret",
		"MODEL=demo"}})
	if strings.Contains(strings.Join(s.log.all(), "\n"), "there is no sandbox") {
		t.Skip("there is no sandbox here")
	}
	return s
}

// put writes a file, with the folders it needs.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestCommandsThatReadRunAndOthersAsk(t *testing.T) {
	t.Parallel()
	s, n := startSandboxed(t, "suggest"), startNode(t)
	c := n.dial(s, newThread())
	c.ask("run cat note.txt | tr a-z A-Z")
	if a := c.completed(); !strings.HasSuffix(a.text, "It ran:\n\nexit code 0\nPATIENCE") {
		t.Errorf("%q", a.text)
	}

	c.ask("run cat note.txt && touch made")
	c.expect("chat.started")
	card := c.skipTo("approval_request")
	if card.Tool != "shell" || !strings.Contains(card.Command, `bash -lc "cat note.txt && touch made"`) ||
		!strings.Contains(card.Command, `This asks because "touch" is not`) {
		t.Errorf("the card is %s", card.raw)
	}
	wantNoFile(t, s, "made")
	decide(c, card, "allow", "")
	if a := finishes(t, c, "approval_closed", card, "allow"); !strings.HasSuffix(a.text, "exit code 0\npatience") {
		t.Errorf("%+v", a)
	}
	wantFile(t, s, "made", "")
}

// TestWithoutBubblewrap: a newcomer's first commands work without installed
// tools, at the top of the workspace, beside its protected places.
func TestWithoutBubblewrap(t *testing.T) {
	t.Parallel()
	s, n := startOnPath(t, "suggest", t.TempDir()), startNode(t)
	c := n.dial(s, newThread())
	for _, ask := range []string{"write hello to new.txt", "run touch x && mkdir d && mv x d/ && touch x"} {
		c.ask(ask)
		c.expect("chat.started")
		card := c.skipTo("approval_request")
		decide(c, card, "allow", "")
		if a := finishes(t, c, "approval_closed", card, "allow"); strings.Contains(a.text, "came to nothing") {
			t.Errorf("%s: %+v", ask, a)
		}
	}
	wantFile(t, s, "new.txt", "hello")
	wantFile(t, s, "x", "")
	wantFile(t, s, "d/x", "")

	// A refusal names the rule.
	c.ask("run touch agents/evil.md")
	c.expect("chat.started")
	card := c.skipTo("approval_request")
	decide(c, card, "allow", "")
	if a := finishes(t, c, "approval_closed", card, "allow"); !strings.Contains(a.text, "Rules of the sandbox: Hidden "+
		"from commands: .env files, agents.") {
		t.Errorf("%+v", a)
	}
	wantNoFile(t, s, "agents/evil.md")
	wantNoFile(t, s, ".env")
}

// TestACommandFindsNoWayOut: without approvals, the sandbox alone holds the
// command back.
func TestACommandFindsNoWayOut(t *testing.T) {
	t.Parallel()
	t.Run("bubblewrap", func(t *testing.T) { findsNoWayOut(t, os.Getenv("PATH")) })
	t.Run("nothing installed", func(t *testing.T) { findsNoWayOut(t, t.TempDir()) })
}

func findsNoWayOut(t *testing.T, path string) {
	t.Parallel()
	s, n := startOnPath(t, "full-auto", path), startNode(t)
	c := n.dial(s, newThread())
	run := func(script string) string {
		t.Helper()
		c.ask("run " + script)
		return c.completed().text
	}
	host, port, _ := strings.Cut(s.address, ":")
	for _, script := range []string{
		"exec 3<>/dev/tcp/" + host + "/" + port + " && echo it got out",
		"cat " + s.o.data + "/* && echo it got out",
		"cat agents/a.md && echo it got out",
		"echo evil > agents/b.md && echo it got out",
		"echo PARLEY_AUTH=none > .env && echo it got out",
		"cat /proc/*/environ | grep -a very-secret && echo it got out",
		"env | grep very-secret && echo it got out",
		"touch /usr/x || touch " + s.o.data + "/x && echo it got out",
	} {
		if got := run(script); strings.Contains(strings.TrimPrefix(got, script), "\nit got out") ||
			!strings.Contains(got, "That came to nothing") {
			t.Errorf("%s: %s", script, got)
		}
	}
	if got := run("echo made > made && cat made"); !strings.HasSuffix(got, "exit code 0\nmade") {
		t.Errorf("%s", got)
	}
	wantFile(t, s, "made", "made\n")
	wantNoFile(t, s, "agents/b.md")
}

// TestACommandEndsWithItsRun: in whatever way the run ends, no process of the
// command is left.
func TestACommandEndsWithItsRun(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancel", "SIGTERM", "kill -9"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, n := startSandboxed(t, "full-auto"), startNode(t)
			pipe := filepath.Join(s.o.workspace, "pipe")
			if err := syscall.Mkfifo(pipe, 0o644); err != nil {
				t.Fatal(err)
			}
			c := n.dial(s, newThread())
			c.ask("run trap '' TERM HUP; exec > pipe 2>&1; echo begun; (setsid sleep 1000 &) ; sleep 1000")
			lost := time.AfterFunc(patience, func() { // if it is never opened, do not wait for ever
				if f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
					f.Close()
				}
			})
			held, err := os.Open(pipe) // returns when the command has opened it
			lost.Stop()
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			if err := held.SetReadDeadline(time.Now().Add(2 * patience)); err != nil {
				t.Fatal(err)
			}
			begun := make([]byte, 6)
			if _, err := io.ReadFull(held, begun); err != nil {
				t.Fatal(err)
			}
			switch how {
			case "cancel":
				c.cancel(c.expect("chat.started").RequestID)
			case "SIGTERM":
				s.stop()
			default:
				s.kill()
			}
			if rest, err := io.ReadAll(held); err != nil || len(rest) > 0 { // returns when no process has it open
				t.Errorf("%q, %v", rest, err)
			}
		})
	}
}
