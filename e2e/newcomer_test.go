package e2e

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/provider/providertest"
)

// The messages for a person who has just built the program and tries it out.

// nowhere is an address without a model server.
const nowhere = "http://127.0.0.1:1"

// TestServePrintsItsAddressOnATerminal: on a terminal the server prints the address to open.
func TestServePrintsItsAddressOnATerminal(t *testing.T) {
	t.Parallel()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	cmd := exec.CommandContext(within(t, patience), binary(t), "serve", "--listen", "127.0.0.1:0", "--data", data)
	cmd.Dir, cmd.Env, cmd.Stdout = t.TempDir(), []string{"OPENAI_BASE_URL=" + nowhere + "/v1"}, screen
	err = cmd.Start()
	screen.Close() // so that reading ends when the server ends
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill() // if the test fails
	var seen strings.Builder
	for lines := bufio.NewReader(master); !strings.Contains(seen.String(), "Warning"); {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %q", err, seen.String())
		}
		seen.WriteString(line)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"Open http://127.0.0.1:", "parley chat --server http://127.0.0.1:",
		"Model   demo (scripted answers)", "Agents  helpful-assistant", "Data    " + data,
		"OPENAI_BASE_URL is set and no model is"} {
		if !strings.Contains(seen.String(), want) {
			t.Errorf("no %q in\n%s", want, seen.String())
		}
	}
}

// TestAChatWithoutAServer: the command announces nothing before it has failed.
func TestAChatWithoutAServer(t *testing.T) {
	t.Parallel()
	out, said, code := runWith(t, nil, "hello\n", "chat", "--server", nowhere)
	if code != 1 || out != "" || !strings.Contains(said, nowhere) || !strings.Contains(said, "parley serve") {
		t.Errorf("exit %d, %q, %q", code, out, said)
	}
}

// TestAChatInAScript: the command fails if its last message was not answered, and says why.
func TestAChatInAScript(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{env: []string{"OPENAI_BASE_URL=" + nowhere + "/v1"}})
	out, said, code := runWith(t, nil, "say hello\nfail\n", "chat", "--server", "http://"+s.address)
	if code != 1 || !strings.Contains(out, "hello") ||
		!strings.Contains(said, "the last message was not answered: The demo model failed") {
		t.Errorf("exit %d, %q, %q", code, out, said)
	}
	const demo = "(OPENAI_BASE_URL is set and no model is: the scripted demo answers; name a model of that server with " +
		"MODEL)\n"
	if before, _, found := strings.Cut(out, demo); !found || strings.Contains(before, "Thread ") {
		t.Errorf("the chat does not say %q before the thread: %s", demo, out)
	}
	if out, said, code := runWith(t, nil, "say hello\n", "chat", "--server", "http://"+s.address); code != 0 {
		t.Errorf("exit %d, %q, %q", code, out, said)
	}
}

// TestAModelsServerThatIsDown: the error for the operator names the address.
func TestAModelsServerThatIsDown(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{env: []string{"OPENAI_BASE_URL=" + nowhere + "/v1", "MODEL=llama3.2"}})
	_, said, code := runWith(t, nil, "hello\n", "chat", "--server", "http://"+s.address)
	if code != 1 || !strings.Contains(said, "The model's server cannot be reached at "+nowhere) {
		t.Errorf("exit %d, %q", code, said)
	}
	out, _, _ := runWith(t, []string{"OPENAI_BASE_URL=" + nowhere + "/v1", "MODEL=llama3.2"}, "", "doctor", "--data",
		t.TempDir(), "--listen", "127.0.0.1:0")
	if strings.Contains(out, "can be called") || !strings.Contains(out, "llama3.2") {
		t.Errorf("the doctor says\n%s", out)
	}
}

// TestACompleteAuditIsReported: parley audit verify reports a complete audit, for a person and for a script.
func TestACompleteAuditIsReported(t *testing.T) {
	t.Parallel()
	s := startServer(t, jwt())
	s.tries("nonsense", http.StatusUnauthorized)
	s.stop()
	out, said, code := run(t, "audit", "verify", "--data", s.o.data, "--default-tenant", "acme")
	if code != 0 || said != "" || !strings.Contains(out, "\nAll is well: ") {
		t.Errorf("exit %d, %q, %q", code, out, said)
	}
}

// TestAnAgentForSomeUsers: an agent can allow users by name, whatever their role.
func TestAnAgentForSomeUsers(t *testing.T) {
	t.Parallel()
	o := jwt()
	o.workspace = t.TempDir()
	put(t, o.workspace, "agents/a.md", "---\nname: vault\nallow: {roles: [dept_head], users: [ann]}\n---\nHelp.\n")
	put(t, o.workspace, "agents/b.md", "---\nname: scout\n---\nHelp.\n")
	s := startServer(t, o)
	for _, test := range []struct {
		v    *visitor
		want int
	}{
		{s.user("ann"), http.StatusOK}, {s.user("bob"), http.StatusForbidden},
		{s.visitor("dora@acme", time.Hour, "dept_head"), http.StatusOK},
	} {
		test.v.must(test.want, http.MethodPost, "/api/v1/agents/vault/message", `{"content":"say hi"}`)
	}
	n := startNode(t)
	ann, bob := s.user("ann").dial(n, newThread()), s.user("bob").dial(n, newThread())
	to := func(c *socket, agent string) {
		t.Helper()
		c.send(map[string]any{"type": "chat.request", "threadId": c.thread, "content": "say I am " + agent,
			"agentId": agent})
	}
	to(ann, "vault")
	if a := ann.completed(); a.text != "I am vault" {
		t.Errorf("ann is told %q", a.text)
	}
	to(bob, "vault")
	if f := bob.expect("error"); f.Error == "" || f.RequestID == "" {
		t.Errorf("bob is told %s", f.raw)
	}
	to(bob, "scout")
	if a := bob.completed(); a.text != "I am scout" {
		t.Errorf("bob is told %q", a.text)
	}
}

// TestTheModelsThatCanBeChosen: models are listed with their windows and prices.
func TestTheModelsThatCanBeChosen(t *testing.T) {
	t.Parallel()
	mock := providertest.Start(t)
	s, n := startServer(t, withModel(mock, options{})), startNode(t)
	for _, path := range []string{"/api/v1/models", "/api/models"} {
		status, list := n.fetch(s, "GET", path, "")
		if status != 200 ||
			!strings.Contains(list, `{"id":"gpt-4.1","provider":"openai","default":true,"context_window":`) ||
			!strings.Contains(list, `"input_price":`) {
			t.Errorf("GET %s: %d %s", path, status, list)
		}
	}
}

// TestTheOutputOfACommand: the result of a command is its output, with the exit code beside it. Both forms of items
// have it.
func TestTheOutputOfACommand(t *testing.T) {
	t.Parallel()
	s, n := startSandboxed(t, "suggest"), startNode(t)
	for path, item := range map[string]string{"/": "function_call", "/?items=local_shell": "local_shell_call"} {
		c := n.loop(s, path)
		for command, want := range map[string]string{
			"cat note.txt":        `{"output":"patience\n","metadata":{"exit_code":0,"duration_seconds":`,
			"grep hurry note.txt": `{"output":"","metadata":{"exit_code":1,"duration_seconds":`,
		} {
			c.input("run " + command)
			list := c.items(slices.Concat([]string{"loading", "assistant", item, item + "_output", "assistant"},
				answered)...)
			if out := list[3].Payload.Output; !strings.HasPrefix(out, want) {
				t.Errorf("%s as %s: %s, want %s", command, item, out, want)
			}
		}
	}
}
