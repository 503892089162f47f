package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
)

// A frameAgent is one of the example agents, as a separate process.
type frameAgent struct {
	t       *testing.T
	command []string
	address string // tcp://… or unix://…
	cmd     *exec.Cmd
	gone    chan struct{}
}

func startFrameAgent(t *testing.T, network string, command ...string) *frameAgent {
	t.Helper()
	a := &frameAgent{t: t, command: command, address: "tcp://127.0.0.1:0"}
	if network == "unix" {
		a.address = "unix://" + filepath.Join(t.TempDir(), "agent.sock")
	}
	a.start()
	t.Cleanup(a.kill)
	return a
}

// start starts it at its previous address.
func (a *frameAgent) start() {
	a.t.Helper()
	if path, ok := strings.CutPrefix(a.address, "unix://"); ok {
		_ = os.Remove(path) // the socket file outlives a killed process
	}
	args := append(slices.Clone(a.command), a.address)
	a.cmd, a.gone = exec.Command(args[0], args[1:]...), make(chan struct{})
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	a.cmd.Stderr = os.Stderr
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	lines := newList[string]()
	gone := a.gone
	go func() {
		defer close(gone)
		readLines(out, lines)
		_ = a.cmd.Wait() // it was killed, so it returns an error
	}()
	line, err := lines.at(within(a.t, patience), 0)
	if err != nil {
		a.t.Fatalf("%v does not listen: %v", args, err)
	}
	a.address = strings.TrimPrefix(line, "listening on ")
}

func (a *frameAgent) kill() {
	_ = a.cmd.Process.Kill() // it may have ended already
	<-a.gone
}

// withRemote returns the settings of a server with one remote and one local
// agent.
func withRemote(t *testing.T, address string, o options) options {
	t.Helper()
	o.workspace = t.TempDir()
	folder := filepath.Join(o.workspace, "agents")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"near.md": "---\ndescription: runs here\n---\nHelp.\n",
		"far.md":  "---\nruntime: frames\naddress: " + address + "\ntools: [search, send]\n---\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// frameAgents are the examples, with their commands.
func frameAgents(t *testing.T) map[string][]string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "frame-agent")
	if out, err := exec.Command("go", "build", "-o", binary,
		"parley/examples/frame-agent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script, err := filepath.Abs("../examples/frame-agent.mjs")
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]string{"go": {binary}, "node": {"node", script}}
}

// TestFrameAgents: both examples, over both kinds of socket, in the debug
// console.
func TestFrameAgents(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	for name, command := range frameAgents(t) {
		for _, network := range []string{"tcp", "unix"} {
			t.Run(name+" over "+network, func(t *testing.T) {
				agent := startFrameAgent(t, network, command...)
				s := startServer(t, withRemote(t, agent.address, jwt()))
				ann := s.user("ann")
				c := ann.console(n.in(t), "far")

				c.say("hello you <b>")
				if a := c.answered(); a.text != "You said: hello you <b>" ||
					!slices.Equal(a.kinds, []string{"chunk"}) || len(a.all) < 3 {
					t.Errorf("%v %q in %d frames", a.kinds, a.text, len(a.all))
				}
				c.say("use search")
				if a := c.answered(); a.text != "I used search." ||
					!slices.Equal(a.kinds, []string{"tool_executed", "chunk"}) || a.all[0].ToolName != "search" {
					t.Errorf("%v %q", a.kinds, a.text)
				}
				c.say("use bash")
				if a := c.answered(); a.text != "I may not use bash." ||
					!slices.Equal(a.kinds, []string{"tool_blocked", "chunk"}) ||
					a.all[0].Reason != `tool "bash" not in allow-list` {
					t.Errorf("%v %q", a.kinds, a.text)
				}
				for decision, text := range map[string]string{"allow": "I sent it.", "deny": "I did not send it."} {
					c.say("send me a postcard")
					card := c.upTo("approval_request")
					if card.ToolName != "send" ||
						card.Command != "send risk: external_writes\n\n{\"text\":\"me a postcard\"}" {
						t.Errorf("%s", card.raw)
					}
					c.send(map[string]any{"type": "approval_response", "id": card.ID, "decision": decision})
					if a := c.answered(); a.text != text || a.request != card.RequestID {
						t.Errorf("%s: %v %q", decision, a.kinds, a.text)
					}
				}
				// The sentinel also checks its input.
				c.say(wickedMessage)
				if a := c.answered(); a.last.Type != "error" ||
					!strings.HasPrefix(a.last.Message, "message blocked: ") {
					t.Errorf("%s", a.last.raw)
				}
				// After a cancel, it sends nothing more.
				c.say(strings.Repeat("word ", 2000))
				c.upTo("chunk")
				ann.must(http.StatusAccepted, http.MethodPost, "/api/v1/sessions/"+c.session+"/cancel", "{}")
				if a := c.answered(); a.last.Message != "The answer was cancelled." {
					t.Errorf("%s", a.last.raw)
				}
				c.say("still there")
				if a := c.answered(); a.text != "You said: still there" {
					t.Errorf("%q", a.text)
				}
				wantRemoteCalls(t, ann, c.session)
			})
		}
	}
}

