package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Bad input to AG-UI and the AI SDK: each client raises its own error, and
// nothing is appended.
func TestBadInputOfPages(t *testing.T) {
	t.Parallel()
	acme, n := startServer(t, jwt()), startNode(t)
	ann, bob := acme.user("ann"), acme.user("bob")
	session := newThread()
	bearer := func(v *visitor) map[string]string { return map[string]string{"Authorization": "Bearer " + v.token} }
	agent := func(name string) string { return "http://" + acme.address + "/api/%s/" + name }
	ai := func(v *visitor, to, chat, text string) string {
		chunks, _ := n.aiStream(acme, "send", chat, map[string]any{"api": fmt.Sprintf(agent(to), "aisdk"),
			"headers": bearer(v), "messages": userSays("u1", text)["messages"]})
		return strings.Join(chunks, "\n")
	}
	ag := func(v *visitor, to, thread, text string) string {
		a := &aguiAgent{socket: n.begin(map[string]any{"do": "use", "module": "agui", "act": "open", "thread": thread,
			"url": fmt.Sprintf(agent(to), "agui"), "headers": bearer(v)}), thread: thread}
		a.opened()
		a.start(says1(text))
		for {
			if h := a.next(); h.Event != "event" {
				return fmt.Sprintf("%d %s", h.Code, h.Data)
			}
		}
	}
	const name = "helpful-assistant"
	if got := ai(ann, name, session, "say hello"); !strings.Contains(got, "hello") {
		t.Fatal(got)
	}
	deleted := newThread()
	ag(ann, name, deleted, "say hello")
	if status, body := ann.ask("DELETE", "/api/v1/sessions/"+deleted, ""); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	before := len(ann.events(session))
	for _, bad := range []struct {
		who                   *visitor
		agent, session, text  string
		status                int
		wantsAISDK, wantsAGUI string
	}{
		{ann, "nobody", session, "say hi", 404, `There is no agent "nobody"`, `"code":"not_found"`},
		{ann, name, session, " ", 400, "The message is empty.", `"code":"empty"`},
		{bob, name, session, "say hi", 404, "There is no such session.", `"code":"not_found"`},
		{ann, name, deleted, "say hi", 404, "There is no such session.", `"code":"not_found"`},
		{ann, name, strings.Repeat("x", 300), "say hi", 400, "longer than 256 bytes", `"code":"invalid"`},
	} {
		want := fmt.Sprintf("%d AI_APICallError: ", bad.status)
		if got := ai(bad.who, bad.agent, bad.session, bad.text); !strings.HasPrefix(got, want) ||
			!strings.Contains(got, bad.wantsAISDK) {
			t.Errorf("aisdk: %+v\n%s", bad, got)
		}
		want = fmt.Sprintf(`%d Error: HTTP %[1]d: {"type":"RUN_ERROR"`, bad.status)
		if got := ag(bad.who, bad.agent, bad.session, bad.text); !strings.HasPrefix(got, want) ||
			!strings.Contains(got, bad.wantsAGUI) {
			t.Errorf("agui: %+v\n%s", bad, got)
		}
	}
	for _, path := range []string{"/api/aisdk/" + name, "/api/agui/" + name} {
		for _, body := range []string{`{"id":`, `[]`, `"x"`, `{"id":7,"threadId":7}`,
			`{"id":"c","threadId":"c","messages":"x"}`,
			`{"id":"` + session + `","threadId":"` + session + `","messages":[]}`} {
			if status, answer := ann.ask("POST", path, body); status != http.StatusBadRequest || answer == "" {
				t.Errorf("%s %s: %d %s", path, body, status, answer)
			}
		}
	}
	for _, path := range []string{"/api/aisdk/chats/%s/stream", "/api/aisdk/" + name + "/%s/stream",
		"/api/agui/threads/%s/stream"} {
		if status, body := bob.ask("GET", fmt.Sprintf(path, session), ""); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{"/api/aisdk/chats/%s/stop", "/api/agui/threads/%s/stop"} {
		if status, body := bob.ask("POST", fmt.Sprintf(path, session), "{}"); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if after := len(ann.events(session)); after != before {
		t.Errorf("%d events were appended", after-before)
	}
}

// Of two concurrent answers, one counts and the other is refused. AG-UI wants it so that a repeated answer gets the
// events of the first.
func TestTwoAnswersAtOnceOfPages(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	chat := newThread()
	_, m := n.aiStream(s, "send", chat, userSays("u1", "write it to one.txt"))
	p := m.tool(t)
	answer := func(approved bool) *socket {
		return n.begin(map[string]any{"do": "use", "module": "aisdk", "act": "send", "api": s.aisdk(), "chat": chat,
			"messages": []any{map[string]any{"id": m.ID, "role": "assistant", "parts": []any{map[string]any{
				"type": "dynamic-tool", "toolName": p.ToolName, "toolCallId": p.ToolCallID,
				"state": "approval-responded",
				"input": map[string]any{}, "approval": map[string]any{"id": p.Approval.ID, "approved": approved}}}}}})
	}
	refused := 0
	for _, c := range []*socket{answer(true), answer(true)} {
		for {
			h := c.next()
			if h.Event == "error" && (h.Code == http.StatusGone || h.Code == http.StatusConflict) {
				refused++
			}
			if h.Event == "error" || h.Event == "close" {
				break
			}
		}
	}
	if refused != 1 {
		t.Errorf("%d of two answers were refused", refused)
	}
	wantFile(t, s, "one.txt", "it")

	a := n.agui(s, newThread())
	r := a.run(says1("write it to two.txt"))
	yes := resolves(r.Interrupts[0].ID, map[string]any{"approved": true})
	both := []*aguiAgent{n.agui(s, a.thread), n.agui(s, a.thread)}
	for _, b := range both {
		b.start(yes)
	}
	for _, b := range both {
		b.ready()
	}
	if x, y := strings.Join(both[0].events, "\n"), strings.Join(both[1].events, "\n"); x != y ||
		!strings.Contains(x, "TOOL_CALL_RESULT") {
		t.Errorf("one was shown\n%s\nand the other\n%s", x, y)
	}
	wantFile(t, s, "two.txt", "it")
}

// A tool of the page is called, waits in the log through a crash, and its
// result goes to the model.
func TestToolsOfPages(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	tools := []any{map[string]any{"name": "page__paint", "description": "Paints the page.",
		"parameters": map[string]any{"type": "object", "properties": map[string]any{}}}}
	a := n.agui(s, newThread())
	more := says1(`call page__paint {"colour":"red"}`)
	more["tools"] = tools
	r := a.run(more)
	if len(r.Pending) != 1 || len(r.Interrupts) != 0 || !strings.Contains(a.last(), `"type":"success"`) {
		t.Fatalf("%+v\n%s", r, a.last())
	}
	// Another message meanwhile is refused.
	other := n.agui(s, a.thread)
	if other.run(says1("say on")); !strings.Contains(other.last(), `"type":"RUN_ERROR"`) {
		t.Errorf("while a tool is pending: %s", other.last())
	}
	c := n.begin(map[string]any{"do": "use", "module": "aisdk", "act": "open", "api": s.aisdk(), "chat": newThread(),
		"body": map[string]any{"tools": tools}})
	c.opened()
	chat := &aiChat{c, "tools"}
	call := chat.says(`call page__paint {"colour":"blue"}`).tool(t)
	if call.Type != "tool-page__paint" || call.State != "input-available" {
		t.Fatalf("%+v", call)
	}
	s.kill()
	n.restarted(s)
	a.do("use", map[string]any{"module": "agui", "act": "result", "call": r.Pending[0], "content": "It is red now."})
	a.opened()
	if r := a.run(nil); !strings.Contains(r.text(), "It is red now.") {
		t.Errorf("%+v", r)
	}
	if strings.Contains(strings.Join(a.events, "\n"), "TOOL_CALL_RESULT") {
		t.Errorf("the page is told the result that it gave:\n%s", strings.Join(a.events, "\n"))
	}
	chat.act("output", map[string]any{"id": call.ToolCallID, "output": map[string]any{"painted": true}})
	if m := chat.ready(); !strings.Contains(m.text(), `{"painted":true}`) {
		t.Errorf("%+v", m)
	}
}

// The card of a sub-agent reaches the page of the root session. The page's
// answer reaches the sub-agent, also after a crash.
func TestSubAgentCardsOnPages(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	agentFile(t, workspace, "boss", "delegates: [helper]")
	agentFile(t, workspace, "helper", "approval: suggest")
	s, n := startServer(t, options{workspace: workspace}), startNode(t)
	a := &aguiAgent{socket: n.begin(map[string]any{"do": "use", "module": "agui", "act": "open", "thread": newThread(),
		"url": "http://" + s.address + "/api/agui/boss"})}
	a.opened()
	r := a.run(says1("delegate write it to agui.txt to helper"))
	if len(r.Interrupts) != 1 || !strings.Contains(r.Interrupts[0].Message, "agui.txt") ||
		!strings.Contains(a.last(), `"agent":"helper"`) {
		t.Fatalf("%+v\n%s", r, a.last())
	}
	c := &aiChat{n.begin(map[string]any{"do": "use", "module": "aisdk", "act": "open", "chat": newThread(),
		"api": "http://" + s.address + "/api/aisdk/boss"}), "boss"}
	c.opened()
	m := c.says("delegate write it to aisdk.txt to helper")
	p := m.tool(t)
	if p.ToolName != "write_file" || p.State != "approval-requested" {
		t.Fatalf("%+v", m)
	}
	s.kill()
	s = n.restarted(s)
	if r = a.run(resolves(r.Interrupts[0].ID, map[string]any{"approved": true})); len(r.Interrupts) != 0 {
		t.Errorf("%+v", r)
	}
	wantFile(t, s, "agui.txt", "it")
	c.act("answer", map[string]any{"id": p.Approval.ID, "approved": true})
	done := c.ready()
	for _, p := range done.Parts {
		if p.ToolCallID != "" && p.State != "output-available" {
			t.Errorf("%+v", p)
		}
	}
	if done.ID != m.ID || done.text() == m.text() {
		t.Errorf("%+v", done)
	}
	wantFile(t, s, "aisdk.txt", "it")
}
