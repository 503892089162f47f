package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOpenProtocolsRefuse: another user's session, a body that is no JSON, and a body of a wrong type. Each official
// client raises its own error, and nothing is appended in the whole tenant.
func TestOpenProtocolsRefuse(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, jwt()), startNode(t)
	ann, bob, admin := s.user("ann"), s.user("bob"), s.visitor("ada@acme", time.Hour, "org_admin")
	mine, foreign := newThread(), newThread()
	for id, who := range map[string]*visitor{mine: ann, foreign: bob} {
		who.must(http.StatusCreated, http.MethodPost, "/api/v1/sessions", `{"id":"`+id+`"}`)
	}
	headers := map[string]string{"Authorization": "Bearer " + ann.token}
	address := "http://" + s.address
	clients := map[string]func(session, body string) string{
		"chat completions": func(session, body string) string {
			return ann.openAIRefusal(n, session, body, "chat.completions.create", messages(by("user", "say hi")))
		},
		"responses": func(session, body string) string {
			return ann.openAIRefusal(n, session, body, "responses.create", asking("say hi"))
		},
		"agui": func(session, body string) string {
			a := &aguiAgent{socket: n.begin(map[string]any{"do": "use", "module": "agui", "act": "open",
				"thread": session, "url": address + "/api/agui/helpful-assistant", "headers": headers, "body": body})}
			a.opened()
			a.start(says1("say hi"))
			h := a.next()
			return fmt.Sprint(h.Event, " ", h.Data)
		},
		"aisdk": func(session, body string) string {
			chunks, _ := n.aiStream(s, "send", session, map[string]any{"headers": headers, "body": body,
				"messages": userSays("u1", "say hi")["messages"]})
			return strings.Join(chunks, "\n")
		},
		"a2a 1.0": func(session, body string) string {
			return a2aClient{n: n, s: s, version: "1.0", headers: headers}.refused("send",
				map[string]any{"text": "say hi", "context": session, "body": body})
		},
		"a2a 0.3": func(session, body string) string {
			return a2aClient{n: n, s: s, version: "0.3", headers: headers}.refused("stream",
				map[string]any{"text": "say hi", "context": session, "body": body})
		},
		"mcp": func(session, body string) string {
			c := n.mcpAs(s, false, headers)
			c.act("call", map[string]any{"name": "ask_agent", "body": body, "arguments": map[string]any{
				"agent": "helpful-assistant", "message": "say hi", "session": session}})
			h := c.until("refused")
			name, _, _ := strings.Cut(h.Data, ":")
			return fmt.Sprint(name, " ", h.Code)
		},
	}
	// The list of all sessions has the number of events of each.
	all := func() string { return admin.must(http.StatusOK, http.MethodGet, "/api/v1/sessions?transient=1", "") }
	before := all()
	const noJSON, wrong = `{"id":`, `"a string"`
	for name, want := range map[string]map[string]string{
		"chat completions": {"": "NotFoundError 404", noJSON: "BadRequestError 400", wrong: "BadRequestError 400"},
		"responses":        {"": "NotFoundError 404", noJSON: "BadRequestError 400", wrong: "BadRequestError 400"},
		"agui": {"": `error Error: HTTP 404: {"type":"RUN_ERROR"`, noJSON: `error Error: HTTP 400: {"type":"RUN_ERROR"`,
			wrong: `error Error: HTTP 400: {"type":"RUN_ERROR"`},
		"aisdk": {"": "404 AI_APICallError: ", noJSON: "400 AI_APICallError: ", wrong: "400 AI_APICallError: "},
		"a2a 1.0": {"": "RequestMalformedError -32602", noJSON: "RequestMalformedError -32700",
			wrong: "RequestMalformedError -32600"},
		"a2a 0.3": {"": "RequestMalformedError -32602", noJSON: "RequestMalformedError -32700",
			wrong: "RequestMalformedError -32600"},
		"mcp": {"": "McpError -32602", noJSON: "StreamableHTTPError 400", wrong: "StreamableHTTPError 400"},
	} {
		for body, prefix := range want {
			session := mine
			if body == "" {
				session = foreign
			}
			if got := clients[name](session, body); !strings.HasPrefix(got, prefix) {
				t.Errorf("%s, the session %s and the body %q: %s", name, session, body, got)
			}
		}
	}
	if after := all(); after != before {
		t.Errorf("the sessions were\n%s\nand are\n%s", before, after)
	}
}

// openAIRefusal returns the error that npm openai throws. A body replaces the body of the client.
func (v *visitor) openAIRefusal(n *node, session, body, call string, args ...any) string {
	v.t.Helper()
	command := openAICommand(v.server, call, args)
	command["key"], command["body"] = v.token, body
	command["headers"] = map[string]string{"X-Session-Id": session}
	class, status, _ := (&openAICall{socket: n.begin(command)}).refused()
	return fmt.Sprint(class, " ", status)
}

