package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A bus is an EventSource of npm on GET /api/events. It reconnects by itself.
type bus struct {
	t      *testing.T
	name   string
	node   *node
	events *list[happened]
	read   int
	last   int64 // seq
}

// A note is a message of the bus. Each kind has some of the fields.
type note struct {
	ID        string
	Seq, Rev  int64
	TsMs      int64 `json:"ts_ms"`
	Kind      string
	Phase     string
	Text      string
	AgentID   string `json:"agent_id"`
	SessionID string `json:"session_id"`
	// SessionName is the name that a client gave the session.
	SessionName string `json:"session_name"`
	Root        string `json:"project_root"`
	Data        struct {
		From, To, Role, Status string
		Thinking               bool
		Items                  []struct{ Preview string }
		Question               string `json:"question_id"`
		Questions              []struct {
			Question, Header string
			Options          []struct{ Label string }
		}
		Widget     string `json:"widget_id"`
		Resolution string
		Outcome    struct {
			Type   string
			Status string `json:"run_status"`
		}
		Tool, Reason string
		Stream       string
		Parent       string `json:"parent_id"`
		ParentRun    string `json:"parent_run_id"`
		Subagent     string `json:"subagent_id"`
		Child        string `json:"subagent_session_id"`
	}
	raw, at string // at: the id on the stream
}

// tune connects. The bus gets everything that happens from then on.
func (n *node) tune(s *server, query string) *bus {
	n.t.Helper()
	c := n.begin(map[string]any{"do": "listen", "url": "http://" + s.address + "/api/events" + query})
	b := &bus{t: n.t, name: c.name, node: n, events: c.events}
	if h := b.happens(); h.Event != "open" {
		n.t.Fatalf("bus %s: %+v", b.name, h)
	}
	return b
}

// begin starts a client in Node.js.
func (n *node) begin(command map[string]any) *socket {
	n.t.Helper()
	c := n.newSocket()
	command["socket"] = c.name
	n.do(command)
	return c
}

// fetch sends a request with the fetch of Node.js.
func (n *node) fetch(s *server, method, path, body string) (int, string) {
	n.t.Helper()
	h := n.begin(map[string]any{"do": "fetch", "url": "http://" + s.address + path, "method": method,
		"body": body}).next()
	if h.Event != "answer" {
		n.t.Fatalf("%s %s: %+v", method, path, h)
	}
	return h.Code, strings.TrimSpace(h.Data)
}

// post sends a request that must be accepted, and reads the answer.
func (n *node) post(s *server, path, body string, answer any) {
	n.t.Helper()
	status, raw := n.fetch(s, "POST", path, body)
	if status != http.StatusOK || json.Unmarshal([]byte(raw), answer) != nil {
		n.t.Fatalf("POST %s %s: %d %s", path, body, status, raw)
	}
}

type accepted struct {
	Status    string
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
}

// say sends a message, to a session or to a new one.
func (n *node) say(s *server, session, message string) (a accepted) {
	n.t.Helper()
	body := map[string]string{"message": message}
	if session != "" {
		body["session_id"] = session
	}
	raw, _ := json.Marshal(body) // the fields are strings: Marshal cannot fail
	n.post(s, "/api/chat", string(raw), &a)
	return a
}

func (b *bus) happens() happened {
	b.t.Helper()
	h, err := b.events.at(within(b.t, patience), b.read)
	if err != nil {
		b.t.Fatalf("bus %s: %v; before that:\n%s", b.name, err, b.history())
	}
	b.read++
	return h
}

func (b *bus) history() string {
	var lines strings.Builder
	for _, h := range b.events.all() {
		fmt.Fprintf(&lines, "\t%s %s %.200s\n", h.Event, h.ID, h.Data)
	}
	return lines.String()
}

// next returns the next message. Each has a later position than the one before,
// except cards that a new client is shown.
func (b *bus) next() (m note) {
	b.t.Helper()
	h := b.happens()
	for h.Event != "message" { // the client lost its connection and reconnected
		h = b.happens()
	}
	m.raw, m.at = h.Data, h.ID
	if err := json.Unmarshal([]byte(h.Data), &m); err != nil {
		b.t.Fatalf("%v in %s", err, h.Data)
	}
	if m.Seq <= b.last || m.Rev != m.Seq || m.SessionID == "" && m.Phase != "resync" && m.Phase != "sync" {
		b.t.Fatalf("bus %s: after %d came %s", b.name, b.last, h.Data)
	}
	b.last = m.Seq
	return m
}

// until takes messages up to one of a kind and phase, and returns all of them.
func (b *bus) until(kind, phase string) (list []note) {
	b.t.Helper()
	for {
		m := b.next()
		if list = append(list, m); m.Kind == kind && (phase == "*" || m.Phase == phase) {
			return list
		}
	}
}