// wantRemoteCalls: every client gets its calls, marked as remote.
func wantRemoteCalls(t *testing.T, v *visitor, session string) {
	t.Helper()
	var tools []string
	for line := range strings.Lines(v.must(http.StatusOK, http.MethodGet, "/api/v1/sessions/"+session+"/log", "")) {
		var e parley.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if b, ok := e.Body.(parley.ToolCallRequested); ok {
			tools = append(tools, fmt.Sprint(b.Name, " ", b.Remote))
		}
	}
	if want := []string{"search true", "bash true", "send true", "send true"}; !slices.Equal(tools, want) {
		t.Errorf("the log has %v", tools)
	}
}

// TestFrameAgentIsKilled kills the agent in the middle of an answer and
// restarts it. Its run is interrupted, clients see it as unreachable, and then
// the same socket continues with it.
func TestFrameAgentIsKilled(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	for name, command := range frameAgents(t) {
		t.Run(name, func(t *testing.T) {
			agent := startFrameAgent(t, "tcp", command...)
			s := startServer(t, withRemote(t, agent.address, jwt()))
			ann := s.user("ann")
			c := ann.console(n.in(t), "far")
			c.say(strings.Repeat("word ", 2000))
			c.upTo("chunk")
			agent.kill()
			if a := c.answered(); a.last.Type != "error" ||
				a.last.Message != "agent error: The connection to the agent was lost in the middle of the answer." {
				t.Errorf("%s", a.last.raw)
			}
			s.logged("agent is unreachable", 1)
			if info := ann.must(http.StatusOK, http.MethodGet, "/api/v1/agents/far", ""); !strings.Contains(info,
				`"status":"unreachable"`) {
				t.Errorf("%s", info)
			}
			if list := ann.must(http.StatusOK, http.MethodGet, "/api/v1/agents", ""); strings.Count(list,
				`"unreachable"`) != 1 || strings.Count(list, `"running"`) != 1 {
				t.Errorf("%s", list)
			}
			if status, body := n.in(t).open(ann.consoleURL("far"), nil).refused(); status != 503 ||
				strings.TrimSpace(body) != `{"error":"agent is not running"}` {
				t.Errorf("%d %s", status, body)
			}
			if body := ann.must(503, http.MethodPost, "/api/v1/agents/far/message",
				`{"content":"hello"}`); strings.TrimSpace(body) != `{"error":"agent not running"}` {
				t.Errorf("%s", body)
			}
			c.say("anybody there")
			if a := c.answered(); a.last.Message != "agent error: failed to connect to agent far" {
				t.Errorf("%s", a.last.raw)
			}
			agent.start()
			c.say("hello again")
			if a := c.answered(); a.text != "You said: hello again" {
				t.Errorf("%s %q", a.last.raw, a.text)
			}
			if info := ann.must(http.StatusOK, http.MethodGet, "/api/v1/agents/far", ""); !strings.Contains(info,
				`"status":"running"`) {
				t.Errorf("%s", info)
			}
		})
	}
}

// TestFrameAgentIsToldOfItsFile: its permissions change without a restart, and
// without an end of its run.
func TestFrameAgentIsToldOfItsFile(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	agent := startFrameAgent(t, "unix", frameAgents(t)["go"]...)
	s := startServer(t, withRemote(t, agent.address, jwt()))
	c := s.user("ann").console(n, "far")
	c.say("use bash")
	if a := c.answered(); a.text != "I may not use bash." {
		t.Errorf("%q", a.text)
	}
	c.say("send a letter")
	card := c.upTo("approval_request")
	file := filepath.Join(s.o.workspace, "agents", "far.md")
	if err := os.WriteFile(file, []byte("---\nruntime: frames\naddress: "+agent.address+"\ntools: [send, bash]\n---\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	s.logged("an agent has changed", 1)
	c.send(map[string]any{"type": "approval_response", "id": card.ID, "decision": "allow"})
	if a := c.answered(); a.text != "I sent it." {
		t.Errorf("%q", a.text)
	}
	for say, text := range map[string]string{"use bash": "I used bash.", "use search": "I may not use search."} {
		c.say(say)
		if a := c.answered(); a.text != text {
			t.Errorf("%q", a.text)
		}
	}
}

// TestRestartWhileAFrameAgentWaits: the server cannot know what an agent did
// while the server was down. So the run ends as interrupted, its card is
// closed, and the next message is answered.
func TestRestartWhileAFrameAgentWaits(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	agent := startFrameAgent(t, "tcp", frameAgents(t)["go"]...)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := startServer(t, withRemote(t, agent.address, jwt()))
			ann := s.user("ann")
			c := ann.console(n.in(t), "far")
			c.say("send a letter")
			c.upTo("approval_request")
			way.end(s)
			s = s.again()
			ann = s.user("ann")
			session, _ := json.Marshal(map[string]string{"content": "hello", "session_id": c.session})
			if body := ann.must(http.StatusOK, http.MethodPost, "/api/v1/agents/far/message",
				string(session)); !strings.Contains(body, "You said: hello") {
				t.Errorf("%s", body)
			}
			var ends []string
			for line := range strings.Lines(ann.must(http.StatusOK, http.MethodGet,
				"/api/v1/sessions/"+c.session+"/log", "")) {
				var e parley.Event
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				switch b := e.Body.(type) {
				case parley.ApprovalDecided:
					ends = append(ends, string(b.Decision))
				case parley.RunFinished:
					ends = append(ends, string(b.Outcome))
				}
			}
			if want := []string{"cancelled", "interrupted", "completed"}; !slices.Equal(ends, want) {
				t.Errorf("%v", ends)
			}
		})
	}
}
