package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// All checks come before the upgrade, in this order. Agents of other tenants do
// not exist for the client.
func TestDebugConsoleChecksBeforeTheUpgrade(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, withAgents(t, jwt())), startNode(t)
	admin := s.visitor("root@acme", time.Hour, "org_admin")
	ann, reader := s.user("ann"), s.visitor("rita@acme", time.Hour, "read_only")
	admin.must(http.StatusOK, http.MethodPost, "/api/v1/agents/vault/stop", "")
	now := time.Now().Unix()
	made := func(kind string, until int64) *visitor {
		claims := fmt.Sprintf(
			`{"iss":"parley","sub":"ann","tid":"acme","roles":["org_admin"],"type":%q,"iat":%d,"exp":%d}`, kind,
			now-900, until)
		return &visitor{s, "ann", handmade(`{"alg":"HS256","typ":"JWT"}`, claims, secret)}
	}
	for name, c := range map[string]struct {
		who    *visitor
		agent  string
		status int
		body   string
	}{
		"no token": {&visitor{s, "nobody", ""}, "scout", 401,
			`{"error":"missing access_token"}`},
		"an expired one": {made("access", now-60), "scout", 401, `{"error":"token expired"}`},
		"no real token": {&visitor{s, "nobody", "x.y.z"}, "scout", 401,
			`{"error":"invalid token"}`},
		"a refresh token": {made("refresh", now+600), "scout", 401,
			`{"error":"invalid token type"}`},
		"who may only look": {reader, "scout", 403,
			`{"error":"insufficient permissions","reason":"You may not do this: it needs agents:message."}`},
		"who may only look, at no agent": {reader, "nobody", 403,
			`{"error":"insufficient permissions","reason":"You may not do this: it needs agents:message."}`},
		"an agent that is for others": {ann, "vault", 403,
			`{"error":"insufficient permissions","reason":"You may not talk to the agent vault."}`},
		"no such agent":              {ann, "nobody", 404, `{"error":"agent not found"}`},
		"an agent of another tenant": {s.user("eve@rival"), "scout", 404, `{"error":"agent not found"}`},
		"an agent of another, as an admin": {s.visitor("eve@rival", time.Hour, "org_admin"), "scout", 404,
			`{"error":"agent not found"}`},
		"a stopped agent": {s.visitor("dora@acme", time.Hour, "dept_head"), "vault", 503,
			`{"error":"agent is not running"}`},
		"a stopped agent that is for others": {ann, "vault", 403,
			`{"error":"insufficient permissions","reason":"You may not talk to the agent vault."}`},
	} {
		url := c.who.consoleURL(c.agent)
		if c.who.token == "" {
			url, _, _ = strings.Cut(url, "?")
		}
		status, body := n.open(url, nil).refused()
		if status != c.status || strings.TrimSpace(body) != c.body {
			t.Errorf("%s: %d %s, want %d %s", name, status, body, c.status, c.body)
		}
	}
	for _, path := range []string{"message", "stream", "context"} {
		body := `{"content":"say x","context":"x"}`
		reader.must(http.StatusForbidden, http.MethodPost, "/api/v1/agents/scout/"+path, body)
		ann.must(http.StatusNotFound, http.MethodPost, "/api/v1/agents/nobody/"+path, body)
		ann.must(http.StatusForbidden, http.MethodPost, "/api/v1/agents/vault/"+path, body)
		s.user("eve@rival").must(http.StatusNotFound, http.MethodPost, "/api/v1/agents/scout/"+path, body)
	}
}

