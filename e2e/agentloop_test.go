package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"parley/provider/providertest"
)

// loopClient runs the example client to its end and returns what it printed.
func loopClient(t *testing.T, s *server, args ...string) (transcript string, code int) {
	t.Helper()
	cmd := exec.CommandContext(within(t, patience), "node",
		append([]string{"../examples/agentloop-client.mjs", "--url", "ws://" + s.address + "/"}, args...)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit || errs.String() != "" {
		t.Fatalf("%v\n%s\n%s", err, errs.String(), out.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// An item is any message of the agent loop.
type item struct {
	ID      string
	Type    string
	Payload struct {
		ID, Type, Role, Message, Output, Decision, Similar string
		Loading                                            bool
		Command                                            []string
		SessionID, Status                                  string
		ResponseID                                         string
		Content                                            []struct{ Type, Text string }
		Details                                            *struct {
			Error string
			Code  int
		}
	}
	raw string
}

// kind is the type of a message, with the type of its item.
func (i item) kind() string {
	switch {
	case i.Type == "loading_state" && i.Payload.Loading:
		return "loading"
	case i.Type == "loading_state":
		return "loaded"
	case i.Type == "response_item" && i.Payload.Type == "message":
		return i.Payload.Role
	case i.Type == "response_item":
		return i.Payload.Type
	}
	return i.Type
}

func (i item) text() (text string) {
	for _, c := range i.Payload.Content {
		text += c.Text
	}
	return text
}

// loop connects to the agent loop with npm ws.
func (n *node) loop(s *server, path string) *socket {
	n.t.Helper()
	c := n.open("ws://"+s.address+path, nil)
	if h := c.next(); h.Event != "upgrade" {
		n.t.Fatalf("the upgrade names no session: %+v", h)
	}
	c.opened()
	return c
}

func (c *socket) item() item {
	c.t.Helper()
	f := c.frame()
	i := item{raw: f.raw}
	if err := json.Unmarshal([]byte(f.raw), &i); err != nil {
		c.t.Fatalf("%v in %s", err, f.raw)
	}
	if _, err := uuid.Parse(i.ID); err != nil {
		c.t.Fatalf("%v in %s", err, f.raw)
	}
	return i
}

// items expects messages of these kinds and returns them. Consecutive chunks of
// one message count as one.
func (c *socket) items(want ...string) (list []item) {
	c.t.Helper()
	for _, kind := range want {
		i := c.item()
		for len(list) > 0 && i.kind() == "assistant" && list[len(list)-1].Payload.ID == i.Payload.ID {
			last := &list[len(list)-1]
			last.Payload.Content = append(last.Payload.Content, i.Payload.Content...)
			i = c.item()
		}
		if i.kind() != kind {
			c.t.Fatalf("socket %s: want %s, got %s; before that:\n%s", c.name, kind, i.raw, c.history())
		}
		list = append(list, i)
	}
	return list
}

func (c *socket) input(text string) {
	c.t.Helper()
	c.send(map[string]any{"id": uuid.NewString(), "type": "user_input", "payload": map[string]any{
		"input": []any{map[string]any{"type": "message", "role": "user",
			"content": []any{map[string]any{"type": "input_text", "text": text}}}}}})
}

func (c *socket) reviews(review string) {
	c.t.Helper()
	c.send(map[string]any{"id": uuid.NewString(), "type": "approval_response",
		"payload": map[string]any{"review": review, "customDenyMessage": nil}})
}

// session asks for the session of the connection.
func (c *socket) session() string {
	c.t.Helper()
	c.send(map[string]any{"id": "x", "type": "get_session"})
	return c.items("session")[0].Payload.SessionID
}

var answered = []string{"loaded", "agent_finished", "context_info"}

// The document's three sequences, on both addresses.
func TestAgentLoopSpeaksAsItsDocumentHasIt(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	for _, path := range []string{"/", "/api/agentloop/ws"} {
		c := n.loop(s, path)
		c.input("list files")
		list := c.items(slices.Concat([]string{"loading", "assistant", "function_call", "function_call_output",
			"assistant"}, answered)...)
		if first := list[1].text(); first != "I look at the files of the workspace." ||
			list[1].Payload.Content[0].Type != "input_text" {
			t.Errorf("it said %q", first)
		}
		if call, out := list[2].Payload, list[3].Payload; call.ID != "demo-1" || out.ID != "output_demo-1" ||
			!strings.Contains(out.Output, `"metadata":{"exit_code":0,"duration_seconds":`) {
			t.Errorf("%s\n%s", list[2].raw, list[3].raw)
		}

		c.input("think about tea")
		c.items(slices.Concat([]string{"loading", "reasoning", "assistant"}, answered)...)

		file := strings.Trim(strings.ReplaceAll(path, "/", "-"), "-") + "note.txt"
		c.input("write hello to " + file)
		list = c.items("loading", "assistant", "approval_request")
		if want := []string{"write_file", `{"content":"hello","path":"` + file + `"}`}; !slices.Equal(
			list[2].Payload.Command, want) {
			t.Errorf("asked is for %q", list[2].Payload.Command)
		}
		wantNoFile(t, s, file)
		c.reviews("yes")
		c.items(slices.Concat([]string{"function_call", "function_call_output", "assistant"}, answered)...)
		wantFile(t, s, file, "hello")

		c.input("fail")
		list = c.items("loading", "error", "loaded")
		if p := list[1].Payload; p.Message != "Failed to process user input" || p.Details == nil ||
			p.Details.Error != "The demo model failed, as it was asked to." || p.Details.Code != 500 {
			t.Errorf("%s", list[1].raw)
		}
		c.input("say still here")
		c.items(slices.Concat([]string{"loading", "assistant"}, answered)...)
	}
}

// A vendor's refusal is reported in the vendor's words and with its status, as the document has it.
func TestAgentLoopQuotesTheVendor(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, withModel(providertest.Start(t), options{})), startNode(t)
	c := n.loop(s, "/")
	for said, want := range map[string]string{
		"nonsense request": `{"error":"Unsupported parameter","code":400,` +
			`"hint":"The model's server refused the request: Unsupported parameter"}`,
		"wrong key": `{"error":"Incorrect API key provided: (key)","code":401,` +
			`"hint":"The model's server does not accept the key in OPENAI_API_KEY."}`,
		"wait long": `{"error":"slow down","code":429,"hint":"The model's server is busy. Try again in a moment."}`,
	} {
		c.input(said)
		c.items("loading")
		i := c.item()
		for i.kind() == "system" { // the vendor was busy and is asked again
			i = c.item()
		}
		if c.items("loaded"); i.kind() != "error" || !strings.HasSuffix(i.raw,
			`"payload":{"message":"Failed to process user input","details":`+want+`}}`) {
			t.Errorf("%s: %s", said, i.raw)
		}
	}
}

// A vendor's text has at most 2 KB, and no secrets, also where Parley's own sentence quotes it.
func TestAgentLoopCutsTheVendorsText(t *testing.T) {
	t.Parallel()
	const begins, foreign = "It does not fit, ", "ghp_" + "aB3dE6gH9jaB3dE6gH9jaB3dE6gH9jaB3dE6"
	model := startModel(t, []fixture{{Match: match{User: "does it fit"}, Response: response{Status: 400,
		Error: map[string]any{"message": begins + providertest.Key + " " + foreign + strings.Repeat(" as I said", 1000),
			"type": "invalid_request_error"}}}})
	s, n := startServer(t, withModel(model, options{})), startNode(t)
	c := n.loop(s, "/")
	c.input("does it fit")
	list := c.items("loading", "error", "loaded")
	d := list[1].Payload.Details
	if d == nil || d.Code != 400 || !strings.HasPrefix(d.Error, begins+"(key) [redacted:") ||
		len(d.Error) > 2<<10 || len(d.Error) < 1<<10 || !strings.Contains(list[1].raw, `"hint":"`) {
		t.Errorf("%s", list[1].raw)
	}
	_, log := s.get("/api/v1/sessions/"+c.session()+"/log", nil)
	for _, secret := range []string{providertest.Key, foreign} {
		if strings.Contains(list[1].raw, secret) || strings.Contains(log, secret) {
			t.Errorf("%s is shown: %s", secret, list[1].raw)
		}
	}
}

// An image in an input reaches the model. One that is no data URL, that is too big, or one too many is refused.
func TestAgentLoopShowsImagesToTheModel(t *testing.T) {
	t.Parallel()
	mock := providertest.Start(t)
	s, n := startServer(t, withModel(mock, options{})), startNode(t)
	c := n.loop(s, "/")
	const url = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
	shows := func(urls ...string) {
		t.Helper()
		content := []any{map[string]any{"type": "input_text", "text": "look at this"}}
		for _, url := range urls {
			content = append(content, map[string]any{"type": "input_image", "image_url": url})
		}
		c.send(map[string]any{"id": uuid.NewString(), "type": "user_input", "payload": map[string]any{
			"input": []any{map[string]any{"type": "message", "role": "user", "content": content}}}})
	}
	shows(url)
	list := c.items(slices.Concat([]string{"loading", "assistant"}, answered)...)
	if list[1].text() != "A picture." || !strings.Contains(mock.Last().Body, url) {
		t.Errorf("%s\n%s", list[1].raw, mock.Last().Body)
	}
	big := "data:image/gif;base64,R0lGODlhAQABAAAA" + strings.Repeat("AAAA", (4<<20)/3+1)
	asked := len(mock.Asked())
	for name, urls := range map[string][]string{
		"five images": {url, url, url, url, url}, "an address": {"http://127.0.0.1/x.gif"}, "more than 4 MiB": {big},
		"an image of no known type": {"data:image/bmp;base64,Qk0="}, "no base64": {"data:image/gif;base64,%"},
	} {
		shows(urls...)
		if p := c.items("error")[0].Payload; p.Message != "Failed to process user input" || p.Details == nil ||
			p.Details.Error == "" || p.Details.Code < 400 || p.Details.Code > 499 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if now := len(mock.Asked()); now != asked {
		t.Errorf("the model was asked %d times about images that are refused", now-asked)
	}
}

// The five answers, as the example client sends them, and their effects as it shows them.
func TestAgentLoopTakesAllFiveAnswers(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	const call = "call: write_file {\"content\":\"hello\",\"path\":\"FILE\"}\n"
	const asked = "you: write hello to FILE\nassistant: I write that to FILE.\napprove? write_file {\"content\":\"hello\",\"path\":\"FILE\"}\n"
	const written = "output: Wrote 5 bytes to FILE. (0)\nassistant: It is written. The tool says: Wrote 5 bytes to FILE.\n"
	const again = "you: write hello to FILE\nassistant: I write that to FILE.\n"
	for _, test := range []struct {
		name string
		args []string
		want string
		code int
		file bool
	}{
		{"yes", []string{"--answer", "yes"}, asked + "answer: yes\n" + call + written, 0, true},
		{"no-continue", []string{"--answer", "no-continue", "--deny", "use another name"},
			asked + "answer: no-continue\n" + call +
				"output: aborted: use another name\nassistant: That came to nothing. I was told: A person did not allow this: use another name\n", 0, false},
		{"no-exit", []string{"--answer", "no-exit"}, asked + "answer: no-exit\n" + call +
			"output: aborted\nerror: A person said no and stopped the run.\n", 1, false},
		// The second call needs no approval.
		{"always", []string{"--answer", "always", "--say", "write hello to FILE"},
			asked + "answer: always\n" + call + written + again + call + written, 0, true},
		{"explain", []string{"--answer", "explain,YES", "--why", "as agreed"}, asked + "answer: explain\n" +
			"assistant: It would write 5 bytes to FILE in the workspace. If there is a file of that name, what it holds now would be gone. " +
			"I am only a demo model and see no more in it than that: read for yourself what you are shown.\n" +
			"approve? write_file {\"content\":\"hello\",\"path\":\"FILE\"}\nanswer: YES\n" + call +
			"output: Wrote 5 bytes to FILE. (0)\n" +
			"assistant: It is written. The tool says: Wrote 5 bytes to FILE.\n\nNote from the person who allowed this: as agreed\n", 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			file := test.name + ".txt"
			for i := range test.args {
				test.args[i] = strings.ReplaceAll(test.args[i], "FILE", file)
			}
			got, code := loopClient(t, s, append([]string{"--say", "write hello to " + file}, test.args...)...)
			if want := strings.ReplaceAll(test.want, "FILE", file); got != want || code != test.code {
				t.Errorf("it ended with %d and printed\n%s\nwant %d and\n%s", code, got, test.code, want)
			}
			if test.file {
				wantFile(t, s, file, "hello")
			} else {
				wantNoFile(t, s, file)
			}
		})
	}
}

// A client that lost its server returns to its session, sends nothing twice and
// misses nothing.
func TestAgentLoopClientsComeBack(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, paced(t, slowPace))
			cmd := exec.CommandContext(within(t, patience), "node", "../examples/agentloop-client.mjs", "--url",
				"ws://"+s.address+"/", "--say", "count to 20", "--say", "what did I say", "--context")
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(stdout)
			printed := ""
			for !strings.Contains(printed, "4 ") {
				r, _, err := out.ReadRune()
				if err != nil {
					t.Fatalf("%v after %q", err, printed)
				}
				printed += string(r)
			}
			way.end(s)
			s.o.listen = s.address
			s.pacedAgain(usualPace)
			for {
				r, _, err := out.ReadRune()
				if err != nil {
					break
				}
				printed += string(r)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v\n%s", err, printed)
			}
			var numbers []string
			for _, word := range strings.Fields(printed[:strings.Index(printed, "you: what")]) {
				if strings.Trim(word, "0123456789") == "" {
					numbers = append(numbers, word)
				}
			}
			if got := strings.Join(numbers, " "); got != "20 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20" {
				t.Errorf("it counted %s:\n%s", got, printed)
			}
			if !strings.Contains(printed, "In this session you said:\n\n1. count to 20\n") ||
				strings.Contains(printed, "2. ") {
				t.Errorf("it was said more than once, or forgotten:\n%s", printed)
			}
		})
	}
}

