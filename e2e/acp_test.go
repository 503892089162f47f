package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley"
)

// An acpEditor is a client of the official SDK of the Agent Client Protocol that has
// started `parley acp`.
type acpEditor struct {
	t      *testing.T
	stdin  io.WriteCloser
	events *list[acpEvent]
	seen   int
	calls  int
	stderr *strings.Builder
}

type acpEvent struct {
	As     string
	Result json.RawMessage
	Error  *struct {
		Name, Message string
		Code          int
	}
	Update struct {
		Kind    string `json:"sessionUpdate"`
		Content json.RawMessage
		Message string `json:"messageId"`
		Title   string
		Tool    string `json:"kind"`
		Status  string
		ID      string `json:"toolCallId"`
		Used    int
		Size    int
		Name    string
		Input   json.RawMessage                           `json:"rawInput"`
		Output  struct{ Outcome string }                  `json:"rawOutput"`
		Meta    struct{ Parley struct{ Outcome string } } `json:"_meta"`
	}
	Session    string
	Permission *struct {
		Call struct {
			Title   string
			Content []struct{ Content struct{ Text string } }
		} `json:"toolCall"`
		Options []struct {
			ID         string `json:"optionId"`
			Name, Kind string
		}
	}
	Of        string
	Withdrawn string
	Exited    *int
	raw       string
}

func (e acpEvent) text() string {
	var c struct{ Text string }
	_ = json.Unmarshal(e.Update.Content, &c) // in a tool call it is a list
	return c.Text
}

func startEditor(t *testing.T, env []string, args ...string) *acpEditor {
	t.Helper()
	cmd := exec.Command("node", append([]string{"testdata/acp-client.mjs", binary(t), "acp"}, args...)...)
	e := &acpEditor{t: t, events: newList[acpEvent](), stderr: &strings.Builder{}}
	cmd.Stderr, cmd.Env = e.stderr, append(os.Environ(), env...)
	var err error
	if e.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer e.events.end()
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				_ = cmd.Wait() // the test has told it to end
				return
			}
			event := acpEvent{raw: line}
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			e.events.add(event)
		}
	}()
	t.Cleanup(func() {
		e.stdin.Close()
		<-done
		if t.Failed() {
			t.Logf("the editor's stderr:\n%s", e.stderr)
		}
	})
	return e
}

func (e *acpEditor) send(line map[string]any) {
	e.t.Helper()
	raw, _ := json.Marshal(line)
	if _, err := e.stdin.Write(append(raw, '\n')); err != nil {
		e.t.Fatal(err)
	}
}

// next returns the next thing that happens.
func (e *acpEditor) next() acpEvent {
	e.t.Helper()
	event, err := e.events.at(within(e.t, patience), e.seen)
	if err != nil {
		e.t.Fatalf("the editor hears nothing: %v\n%s", err, e.stderr)
	}
	e.seen++
	return event
}

func (e *acpEditor) begin(method string, params map[string]any) string {
	e.t.Helper()
	e.calls++
	as := strconv.Itoa(e.calls)
	e.send(map[string]any{"call": method, "params": params, "as": as})
	return as
}

// until returns everything up to and including the response to a request.
func (e *acpEditor) until(as string) (all []acpEvent, answer acpEvent) {
	e.t.Helper()
	for {
		event := e.next()
		if event.As == as {
			return all, event
		}
		all = append(all, event)
	}
}

// must returns the result of a request, which must not fail.
func (e *acpEditor) must(method string, params map[string]any, into any) []acpEvent {
	e.t.Helper()
	all, answer := e.until(e.begin(method, params))
	if answer.Error != nil {
		e.t.Fatalf("%s: %s", method, answer.raw)
	}
	if err := json.Unmarshal(answer.Result, into); err != nil {
		e.t.Fatal(err)
	}
	return all
}

func (e *acpEditor) initialize() {
	e.t.Helper()
	var about struct{ ProtocolVersion int }
	e.must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}, &about)
	if about.ProtocolVersion != 1 {
		e.t.Errorf("version %d", about.ProtocolVersion)
	}
}

