package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// An agent is an HttpAgent of npm @ag-ui/client on one thread.
type aguiAgent struct {
	*socket
	thread string
	events []string // events of the last run
}

type aguiState struct {
	Messages []struct {
		ID, Role, Content, ToolCallID string
		ToolCalls                     []struct {
			ID       string
			Function struct{ Name, Arguments string }
		}
	}
	Interrupts []struct {
		ID, Reason, Message, ToolCallID, ExpiresAt string
	}
	Pending []string
}

// text is the last message of the agent.
func (s aguiState) text() string { return s.Messages[len(s.Messages)-1].Content }

func (n *node) agui(s *server, thread string) *aguiAgent {
	n.t.Helper()
	a := &aguiAgent{socket: n.begin(map[string]any{"do": "use", "module": "agui", "act": "open", "thread": thread,
		"url": "http://" + s.address + "/api/agui/helpful-assistant"}), thread: thread}
	a.opened()
	return a
}

func (a *aguiAgent) start(more map[string]any) {
	a.t.Helper()
	command := map[string]any{"module": "agui", "act": "run"}
	for k, v := range more {
		command[k] = v
	}
	a.do("use", command)
	a.events = nil
}

// run starts a run and waits for its end.
func (a *aguiAgent) run(more map[string]any) aguiState {
	a.t.Helper()
	a.start(more)
	return a.ready()
}

// ready waits for the end of the run.
func (a *aguiAgent) ready() (s aguiState) {
	a.t.Helper()
	for {
		switch h := a.next(); h.Event {
		case "event":
			a.events = append(a.events, h.Data)
		case "ready":
			if err := json.Unmarshal([]byte(h.Data), &s); err != nil {
				a.t.Fatal(err)
			}
			return s
		default:
			a.t.Fatalf("thread %s: %s %d %s", a.thread, h.Event, h.Code, h.Data)
		}
	}
}

// last is the last event of the run.
func (a *aguiAgent) last() string { return a.events[len(a.events)-1] }

func says1(text string) map[string]any { return map[string]any{"text": text} }

// resolves answers an interrupt.
func resolves(id string, payload any) map[string]any {
	return map[string]any{"resume": []any{map[string]any{"interruptId": id, "status": "resolved", "payload": payload}}}
}