func last(list []note) note { return list[len(list)-1] }

// steps returns the messages in short form, with repeated ones as one.
func steps(list []note) (short []string) {
	for _, m := range list {
		s := strings.TrimSuffix(m.Kind+"/"+m.Phase, "/")
		switch m.Kind {
		case "message":
			s += " " + m.Data.From + ": " + m.Text
		case "activity":
			s += " " + m.Text
		case "token":
			if m.Data.Thinking {
				s += " thinking"
			}
		case "queue":
			s += " " + m.Text
		}
		if len(short) == 0 || short[len(short)-1] != s {
			short = append(short, s)
		}
	}
	return short
}

func wantSteps(t *testing.T, list []note, want ...string) {
	t.Helper()
	if got := steps(list); !slices.Equal(got, want) {
		t.Fatalf("came\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// The document's "Event flow: single agent turn", with every status in between.
func TestEventBusShowsATurnAsItsDocumentHasIt(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	if err := os.WriteFile(filepath.Join(s.o.workspace, "file.ts"), []byte("export {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := n.tune(s, "")
	a := n.say(s, "", "think about tea")
	if a.Status != "started" || !strings.HasPrefix(a.RunID, "run-"+a.SessionID+"-") {
		t.Fatalf("%+v", a)
	}
	list := b.until("turn_complete", "")
	list = slices.DeleteFunc(list, func(m note) bool { return m.Phase == "context_usage" })
	answer := list[len(list)-5].Text
	wantSteps(t, list,
		"run/sync", "message user: think about tea",
		"activity/doing Model loading...", "activity/done Model loading...", "activity/doing Thinking...",
		"token thinking", "token/done thinking",
		"activity/done Thinking...", "activity/doing Working...", "token", "token/done", "text_segment",
		"message helpful-assistant: "+answer,
		"activity/done Working...", "activity/done Idle", "run/outcome", "turn_complete")
	said := ""
	for _, m := range list {
		if m.SessionID != a.SessionID || m.Root != s.o.workspace || m.at == "" {
			t.Errorf("%s of %s", m.at, m.raw)
		}
		if m.Kind == "token" && !m.Data.Thinking {
			said += m.Text
		}
		if m.Kind == "text_segment" && m.Text != said {
			t.Errorf("the segment is %q, its tokens are %q", m.Text, said)
		}
	}
	if answer == "" || answer != said {
		t.Errorf("the answer is %q, its tokens are %q", answer, said)
	}

	n.say(s, a.SessionID, "read file.ts")
	list = b.until("turn_complete", "")
	for _, want := range []string{"content_block/start", "activity/doing Reading file.ts", "content_block/update",
		"activity/done Reading file.ts"} {
		if !slices.Contains(steps(list), want) {
			t.Errorf("no %s in\n\t%s", want, strings.Join(steps(list), "\n\t"))
		}
	}
	n.say(s, a.SessionID, "fail")
	list = b.until("turn_complete", "")
	if !slices.Contains(steps(list), "message system: The demo model failed, as it was asked to.") {
		t.Errorf("came\n\t%s", strings.Join(steps(list), "\n\t"))
	}
}

// A message to a busy agent is shown as waiting, and reaches the model once.
// The original also ran it again (docs/dialects/eventbus.md, bug 1).
func TestEventBusQueuesWhileBusy(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	to := n.tempo(s).slowCount(10, 6)
	b := n.tune(s, "")
	first := n.say(s, "", fmt.Sprint("count slowly to ", to))
	b.until("token", "")
	second := n.say(s, first.SessionID, "say two")
	if second.Status != "queued" || second.SessionID != first.SessionID || second.RunID != "" {
		t.Fatalf("%+v", second)
	}
	queued := last(b.until("queue", ""))
	if queued.Text != "Queued 1 message" || len(queued.Data.Items) != 1 || queued.Data.Items[0].Preview != "say two" {
		t.Errorf("%s", queued.raw)
	}
	list := b.until("turn_complete", "")
	var said []string
	for _, m := range list {
		if m.Kind == "message" && m.Data.Role == "assistant" || m.Kind == "queue" {
			said = append(said, m.Text)
		}
	}
	if want := []string{counted(to), "Queued 0 messages", "two"}; !slices.Equal(said, want) {
		t.Errorf("said were %q", said)
	}
	n.say(s, first.SessionID, "what did I say")
	list = b.until("turn_complete", "")
	if text := steps(list); !slices.ContainsFunc(text,
		func(s string) bool { return strings.Count(s, "say two") == 1 }) || list[0].Text != "what did I say" {
		t.Errorf("%q", text) // there must be no other run for it
	}
}

// answer answers a card with a label.
func (n *node) answerCard(s *server, id, label, note string) (int, string) {
	n.t.Helper()
	raw, _ := json.Marshal(
		map[string]any{"question_id": id,
			"answers": []any{map[string]any{"question_index": 0, "selected": []string{label}, "custom_text": note}}})
	return n.fetch(s, "POST", "/api/ask-user-response", string(raw))
}

// Approvals and questions, with a restart of the server in between. In the
// original a quick answer was unknown, and open cards were not listed after a
// reconnect (docs/dialects/eventbus.md, bug 4).
func TestEventBusAsks(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			b := n.tune(s, "")
			n.say(s, "", "write patience to note.txt")
			card := last(b.until("ask_user", ""))
			q := card.Data.Questions[0]
			if q.Header != "Permission" || !strings.HasSuffix(q.Question, "\n\npatience") || len(q.Options) != 5 {
				t.Fatalf("the card is %s", card.raw)
			}
			way.end(s)
			wantNoFile(t, s, "note.txt")
			s = s.again()
			b, late := n.tune(s, ""), n.tune(s, "")
			for _, b := range []*bus{b, late} {
				if m := b.next(); m.raw != card.raw {
					t.Fatalf("the card was %s and is %s", card.raw, m.raw)
				}
			}
			id := card.Data.Question
			for _, c := range []struct {
				id, label string
				status    int
				says      string
			}{
				{id, "Maybe", 400, `{"error":"answers[0].selected must be one of`},
				{id, "Always allow similar", 400, `{"error":"No rule for similar calls was offered`},
				{"nothing", "Deny", 404, `{"error":"Unknown question_id"}`},
				{strings.TrimRight(id, "0123456789") + "1", "Deny", 404, `{"error":"Unknown question_id"}`},
				{strings.TrimRight(id, "0123456789") + "999", "Deny", 404, `{"error":"Unknown question_id"}`},
				{id, "Allow once", 200, `{"status":"ok"}`},
				{id, "Allow once", 410, `{"error":"This was already answered, has expired or never was."}`},
			} {
				if status, body := n.answerCard(s, c.id, c.label, ""); status != c.status ||
					!strings.HasPrefix(body, c.says) {
					t.Errorf("%s %s: %d %s", c.id, c.label, status, body)
				}
			}
			for _, b := range []*bus{b, late} {
				if m := b.next(); m.Kind != "widget_resolved" || m.Data.Widget != id || m.Data.Resolution != "allow" {
					t.Errorf("the card is cleared by %s", m.raw)
				}
				b.until("turn_complete", "")
			}
			wantFile(t, s, "note.txt", "patience")

			n.say(s, "", "ask me")
			card = last(b.until("ask_user", ""))
			if card.Data.Questions[0].Header != "Drink" || card.Data.Questions[0].Options[1].Label != "Coffee" {
				t.Fatalf("the question is %s", card.raw)
			}
			if status, body := n.answerCard(s, card.Data.Question, "Water", ""); status != 400 {
				t.Errorf("%d %s", status, body)
			}
			// An answer may be a plain string.
			if status, body := n.fetch(s, "POST", "/api/ask-user-response",
				`{"question_id":"`+card.Data.Question+`","answers":["Coffee"]}`); status != 200 {
				t.Errorf("%d %s", status, body)
			}
			if list := b.until("turn_complete", ""); !slices.Contains(steps(list), "widget_resolved") ||
				!strings.Contains(strings.Join(steps(list), "\n"), "Your answer: Coffee.") {
				t.Errorf("%q", steps(list))
			}
		})
	}
}

type runLine struct {
	RunID   string `json:"run_id"`
	Session string `json:"session_id"`
	Parent  string `json:"parent_run_id"`
	Agent   string `json:"agent_id"`
	Status  string
	Detail  string
	Repo    string `json:"repo_path"`
	Started int64  `json:"started_at"`
	Ended   int64  `json:"ended_at"`
}

func (n *node) runs(s *server, path string) (list []runLine) {
	n.t.Helper()
	if status, body := n.fetch(s, "GET", path, ""); status != 200 || json.Unmarshal([]byte(body), &list) != nil {
		n.t.Fatalf("GET %s: %d %s", path, status, body)
	}
	return list
}

// Lines of stderr are marked, and come in the order in which they were printed.
func TestEventBusTellsStderrFromStdout(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	agentFile(t, workspace, "runner", "approval: full-auto")
	s, n := startServer(t, options{workspace: workspace}), startNode(t)
	b := n.tune(s, "")
	n.say(s, "", "run echo one; sleep 0.3; echo two >&2; sleep 0.3; echo three")
	var lines []string
	for _, m := range b.until("turn_complete", "*") {
		if m.Kind == "tool_progress" {
			lines = append(lines, m.Data.Stream+" "+m.Text)
		}
	}
	if want := []string{"stdout one", "stderr two", "stdout three"}; !slices.Equal(lines, want) {
		t.Errorf("printed was %q\n%s", lines, b.history())
	}
}
