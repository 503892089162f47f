package native

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

const (
	session = string(dialecttest.Session)
	inputs  = "/api/v1/sessions/" + session + "/inputs"
	hello   = `{"content":"Hello"}`
)

// TestStatusOfEveryCode: the code of an error determines the status, and is in
// the body with its message.
func TestStatusOfEveryCode(t *testing.T) {
	want := map[parley.Code]int{
		parley.CodeInvalid: 400, parley.CodeEmpty: 400, parley.CodeForbidden: 403, parley.CodeNotFound: 404,
		parley.CodeConflict: 409,
		parley.CodeClosed:   410, parley.CodeResync: 410, parley.CodeTooLarge: 413, parley.CodeQueueFull: 429,
		parley.CodeCorrupt: 500, parley.CodeModel: 500, parley.CodeTurnLimit: 500, parley.CodeInterrupted: 500,
		parley.CodeInternal:   500,
		parley.CodeOverloaded: 503, parley.CodeUnavailable: 503, parley.CodeStopped: 503,
		parley.CodeUnauthenticated: 401, parley.CodeLimited: 429, parley.CodeBlocked: 403,
		parley.CodeQuota: 429,
	}
	routes := []string{"POST " + inputs, "GET /api/v1/sessions", "GET /api/v1/sessions/" + session,
		"POST /api/v1/sessions",
		"PATCH /api/v1/sessions/" + session, "DELETE /api/v1/sessions/" + session, "GET " + logPath, "GET /api/v1/log"}
	for code, status := range want {
		d := &door{refusal: &parley.Error{Code: code, Message: "No, because \"of this\".", Hint: "secret hint",
			Err: errors.New("secret cause")}}
		for _, route := range routes {
			method, path, _ := strings.Cut(route, " ")
			body := hello
			if method == "GET" || method == "DELETE" {
				body = ""
			}
			w := ask(d, method, path, body)
			if w.Code != status || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s, %s: %d %s, want %d", route, code, w.Code, w.Header().Get("Content-Type"), status)
			}
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%s, %s: tells %s", route, code, w.Body)
			}
			if c, m := failure(t, w.Body); c != code || m != "No, because \"of this\"." {
				t.Errorf("%s, %s: tells %s, %q", route, code, c, m)
			}
		}
	}
}

func TestInternalErrorsAreNotShown(t *testing.T) {
	w := ask(&door{refusal: errors.New("disk /dev/sda1 is on fire")}, "POST", inputs, hello)
	if c, m := failure(t, w.Body); w.Code != 500 || c != parley.CodeInternal || m != "Internal error." {
		t.Errorf("%d %s %q", w.Code, c, m)
	}
}

func TestUnauthenticatedRequests(t *testing.T) {
	d := &door{}
	for pattern := range handler(d).Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		w := ask(d, method, strings.ReplaceAll(path, "{id}", session), `{}`, "X-Nobody: 1")
		if c, _ := failure(t, w.Body); w.Code != 403 || c != parley.CodeForbidden {
			t.Errorf("%s: %d %s", pattern, w.Code, c)
		}
	}
	if len(d.commands) > 0 {
		t.Errorf("submitted were %v", d.commands)
	}
}

// TestOnlyJSONIsTaken: a page of another site can make a browser send forms and
// plain text, but not JSON without a preflight request.
func TestOnlyJSONIsTaken(t *testing.T) {
	for kind, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "APPLICATION/JSON": true,
		"": false, "text/plain": false, "application/x-www-form-urlencoded": false,
		"multipart/form-data; boundary=x": false,
		"text/plain; application/json":    false, "application/jsonl": false, "application/json,text/plain": false,
		"garbage/": false,
	} {
		d := &door{}
		for pattern := range handler(d).Routes() {
			method, path, _ := strings.Cut(pattern, " ")
			if method != "POST" && method != "PATCH" {
				continue
			}
			path = strings.Replace(strings.Replace(path, "agents/{id}", "agents/coder", 1), "mcp/{id}", "mcp/files", 1)
			body := `{"answers":[]}`
			if path == "/api/v1/agents" {
				body = `{"name":"coder","instructions":"Be brief."}`
			}
			w := ask(d, method, strings.ReplaceAll(path, "{id}", session+".7"), body, "Content-Type: "+kind)
			if taken := w.Code < 400; taken != ok {
				t.Errorf("%s with %q: %d", pattern, kind, w.Code)
			}
		}
		if !ok && len(d.commands) > 0 {
			t.Errorf("%q: submitted were %v", kind, d.commands)
		}
	}
}