func (e *acpEditor) newSession(folder string) string {
	e.t.Helper()
	var made struct{ SessionID string }
	e.must("session/new", map[string]any{"cwd": folder, "mcpServers": []any{}}, &made)
	return made.SessionID
}

func prompting(session, text string) map[string]any {
	return map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": text}}}
}

// chunks returns the text of the updates of a kind.
func chunks(events []acpEvent, kind string) (text string) {
	for _, e := range events {
		if e.Update.Kind == kind {
			text += e.text()
		}
	}
	return text
}

type promptResult struct {
	StopReason string
	Usage      struct{ TotalTokens int }
}

// TestEditor: an editor streams turns, decides approvals, cancels, and goes on after the server was killed. When it
// loads a session, it gets what it has seen.
func TestEditor(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	e := startEditor(t, nil, "--server", "http://"+s.address)
	e.initialize()
	id := e.newSession(s.o.workspace)
	var result promptResult
	all := e.must("session/prompt", prompting(id, "hello"), &result)
	first := chunks(all, "agent_message_chunk")
	if first == "" || result.StopReason != "end_turn" || result.Usage.TotalTokens == 0 ||
		chunks(all, "user_message_chunk") != "" {
		t.Errorf("%q, %+v", first, result)
	}
	used := false
	for _, event := range all {
		used = used || event.Update.Kind == "usage_update" && event.Update.Used > 0 && event.Update.Size > 0
	}
	if !used {
		t.Error("nothing is said about usage")
	}

	// An approval has its effect; a denial has none.
	file := filepath.Join(s.o.workspace, "a.txt")
	for _, c := range []struct {
		option  string
		written bool
	}{{"deny", false}, {"allow", true}} {
		as := e.begin("session/prompt", prompting(id, "write x to a.txt"))
		card := e.card()
		var kinds []string
		for _, o := range card.Permission.Options {
			kinds = append(kinds, o.Kind)
		}
		if strings.Join(kinds, " ") != "allow_once allow_always reject_once reject_always" ||
			!strings.Contains(card.Permission.Call.Content[0].Content.Text, `"a.txt"`) {
			t.Errorf("%s", card.raw)
		}
		e.send(map[string]any{"choose": c.option, "of": card.Of})
		all, answer := e.until(as)
		status := ""
		for _, event := range all {
			if event.Update.Kind == "tool_call_update" {
				status += event.Update.Status + " "
			}
		}
		_, err := os.Stat(file)
		if answer.Error != nil || (err == nil) != c.written || strings.Contains(status, "completed") != c.written {
			t.Errorf("%s: %s, %v, %s", c.option, status, err, answer.raw)
		}
	}

	// A card that was answered elsewhere is withdrawn.
	as := e.begin("session/prompt", prompting(id, "write x to b.txt"))
	card := e.card()
	s.send("/approvals/"+s.waiting("approvals", id), `{"decision":"deny"}`)
	all, _ = e.until(as)
	withdrawn := false
	for _, event := range all {
		withdrawn = withdrawn || event.Withdrawn == card.Of
	}
	if !withdrawn {
		t.Errorf("the card is still shown")
	}

	// A run is cancelled.
	as = e.begin("session/prompt", prompting(id, "write x to c.txt"))
	e.card()
	e.send(map[string]any{"notify": "session/cancel", "params": map[string]any{"sessionId": id}})
	_, answer := e.until(as)
	if err := json.Unmarshal(answer.Result, &result); err != nil || result.StopReason != "cancelled" {
		t.Errorf("%s", answer.raw)
	}

	// The server is killed while an approval is open. The editor goes on with the next server.
	as = e.begin("session/prompt", prompting(id, "write x to d.txt"))
	card = e.card()
	s.kill()
	s.o.listen = s.address
	s = s.again()
	e.send(map[string]any{"choose": "allow", "of": card.Of})
	if _, answer := e.until(as); answer.Error != nil {
		t.Errorf("%s", answer.raw)
	}
	if _, err := os.Stat(filepath.Join(s.o.workspace, "d.txt")); err != nil {
		t.Error(err)
	}
	all = e.must("session/prompt", prompting(id, "hello again"), &result)
	if chunks(all, "agent_message_chunk") == "" || result.StopReason != "end_turn" {
		t.Errorf("%+v", result)
	}
	s = wantNothingTwice(t, s, e, id)
	wantReplay(t, s, id)
	wantLateAnswers(t, s)
}