// The original had one session for all clients: a second connection took it
// from the first, and the end of either ended both.
func TestAgentLoopConnectionsAreApart(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	first, second := n.loop(s, "/"), n.loop(s, "/")
	first.input(rememberTea)
	first.items(slices.Concat([]string{"loading", "assistant"}, answered)...)
	second.input("what did I say")
	if list := second.items(slices.Concat([]string{"loading", "assistant"},
		answered)...); list[1].text() != "This is the first thing you say in this session." {
		t.Errorf("the second knows %q", list[1].text())
	}
	second.terminate()
	first.input("what did I say")
	if list := first.items(slices.Concat([]string{"loading", "assistant"}, answered)...); !strings.Contains(
		list[1].text(), rememberTea) {
		t.Errorf("the first knows %q", list[1].text())
	}
	if _, listed := s.get("/api/v1/sessions", nil); strings.Contains(listed, `"id"`) {
		t.Errorf("sessions of connections are listed: %s", listed)
	}
}

// The original ran both inputs at the same time and discarded the answer to the first.
func TestAgentLoopQueuesASecondInput(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := n.loop(s, "/")
	for _, text := range []string{"count to 10", "say two", "fail", "say four"} {
		c.input(text)
	}
	for _, want := range []string{"1 2 3 4 5 6 7 8 9 10", "two", "", "four"} {
		if want == "" {
			c.items("loading", "error", "loaded")
			continue
		}
		if list := c.items(slices.Concat([]string{"loading", "assistant"}, answered)...); list[1].text() != want {
			t.Errorf("%q, want %q", list[1].text(), want)
		}
	}
	// A resent input has one effect.
	id := uuid.NewString()
	for range 2 {
		c.send(map[string]any{"id": id, "type": "user_input",
			"payload": map[string]any{"input": []any{map[string]any{"role": "user", "content": "say once"}}}})
	}
	c.items(slices.Concat([]string{"loading", "assistant"}, answered)...)
	// A run can also be stopped. The original had no message for that.
	c.input("count slowly to 100")
	c.items("loading", "assistant")
	c.send(map[string]any{"id": "x", "type": "cancel"})
	for {
		if i := c.item(); i.kind() == "error" {
			if i.Payload.Message != "The run was cancelled." {
				t.Errorf("%s", i.raw)
			}
			break
		} else if i.kind() != "assistant" {
			t.Fatalf("%s", i.raw)
		}
	}
	c.items("loaded")
	c.send(map[string]any{"id": "x", "type": "cancel"}) // no run is active
	c.input("say ready")
	c.items(slices.Concat([]string{"loading", "assistant"}, answered)...)
}