func TestBadBodies(t *testing.T) {
	for _, test := range []struct {
		body   string
		status int
		tells  string
	}{
		{`{"content":"Hello"`, 400, "valid JSON"},
		{`{"content":"Hello"}{}`, 400, "valid JSON"},
		{`["Hello"]`, 400, "JSON object"},
		{`{"content":"a","content":"b"}`, 400, "twice"},
		{`{"content":7}`, 400, "content must be a string"},
		{`{"content":"Hello","agent":{"name":"coder"}}`, 400, "agent must be a string"},
		{`{"content":"Hello","busy":"interrupt"}`, 400, "busy must be queue or steer"},
		{`{"content":"Hello","client_calls":"yes"}`, 400, "client_calls must be true or false"},
		{`{"content":"Hello","images":"a.png"}`, 400, "images must be a list of base64 strings or data URLs"},
		{`{"content":"Hello","images":["aGVsbG8="]}`, 400, "images[0] is no PNG, JPEG, GIF, WebP or PDF"},
		{`{"content":"Hello","images":["` + strings.Repeat("iVBO", dialect.MaxImageBytes/3+1) + `"]}`, 413,
			"images: more than 4194304 bytes in all."},
		{`{"content":"` + strings.Repeat("x", 2*parley.MaxContent) + `"}`, 413, "longer than"},
	} {
		d := &door{}
		w := ask(d, "POST", inputs, test.body)
		if _, m := failure(t, w.Body); w.Code != test.status || !strings.Contains(m, test.tells) ||
			len(d.commands) > 0 {
			t.Errorf("%.60s: %d %q, submitted %v", test.body, w.Code, m, d.commands)
		}
	}
}