// wantNothingTwice kills the server in mid-stream and expects that the editor gets each character once.
func wantNothingTwice(t *testing.T, s *server, e *acpEditor, id string) *server {
	t.Helper()
	as := e.begin("session/prompt", prompting(id, "count to 60"))
	cut := e.next()
	for cut.Update.Kind != "agent_message_chunk" {
		cut = e.next()
	}
	s.kill()
	s = s.again()
	all, answer := e.until(as)
	if got := cut.text() + chunks(all, "agent_message_chunk"); got != counted(60) || answer.Error != nil {
		t.Errorf("cut and continued it reads %q, %s", got, answer.raw)
	}
	return s
}

// wantLateAnswers: an editor that closes its end right after a request gets the response. If the run waits for a
// person, the response says so.
func wantLateAnswers(t *testing.T, s *server) {
	t.Helper()
	for text, want := range map[string]string{"hello": `"stopReason":"end_turn"`,
		"write x to e.txt": "Answer in the console: http://"} {
		e := startEditor(t, nil, "--server", "http://"+s.address)
		e.initialize()
		as := e.begin("session/prompt", prompting(e.newSession(s.o.workspace), text))
		e.stdin.Close()
		if _, answer := e.until(as); !strings.Contains(answer.raw, want) {
			t.Errorf("%s", answer.raw)
		}
	}
}

// card waits for a request for permission.
func (e *acpEditor) card() acpEvent {
	e.t.Helper()
	for {
		if event := e.next(); event.Permission != nil {
			return event
		}
	}
}

// wantReplay: an editor that loads a session gets every character of its log, once.
func wantReplay(t *testing.T, s *server, id string) {
	t.Helper()
	var text, users strings.Builder
	for _, line := range s.exported(id) {
		switch b := line.Body.(type) {
		case parley.OutputFinished:
			if b.Kind == parley.Text {
				text.WriteString(b.Text)
			}
		case parley.InputReceived:
			users.WriteString(b.Content)
		}
	}
	e := startEditor(t, []string{"PARLEY_SERVER=http://" + s.address})
	e.initialize()
	var loaded struct {
		Modes struct{ CurrentModeID string }
	}
	all := e.must("session/load", map[string]any{"sessionId": id, "cwd": s.o.workspace, "mcpServers": []any{}}, &loaded)
	if got := chunks(all, "agent_message_chunk"); got != text.String() || got == "" {
		t.Errorf("%q, and the log has %q", got, text.String())
	}
	if got := chunks(all, "user_message_chunk"); got != users.String() || loaded.Modes.CurrentModeID != "act" {
		t.Errorf("%q, and the log has %q", got, users.String())
	}
	var result promptResult
	all = e.must("session/prompt", prompting(id, "one more"), &result)
	if chunks(all, "agent_message_chunk") == "" || chunks(all, "user_message_chunk") != "" {
		t.Errorf("%+v", result)
	}
}