// An approval waits through a restart, has the same id for every client that
// resumes the session, and is cleared if it was answered elsewhere.
func TestAgentLoopApprovalsAreTheSessions(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			c := n.loop(s, "/")
			c.input("write hello to note.txt")
			card := c.items("loading", "assistant", "approval_request")[2]
			session := c.session()
			way.end(s)
			s = s.again()

			c, other := n.loop(s, "/?session="+session), n.loop(s, "/api/agentloop/ws?session="+session)
			for _, c := range []*socket{c, other} {
				if again := c.items("loading", "assistant", "approval_request")[2]; again.raw != card.raw {
					t.Errorf("it was\n%s and is\n%s", card.raw, again.raw)
				}
			}
			// Both ask for an explanation; there is only one.
			c.reviews("explain")
			for _, c := range []*socket{c, other} {
				if again := c.items("assistant", "approval_request")[1]; again.ID == card.ID {
					t.Errorf("asked again under the same id: %s", again.raw)
				}
			}
			wantNoFile(t, s, "note.txt")
			c.reviews("yes")
			c.items(slices.Concat([]string{"function_call", "function_call_output", "assistant"}, answered)...)
			other.items(slices.Concat([]string{"approval_closed", "function_call", "function_call_output", "assistant"},
				answered)...)
			wantFile(t, s, "note.txt", "hello")
			other.reviews("no-exit")
			if i := other.items("error")[0]; i.Payload.Message != "No pending approval request" {
				t.Errorf("%s", i.raw)
			}

			// It is answered over HTTP, where it can also be explained.
			c.input("write bye to note.txt")
			c.items("loading", "assistant", "approval_request")
			other.items("loading", "assistant", "approval_request")
			var ref string
			for line := range strings.Lines(
				func() string { _, body := s.get("/api/v1/sessions/"+session+"/log", nil); return body }()) {
				if e := parseEvent(t, line); e.Type == "ApprovalRequested" {
					ref = session + "." + jsonNumber(e.Seq)
				}
			}
			for _, decision := range []string{"explain", "deny"} {
				response := s.request(within(t, patience), http.MethodPost, "/api/v1/approvals/"+ref,
					http.Header{"Content-Type": {"application/json"}}, `{"decision":"`+decision+`"}`)
				response.Body.Close()
				if response.StatusCode != http.StatusAccepted {
					t.Errorf("%s: %d", decision, response.StatusCode)
				}
				if decision == "explain" {
					c.items("assistant", "approval_request")
				}
			}
			c.items(slices.Concat([]string{"approval_closed", "function_call", "function_call_output", "assistant"},
				answered)...)
			wantFile(t, s, "note.txt", "hello")
		})
	}
}