// The original kept conversations with stopped agents open. Here their sockets
// are closed, and the stop outlasts the server.
func TestDebugConsoleClosesWhenTheAgentStops(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, withAgents(t, jwt())), startNode(t)
			head := s.visitor("dora@acme", time.Hour, "dept_head")
			silent, busy, other := head.console(n, "scout"), head.console(n, "scout"), head.console(n, "vault")
			busy.say("count to 20")
			busy.upTo("chunk")
			s.user("ann").must(http.StatusForbidden, http.MethodPost, "/api/v1/agents/scout/stop", "")
			head.must(http.StatusNotFound, http.MethodPost, "/api/v1/agents/nobody/stop", "")
			for range 2 {
				if got := head.must(http.StatusOK, http.MethodPost, "/api/v1/agents/scout/stop", ""); !strings.Contains(
					got, `"status":"stopped"`) {
					t.Errorf("%s", got)
				}
			}
			if reason := silent.closed(1001); reason != "agent is not running" {
				t.Errorf("%s", reason)
			}
			if code := busy.gone(); code != 1001 {
				t.Errorf("closed with %d", code)
			}
			other.quiet()
			stopped := func(s *server) {
				t.Helper()
				head := s.visitor("dora@acme", time.Hour, "dept_head")
				if status, body := n.open(head.consoleURL("scout"), nil).refused(); status != 503 ||
					strings.TrimSpace(body) != `{"error":"agent is not running"}` {
					t.Errorf("%d %s", status, body)
				}
				for path, want := range map[string]string{"/api/v1/agents/scout/message": `{"error":"agent not running"}`, "/api/v1/agents/scout/stream": `{"error":"agent not running"}`,
					"/api/v1/sessions/" + other.session +
						"/inputs": `{"error":{"code":"stopped","message":"agent is not running"}}`} {
					if status, body := head.ask(http.MethodPost, path,
						`{"content":"say x","agent":"scout"}`); status != 503 || strings.TrimSpace(body) != want {
						t.Errorf("%s: %d %s", path, status, body)
					}
				}
				list := head.must(http.StatusOK, http.MethodGet, "/api/v1/agents", "")
				if strings.Count(list, `"status":"stopped"`) != 1 || strings.Count(list, `"status":"running"`) != 1 {
					t.Errorf("%s", list)
				}
			}
			stopped(s)
			// The run under way is finished all the same.
			if e := head.awaits(busy.session, "RunFinished"); e.Body.Outcome != "completed" {
				t.Errorf("%s", e)
			}
			way.end(s)
			s = s.again()
			stopped(s)
			head = s.visitor("dora@acme", time.Hour, "dept_head")
			head.must(http.StatusOK, http.MethodPost, "/api/v1/agents/scout/start", "")
			head.console(n, "scout").quiet()

			// A reader of the facts sees the stop; the audit names the user who
			// stopped the agent.
			facts := s.visitor("rita@acme", time.Hour, "read_only").must(http.StatusOK, http.MethodGet,
				"/api/v1/sessions/00000000-0000-4000-8000-000000000000/log", "")
			if kinds := regexp.MustCompile(`"type":"(\w+)"`).FindAllString(facts, -1); len(kinds) != 3 ||
				kinds[1] != `"type":"AgentStopped"` || kinds[2] != `"type":"AgentStarted"` {
				t.Errorf("%s", facts)
			}
			if on := s.visitor("root@acme", time.Hour, "org_admin").audit("action=agent.stopped"); len(on) != 1 ||
				on[0].About != "scout" || on[0].User != "dora" {
				t.Errorf("%+v", on)
			}
		})
	}
}

// awaits follows a session's log up to an event of a type.
func (v *visitor) awaits(session, kind string) event {
	v.t.Helper()
	response := v.request(within(v.t, patience), http.MethodGet, "/api/v1/sessions/"+session+"/log?follow=1",
		v.header(), "")
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if e := parseEvent(v.t, lines.Text()); e.Type == kind {
			return e
		}
	}
	v.t.Fatalf("the log of %s ended before %s: %v", session, kind, lines.Err())
	return event{}
}

// In the original, an expired token did not close the socket, although its
// design said so.
func TestDebugConsoleClosesWhenTheTokenEnds(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, withAgents(t, jwt())), startNode(t)
	brief := s.visitor("ann@acme", 10*time.Second, "standard_user").console(n, "scout")
	bob := s.user("bob").console(n, "scout")
	brief.say("count slowly to 200")
	brief.upTo("chunk")
	if code := brief.gone(); code != 1008 {
		t.Errorf("an expired token closes with %d", code)
	}
	bob.quiet()
	s.visitor("root@acme", time.Hour, "org_admin").must(http.StatusOK, http.MethodPost, "/api/v1/users/bob/revoke",
		"{}")
	bob.closed(1008)
}

// A stopping server closes with 1001, even before the first message.
func TestDebugConsoleClosesWhenTheServerStops(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, withAgents(t, jwt())), startNode(t)
	ann := s.user("ann")
	silent, spoke, busy := ann.console(n, "scout"), ann.console(n, "scout"), ann.console(n, "scout")
	spoke.quiet()
	busy.say("count slowly to 200")
	busy.upTo("chunk")
	s.stop()
	for name, c := range map[string]*console{"a silent one": silent, "one that spoke": spoke, "a busy one": busy} {
		if code := c.gone(); code != 1001 {
			t.Errorf("%s was closed with %d", name, code)
		}
	}
}

