package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"parley"
	"parley/checker"
)

// withProgram returns the settings of a server whose agent is a program that uses the official SDK of the Agent Client
// Protocol.
func withProgram(t *testing.T, o options, more string) options {
	t.Helper()
	script, err := filepath.Abs("testdata/acp-agent.mjs")
	if err != nil {
		t.Fatal(err)
	}
	o.workspace = t.TempDir()
	for name, text := range map[string]string{
		"agents/prog.md": "---\nruntime: acp\ncommand: [node, " + script + "]\n" + more + "---\n",
		"note.txt":       "first\nsecond\n",
	} {
		file := filepath.Join(o.workspace, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// TestProgramAgents runs an agent of the official SDK as a process of the
// server. Its permissions, files and terminals go through approvals, the
// workspace and the sandbox.
func TestProgramAgents(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	o := jwt()
	o.env = append(o.env, "SHOWN=yes", "KEPT=secret")
	s := startServer(t, withProgram(t, o, "env: [SHOWN]\n"))
	ann := s.user("ann")
	c := ann.console(n, "prog")
	says := func(prompt, want string) {
		t.Helper()
		c.say(prompt)
		if a := c.answered(); a.text != want {
			t.Errorf("%s: %q, %s", prompt, a.text, a.last.raw)
		}
	}
	says("say one <b> two", "one <b> two")
	says("count", "prompt 2 with 1 blocks")
	says("think about it", "done")
	says("env SHOWN", "SHOWN is yes")
	says("env KEPT", "KEPT is not set")
	says("usage", "counted")

	// Reading files and read-only commands need no approval. Files outside the workspace cannot be read.
	says("read note.txt", "it holds: first\nsecond\n")
	secret := filepath.Join(t.TempDir(), "outside.txt")
	if err := os.WriteFile(secret, []byte("hidden"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{secret, "../outside.txt", "agents/prog.md"} {
		c.say("read " + name)
		if a := c.answered(); !strings.HasPrefix(a.text, "refused: ") || strings.Contains(a.text, "hidden") {
			t.Errorf("%s: %q", name, a.text)
		}
	}
	says("run cat note.txt", "0: first\nsecond\n")

	// Everything else asks. A denial has no effect.
	written := filepath.Join(s.o.workspace, "new.txt")
	decide := func(prompt, decision string) string {
		t.Helper()
		c.say(prompt)
		card := c.upTo("approval_request")
		ann.must(http.StatusAccepted, http.MethodPost, "/api/v1/approvals/"+card.ID, `{"decision":"`+decision+`"}`)
		return c.answered().text
	}
	if got := decide("write new.txt some text", "deny"); got != "refused: A person did not allow this." {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(written); err == nil {
		t.Error("it was written all the same")
	}
	if got := decide("write new.txt some text", "allow"); got != "written" {
		t.Errorf("%q", got)
	}
	if raw, err := os.ReadFile(written); err != nil || string(raw) != "some text" {
		t.Errorf("%q, %v", raw, err)
	}
	for decision, want := range map[string]string{"allow": "chosen: yes", "deny": "chosen: no"} {
		if got := decide("ask hammer", decision); got != want {
			t.Errorf("%q", got)
		}
	}
	// An approved command runs inside the sandbox.
	if got := decide("run touch "+secret+".new || echo kept out", "allow"); !strings.Contains(got, "kept out\n") {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(secret + ".new"); err == nil {
		t.Error("it wrote outside of the project")
	}
	if got := decide("kill", "allow"); got != "SIGKILL: " {
		t.Errorf("%q", got)
	}
	wantProgramLog(t, ann, c.session)
}

// wantProgramLog: the log has everything, in the same words as for other agents.
func wantProgramLog(t *testing.T, v *visitor, session string) {
	t.Helper()
	seen := map[string]int{}
	for line := range strings.Lines(v.must(http.StatusOK, http.MethodGet, "/api/v1/sessions/"+session+"/log", "")) {
		var e parley.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch b := e.Body.(type) {
		case parley.ToolCallRequested:
			seen[fmt.Sprint(b.Name, " made here: ", b.Made)]++
		case parley.ToolCallFinished:
			seen[b.Name+" "+string(b.Outcome)]++
		case parley.OutputFinished:
			seen[string(b.Kind)]++
		case parley.ContextMeasured:
			seen[fmt.Sprint(b.Tokens, " of ", b.Limit)]++
		case parley.TurnFinished:
			seen[fmt.Sprint("cost ", b.Usage.CostMicros)]++
		}
	}
	for what, times := range map[string]int{"read_file made here: true": 4, "write_file made here: true": 2,
		"shell made here: true": 3, "edit made here: false": 2, "edit succeeded": 1, "edit denied": 1,
		"write_file denied": 1, "write_file succeeded": 1, "shell cancelled": 1, "thinking": 1, "1200 of 8000": 1,
		"cost 250000": 1} {
		if seen[what] != times {
			t.Errorf("%s: %d times, not %d, in %v", what, seen[what], times, seen)
		}
	}
}

// TestProgramAgentsEnd: a program that is cancelled, dies, or is no agent at all.
func TestProgramAgentsEnd(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	s := startServer(t, withProgram(t, jwt(), ""))
	ann := s.user("ann")
	c := ann.console(n, "prog")
	cancel := func() {
		t.Helper()
		c.upTo("chunk")
		ann.must(http.StatusAccepted, http.MethodPost, "/api/v1/sessions/"+c.session+"/cancel", "{}")
		if a := c.answered(); a.last.Message != "The answer was cancelled." {
			t.Errorf("%s", a.last.raw)
		}
	}
	c.say("wait")
	cancel()
	c.say("count") // the process lives on and knows the conversation since
	if a := c.answered(); a.text != "prompt 2 with 1 blocks" {
		t.Errorf("%q", a.text)
	}
	c.say("ask")
	c.upTo("approval_request")
	ann.must(http.StatusAccepted, http.MethodPost, "/api/v1/sessions/"+c.session+"/cancel", "{}")
	c.answered()
	c.say("die")
	if a := c.answered(); a.last.Message != "agent error: The agent's program was lost in the middle of the answer: "+
		"it ended with exit code 3: the end of me." {
		t.Errorf("%s", a.last.raw)
	}
	c.say("count") // a new process gets the conversation so far
	if a := c.answered(); a.text != "prompt 1 with 2 blocks" {
		t.Errorf("%q", a.text)
	}
	c.say("garbage")
	if a := c.answered(); !strings.HasSuffix(a.last.Message, "it sends lines that are no messages.") {
		t.Errorf("%s", a.last.raw)
	}
	c.say("fail")
	if a := c.answered(); a.last.Message != "agent error: it is raining" {
		t.Errorf("%s", a.last.raw)
	}

	// If the server is killed while an approval is open, the run ends as interrupted.
	c.say("write new.txt text")
	c.upTo("approval_request")
	session := c.session
	s.kill()
	s = s.again()
	ann = s.user("ann")
	await(t, patience, "the end of the run", func() bool {
		return strings.Contains(ann.must(http.StatusOK, http.MethodGet, "/api/v1/sessions/"+session+"/log", ""),
			`"outcome":"interrupted"`)
	})
	if _, err := os.Stat(filepath.Join(s.o.workspace, "new.txt")); err == nil {
		t.Error("it was written all the same")
	}
}

// TestKilledBetweenChunks kills the program of an agent, or the server, between two chunks of an answer. The log keeps
// the text that was shown, as incomplete; the run ends once, as interrupted; and a new program answers the next
// message.
func TestKilledBetweenChunks(t *testing.T) {
	if testing.Short() {
		t.Skip("another process does the work")
	}
	t.Parallel()
	n := startNode(t)
	for name, kill := range map[string]func(*testing.T, *server, *console) (*server, string){
		"the program": func(t *testing.T, s *server, c *console) (*server, string) {
			for _, pid := range s.children() {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			want := "agent error: The agent's program was lost in the middle of the answer: it ended with signal 9."
			a := c.answered()
			if a.last.Message != want {
				t.Errorf("%s", a.last.raw)
			}
			return s, a.text // includes text that the canary filter held back until now
		},
		"the server": func(t *testing.T, s *server, _ *console) (*server, string) {
			s.kill()
			await(t, patience, "the end of the program", func() bool { return len(s.children()) == 0 })
			return s.again(), ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, withProgram(t, jwt(), ""))
			c := s.user("ann").console(n.in(t), "prog")
			c.say("half")
			shown := c.upTo("chunk").Content
			if len(s.children()) != 1 {
				t.Fatalf("%d programs run", len(s.children()))
			}
			s, rest := kill(t, s, c)
			shown += rest
			ann := s.user("ann")
			ask, _ := json.Marshal(map[string]string{"content": "count", "session_id": c.session})
			if body := ann.must(http.StatusOK, http.MethodPost, "/api/v1/agents/prog/message",
				string(ask)); !strings.Contains(body, "prompt 1 with 2 blocks") {
				t.Errorf("%s", body)
			}
			var log []parley.Event
			var told []string
			for line := range strings.Lines(ann.must(http.StatusOK, http.MethodGet,
				"/api/v1/sessions/"+c.session+"/log", "")) {
				var e parley.Event
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				log = append(log, e)
				switch b := e.Body.(type) {
				case parley.OutputFinished:
					told = append(told, fmt.Sprintf("%q %v", b.Text, b.Incomplete))
				case parley.RunFinished:
					told = append(told, string(b.Outcome))
				}
			}
			want := []string{fmt.Sprintf("%q true", shown), "interrupted", `"prompt 1 with 2 blocks" false`, "completed"}
			if !slices.Equal(told, want) || !strings.HasPrefix("one half ", shown) {
				t.Errorf("the log has %q, not %q; %q was shown", told, want, shown)
			}
			for _, err := range slices.Concat(checker.Check(log), checker.Settled(log)) {
				t.Error(err)
			}
		})
	}
}
