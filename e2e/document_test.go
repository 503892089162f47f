package e2e

import (
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The document's own example, byte for byte, is the first client. Its address
// is fixed, so this test does not run beside tests that could use the port.
func TestTheDocumentsExampleClientRunsUnchanged(t *testing.T) {
	script := exampleClient(t)
	const address = "127.0.0.1:3000"
	// The same test may run in another copy of the tree.
	turn, err := os.OpenFile(filepath.Join(os.TempDir(), "parley-e2e-port-3000.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer turn.Close() // this ends the turn
	await(t, patience, "port 3000, to which the document's client connects", func() bool {
		if syscall.Flock(int(turn.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			return false
		}
		probe, err := net.Listen("tcp", address)
		if err == nil {
			probe.Close()
		}
		return err == nil
	})
	s := startServer(t, options{listen: address})

	client := exec.Command("node", script)
	var stderr strings.Builder
	client.Stderr = &stderr
	stdout, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	lines := newList[string]()
	exited := make(chan error, 1)
	go func() {
		readLines(stdout, lines)
		exited <- client.Wait()
	}()
	_, err = lines.find(within(t, patience), func(line string) bool { return line == "Agent finished" })
	// The example stays connected as long as the server runs.
	s.stop()
	if ended := <-exited; err != nil || ended != nil || stderr.String() != "" {
		t.Fatalf("the example got stuck or failed (%v, %v):\n%s\n%s", err, ended, tail(lines.all(), 50),
			stderr.String())
	}

	want := regexp.MustCompile(`^Connected
Agent started: req-\S+
Hello! I am Parley's demo model: .+
Agent finished
Connection closed: 1001 - .+$`)
	if got := strings.Join(lines.all(), "\n"); !want.MatchString(got) {
		t.Errorf("the example printed:\n%s", got)
	}
}

// blockOf returns the first block of code in a document that is in a language and contains some words.
func blockOf(t *testing.T, number, language, words string) string {
	t.Helper()
	seeds := cmp.Or(os.Getenv("PARLEY_SEEDS"), "../../shared/seeds")
	documents, err := filepath.Glob(filepath.Join(seeds, number+"_*.txt"))
	if err != nil || len(documents) == 0 {
		t.Skipf("document %s is not in %s; PARLEY_SEEDS says where it is", number, seeds)
	}
	document, err := os.ReadFile(documents[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(document), "```"+language+"\n")[1:] {
		if block, _, closed := strings.Cut(block, "\n```"); closed && strings.Contains(block, words) {
			return block
		}
	}
	t.Fatalf("%s has no block of %s with %q", documents[0], language, words)
	return ""
}

// exampleClient writes the document's example to a file that node can run.
func exampleClient(t *testing.T) string {
	t.Helper()
	return nodeScript(t, blockOf(t, "002", "typescript", "new WebSocket"))
}

// nodeScript writes code to a file that node can run.
func nodeScript(t *testing.T, code string) string {
	t.Helper()
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	// Node.js looks for modules beside the script.
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "example.mjs")
	if err := os.WriteFile(script, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	return script
}

// TestTheAgentLoopDocumentsCodeRunsUnchanged: a client of the code and of the messages in document 003, byte for byte.
// Only the types of TypeScript, which Node.js cannot read, are left out.
func TestTheAgentLoopDocumentsCodeRunsUnchanged(t *testing.T) {
	t.Parallel()
	valid := strings.NewReplacer("data: any", "data", "): data is WSMessage", ")").Replace(
		blockOf(t, "003", "typescript", "function isValidMessage"))
	sends := func(kind string) string {
		t.Helper()
		return quoted(blockOf(t, "003", "json", `"type": "`+kind+`"`))
	}
	script := nodeScript(t, "import { WebSocket } from 'ws';\n"+
		blockOf(t, "003", "javascript", "class MessageStateManager")+
		"\nclass Approvals {\n"+blockOf(t, "003", "javascript", "handleResponseItem(item) {")+"\n}\n"+
		valid+`
class Screen extends MessageStateManager {
  showAssistantPrefix() { process.stdout.write('assistant: '); }
  appendText(text) { process.stdout.write(text); }
  addNewline() { process.stdout.write('\n'); }
}
class Client extends Approvals {
  screen = new Screen();
  pendingApproval = false;
  suppressedItems = [];
  handleResponseItem(item) {
    const held = this.suppressedItems.length;
    super.handleResponseItem(item);
    if (this.suppressedItems.length > held) return;
    if (item.type === 'message') this.screen.handleStreamingMessage(item);
    else this.print(item.type);
  }
  print(line) {
    this.screen.finalizeActiveMessages();
    console.log(line);
  }
}
const input = (id, text) => {
  const message = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
  return JSON.stringify({ id, type: 'user_input', payload: { input: [message] } });
};
const steps = [
  [`+sends("user_input")+`, 'agent_finished'],
  [input('550e8400-e29b-41d4-a716-446655449999', 'run touch made.txt'), 'approval_request'],
  [`+sends("approval_response")+`, 'agent_finished'],
  [`+sends("get_context_info")+`, 'context_info'],
  [`+sends("manual_compact")+`, 'context_compacted'],
];
const client = new Client();
const ws = new WebSocket(process.argv[2]);
let until;
function next() {
  if (!steps.length) return ws.close();
  let message;
  [message, until] = steps.shift();
  ws.send(message);
}
ws.on('open', next);
ws.on('message', (data) => {
  const message = JSON.parse(data);
  if (!isValidMessage(message)) throw new Error('not valid: ' + data);
  const { type, payload } = message;
  if (type === 'response_item') client.handleResponseItem(payload);
  else if (type === 'approval_request') client.print(type + ' ' + payload.command.join(' '));
  else if (type === 'error') client.print(type + ' ' + payload.message);
  else if (type !== 'context_info') client.print(type);
  client.pendingApproval = type === 'approval_request';
  client.processSuppressedItems();
  if (type === until) next();
});
`)
	s := startSandboxed(t, "suggest")
	out, err := exec.CommandContext(within(t, patience), "node", script, "ws://"+s.address+"/?items=local_shell").
		CombinedOutput()
	want := regexp.MustCompile("^" + `loading_state
assistant: You said: “Please check the git status and list the files in the current directory”\. .+
loading_state
agent_finished
loading_state
assistant: .+
approval_request bash -lc touch made\.txt
local_shell_call
local_shell_call_output
assistant: It ran:[^$]+
loading_state
agent_finished
context_compacted
` + "$")
	if err != nil || !want.Match(out) {
		t.Errorf("%v; the client printed:\n%s", err, out)
	}
	wantFile(t, s, "made.txt", "")
}

func TestAnAnswerIsStartedContentCompletedByteForByte(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	c := n.dial(s, thread)

	const said = `"double" 'single' “curly” \ and \u0041 {"json":[null]} <b>&amp;</b>` + "\n\ttab\r\n\n" +
		"naïve Ελλάδα 日本語 עברית \u2028 e\u0301 👩‍👩‍👧‍👦 🇪🇺 trailing space "
	c.ask("repeat " + said)
	a := c.completed()

	if a.text != said {
		t.Errorf("said  %q\nheard %q", said, a.text)
	}
	if !strings.HasPrefix(a.request, "req-") {
		t.Errorf("the requestId is %q", a.request)
	}
	if len(a.frames) < 4 {
		t.Errorf("an answer in only %d frames is not streamed", len(a.frames))
	}
	whole := map[string]any{"requestId": a.request, "threadId": thread, "agentId": "helpful-assistant"}
	exactly(t, a.frames[0], "chat.started", whole)
	exactly(t, a.frames[1], "content", map[string]any{"requestId": a.request, "content": a.frames[1].Content})
	exactly(t, a.frames[len(a.frames)-1], "chat.completed", whole)
}

func TestAFailedAnswerEndsWithAnError(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := n.dial(s, newThread())
	for request, text := range map[string]string{
		"fail":        "",
		"fail midway": "This answer will break off in the middle of the ",
	} {
		c.ask(request)
		a := c.answer()
		last := a.frames[len(a.frames)-1]
		if a.text != text || last.Error == "" {
			t.Errorf("%s: %+v", request, a)
		}
		exactly(t, last, "error", map[string]any{"requestId": a.request, "error": last.Error})
	}
	silent(t, c)
}

// exactly checks every field of a frame, and that there are no other fields.
func exactly(t *testing.T, f frame, kind string, fields map[string]any) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(f.raw), &got); err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(fields)
	want["type"] = kind
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Clients of the document's original code use other shapes of the same
// exchange, and choose the names of their requests.
func TestOriginalShapesAreAnsweredInKindAndOnce(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := n.dial(s, newThread())
	say := func(request, content string) {
		c.send(map[string]any{"type": "message", "threadId": c.thread, "requestId": request, "content": content})
	}
	final := func(request, text string) {
		t.Helper()
		var heard string
		for {
			f := c.frame()
			switch {
			case f.RequestID != request:
				t.Fatalf("in the answer to %s came %s", request, f.raw)
			case f.Type == "token":
				heard += f.Value
			case f.Type == "final":
				if heard != text || f.Message != text || f.LatencyMs == nil {
					t.Fatalf("want %q, heard %q, finally %s", text, heard, f.raw)
				}
				return
			default:
				t.Fatalf("want token or final, got %s", f.raw)
			}
		}
	}

	say("mine-1", "repeat one and two and three")
	final("mine-1", "one and two and three")

	// If the request is repeated, as after a lost connection, it is not
	// answered again: the next frame is the answer to the next message.
	say("mine-1", "repeat one and two and three")
	say("mine-2", "repeat next")
	final("mine-2", "next")

	// The name cannot be used for another message.
	say("mine-1", "repeat four")
	f := c.expect("error")
	exactly(t, f, "error", map[string]any{"requestId": "mine-1", "message": f.Message, "retryable": false})
	if f.Message == "" {
		t.Error("an error without a message")
	}

	say("mine-3", "repeat last")
	final("mine-3", "last")
	if starts := of("RunStarted", s.events(c.thread)); len(starts) != 3 {
		t.Errorf("three messages led to these runs: %v", starts)
	}
}

// The document lists the names that identify a message in the debug log.
func TestTheDebugLogTellsTheStoryOfAMessage(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := n.dial(s, newThread())
	c.ask("repeat a few words")
	request := c.completed().request
	s.stop() // its log is complete now

	story := []string{
		"websocket_connection_established_persistent", "event_published", "event_processing_started",
		"graph_invocation_started", "content_chunk_streaming", "chat_response_completed",
	}
	var told []string
	for _, line := range s.log.all() {
		for _, name := range story {
			if strings.Contains(line, "msg="+name+" ") && strings.Contains(line, c.thread) {
				told = append(told, name)
			}
		}
	}
	if got := slices.Compact(told); !slices.Equal(got, story) {
		t.Errorf("the log tells of %v", got)
	}
	for _, name := range []string{"event_published", "event_processing_started"} {
		if !slices.ContainsFunc(s.log.all(), func(line string) bool {
			return strings.Contains(line, "msg="+name+" ") && strings.Contains(line, "requestId="+request)
		}) {
			t.Errorf("%s does not name the request %s", name, request)
		}
	}
}