// In local mode no token is needed, and pages of other sites are refused.
func TestDebugConsoleInLocalMode(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	url := "ws://" + s.address + "/api/v1/agents/helpful-assistant/ws"
	c := &console{socket: n.open(url, nil)}
	c.session = c.next().Data
	c.opened()
	c.quiet()
	if status, body := n.open(url,
		map[string]string{"Origin": "https://evil.example"}).refused(); status != http.StatusForbidden ||
		!strings.Contains(body, "origin") {
		t.Errorf("%d %s", status, body)
	}
	response := s.request(within(t, patience), http.MethodPost, "/api/v1/agents/helpful-assistant/message",
		http.Header{"Content-Type": {"application/json"}}, `{"content":"say hello"}`)
	defer response.Body.Close()
	if raw, _ := io.ReadAll(response.Body); strings.TrimSpace(string(raw)) != `{"content":"hello"}` {
		t.Errorf("%d %s", response.StatusCode, raw)
	}
	// Other protocols cannot open the tenant's session as a conversation.
	thread := n.open("ws://"+s.address+"/api/chat/ws?threadId=00000000-0000-4000-8000-000000000000", nil)
	thread.opened()
	thread.closed(1008)
	chat := n.agentChat(s)
	chat.chat("say elsewhere", "00000000-0000-4000-8000-000000000000") // here it is only a name
	chat.shows(userMessage("say elsewhere"), agentMessage("elsewhere"))
	if facts := s.events("00000000-0000-4000-8000-000000000000"); len(facts) > 0 {
		t.Errorf("%v", facts)
	}
}

// The HTTP routes that do the same as the socket.
func TestDebugConsoleByHTTP(t *testing.T) {
	t.Parallel()
	s := startServer(t, withAgents(t, jwt()))
	ann := s.user("ann")
	post := func(route, body string) (int, string, string) {
		t.Helper()
		response := ann.request(within(t, patience), http.MethodPost, "/api/v1/agents/scout/"+route, ann.header(), body)
		defer response.Body.Close()
		raw, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, strings.TrimSpace(string(raw)), response.Header.Get("Parley-Session")
	}
	status, body, session := post("message", `{"role":"user","content":"remember that tea is nice"}`)
	if status != 200 || !strings.HasPrefix(body, `{"content":"Noted: tea is nice.`) || len(session) != 36 {
		t.Errorf("%d %s %s", status, body, session)
	}
	// A client may continue a session or begin a new one.
	if _, body, again := post("message",
		`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"what did I say"}],"session_id":"`+session+`"}`); again != session || !strings.Contains(body, "remember that tea is nice") {
		t.Errorf("%s %s", body, again)
	}
	if _, body, fresh := post("message", `{"content":"what did I say"}`); fresh == session ||
		!strings.Contains(body, "first thing you say") {
		t.Errorf("%s %s", body, fresh)
	}
	if status, body, _ := post("message", `{"content":"x","session_id":"`+uuid.NewString()+`"}`); status != 404 ||
		body != `{"error":"session not found"}` {
		t.Errorf("%d %s", status, body)
	}
	bob := s.user("bob")
	if status, body := bob.ask(http.MethodPost, "/api/v1/agents/scout/message", `{"content":"x","session_id":"`+session+
		`"}`); status != 404 {
		t.Errorf("somebody else's session: %d %s", status, body)
	}
	for message, want := range map[string]string{
		"fail":        `502 {"error":"agent error: The demo model failed, as it was asked to."}`,
		wickedMessage: `403 {"error":"message blocked: potential prompt injection","reason":"pattern:`,
		"leak":        `503 {"error":"session terminated for security reasons","reason":"canary token detected"}`,
		"read .env":   `200 {"content":"I read .env.\n\nThat came to nothing.`,
	} {
		if status, body, _ := post("message", `{"content":`+quoted(message)+`}`); !strings.HasPrefix(
			fmt.Sprint(status, " ", body), want) {
			t.Errorf("%s: %d %s", message, status, body)
		}
	}

	// An approval is needed: the answer does not wait for it.
	status, body, session = post("message", `{"content":"write patience to note.txt"}`)
	var card struct {
		Status, Command string
		ApprovalID      string `json:"approval_id"`
		ToolName        string `json:"tool_name"`
	}
	if err := json.Unmarshal([]byte(body), &card); err != nil || status != 202 || card.Status != "awaiting_approval" ||
		card.ToolName != "write_file" || !strings.HasSuffix(card.Command, "\n\npatience") {
		t.Fatalf("%d %s", status, body)
	}
	ann.must(http.StatusAccepted, http.MethodPost, "/api/v1/approvals/"+card.ApprovalID, `{"decision":"allow"}`)
	ann.awaits(session, "RunFinished")
	wantFile(t, s, "note.txt", "patience")

	// A message that is sent twice with one key has one effect.
	keyed := ann.header()
	keyed.Set("Idempotency-Key", "k1")
	var sessions []string
	for range 2 {
		response := ann.request(within(t, patience), http.MethodPost, "/api/v1/agents/scout/message", keyed,
			`{"content":"say once"}`)
		raw, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if strings.TrimSpace(string(raw)) != `{"content":"once"}` {
			t.Errorf("%s", raw)
		}
		sessions = append(sessions, response.Header.Get("Parley-Session"))
	}
	if inputs := of("InputReceived", ann.events(sessions[0])); sessions[0] != sessions[1] || len(inputs) != 1 {
		t.Errorf("%v: %v", sessions, inputs)
	}
}