// TestTwoAnswersOfOfficialClients: two clients of a protocol answer the same card at once. One allows it, and the other
// denies it. One answer counts, and only a counted permission has an effect. Where the answer is a request, the other
// client raises its error.
func TestTwoAnswersOfOfficialClients(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	for name, race := range map[string]func(t *testing.T, session, file string) (refused []string){
		"openai": func(t *testing.T, session, file string) (refused []string) {
			n := n.in(t)
			asked := n.openAI(s, session, "responses.create", asking("write it to "+file)).answer()
			var calls []*openAICall
			for _, yes := range []bool{true, false} {
				calls = append(calls, n.openAI(s, session, "responses.create", asking("", object{"input": []object{{
					"type": "mcp_approval_response", "approve": yes,
					"approval_request_id": asked.item("mcp_approval_request").ID}}})))
			}
			for _, c := range calls {
				for h := c.next(); ; h = c.next() {
					if h.Event == "error" {
						refused = append(refused, h.Data)
					}
					if h.Event != "message" {
						break
					}
				}
			}
			return refused
		},
		"a2a": func(t *testing.T, session, file string) (refused []string) {
			c := a2aClient{n: n.in(t), s: s, version: "1.0"}
			asked := c.ask("send", map[string]any{"text": "write it to " + file, "context": session})
			var calls []*socket
			for _, decision := range []string{allow, deny} {
				calls = append(calls, c.begin("send", map[string]any{"text": decision, "task": asked.id}))
			}
			for _, c := range calls {
				if h := c.next(); h.Event == "refused" {
					refused = append(refused, h.Data)
				}
			}
			return refused
		},
		"mcp": func(t *testing.T, session, file string) []string {
			n := n.in(t)
			n.say(s, session, "write it to "+file)
			s.in(t).awaitEvent(session, func(e event) bool { return e.Type == "ApprovalRequested" })
			both := []*mcpClient{n.mcp(s, true), n.mcp(s, true)}
			for _, c := range both {
				c.call("ask_agent", map[string]any{"session": session})
				c.until("elicit")
			}
			for i, c := range both {
				c.act("answer", map[string]any{"action": "accept",
					"content": map[string]any{"decision": []string{allow, deny}[i]}})
			}
			for _, c := range both {
				for h, _ := c.hear(); h.Event != "result"; h, _ = c.hear() {
					if h.Event != "progress" && h.Event != "unasked" {
						t.Fatalf("%+v", h)
					}
				}
			}
			return nil
		},
		"acp": func(t *testing.T, session, file string) []string {
			n.in(t).fetch(s, "POST", "/api/v1/sessions", `{"id":"`+session+`"}`)
			both := []*acpEditor{startEditor(t, nil, "--server", "http://"+s.address),
				startEditor(t, nil, "--server", "http://"+s.address)}
			for _, e := range both {
				e.initialize()
				e.must("session/load", map[string]any{"sessionId": session, "cwd": s.o.workspace,
					"mcpServers": []any{}}, &struct{}{})
			}
			as := both[0].begin("session/prompt", prompting(session, "write it to "+file))
			first, second := both[0].card(), both[1].card()
			both[0].send(map[string]any{"choose": allow, "of": first.Of})
			both[1].send(map[string]any{"choose": deny, "of": second.Of})
			if _, answer := both[0].until(as); answer.Error != nil {
				t.Errorf("%s", answer.raw)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				session := newThread()
				file := session + ".txt"
				refused := race(t, session, file)
				s.in(t).awaitEvent(session, func(e event) bool { return e.Type == "RunFinished" })
				decided := of("ApprovalDecided", s.in(t).events(session))
				if len(decided) != 1 {
					t.Fatalf("%d answers counted: %v", len(decided), decided)
				}
				_, err := os.Stat(filepath.Join(s.o.workspace, file))
				if decision := decided[0].Body.Decision; (err == nil) != (decision == allow) {
					t.Errorf("decided was %q, and the file: %v", decision, err)
				}
				class := map[string]string{"openai": `"class":"ConflictError"`,
					"a2a": "UnsupportedOperationError: "}[name]
				if class != "" && (len(refused) != 1 || !strings.Contains(refused[0], class)) {
					t.Errorf("refused were %q", refused)
				}
			}
		})
	}
}

// TestMCPCursors: a stream is resumed only after a message that it has had. The server ignores answers to requests that
// it did not send.
func TestMCPCursors(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c, session := n.mcp(s, false), newThread()
	c.act("call", map[string]any{"name": "ask_agent", "tokens": true, "arguments": map[string]any{
		"agent": "helpful-assistant", "message": "say hi", "session": session}})
	last := ""
	for h := c.next(); h.Event != "result"; h = c.next() {
		if h.Event == "token" {
			last = h.Data
		}
	}
	stream, _, ok := strings.Cut(last, "_")
	if !ok {
		t.Fatalf("the last message has the id %q", last)
	}
	before := len(s.events(session))
	for _, gone := range []string{"nonsense", "NOSUCHSTREAM_3", stream + "_99999", stream + "_-1"} {
		c.act("resume", map[string]any{"token": gone})
		if h := c.until("refused"); !strings.HasPrefix(h.Data, "StreamableHTTPError: ") ||
			h.Code != http.StatusBadRequest {
			t.Errorf("%s: %+v", gone, h)
		}
	}
	c.act("send", map[string]any{"message": map[string]any{"jsonrpc": "2.0", "id": 99,
		"result": map[string]any{"action": "accept", "content": map[string]any{"decision": allow}}}})
	c.until("sent")
	if after := len(s.events(session)); after != before {
		t.Errorf("%d events were appended", after-before)
	}
	c.ask("say again", session)
	if r := c.result(); r.text() != "again" {
		t.Errorf("%+v", r)
	}
}