// TestEditorSessions: an editor lists the sessions of all projects and of one, resumes one without its messages, plans,
// closes it, and deletes another.
func TestEditorSessions(t *testing.T) {
	t.Parallel()
	folders := [2]string{t.TempDir(), t.TempDir()}
	s := startProjects(t, folders)
	e := startEditor(t, nil, "--server", "http://"+s.address)
	e.initialize()
	var ids [2]string
	for i, folder := range folders {
		ids[i] = e.newSession(folder)
		e.must("session/prompt", prompting(ids[i], "say one"), &promptResult{})
	}
	list := func(params map[string]any) (found string) {
		t.Helper()
		var answer struct {
			Sessions []struct{ SessionID, Cwd, Title string }
		}
		e.must("session/list", params, &answer)
		for _, one := range answer.Sessions {
			i := slices.Index(ids[:], one.SessionID)
			if i < 0 || one.Cwd != folders[i] || one.Title == "" {
				t.Errorf("listed is %+v", one)
			}
			found += strconv.Itoa(i)
		}
		return found
	}
	for _, one := range []struct{ folder, want string }{{"", "10"}, {folders[0], "0"}, {folders[1], "1"},
		{filepath.Join(folders[1], "src"), "1"}} {
		params := map[string]any{}
		if one.folder != "" {
			params["cwd"] = one.folder
		}
		if found := list(params); found != one.want {
			t.Errorf("of the folder %q are listed %s", one.folder, found)
		}
	}

	e = startEditor(t, nil, "--server", "http://"+s.address)
	e.initialize()
	of := func(i int) map[string]any {
		return map[string]any{"sessionId": ids[i], "cwd": folders[i], "mcpServers": []any{}}
	}
	if all := e.must("session/resume", of(0), &struct{}{}); len(all) != 0 {
		t.Errorf("resumed, it is shown %s", all[0].raw)
	}
	e.must("session/set_mode", map[string]any{"sessionId": ids[0], "modeId": "plan"}, &struct{}{})
	var result promptResult
	e.must("session/prompt", prompting(ids[0], "say two"), &result)
	var modes []parley.RunMode
	for _, line := range s.exported(ids[0]) {
		if b, ok := line.Body.(parley.InputReceived); ok {
			modes = append(modes, b.Mode)
		}
	}
	if want := []parley.RunMode{"", parley.ModePlan}; !slices.Equal(modes, want) || result.StopReason != "end_turn" {
		t.Errorf("%q, %+v", modes, result)
	}
	as := e.begin("session/prompt", prompting(ids[0], "count slowly to 100"))
	for e.next().Update.Kind != "agent_message_chunk" {
	}
	closing := e.begin("session/close", map[string]any{"sessionId": ids[0]})
	e.until(as)
	e.until(closing)
	s.awaitEvent(ids[0], func(e event) bool { return e.Type == "RunFinished" && e.Body.Outcome == "cancelled" })
	e.must("session/delete", map[string]any{"sessionId": ids[1]}, &struct{}{})
	await(t, patience, "the end of the session", func() bool { return list(map[string]any{}) == "0" })
	if _, answer := e.until(e.begin("session/load", of(1))); answer.Error == nil || answer.Error.Code != -32002 {
		t.Errorf("%s", answer.raw)
	}
}