// TestCommands: every route that changes something submits one command.
func TestCommands(t *testing.T) {
	const path, card = "/api/v1/sessions/" + session, session + ".7"
	for _, test := range []struct {
		route, body string
		status      int
		want        parley.CommandBody // nil: refused
	}{
		{"POST " + path + "/inputs", hello, 202, parley.SubmitInput{Content: "Hello", Busy: parley.Queue}},
		{"POST " + path + "/inputs", `{"content":"Hello","agent":"coder","request":"r1","busy":"steer","other":1}`, 202,
			parley.SubmitInput{Content: "Hello", Agent: parley.AgentRef{Name: "coder"}, Request: "r1",
				Busy: parley.Steer}},
		{"POST " + path + "/inputs", `{"content":"Hello","tools":[{"name":"paint","parameters":{"type":"object"}}]}`,
			202,
			parley.SubmitInput{Content: "Hello", Busy: parley.Queue,
				Tools: []parley.ClientTool{{Name: "paint", Parameters: `{"type":"object"}`}}}},
		{"POST " + path + "/inputs", `{"content":"Hello","tools":{"name":"paint"}}`, 400, nil},
		{"POST " + path + "/inputs", `{"content":"Hello","instructions":"Be brief.","client_calls":true}`, 202,
			parley.SubmitInput{Content: "Hello", Busy: parley.Queue, Instructions: "Be brief.", ClientCalls: true}},
		{"POST " + path + "/inputs", `{"content":"Hello","images":["data:image/png;base64,iVBORw0KGgo="]}`, 202,
			parley.SubmitInput{Content: "Hello", Busy: parley.Queue,
				Images: []parley.Image{{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}}},
		{"POST " + path + "/cancel", ``, 202, parley.CancelRun{}},
		{"POST " + path + "/cancel", `{"request":"r1","run":3}`, 202, parley.CancelRun{Request: "r1", Run: 3}},
		{"POST " + path + "/cancel", `{"run":"3"}`, 400, nil},
		{"POST " + path + "/cancel", `{"request":3}`, 400, nil},
		{"POST " + path + "/halt", `{}`, 202, parley.HaltSession{Reason: "by an operator"}},
		{"POST " + path + "/halt", `{"reason":"a leak"}`, 202, parley.HaltSession{Reason: "a leak"}},
		{"POST " + path + "/halt", `{"reason":1}`, 400, nil},
		{"DELETE /api/v1/inputs/" + parley.Ref(parley.SessionID(session), 7), ``, 202, parley.WithdrawInput{Input: 7}},
		{"POST " + path + "/compact", ``, 202, parley.CompactContext{}},
		{"POST " + path + "/reopen", ``, 202, parley.ReopenSession{}},
		{"DELETE " + path, ``, 202, parley.DeleteSession{}},
		{"PATCH " + path, `{"title":"Shopping"}`, 200, parley.RenameSession{Title: "Shopping"}},
		{"PATCH " + path, `{"title":1}`, 400, nil},
		{"POST /api/v1/approvals/" + card, `{"decision":"allow","note":"go","digest":"5f1c"}`, 202,
			parley.DecideApproval{Card: 7, Decision: parley.AllowOnce, Note: "go", Digest: "5f1c"}},
		{"POST /api/v1/approvals/" + card, `{"decision":"explain"}`, 202, parley.ExplainApproval{Card: 7}},
		{"POST /api/v1/approvals/" + card, `{"decision":1}`, 400, nil},
		{"POST /api/v1/approvals/" + session, `{"decision":"allow"}`, 404, nil},
		{"POST /api/v1/approvals/" + strings.ToUpper(session) + ".7", `{"decision":"allow"}`, 404, nil},
		{"POST /api/v1/approvals/7", `{"decision":"allow"}`, 404, nil},
		{"POST /api/v1/questions/" + card, `{"answers":[["SQLite"],[]]}`, 202,
			parley.AnswerQuestion{Card: 7, Answers: [][]string{{"SQLite"}, {}}}},
		{"POST /api/v1/questions/" + card, `{"answers":["SQLite"]}`, 400, nil},
		{"POST /api/v1/questions/" + card, `{}`, 400, nil},
		{"POST /api/v1/questions/" + session + ".0", `{"answers":[]}`, 404, nil},
		{"POST /api/v1/calls/" + card, `{"result":"red","failed":true}`, 202,
			parley.ReturnToolResult{Call: 7, Result: "red", Failed: true}},
		{"POST /api/v1/calls/" + card, `{"result":7}`, 400, nil},
		{"POST /api/v1/calls/" + card, `{"result":"red","failed":"no"}`, 400, nil},
		{"POST /api/v1/calls/" + card, `{"resolution":"rerun","note":"not sent"}`, 202,
			parley.ResolveToolCall{Call: 7, Resolution: parley.Rerun, Note: "not sent"}},
		{"POST /api/v1/calls/" + card, `{"resolution":["rerun"]}`, 400, nil},
	} {
		d := &door{}
		method, path, _ := strings.Cut(test.route, " ")
		w := ask(d, method, path, test.body, "Idempotency-Key: k1")
		if w.Code != test.status {
			t.Errorf("%s %s: %d %s", test.route, test.body, w.Code, w.Body)
		}
		if test.want == nil {
			if len(d.commands) > 0 {
				t.Errorf("%s %s: submitted %v", test.route, test.body, d.commands)
			}
			continue
		}
		want := []parley.Command{{ID: "k1", Session: dialecttest.Session, Via: parley.ViaHTTP, Do: test.want}}
		if !reflect.DeepEqual(d.commands, want) {
			t.Errorf("%s %s: submitted %+v, want %+v", test.route, test.body, d.commands, want)
		}
		if w.Code == 202 && w.Body.String() != `{"session":"`+session+`","command":"k1","first":4,"last":5}`+"\n" {
			t.Errorf("%s: the receipt is %s", test.route, w.Body)
		}
	}
}

// TestAgentsAreSet: starting and stopping an agent are commands to the tenant's
// session. The answer has the new state of the agent.
func TestAgentsAreSet(t *testing.T) {
	for _, test := range []struct {
		route   string
		want    parley.CommandBody
		stopped []string
		says    string
	}{
		{"/api/v1/agents/coder/stop", parley.StopAgent{Agent: "coder"}, []string{"coder"}, `"status":"stopped"`},
		{"/api/v1/agents/coder/start", parley.StartAgent{Agent: "coder"}, []string{"another"}, `"status":"running"`},
	} {
		d := &door{stopped: test.stopped}
		w := ask(d, "POST", test.route, ``, "Idempotency-Key: k1")
		want := []parley.Command{{ID: "k1", Session: parley.TenantSession, Via: parley.ViaHTTP, Do: test.want}}
		if w.Code != 200 || !strings.Contains(w.Body.String(), test.says) || !reflect.DeepEqual(d.commands, want) {
			t.Errorf("%s: %d %s, submitted %+v", test.route, w.Code, w.Body, d.commands)
		}
		if w := ask(d, "GET", "/api/v1/agents", ``); !strings.Contains(w.Body.String(), test.says) {
			t.Errorf("listed is %s", w.Body)
		}
	}
	d := &door{refusal: parley.Errorf(parley.CodeForbidden, "no")}
	if w := ask(d, "POST", "/api/v1/agents/coder/stop", ``); w.Code != 403 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestOpenSession(t *testing.T) {
	d := &door{}
	open := func(body string, headers ...string) string {
		t.Helper()
		w := ask(d, "POST", "/api/v1/sessions", body, headers...)
		var m port.Summary
		if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code != http.StatusCreated || !m.ID.Valid() {
			t.Fatalf("%s: %d %s", body, w.Code, w.Body)
		}
		if last := d.commands[len(d.commands)-1]; last.Session != m.ID {
			t.Errorf("%s: opened %s, answered %s", body, last.Session, m.ID)
		}
		return string(m.ID)
	}
	if a, b := open(`{}`), open(`{}`); a == b {
		t.Error("two sessions have one id")
	}
	if id := open(`{"id":"` + session + `","agent":"coder","title":"Shopping"}`); id != session {
		t.Errorf("the id is %s", id)
	}
	if do := d.commands[len(d.commands)-1].Do; !reflect.DeepEqual(do,
		parley.OpenSession{Agent: "coder", Title: "Shopping"}) {
		t.Errorf("submitted was %+v", do)
	}

	// The same key of the same user opens the same session, with the key as the
	// command's id.
	first := open(`{}`, "Idempotency-Key: k1")
	if id := d.commands[len(d.commands)-1].ID; id != "k1" {
		t.Errorf("the command's id is %q", id)
	}
	if again := open(`{}`, "Idempotency-Key: k1"); again != first {
		t.Errorf("the same key opened %s and %s", first, again)
	}
	if other := open(`{}`, "Idempotency-Key: k2"); other == first {
		t.Error("another key opened the same session")
	}
	if other := open(`{}`, "Idempotency-Key: k1", "X-User: bob"); other == first {
		t.Error("somebody else's key opened the same session")
	}
	if id := open(`{"id":"`+session+`"}`, "Idempotency-Key: k1"); id != session {
		t.Errorf("a key outranks the id given: %s", id)
	}

	d.commands = nil
	for _, test := range []struct {
		body   string
		status int
	}{{`{"agent":"nobody"}`, 404}, {`{"id":7}`, 400}, {`{"title":7}`, 400}, {`{"agent":7}`, 400}} {
		if w := ask(d, "POST", "/api/v1/sessions", test.body); w.Code != test.status || len(d.commands) > 0 {
			t.Errorf("%s: %d, submitted %v", test.body, w.Code, d.commands)
		}
	}
}

// TestIDsOfKeys: ids from keys separate tenant, user and key unambiguously.
func TestIDsOfKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, who := range []port.Principal{{Tenant: "a", ID: "bc"}, {Tenant: "ab", ID: "c"}, {Tenant: "a", ID: "b"},
		{Tenant: "a", ID: "b1:c"}} {
		for _, key := range []string{"c", "d", "cd", ":c"} {
			id := string(dialect.SessionFor(who, "key", key))
			if seen[id] || !parley.SessionID(id).Valid() {
				t.Errorf("%+v with %q is %s", who, key, id)
			}
			seen[id] = true
		}
	}
}

// TestDefinitions: only principals that may change an agent see its
// instructions.
func TestDefinitions(t *testing.T) {
	for user, want := range map[string]bool{"ann": true, "reader": false} {
		w := ask(&door{}, "GET", "/api/v1/agents/coder", "", "X-User: "+user)
		if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, `"tools":["read_file"]`) ||
			strings.Contains(body, "Be brief.") != want || strings.Contains(body, "Look around.") != want {
			t.Errorf("%s: %d %s", user, w.Code, body)
		}
	}
	h := handler(&door{})
	h.Access = nil
	// A new field must be hidden until it is listed here.
	full := parley.Agent{Instructions: "x", IdlePrompt: "x", Address: "tcp://x:1",
		Command: []string{"x"}, Env: []string{"x"},
		Webhook: &parley.AgentWebhook{URL: "https://x/secret"}}
	if a := h.definitionFor(request{}, full); !reflect.DeepEqual(a, parley.Agent{}) {
		t.Errorf("shown without anybody to ask: %+v", a)
	}
	some := &parley.AgentAllow{Roles: []parley.UserRole{"dept_head"}, Users: []parley.PrincipalID{"ann"}}
	if a := h.definitionFor(request{}, parley.Agent{Allow: some}); a.Allow == nil || len(a.Allow.Roles) != 1 ||
		a.Allow.Users != nil || some.Users == nil {
		t.Errorf("shown without anybody to ask: %+v of %+v", a.Allow, some)
	}
	shown := []string{"Name", "Description", "Model", "Fallback", "Tools", "Approval", "Delegates", "Allow", "Limits",
		"Autonomy", "IdleSeconds", "Trust"}
	hidden := []string{"Instructions", "IdlePrompt", "Address", "Webhook", "Command", "Env"}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[parley.Agent]()) {
		if !slices.Contains(shown, f.Name) && !slices.Contains(hidden, f.Name) && len(f.Index) == 1 {
			t.Errorf("%s is shown to everybody; say here that it may be, or hide it in definitionFor", f.Name)
		}
	}
}

