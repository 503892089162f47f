package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// A fakeLog is a server with one session, whose events the test appends.
type fakeLog struct {
	*httptest.Server
	mu     sync.Mutex
	events []parley.Event
	deaf   int           // how many more inputs the server leaves unanswered
	posted chan string   // path, key and body of each request
	more   chan struct{} // closed and replaced when an event is appended
}

// call appends a request for a tool call.
func (f *fakeLog) call(session, tool, arguments string) parley.CallID {
	return parley.CallID(f.event(session, parley.ToolCallRequested{Name: tool, Arguments: arguments}))
}

func newFakeLog(t *testing.T, session string) *fakeLog {
	f := &fakeLog{posted: make(chan string, 16), more: make(chan struct{})}
	f.event(session, parley.SessionOpened{Owner: "local"})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			raw, _ := io.ReadAll(r.Body)
			f.mu.Lock()
			deaf := strings.HasSuffix(r.URL.Path, "/inputs") && f.deaf > 0
			if deaf {
				f.deaf--
			}
			f.mu.Unlock()
			if !strings.HasSuffix(r.URL.Path, "/sessions") {
				f.posted <- strings.TrimPrefix(r.URL.Path, "/api/v1") + " " + r.Header.Get("Idempotency-Key") + " " +
					string(raw)
			}
			if deaf {
				panic(http.ErrAbortHandler) // the connection breaks after the input has arrived
			}
			w.WriteHeader(http.StatusAccepted)
		case strings.HasSuffix(r.URL.Path, "/log") && r.Header.Get("Accept") == "text/event-stream":
			f.stream(w, r)
		case strings.HasSuffix(r.URL.Path, "/log"):
			json.NewEncoder(w).Encode(f.all()[0])
		default:
			json.NewEncoder(w).Encode(port.Summary{ID: parley.SessionID(session), Head: 1})
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeLog) all() []parley.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events[:len(f.events):len(f.events)]
}

// event appends an event.
func (f *fakeLog) event(session string, body parley.EventBody) parley.Seq {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.events) + 1
	f.events = append(f.events, parley.Event{Session: parley.SessionID(session), Root: parley.SessionID(session),
		Seq: parley.Seq(n), Position: parley.Position(n), At: time.Unix(0, 0), Run: 2, Body: body})
	close(f.more)
	f.more = make(chan struct{})
	return parley.Seq(n)
}