// TestDebugConsoleStreams: the stream of an answer ends when the client leaves
// or the run waits for a person. The run goes on after both.
func TestDebugConsoleStreams(t *testing.T) {
	t.Parallel()
	s := startServer(t, withAgents(t, jwt()))
	ann := s.user("ann")
	stream := func(body string, each func(event, data string) bool) (session string) {
		t.Helper()
		response := ann.request(within(t, patience), http.MethodPost, "/api/v1/agents/scout/stream", ann.header(), body)
		defer response.Body.Close()
		if kind := response.Header.Get("Content-Type"); response.StatusCode != 200 || kind != "text/event-stream" {
			t.Fatalf("%d %s", response.StatusCode, kind)
		}
		lines := bufio.NewScanner(response.Body)
		event := ""
		for lines.Scan() {
			switch kind, rest, _ := strings.Cut(lines.Text(), ": "); kind {
			case "event":
				event = rest
			case "data":
				if !each(event, rest) {
					return response.Header.Get("Parley-Session")
				}
			}
		}
		return response.Header.Get("Parley-Session")
	}
	for message, want := range map[string]string{
		"say hello":            "chunk done",
		"list files":           "chunk tool_executed chunk done",
		"read nothing.txt":     "chunk tool_failed chunk done",
		"read .env":            "chunk tool_blocked chunk done",
		"fail":                 "error done",
		"write x to again.txt": "chunk approval_required approval_closed tool_executed chunk done",
	} {
		var kinds []string
		last := ""
		stream(`{"content":`+quoted(message)+`}`, func(event, data string) bool {
			if len(kinds) == 0 || event != "chunk" || kinds[len(kinds)-1] != "chunk" {
				kinds = append(kinds, event)
			}
			last = data
			if event == "approval_required" {
				var card struct {
					ApprovalID string `json:"approval_id"`
				}
				if err := json.Unmarshal([]byte(data), &card); err != nil {
					t.Fatal(err)
				}
				ann.must(http.StatusAccepted, http.MethodPost, "/api/v1/approvals/"+card.ApprovalID,
					`{"decision":"allow"}`)
			}
			return true
		})
		if got := strings.Join(kinds, " "); got != want || last != "{}" {
			t.Errorf("%s: %s, at last %s", message, got, last)
		}
	}
	wantFile(t, s, "again.txt", "x")
	session := stream(`{"content":"count to 20"}`, func(event, _ string) bool { return event != "chunk" }) // hang up
	if e := ann.awaits(session, "RunFinished"); e.Body.Outcome != "completed" {
		t.Errorf("%s", e)
	}
}

// An agent gets the context of a user in each of that user's conversations,
// also after a restart.
func TestDebugConsoleContext(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, withAgents(t, jwt())), startNode(t)
			apply := func(body string) string {
				t.Helper()
				status, answer := s.user("ann").ask(http.MethodPost, "/api/v1/agents/scout/context", body)
				return fmt.Sprint(status, " ", strings.TrimSpace(answer))
			}
			for body, want := range map[string]string{
				`{}`:                `400 {"error":"context is required"}`,
				`{"context":" "}`:   `400 {"error":"context is required"}`,
				`{"context":["x"]}`: `400 {"error":"context must be a string"}`,
				`{"context":"` + strings.Repeat("x", 64<<10+1) +
					`"}`: `413 {"error":"The context is longer than 65536 bytes."}`,
				`{"context":` + quoted(wickedMessage) +
					`}`: `403 {"error":"message blocked: potential prompt injection","reason":"pattern:`,
				`{"context":"She plays the flute."}`: `200 {"status":"applied"}`,
			} {
				if got := apply(body); !strings.HasPrefix(got, want) {
					t.Errorf("%.40s: %s", body, got)
				}
			}
			if got := apply(`{"context":"She plays the oboe."}`); got != `200 {"status":"applied"}` {
				t.Error(got)
			}
			knows := func(who *visitor) string {
				t.Helper()
				c := who.console(n, "scout")
				c.say("what do you know about me")
				return c.answered().text
			}
			if got := knows(s.user("ann")); got != "I was told: She plays the oboe." {
				t.Error(got)
			}
			if got := knows(s.user("bob")); got != "Nobody has told me anything about you." {
				t.Error(got)
			}
			way.end(s)
			s = s.again()
			if got := knows(s.user("ann")); got != "I was told: She plays the oboe." {
				t.Error(got)
			}
			if on := s.visitor("root@acme", time.Hour, "org_admin").audit("action=context.applied"); len(on) != 2 ||
				on[0].About != "scout" || on[0].User != "ann" {
				t.Errorf("%+v", on)
			}
		})
	}
}