// TestMadeAgents: only agents without a file can be deleted.
func TestMadeAgents(t *testing.T) {
	h, acme := handler(&door{}), request{who: port.Principal{Tenant: "acme"}}
	for name, want := range map[string]bool{"coder": false, "scout": true} {
		if h.Files = nil; h.made(acme, name) {
			t.Errorf("%s is called made where nobody can tell", name)
		}
		h.Files = func(parley.TenantID, string) ProjectFiles { return ProjectFiles{Agents: agents{}} }
		if h.made(acme, name) != want {
			t.Errorf("%s: made is %t", name, !want)
		}
	}
}

func TestLists(t *testing.T) {
	d := &door{}
	for _, test := range []struct {
		path   string
		status int
		body   string
		query  port.SessionQuery
	}{
		{"/api/v1/sessions", 200, `{"sessions":[]}`, port.SessionQuery{Limit: 50, Viewer: "ann"}},
		{"/api/v1/sessions?limit=7&search=milk&transient=1", 200, `{"sessions":[]}`,
			port.SessionQuery{Limit: 7, Search: "milk", Transient: true, Viewer: "ann",
				Archived: port.AlsoArchived}},
		{"/api/v1/sessions?limit=many", 400, `{"error":{"code":"invalid","message":"limit must be a number."}}`,
			port.SessionQuery{}},
		{"/api/v1/agents", 200,
			`{"agents":[{"id":"coder","name":"coder","description":"writes code","model":"demo","status":"running","project":"/p"}]}`,
			port.SessionQuery{}},
		{"/api/v1/agents/coder", 200,
			`{"id":"coder","name":"coder","description":"writes code","model":"demo","status":"running","project":"/p","definition":{"name":"coder","description":"writes code","model":"demo","tools":["read_file"],"instructions":"Be brief.","idle_prompt":"Look around."}}`, port.SessionQuery{}},
		{"/api/v1/agents/nobody", 404, `{"error":{"code":"not_found","message":"There is no agent \"nobody\"."}}`,
			port.SessionQuery{}},
	} {
		d.query = port.SessionQuery{}
		w := ask(d, "GET", test.path, "")
		if w.Code != test.status || w.Body.String() != test.body+"\n" || d.query != test.query {
			t.Errorf("%s: %d %s, asked for %+v", test.path, w.Code, w.Body, d.query)
		}
	}
}