func TestAGUIRuns(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	a := n.agui(s, "my thread")
	more := says1("think about tea")
	more["runId"] = "run-1"
	if r := a.run(more); !strings.Contains(r.text(), "I thought about tea") {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(a.events[0], `"threadId":"my thread","runId":"run-1"`) {
		t.Errorf("it starts with %s", a.events[0])
	}
	var finished struct {
		Type    string
		Outcome struct{ Type string }
		Usage   []struct{ InputTokens, OutputTokens, TotalTokens int }
	}
	if err := json.Unmarshal([]byte(a.last()), &finished); err != nil || finished.Outcome.Type != "success" ||
		len(finished.Usage) != 1 || finished.Usage[0].TotalTokens == 0 {
		t.Errorf("it ends with %s", a.last())
	}
	s.kill()
	s2 := n.restarted(s)
	if r := a.run(says1("what did I say")); !strings.Contains(r.text(), "1. think about tea") ||
		strings.Contains(r.text(), "3.") {
		t.Errorf("after a restart: %q", r.text())
	}
	if r := a.run(says1("fail")); len(r.Interrupts) > 0 {
		t.Errorf("%+v", r)
	}
	if !strings.HasPrefix(a.last(), `{"type":"RUN_ERROR","message":`) {
		t.Errorf("it fails with %s", a.last())
	}
	a.start(says1("count slowly to 100"))
	for {
		h := a.next()
		if a.events = append(a.events, h.Data); strings.Contains(h.Data, "TEXT_MESSAGE_CONTENT") {
			break
		}
	}
	if status, body := n.fetch(s2, "POST", "/api/agui/threads/my%20thread/stop", ""); status != http.StatusOK ||
		strings.TrimSpace(body) != `{"stopped":true}` {
		t.Errorf("%d %s", status, body)
	}
	if a.ready(); !strings.Contains(a.last(), `"outcome":{"type":"cancelled"}`) {
		t.Errorf("cancelled, it ends with %s", a.last())
	}
}

func TestAGUIInterrupts(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	a := n.agui(s, newThread())
	r := a.run(says1("write tea to allowed.txt"))
	if len(r.Interrupts) != 1 || r.Interrupts[0].Reason != "tool_call" ||
		!strings.Contains(r.Interrupts[0].Message, "allowed.txt") {
		t.Fatalf("%+v", r)
	}
	allowed := r.Interrupts[0]
	before := len(s.events(a.thread))
	// Another client of the thread sends a new message instead: nothing is
	// appended.
	other := n.agui(s, a.thread)
	other.run(says1("say on"))
	if want := `{"type":"RUN_ERROR","message":"This thread is interrupted:`; !strings.HasPrefix(other.last(), want) {
		t.Errorf("interrupted: %s", other.last())
	}
	other = n.agui(s, a.thread)
	for _, payload := range []any{nil, map[string]any{}, map[string]any{"approved": "yes"}} {
		other.start(resolves(allowed.ID, payload))
		if h := other.next(); h.Event != "error" || h.Code != http.StatusBadRequest {
			t.Errorf("answered with %v: %+v", payload, h)
		}
	}
	other.run(resolves(a.thread+".1", map[string]any{"approved": true}))
	if !strings.Contains(other.last(), `"code":"closed"`) {
		t.Errorf("an answer to nothing: %s", other.last())
	}
	if after := len(s.events(a.thread)); after != before {
		t.Errorf("%d events were appended", after-before)
	}
	s.kill()
	s = n.restarted(s)
	yes := resolves(allowed.ID, map[string]any{"approved": true})
	if r = a.run(yes); !strings.Contains(r.text(), "It is written.") || len(r.Interrupts) > 0 {
		t.Errorf("%+v", r)
	}
	wantFile(t, s, "allowed.txt", "tea")
	resumed := strings.Join(a.events, "\n")
	if strings.Contains(resumed, "TOOL_CALL_START") || strings.Count(resumed, "TOOL_CALL_RESULT") != 1 ||
		strings.Count(resumed, "RUN_STARTED") != 1 {
		t.Errorf("the resumed run is\n%s", resumed)
	}
	// The same answer again gets the same events and has no effect; another
	// answer is an error.
	before = len(s.events(a.thread))
	if other.run(yes); strings.Join(other.events, "\n") != resumed {
		t.Errorf("answered again:\n%s\nand first\n%s", strings.Join(other.events, "\n"), resumed)
	}
	if other.run(resolves(allowed.ID, map[string]any{"approved": false})); !strings.Contains(other.last(),
		`"code":"closed"`) {
		t.Errorf("answered in another way: %s", other.last())
	}
	if after := len(s.events(a.thread)); after != before {
		t.Errorf("%d events were appended", after-before)
	}

	r = a.run(says1("write tea to denied.txt"))
	r = a.run(resolves(r.Interrupts[0].ID, map[string]any{"approved": false, "note": "not today"}))
	if !strings.Contains(r.text(), "not today") {
		t.Errorf("%+v", r)
	}
	r = a.run(says1("write tea to denied.txt"))
	r = a.run(map[string]any{"resume": []any{map[string]any{"interruptId": r.Interrupts[0].ID, "status": "cancelled"}}})
	if !strings.Contains(r.text(), "That came to nothing.") {
		t.Errorf("%+v", r)
	}
	if status, _ := s.get("/api/file?path=denied.txt", nil); status != http.StatusNotFound {
		t.Errorf("the file is there: %d", status)
	}
	r = a.run(says1("ask me"))
	if r = a.run(resolves(r.Interrupts[0].ID, map[string]any{"answers": [][]string{{"Tea"}}})); !strings.Contains(
		r.text(), "Your answer: Tea.") {
		t.Errorf("%+v", r)
	}
}

// threadStream follows a thread with an EventSource, which reconnects by
// itself.
func (n *node) threadStream(s *server, thread string, more map[string]any) *socket {
	n.t.Helper()
	command := map[string]any{"do": "listen", "url": fmt.Sprintf("http://%s/api/agui/threads/%s/stream%s", s.address,
		thread, more["query"])}
	if leave, ok := more["leave"]; ok {
		command["leave"] = leave
	}
	return n.begin(command)
}

// upTo reads messages up to one that contains a text.
func (c *socket) upTo(words string) (messages []happened) {
	c.t.Helper()
	for {
		h := c.next()
		if h.Event == "message" {
			messages = append(messages, h)
			if strings.Contains(h.Data, words) {
				return messages
			}
		}
		if h.Event == "close" {
			return messages
		}
	}
}

// A client that lost its connection continues after its last event, also after
// a crash. No event is lost or comes twice.
func TestAGUIResume(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	a := n.agui(s, newThread())
	more := says1("count to 150") // about 3 s
	more["leave"] = 12
	a.run(more)
	seen := n.threadStream(s, a.thread, map[string]any{"query": "", "leave": 20}).upTo("no such words")
	if len(seen) != 20 || !isPrefix(a.events[:12], datas(seen)) {
		t.Fatalf("the run was\n%s\nand the thread has\n%s", strings.Join(a.events, "\n"),
			strings.Join(datas(seen), "\n"))
	}
	s.kill()
	s = s.again()
	rest := n.threadStream(s, a.thread, map[string]any{"query": "?last_event_id=" + seen[19].ID}).upTo("RUN_FINISHED")
	text := ""
	for _, data := range append(datas(seen), datas(rest)...) {
		var e struct{ Type, Delta string }
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "TEXT_MESSAGE_CONTENT" {
			text += e.Delta
		}
	}
	if text != counted(150) {
		t.Errorf("cut and continued it reads %q", text)
	}
	// The run has ended; the events from before the crash are unchanged.
	again := n.threadStream(s, a.thread, map[string]any{"query": "?last_event_id=" + seen[4].ID}).upTo("RUN_FINISHED")
	if want := append(datas(seen[5:]), datas(rest)...); strings.Join(datas(again), "\n") != strings.Join(want, "\n") {
		t.Errorf("a replay is\n%s\nand was\n%s", strings.Join(datas(again), "\n"), strings.Join(want, "\n"))
	}
	for _, id := range []string{"x-1.1.1", seen[0].ID[:10] + "9", strings.Replace(seen[0].ID, ".", ".9999999", 1),
		"7"} {
		status, body := s.get("/api/agui/threads/"+a.thread+"/stream?last_event_id="+id, nil)
		if status != http.StatusGone || !strings.Contains(body, `"type":"RUN_ERROR"`) ||
			!strings.Contains(body, `"code":"resync"`) {
			t.Errorf("%s: %d %s", id, status, body)
		}
	}
}

func datas(messages []happened) (list []string) {
	for _, m := range messages {
		list = append(list, m.Data)
	}
	return list
}
