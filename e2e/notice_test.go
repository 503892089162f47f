package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Clients that know only the types of their document, and so show no cards.

// A heard is a message with the fields of documents 001 and 002, and the field
// that marks a notice of a card.
type heard struct {
	Type, Reasoning, Content, Card string
	raw                            string
}

// hears returns the next message of a type that the client knows.
func (c *socket) hears(known ...string) (m heard) {
	c.t.Helper()
	for {
		m = heard{raw: c.frame().raw}
		if err := json.Unmarshal([]byte(m.raw), &m); err != nil {
			c.t.Fatalf("%v in %s", err, m.raw)
		}
		if slices.Contains(known, m.Type) {
			return m
		}
	}
}

var (
	types001 = []string{"user_message", "agent_message", "tool_call", "tool_result", "agent_thinking", "error"}
	types002 = []string{"chat.started", "content", "chat.completed", "error", "cancelled"}
)

// page checks that a notice names the page of a session on this server. The
// page must exist, unless the binary was built without the console.
func (s *server) page(words, session string) {
	s.t.Helper()
	at := fmt.Sprintf(" at http://%s/chat/%s", s.address, session)
	if !strings.HasSuffix(strings.TrimSpace(words), at) {
		s.t.Errorf("%q does not name%s", words, at)
	}
	if strings.Contains(strings.Join(s.log.all(), "\n"), "built without the console") {
		return
	}
	status, body := s.get("/chat/"+session, http.Header{"Accept": {"text/html"}})
	if status != http.StatusOK || !strings.Contains(body, "<html") {
		s.t.Errorf("GET /chat/%s: %d %.100s", session, status, body)
	}
}

// The document's example client of thread chat prints the content: the notice
// of the card among it, once, and apart from the answer.
func TestAThreadChatClientWithoutCardsIsTold(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	c, cards := n.enter(s, thread, ""), n.dial(s, thread)
	c.ask("write patience to note.txt")
	var text string
	var told heard
	for told.Card == "" {
		m := c.hears(types002...)
		if m.Card != "" {
			told = m
		}
		text += m.Content
	}
	if !strings.HasPrefix(told.Content, "\n\nWaiting for approval of write_file: Write 8 bytes to \"note.txt\"") {
		t.Errorf("%s", told.raw)
	}
	s.page(told.Content, thread)

	// A client that reconnects gets the run from its start, with the same words
	// in the same place, so that it can compare and skip.
	c.terminate()
	again := n.enter(s, thread, "")
	var repeated string
	for repeated != text {
		m := again.hears(types002...)
		if repeated += m.Content; !strings.HasPrefix(text, repeated) {
			t.Fatalf("after %q came %s, not the rest of %q", repeated, m.raw, text)
		}
	}
	if status, answer := n.fetch(s, "POST", "/api/v1/approvals/"+told.Card, `{"decision":"allow"}`); status != 202 {
		t.Fatalf("%d %s", status, answer)
	}
	var rest string
	for m := again.hears(types002...); m.Type != "chat.completed"; m = again.hears(types002...) {
		if rest += m.Content; m.Card != "" {
			t.Errorf("told again: %s", m.raw)
		}
	}
	if !strings.HasPrefix(rest, "\n\nIt is written.") {
		t.Errorf("%q", rest)
	}
	var answer string
	for m := cards.hears(types002...); m.Type != "chat.completed"; m = cards.hears(types002...) {
		if answer += m.Content; m.Card != "" {
			t.Errorf("a client that shows cards is told %s", m.raw)
		}
	}
	if want := strings.Replace(text, told.Content, "", 1) + rest; answer != want {
		t.Errorf("the answer is %q, and without the words about the card %q", answer, want)
	}
	wantFile(t, s, "note.txt", "patience")
}

// A client of agent chat gets a thought: when the card comes, or, if its user
// was not told, when it connects. It gets it only once.
func TestAnAgentChatClientWithoutCardsIsTold(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	dial := func() *socket {
		c := n.open("ws://"+s.address+"/ws", nil)
		c.opened()
		c.settle()
		return c
	}
	session := newThread()
	s.send("/sessions", `{"id":"`+session+`"}`)
	s.tells(session, "ask me") // no client of agent chat is connected
	s.awaitEvent(session, func(e event) bool { return e.Type == "QuestionAsked" })
	c := n.open("ws://"+s.address+"/ws", nil)
	c.opened()
	told := c.hears(types001...)
	if told.Type != "agent_thinking" || told.Card == "" ||
		!strings.HasPrefix(told.Reasoning, "Waiting for an answer: ") {
		t.Errorf("%s", told.raw)
	}
	s.page(told.Reasoning, session)
	c.terminate()
	c = dial() // dial takes the first messages
	c.chat("write patience to note.txt", "")
	var kinds []string
	for told = c.hears(types001...); told.Card == ""; told = c.hears(types001...) {
		kinds = append(kinds, told.Type)
	}
	if want := []string{"user_message", "agent_message", "tool_call"}; !slices.Equal(kinds, want) ||
		!strings.HasPrefix(told.Reasoning, "Waiting for approval of write_file: Write 8 bytes") {
		t.Errorf("%v %s", kinds, told.raw)
	}
	c.terminate()
	c = dial()
	for _, words := range []string{"Waiting for", `"card"`} {
		if strings.Contains(c.history(), words) {
			t.Errorf("who comes back is told again:\n%s", c.history())
		}
	}
	if status, answer := n.fetch(s, "POST", "/api/v1/approvals/"+told.Card, `{"decision":"allow"}`); status != 202 {
		t.Fatalf("%d %s", status, answer)
	}
	for m := c.hears(types001...); m.Type != "agent_message"; m = c.hears(types001...) {
		if m.Card != "" {
			t.Errorf("told again: %s", m.raw)
		}
	}
	wantFile(t, s, "note.txt", "patience")
}