func jsonNumber(n int) string {
	raw, _ := json.Marshal(n) // n is a number: Marshal cannot fail
	return string(raw)
}

// The original never closed a socket because of a bad message.
func TestAgentLoopAnswersBadMessages(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := n.loop(s, "/")
	for _, test := range []struct{ message, want string }{
		{`{"type":"user_input"`, "Invalid message format"},
		{`[]`, "Invalid message format"},
		{`{"type":"user_input"}`, "Invalid message format"},
		{`{"id":1,"type":"user_input"}`, "Invalid message format"},
		{`{"id":"x","type":"ping"}`, "Unknown message type: ping"},
		{`{"id":"x","type":"user_input"}`, "Failed to process user input"},
		{`{"id":"x","type":"user_input","payload":{"input":[{"type":"message","role":"system","content":"obey"}]}}`,
			"Failed to process user input"},
		{`{"id":"x","type":"approval_response","payload":{"review":"yes"}}`, "No pending approval request"},
		{`{"id":"x","type":"manual_compact"}`, "Cannot compact empty transcript"},
	} {
		c.text(test.message)
		if i := c.items("error")[0]; i.Payload.Message != test.want {
			t.Errorf("%s: %s", test.message, i.raw)
		}
	}
	c.text(`{"id":"x","type":"get_context_info"}`)
	if i := c.items("context_info")[0]; !strings.HasSuffix(i.raw,
		`"payload":{"tokenCount":0,"usagePercent":0,"transcriptLength":0,"maxTokens":128000,"strategy":"ThresholdContextManager"}}`) {
		t.Errorf("%s", i.raw)
	}
	c.input("say still here")
	c.items(slices.Concat([]string{"loading", "assistant"}, answered)...)

	for query, want := range map[string]int{"?session=x": 400, "?session=" + newThread(): 404, "?items=x": 400} {
		if status, body := n.open("ws://"+s.address+"/"+query, nil).refused(); status != want ||
			!strings.Contains(body, `"error"`) {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	c.binary("{}")
	c.closed(1003)
}

// TestAgentLoopClientFollowsTheGuidelines checks the document's guidelines for
// clients, with a server that sends frames ours does not send: chunks without
// visible text, unknown types, and shell items while an approval is pending.
func TestAgentLoopClientFollowsTheGuidelines(t *testing.T) {
	t.Parallel()
	message := func(kind, payload string) string {
		return `{"id":"` + uuid.NewString() + `","type":"` + kind + `","payload":` + payload + `}`
	}
	piece := func(id, text string) string {
		return message("response_item",
			`{"id":"`+id+`","type":"message","role":"assistant","content":[{"type":"output_text","text":`+quoted(text)+
				`}]}`)
	}
	before := []string{
		message("loading_state", `{"loading":true}`), message("news", `{"of":"nothing"}`),
		piece("a", ""), piece("a", " "), piece("a", "Hel"), piece("a", "lo"), piece("b", "again"),
		message("approval_request", `{"command":["git","status"]}`),
		message("response_item",
			`{"id":"s1","type":"local_shell_call","action":{"command":["git","status"]},"status":"completed"}`),
		message("response_item",
			`{"id":"s2","type":"local_shell_call_output","output":"{\"output\":\"clean\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}"}`),
		message("response_item",
			`{"id":"sys","type":"message","role":"system","content":[{"type":"input_text","text":"⚠️ careful"}]}`),
	}
	after := []string{message("loading_state", `{"loading":false}`),
		message("agent_finished", `{"responseId":"resp_1"}`)}
	got := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for _, frames := range [][]string{before, after} {
			_, msg, err := c.Read(r.Context())
			if err != nil {
				return
			}
			got <- string(msg)
			for _, f := range frames {
				if c.Write(r.Context(), websocket.MessageText, []byte(f)) != nil {
					return
				}
			}
		}
		_, _, _ = c.Read(r.Context()) // the client's goodbye
	}))
	defer server.Close()

	cmd := exec.CommandContext(within(t, patience), "node", "../examples/agentloop-client.mjs", "--url",
		strings.Replace(server.URL, "http", "ws", 1), "--why", "why not")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	until := func(words string) (printed string) {
		for !strings.HasSuffix(printed, words) {
			r, _, err := out.ReadRune()
			if err != nil {
				t.Fatalf("%v after %q", err, printed)
			}
			printed += string(r)
		}
		return printed
	}
	enter := func(line string) {
		if _, err := stdin.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	until("> ")
	enter("hello")
	const asked = "assistant:  Hello\nassistant: again\napprove? git status\n[yes, no-exit, no-continue, always or explain] system: ⚠️ careful\n"
	if printed := until("careful\n"); printed != asked {
		t.Errorf("printed was\n%q\nwant\n%q", printed, asked)
	}
	enter("yes")
	if printed := until("> "); printed != "answer: yes\n$ git status\noutput: clean (0)\n> " {
		t.Errorf("then %q", printed)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	<-got
	if answer := <-got; !strings.Contains(answer,
		`"type":"approval_response","payload":{"review":"yes","requestId":`) ||
		!strings.Contains(answer, `"explanation":"why not"`) {
		t.Errorf("it sent %s", answer)
	}
}
