package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// An aiChat is a chat of npm ai, as useChat uses it. It sends answers by
// itself.
type aiChat struct {
	*socket
	id string
}

// An aiMessage is a message of a chat, with the fields that tests check.
type aiMessage struct {
	ID, Role string
	Metadata struct {
		Session string
		Usage   struct{ InputTokens, OutputTokens, TotalTokens int }
	}
	Parts []aiPart
}

type aiPart struct {
	Type, Text, State, ToolName, ToolCallID, ErrorText string
	Output                                             json.RawMessage
	Approval                                           struct {
		ID         string
		Approved   *bool
		Descriptor struct{ Command string }
	}
}

func (m aiMessage) text() string {
	var texts []string
	for _, p := range m.Parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// tool is the last tool call of a message.
func (m aiMessage) tool(t *testing.T) aiPart {
	t.Helper()
	for i := len(m.Parts) - 1; i >= 0; i-- {
		if p := m.Parts[i]; p.ToolCallID != "" {
			return p
		}
	}
	t.Fatalf("no tool call in %+v", m)
	return aiPart{}
}

func (s *server) aisdk() string { return "http://" + s.address + "/api/aisdk/helpful-assistant" }

func (n *node) aiChat(s *server, id string) *aiChat {
	n.t.Helper()
	c := &aiChat{n.begin(map[string]any{"do": "use", "module": "aisdk", "act": "open", "api": s.aisdk(), "chat": id}),
		id}
	c.opened()
	return c
}

func (c *aiChat) act(act string, more map[string]any) {
	c.t.Helper()
	command := map[string]any{"module": "aisdk", "act": act}
	for k, v := range more {
		command[k] = v
	}
	c.do("use", command)
}

// ready waits until the chat has an answer, and returns its last message.
func (c *aiChat) ready() aiMessage {
	c.t.Helper()
	messages, failed := c.state()
	if failed != "" {
		c.t.Fatalf("chat %s: %s", c.id, failed)
	}
	return messages[len(messages)-1]
}

func (c *aiChat) state() (messages []aiMessage, failed string) {
	c.t.Helper()
	h := c.next()
	var state struct {
		Status, Error string
		Messages      []aiMessage
	}
	if h.Event != "ready" || json.Unmarshal([]byte(h.Data), &state) != nil {
		c.t.Fatalf("chat %s: %+v", c.id, h)
	}
	return state.Messages, state.Error
}

func (c *aiChat) says(text string) aiMessage {
	c.t.Helper()
	c.act("say", map[string]any{"text": text})
	return c.ready()
}

// aiStream reads a stream of DefaultChatTransport to its end.
func (n *node) aiStream(s *server, act, chat string, more map[string]any) (chunks []string, m aiMessage) {
	n.t.Helper()
	command := map[string]any{"do": "use", "module": "aisdk", "act": act, "api": s.aisdk(), "chat": chat}
	for k, v := range more {
		command[k] = v
	}
	c := n.begin(command)
	for {
		switch h := c.next(); h.Event {
		case "chunk":
			chunks = append(chunks, h.Data)
		case "message":
			if err := json.Unmarshal([]byte(h.Data), &m); err != nil {
				n.t.Fatal(err)
			}
		case "nothing", "close":
			return chunks, m
		case "error":
			return append(chunks, fmt.Sprintf("%d %s", h.Code, h.Data)), m
		default:
			n.t.Fatalf("%+v", h)
		}
	}
}

// userSays is a list of messages with one of the user.
func userSays(id, text string) map[string]any {
	return map[string]any{"messages": []any{map[string]any{"id": id, "role": "user",
		"parts": []any{map[string]any{"type": "text", "text": text}}}}}
}

func TestAISDKChat(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := n.aiChat(s, "my chat")
	m := c.says("think about tea")
	if m.Role != "assistant" || !strings.Contains(m.text(), "I thought about tea") {
		t.Errorf("%+v", m)
	}
	if m.Parts[1].Type != "reasoning" || m.Metadata.Usage.TotalTokens == 0 ||
		m.Metadata.Usage.TotalTokens != m.Metadata.Usage.InputTokens+m.Metadata.Usage.OutputTokens {
		t.Errorf("%+v", m)
	}
	c.act("regenerate", nil)
	if again := c.ready(); again.ID == m.ID || again.text() != m.text() {
		t.Errorf("the other answer is %+v", again)
	}
	s.kill()
	s = s.again()
	c = n.aiChat(s, "my chat")
	if m := c.says("what did I say"); !strings.Contains(m.text(), "1. think about tea\n2. think about tea") {
		t.Errorf("after a restart: %q", m.text())
	}
	if list := s.events(m.Metadata.Session); len(list) == 0 {
		t.Error("the metadata does not name the session")
	}
}

func TestAISDKApprovals(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := n.aiChat(s, newThread())
	m := c.says("write tea to allowed.txt")
	p := m.tool(t)
	if p.State != "approval-requested" || !strings.Contains(p.Approval.Descriptor.Command, "allowed.txt") {
		t.Fatalf("%+v", p)
	}
	// A new message is refused while the run waits, and appends nothing.
	before := len(s.events(c.id))
	if got, _ := n.aiStream(s, "send", c.id, userSays("u9", "say on")); len(got) != 1 ||
		!strings.HasPrefix(got[0], "409 AI_APICallError: A tool call of this conversation waits for an answer.") {
		t.Errorf("%q", got)
	}
	if after := len(s.events(c.id)); after != before {
		t.Errorf("%d events were appended", after-before)
	}
	s.kill()
	s2 := n.restarted(s)
	c.act("answer", map[string]any{"id": p.Approval.ID, "approved": true})
	done := c.ready()
	if p := done.tool(t); done.ID != m.ID || p.State != "output-available" ||
		!strings.Contains(done.text(), "It is written.") {
		t.Errorf("%+v", done)
	}
	wantFile(t, s2, "allowed.txt", "tea")

	// A request without anything new gets the same answer again.
	list := map[string]any{"messages": []any{map[string]any{"id": m.ID, "role": "assistant", "parts": []any{
		map[string]any{"type": "dynamic-tool", "toolName": "write_file", "toolCallId": p.ToolCallID,
			"state": "approval-responded", "approval": map[string]any{"id": p.Approval.ID, "approved": true}}}}}}
	if got, _ := n.aiStream(s2, "send", c.id, list); len(got) != 1 ||
		!strings.HasPrefix(got[0], "409 AI_APICallError") {
		t.Errorf("answered again: %q", got)
	}

	m = c.says("write tea to denied.txt")
	c.act("answer", map[string]any{"id": m.tool(t).Approval.ID, "approved": false, "reason": "not today"})
	done = c.ready()
	if p := done.tool(t); p.State != "output-denied" || !strings.Contains(done.text(), "not today") {
		t.Errorf("%+v", done)
	}
	if status, _ := s2.get("/api/file?path=denied.txt", nil); status != http.StatusNotFound {
		t.Errorf("the file is there: %d", status)
	}

	m = c.says("ask me")
	c.act("output",
		map[string]any{"id": m.tool(t).ToolCallID, "output": map[string]any{"answers": [][]string{{"Tea"}}}})
	if done := c.ready(); !strings.Contains(done.text(), "Your answer: Tea.") {
		t.Errorf("%+v", done)
	}
}

// A client that lost its connection reads the answer again from its beginning.
// The chunks are identical, byte for byte, also after a crash.
func TestAISDKResume(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	chat, to := newThread(), n.tempo(s).count(10, 150)
	ask := userSays("u1", fmt.Sprint("count to ", to))
	ask["leave"] = 12
	seen, _ := n.aiStream(s, "send", chat, ask)
	replay, m := n.aiStream(s, "resume", chat, map[string]any{"leave": 20})
	if len(seen) != 12 || !isPrefix(seen, replay) {
		t.Errorf("seen was\n%s\nand the replay is\n%s", strings.Join(seen, "\n"), strings.Join(replay, "\n"))
	}
	s.kill()
	s = s.again()
	whole, m := n.aiStream(s, "resume", chat, nil)
	if !isPrefix(replay, whole) {
		t.Errorf("the replay was\n%s\nand is\n%s", strings.Join(replay, "\n"), strings.Join(whole, "\n"))
	}
	text := ""
	for _, p := range m.Parts { // the answer was cut off and continued
		if p.Type == "text" {
			text += p.Text
		}
	}
	if text != counted(to) {
		t.Errorf("cut and continued it reads %q", text)
	}
	if got, _ := n.aiStream(s, "resume", chat, nil); got != nil {
		t.Errorf("nothing runs, and came %q", got)
	}
	delete(ask, "leave")
	before := len(s.events(chat))
	if again, _ := n.aiStream(s, "send", chat, ask); strings.Join(again, "\n") != strings.Join(whole, "\n") {
		t.Errorf("sent again it is answered\n%s", strings.Join(again, "\n"))
	}
	if after := len(s.events(chat)); after != before {
		t.Errorf("%d events were appended", after-before)
	}
}

func isPrefix(a, b []string) bool {
	return len(a) <= len(b) && strings.Join(a, "\n") == strings.Join(b[:len(a)], "\n")
}

func TestAISDKStop(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	chat := newThread()
	c := n.begin(map[string]any{"do": "use", "module": "aisdk", "act": "send", "api": s.aisdk(), "chat": chat,
		"messages": userSays("u1", "count slowly to 100")["messages"]})
	for !strings.Contains(c.next().Data, "text-delta") {
	}
	if status, body := n.fetch(s, "POST", "/api/aisdk/chats/"+chat+"/stop", ""); status != http.StatusOK ||
		strings.TrimSpace(body) != `{"stopped":true}` {
		t.Errorf("%d %s", status, body)
	}
	last := ""
	for {
		h := c.next()
		if h.Event == "message" {
			break
		}
		last = h.Data
	}
	if last != `{"type":"abort","reason":"The answer was cancelled."}` {
		t.Errorf("it ends with %s", last)
	}
	if status, body := n.fetch(s, "POST", "/api/aisdk/chats/"+chat+"/stop", ""); status != http.StatusOK ||
		strings.TrimSpace(body) != `{"stopped":false}` {
		t.Errorf("%d %s", status, body)
	}
}