func (f *fakeLog) stream(w http.ResponseWriter, r *http.Request) {
	var after int
	fmt.Sscanf(strings.TrimPrefix(r.Header.Get("Last-Event-ID"), "e-"), "%d", &after)
	for {
		f.mu.Lock()
		events, more := f.events, f.more
		f.mu.Unlock()
		for ; after < len(events); after++ {
			raw, _ := json.Marshal(events[after])
			fmt.Fprintf(w, "id: e-%d\ndata: %s\n\n", after+1, raw)
		}
		w.(http.Flusher).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

// begin appends the start of a run that answers the last posted input.
func (f *fakeLog) begin(session, posted string) {
	var in struct{ Content, Request string }
	_, body, _ := strings.Cut(posted, "{")
	json.Unmarshal([]byte("{"+body), &in)
	f.event(session, parley.InputReceived{Content: in.Content, Request: in.Request})
	f.event(session, parley.RunStarted{Request: in.Request})
	f.event(session, parley.InputAdopted{Request: in.Request})
	f.event(session, parley.TurnStarted{Number: 1, Model: "gpt-4.1"})
}

const thread = "3f0c1a52-0a1e-4c6e-9f5e-2b7d7a3c9e10"

// TestChatResendsInput checks that the chat sends an input again, under the same id,
// if the server dies before it has answered.
func TestChatResendsInput(t *testing.T) {
	t.Parallel()
	f := newFakeLog(t, thread)
	f.deaf = 1
	c := newPerson(t, "--server", strings.TrimPrefix(f.URL, "http://"), "--thread", thread)
	c.see("> ")
	c.enter("hello")
	c.see("the server is gone")
	first, second := <-f.posted, <-f.posted
	if first != second || !strings.Contains(first, `/inputs chat-`) || !strings.Contains(first, `"content":"hello"`) ||
		!strings.Contains(first, `"busy":"steer"`) {
		t.Errorf("first %s, then %s", first, second)
	}
	f.begin(thread, second)
	f.event(thread, parley.OutputStarted{Kind: parley.Text})
	f.event(thread, parley.OutputAppended{Kind: parley.Text, Text: "hi"})
	f.event(thread, parley.OutputFinished{Kind: parley.Text, Text: "hi"})
	f.event(thread, parley.RunFinished{Outcome: parley.Completed})
	c.see("hi\n> ")
	c.leave()
}

// TestChatShowsTheWork checks that the chat shows calls, live output, cards and
// costs, also of a sub-agent, and sends the answers to cards exactly as typed.
func TestChatShowsTheWork(t *testing.T) {
	t.Parallel()
	f := newFakeLog(t, thread)
	c := newPerson(t, "--server", f.URL, "--thread", thread)
	c.see("> ")
	c.enter("fix it")
	f.begin(thread, <-f.posted)

	f.event(thread, parley.OutputStarted{Kind: parley.Text})
	f.event(thread, parley.OutputAppended{Kind: parley.Text, Text: "I look."})
	f.event(thread, parley.OutputFinished{Kind: parley.Text, Text: "I look."})
	id := f.call(thread, "read_file", `{"path":"a.txt"}`)
	f.event(thread, parley.ToolCallStarted{Call: id, Attempt: 1})
	f.event(thread, parley.ToolCallFinished{Call: id, Name: "read_file", Outcome: parley.CallSucceeded,
		Result: "one\ntwo\n"})
	seesNext(t, c, "I look.\n· read_file a.txt\n  2 lines\n")

	patch := "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch\n"
	raw, _ := json.Marshal(map[string]string{"patch": patch})
	id = f.call(thread, "apply_patch", string(raw))
	card := f.event(thread, parley.ApprovalRequested{Call: id, Name: "apply_patch", Show: patch, Digest: "d1"})
	seesNext(t, c, "\n[apply_patch wants your approval]\n"+patch+"Allow? [y]es, [a]lways exactly this, [n]o (and why), "+
		"[e]xplain, [s]top: ")
	c.enter("yes please")
	seesNext(t, c, "Answer y, a, n, e or s: ")
	c.enter("l") // the card offers no rule for similar calls
	seesNext(t, c, "Answer y, a, n, e or s: ")
	c.enter("e")
	if got := <-f.posted; got != fmt.Sprintf(`/approvals/%s.%d  {"decision":"explain"}`, thread, card) {
		t.Errorf("%s", got)
	}
	f.event(thread, parley.ApprovalExplained{Card: parley.CardID(card), Call: id, Text: "It writes a digit."})
	seesNext(t, c, "\nIt writes a digit.\nAllow? [y]es, [a]lways exactly this, [n]o (and why), [e]xplain, [s]top: ")
	c.enter("y")
	if got := <-f.posted; got != fmt.Sprintf(`/approvals/%s.%d  {"decision":"allow","digest":"d1","note":""}`, thread,
		card) {
		t.Errorf("%s", got)
	}
	f.event(thread, parley.ApprovalDecided{Card: parley.CardID(card), Call: id, Decision: parley.AllowOnce})
	f.event(thread, parley.ToolCallStarted{Call: id, Attempt: 1})
	f.event(thread, parley.ToolCallFinished{Call: id, Name: "apply_patch", Outcome: parley.CallSucceeded,
		Result: "Done!\nM a.txt\n"})
	seesNext(t, c, "· apply_patch a.txt\n  Done!\n  M a.txt\n")

	id = f.call(thread, "shell", `{"command":["mkdir","a"]}`)
	card = f.event(thread, parley.ApprovalRequested{Call: id, Name: "shell", Show: "mkdir a", Digest: "d2",
		Similar: parley.SimilarRule{Text: "mkdir with other arguments", Digest: "r"}})
	seesNext(t, c, "\n[shell wants your approval]\nmkdir a\nSimilar: mkdir with other arguments\n"+
		"Allow? [y]es, [a]lways exactly this, a[l]ways similar, [n]o (and why), [e]xplain, [s]top: ")
	c.enter("l please")
	seesNext(t, c, "Answer y, a, l, n, e or s: ")
	c.enter("l")
	if got := <-f.posted; got != fmt.Sprintf(
		`/approvals/%s.%d  {"decision":"always","digest":"d2","note":"","scope":"similar"}`, thread, card) {
		t.Errorf("%s", got)
	}
	f.event(thread, parley.ApprovalDecided{Card: parley.CardID(card), Call: id, Decision: parley.AllowAlways})
	f.event(thread, parley.ToolCallFinished{Call: id, Name: "shell", Outcome: parley.CallDenied, Result: "x"})
	seesNext(t, c, "  not allowed\n")

	id = f.call(thread, "delegate", `{"agent_id":"tester","task":"test it"}`)
	showsAChild(t, f, c, id)

	// If another client settles a card, the chat withdraws it and shows the next
	// one.
	first, second := f.call(thread, "write_file", `{}`), f.call(thread, "write_file", `{}`)
	one := f.event(thread, parley.ApprovalRequested{Call: first, Name: "write_file", Show: "first"})
	f.event(thread, parley.ApprovalRequested{Call: second, Name: "write_file", Show: "second"})
	c.see("first\nAllow? ")
	f.event(thread, parley.ApprovalDecided{Card: parley.CardID(one), Call: first, Decision: parley.Deny})
	c.see("[s]top: \n(deny)\n\n[write_file wants your approval]\nsecond\nAllow? ")

	f.event(thread, parley.ModelFellBack{Preferred: "gpt-4.1", Actual: "other", Reason: "busy"})
	f.event(thread, parley.RunFinished{Outcome: parley.Completed, Usage: parley.Usage{Input: 1200, Output: 34,
		CostMicros: 2672}})
	c.see("(other answers instead of gpt-4.1: busy)\n")
	c.see("(over)\n(other: 1200 tokens read, 34 written, $0.0027)\n> ")
	c.leave()
	if !strings.Contains(c.text, "This chat has cost $0.0027.") {
		t.Errorf("at the end: %q", c.text)
	}
}

// showsAChild shows the calls and the approval of a sub-agent.
func showsAChild(t *testing.T, f *fakeLog, c *person, id parley.CallID) {
	t.Helper()
	const child = "5a1d7e7e-3c55-4d3a-8a43-6f5c8e0f7b21"
	f.event(thread, parley.ChildSpawned{Call: id, Child: child, Agent: "tester", Task: "test it"})
	f.event(child, parley.RunStarted{})
	f.event(child, parley.OutputAppended{Kind: parley.Text, Text: "not for the person"})
	below := f.call(child, "shell", `{"command":["make","test"],"workdir":"sub"}`)
	card := f.event(child, parley.ApprovalRequested{Call: below, Name: "shell", Show: "Run make test", Digest: "d2"})
	seesNext(t, c, "· delegate to tester: test it\n\n[tester: shell wants your approval]\nRun make test\nAllow? ")
	c.see("[s]top: ")
	c.enter("n not in that folder")
	if got := <-f.posted; got != fmt.Sprintf(
		`/approvals/%s.%d  {"decision":"deny","digest":"d2","note":"not in that folder"}`, child, card) {
		t.Errorf("%s", got)
	}
	below = f.call(child, "shell", `{"command":["sh","-c","make test"]}`)
	f.event(child, parley.ToolCallStarted{Call: below, Attempt: 1})
	f.event(child, parley.ToolOutputAppended{Call: below, Text: "compiling"})
	f.event(child, parley.ToolOutputAppended{Call: below, Text: "…\n\x1b[31mFAIL\x1b[0m\nx"})
	exit := 2
	f.event(child, parley.ToolCallFinished{Call: below, Name: "shell", Outcome: parley.CallFailed,
		Result: "exit code 2\ncompiling…", Exit: &exit})
	seesNext(t, c, "· tester: shell sh -c \"make test\"\n  │ compiling…\n  │ ␛[31mFAIL␛[0m\n  │ x\n  exit code 2\n")
	f.event(child, parley.RunFinished{Outcome: parley.Completed})
	f.event(thread, parley.ChildReturned{Call: id, Child: child, Agent: "tester", Outcome: parley.Completed})
	seesNext(t, c, "  tester is back (completed)\n")
}

// seesNext fails if anything is printed before want.
func seesNext(t *testing.T, c *person, want string) {
	t.Helper()
	if got := c.see(want); got != "" {
		t.Errorf("before %q came %q", want, got)
	}
}

// TestChatIsStopped checks that Ctrl-C cancels the run, and that a second Ctrl-C
// leaves the chat.
func TestChatIsStopped(t *testing.T) { // not in parallel: every server in this process gets the signals
	f := newFakeLog(t, thread)
	c := newPerson(t, "--server", f.URL, "--thread", thread)
	c.see("> ")
	c.enter("count")
	f.begin(thread, <-f.posted)
	f.event(thread, parley.OutputAppended{Kind: parley.Text, Text: "1 2 3"})
	c.see("3")
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := <-f.posted; got != "/sessions/"+thread+"/cancel  {}" {
		t.Errorf("%s", got)
	}
	f.event(thread, parley.OutputFinished{Kind: parley.Text, Text: "1 2 3", Incomplete: true})
	f.event(thread, parley.RunFinished{Outcome: parley.Cancelled})
	if got := c.see("> "); got != " (stopped)\n" {
		t.Errorf("%q", got)
	}
	self.Signal(os.Interrupt)
	c.see("leaves)\n> ")
	self.Signal(os.Interrupt)
	if err := <-c.done; err != nil {
		t.Error(err)
	}
	c.in.Close()
	for range c.chunk {
	}
}

// TestChatFromAPipe checks that the lines of a script are read one by one, each
// when the chat waits for it.
func TestChatFromAPipe(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", workspace)
	defer stop()
	var out bytes.Buffer
	p := &program{ctx: context.Background(), stdin: strings.NewReader("write one to a.txt\ny\nwrite two to b.txt\nn " +
		"no more files\nsay done\n"), stdout: &out, stderr: &out}
	if err := p.run([]string{"chat", "--server", addr}, noEnv); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(filepath.Join(workspace, "a.txt")); err != nil || string(raw) != "one" {
		t.Errorf("%q %v", raw, err)
	}
	if _, err := os.Stat(filepath.Join(workspace, "b.txt")); err == nil {
		t.Error("what was not allowed was written")
	}
	for _, want := range []string{"· write_file a.txt\n", "no more files", "\n> done\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}

// TestChatFromAPipeFails checks that the command fails if and only if its last
// message was not answered.
func TestChatFromAPipeFails(t *testing.T) {
	t.Parallel()
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir())
	defer stop()
	for in, want := range map[string]string{
		"say hello\nfail\n": "the last message was not answered: The demo model failed, as it was asked to.",
		"fail\nsay hello\n": "", "": "", "write one to a.txt\nn\n": "",
		strings.Repeat("x", 2<<20) + "\n": "the last message was not answered: ",
	} {
		_, err := run(t, in, "chat", "--server", addr)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", in, err, want)
		}
	}
}

// TestChatWithAStoppedAgent checks that the chat prints the server's refusal and
// how to start the agent.
func TestChatWithAStoppedAgent(t *testing.T) {
	t.Parallel()
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir())
	defer stop()
	if _, err := run(t, "", "agents", "stop", "helpful-assistant", "--server", addr); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "say hello\n", "chat", "--server", addr)
	if err == nil || !strings.Contains(err.Error(), "parley agents start") || strings.Contains(out, "is gone") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestChatJoinsARunningThread checks that a chat that joins a running session
// shows the current run from its start, with its card, and no earlier runs.
func TestChatJoinsARunningThread(t *testing.T) {
	t.Parallel()
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir())
	defer stop()
	c := newPerson(t, "--server", addr, "--thread", thread)
	c.see("> ")
	c.enter("say an old thing")
	c.see("\n> ")
	c.enter("write hello to note.txt")
	c.see("[s]top: ")
	other := newPerson(t, "--server", addr, "--thread", strings.ToUpper(thread))
	if seen := other.see("[s]top: "); strings.Contains(seen, "old thing") || !strings.Contains(seen, "note.txt") {
		t.Errorf("%q", seen)
	}
	other.enter("y")
	c.see("(allow)\n· write_file note.txt\n")
	for _, p := range []*person{c, other} {
		p.see("\n> ")
	}
	c.enter("say hello")
	other.see("(another client) > say hello\nhello\n> ")
	c.see("hello\n> ")
	c.leave()
	other.leave()
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain é 👩‍👧 \t\n":           "plain é 👩‍👧 \t\n",
		"\x1b[2J\x1b]0;x\a\b\x7f":    "␛[2J␛]0;x␇␈␡",
		"10%\r20%\r\nend":            "10%\n20%\nend",
		"\u009b31m":                  "<U+009B>31m",
		"rm \u202egnp.x\u202c":       "rm <U+202E>gnp.x<U+202C>",
		"a\u200bb\u2028c\u2066d\x00": "a<U+200B>b<U+2028>c<U+2066>d␀",
	} {
		if got := visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