// TestEditorErrors: each mistake is an error of the SDK's own class and appends
// nothing.
func TestEditorErrors(t *testing.T) {
	t.Parallel()
	s := startServer(t, jwt())
	ann, eve := s.user("ann"), s.user("eve")
	e := startEditor(t, []string{"PARLEY_TOKEN=" + ann.token}, "--server", "http://"+s.address, "--agent", "nobody")
	e.initialize()
	fails := func(e *acpEditor, method string, params map[string]any, code int, words string) {
		t.Helper()
		_, answer := e.until(e.begin(method, params))
		if answer.Error == nil || answer.Error.Name != "RequestError" || answer.Error.Code != code ||
			!strings.Contains(answer.Error.Message, words) {
			t.Errorf("%s: %s", method, answer.raw)
		}
	}
	here := map[string]any{"cwd": s.o.workspace, "mcpServers": []any{}}
	of := func(id string) map[string]any {
		return map[string]any{"cwd": s.o.workspace, "mcpServers": []any{}, "sessionId": id}
	}
	fails(e, "session/new", here, -32002, "nobody")
	eve.must(http.StatusCreated, http.MethodPost, "/api/v1/sessions", `{"id":"0b7c2d7e-3f54-4c0a-9d5e-2a8f5f6f1c11"}`)
	fails(e, "session/load", of("0b7c2d7e-3f54-4c0a-9d5e-2a8f5f6f1c11"), -32002, "")
	fails(e, "session/load", of("no session"), -32002, "no session")
	fails(e, "session/prompt", prompting("no session", "hello"), -32002, "not open here")

	e = startEditor(t, []string{"PARLEY_TOKEN=" + ann.token}, "--server", "http://"+s.address)
	e.initialize()
	id := e.newSession(s.o.workspace)
	before := ann.must(http.StatusOK, http.MethodGet, "/api/v1/sessions/"+id+"/log", "")
	fails(e, "session/prompt", prompting(id, " "), -32602, "empty")
	fails(e, "session/prompt", map[string]any{"sessionId": id, "prompt": []any{map[string]any{"type": "image",
		"data": "", "mimeType": "image/png"}}}, -32602, "image")
	fails(e, "session/prompt", map[string]any{"sessionId": id, "prompt": "hello"}, -32602, "cannot be read")
	fails(e, "session/prompt", map[string]any{"sessionId": 7, "prompt": []any{}}, -32602, "cannot be read")
	fails(e, "session/load", map[string]any{"sessionId": []any{}}, -32602, "cannot be read")
	fails(e, "session/set_mode", map[string]any{"sessionId": id, "modeId": "wild"}, -32602, "wild")
	fails(e, "session/fly", map[string]any{}, -32601, "session/fly")
	e.send(map[string]any{"raw": "this is no JSON"})
	e.send(map[string]any{"raw": "[1]"})
	if after := ann.must(http.StatusOK, http.MethodGet, "/api/v1/sessions/"+id+"/log", ""); after != before {
		t.Errorf("the log has grown: %s", after)
	}
	ann.must(http.StatusAccepted, http.MethodDelete, "/api/v1/sessions/"+id, "")
	await(t, patience, "the end of the session", func() bool {
		_, answer := e.until(e.begin("session/prompt", prompting(id, "hello")))
		return answer.Error != nil && answer.Error.Code == -32002
	})
	fails(e, "session/load", of(id), -32002, "")

	e = startEditor(t, []string{"PARLEY_TOKEN=x"}, "--server", "http://"+s.address)
	e.initialize()
	fails(e, "session/new", here, -32000, "token")
	e = startEditor(t, nil, "--server", "http://127.0.0.1:1")
	e.initialize()
	fails(e, "session/new", here, -32603, "parley serve")
}

// TestAnEditorThatLeavesAfterItsPrompt closes its pipe at once and still gets the whole answer.
func TestAnEditorThatLeavesAfterItsPrompt(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	cmd := exec.CommandContext(within(t, patience), binary(t), "acp", "--server", "http://"+s.address)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	ask := func(id int, method string, params map[string]any) {
		t.Helper()
		raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		if _, err := in.Write(append(raw, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	answered := func() (session string) {
		t.Helper()
		line, err := lines.ReadString('\n')
		var answer struct{ Result struct{ SessionID string } }
		if err == nil {
			err = json.Unmarshal([]byte(line), &answer)
		}
		if err != nil {
			t.Fatal(err)
		}
		return answer.Result.SessionID
	}
	ask(1, "initialize", map[string]any{"protocolVersion": 1})
	answered()
	ask(2, "session/new", map[string]any{"cwd": s.o.workspace, "mcpServers": []any{}})
	session := answered()
	ask(3, "session/prompt", prompting(session, "count slowly to 3"))
	in.Close()
	rest, err := io.ReadAll(lines)
	if ended := cmd.Wait(); err != nil || ended != nil || !strings.Contains(string(rest), `3"},"messageId"`) ||
		!strings.Contains(string(rest), `"id":3,"result":{"stopReason":"end_turn"`) {
		t.Errorf("%v, %v, and the answer is\n%s", err, ended, rest)
	}
}
