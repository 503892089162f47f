package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"parley"
)

// A visitor is a user of a world with tokens who uses the open protocols.
type visitor struct {
	*world
	name string
	role string
}

// post sends JSON with the given headers. It returns the status, the body and the header of the answer.
func (v visitor) post(method, path, body string, headers ...string) (int, string, http.Header) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.addr+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+token(v.t, "acme", parley.PrincipalID(v.name), time.Minute, v.role))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := plainHTTP.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return res.StatusCode, string(raw), res.Header
}

// An a2aAnswer is the answer to a call of A2A.
type a2aAnswer struct {
	ID     any
	Result struct {
		Tasks []struct {
			ID                 string
			Artifacts, History []json.RawMessage
		}
		NextPageToken string
		TotalSize     int
		Task          struct {
			ID, ContextID string
			Status        struct {
				State   string
				Message struct {
					Parts []struct{ Data struct{ ID string } }
				}
			}
		}
	}
	Error struct {
		Code    int
		Message string
		Data    []struct{ Reason string }
	}
}

// a2a calls a method of A2A version 1.0.
func (v visitor) a2a(method, params string) (a a2aAnswer) {
	v.t.Helper()
	_, body, _ := v.post("POST", "/a2a/helpful-assistant", fmt.Sprintf(
		`{"jsonrpc":"2.0","id":"x","method":%q,"params":%s}`, method, params), "A2A-Version", "1.0")
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		v.t.Errorf("%s %s: %v in %s", method, params, err, body)
	}
	return a
}

func said(text, more string) string {
	return fmt.Sprintf(`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":%q}]%s}}`, text, more)
}

// TestA2ARefusals checks that wrong requests of A2A get an error of the protocol, and that nothing is appended.
func TestA2ARefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds["sqlite"](t))
	defer w.stop()
	ann, bob := visitor{w, "ann", "standard_user"}, visitor{w, "bob", "standard_user"}
	session := uuid.NewString()
	context := `,"contextId":"` + session + `"`
	asked := ann.a2a("SendMessage", said("write it to a.txt", context)).Result.Task
	if asked.Status.State != "TASK_STATE_INPUT_REQUIRED" {
		t.Fatalf("%+v", asked)
	}
	before := ann.head(session)
	task := `,"taskId":"` + asked.ID + `"`
	id := fmt.Sprintf(`{"id":%q}`, asked.ID)
	for _, one := range []struct {
		who            visitor
		method, params string
		code           int
		reason         string
	}{
		{bob, "SendMessage", said("hi", context), -32602, ""},
		{bob, "SendMessage", said("allow", task), -32001, "TASK_NOT_FOUND"},
		{bob, "SendStreamingMessage", said("allow", task), -32001, "TASK_NOT_FOUND"},
		{bob, "GetTask", id, -32001, "TASK_NOT_FOUND"},
		{bob, "CancelTask", id, -32001, "TASK_NOT_FOUND"},
		{bob, "SubscribeToTask", id, -32001, "TASK_NOT_FOUND"},
		{bob, "ListTasks", fmt.Sprintf(`{"contextId":%q}`, session), -32602, ""},
		{ann, "ListTasks", `{"pageSize":0}`, -32602, ""},
		{ann, "ListTasks", `{"pageToken":"x"}`, -32602, ""},
		{ann, "ListTasks", `{"status":"TASK_STATE_TIRED"}`, -32602, ""},
		{ann, "GetTask", `{"id":7}`, -32602, ""},
		{ann, "GetTask", `{}`, -32602, ""},
		{ann, "GetTask", `[]`, -32602, ""},
		{ann, "GetTask", fmt.Sprintf(`{"id":"%s.1"}`, session), -32001, "TASK_NOT_FOUND"},
		{ann, "SubscribeToTask", fmt.Sprintf(`{"id":"%s.999"}`, session), -32001, "TASK_NOT_FOUND"},
		{ann, "SendMessage", said("allow it if it is safe", task), -32602, ""},
		{ann, "SendMessage", said("allow "+session+".1", task), -32004, "UNSUPPORTED_OPERATION"},
		{ann, "message/send", `{}`, -32601, ""},
		{ann, "CreateTaskPushNotificationConfig", `{}`, -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"},
		{ann, "GetExtendedAgentCard", `{}`, -32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"},
	} {
		got := one.who.a2a(one.method, one.params)
		reason := ""
		if len(got.Error.Data) > 0 {
			reason = got.Error.Data[0].Reason
		}
		if got.Error.Code != one.code || reason != one.reason || got.Error.Message == "" || got.ID != "x" {
			t.Errorf("%s %s as %s: %+v, want %d", one.method, one.params, one.who.name, got, one.code)
		}
	}
	for path, headers := range map[string][]string{"/a2a/helpful-assistant": {"A2A-Version", "2.0"},
		"/a2a/nobody": nil} {
		status, body, _ := ann.post("POST", path, a2aMessage, headers...)
		if want := map[string]string{"/a2a/nobody": "404 -32602",
			"/a2a/helpful-assistant": "200 -32009"}[path]; !strings.Contains(
			body, strings.Fields(want)[1]) || fmt.Sprint(status) != strings.Fields(want)[0] {
			t.Errorf("%s: %d %s, want %s", path, status, body, want)
		}
	}
	if after := ann.head(session); after != before {
		t.Errorf("%d events were appended", after-before)
	}
	if list := bob.a2a("ListTasks", `{}`); list.Error.Code != 0 {
		t.Errorf("%+v", list)
	}

	// Only one of two simultaneous answers counts.
	var wg sync.WaitGroup
	codes := make([]int, 2)
	for i := range codes {
		wg.Go(func() { codes[i] = ann.a2a("SendMessage", said("deny", task)).Error.Code })
	}
	wg.Wait()
	if codes[0]+codes[1] != -32004 {
		t.Errorf("two answers at once were answered %v", codes)
	}
}

// head returns the number of events of a session.
func (v visitor) head(session string) int {
	v.t.Helper()
	status, body, _ := v.post("GET", "/api/v1/sessions/"+session, "")
	var m struct{ Head int }
	if err := json.Unmarshal([]byte(body), &m); err != nil || status != http.StatusOK {
		v.t.Fatalf("%d %s", status, body)
	}
	return m.Head
}

// mcp calls a tool in an MCP session. If client is empty, it initializes a session instead and returns its id.
func (v visitor) mcp(client, tool, arguments string) (status int, body, id string) {
	v.t.Helper()
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool,
		arguments)
	headers := []string{"Mcp-Session-Id", client, "MCP-Protocol-Version", "2025-11-25"}
	if client == "" {
		call, headers = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
			`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, nil
	}
	status, body, header := v.post("POST", "/mcp", call, headers...)
	return status, body, header.Get("Mcp-Session-Id")
}

// TestMCPSessionsBelongToOnePrincipal checks that only the principal that has initialized an MCP session can use it,
// with the same roles. Requests in sessions of others get an error of the protocol.
func TestMCPSessionsBelongToOnePrincipal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds["sqlite"](t))
	defer w.stop()
	ann, bob := visitor{w, "ann", "standard_user"}, visitor{w, "bob", "standard_user"}
	_, _, anns := ann.mcp("", "", "")
	_, _, bobs := bob.mcp("", "", "")
	session := uuid.NewString()
	ask := fmt.Sprintf(`{"agent":"helpful-assistant","message":"say tea","session":%q}`, session)
	if status, body, _ := ann.mcp(anns, "ask_agent", ask); status != http.StatusOK ||
		!strings.Contains(body, `"text":"tea"`) {
		t.Errorf("%d %s", status, body)
	}
	before := ann.head(session)
	attend := fmt.Sprintf(`{"session":%q}`, session)
	for _, call := range [][2]string{{"ask_agent", ask}, {"ask_agent", attend}, {"get_session", attend}} {
		tool := call[0]
		if status, body, _ := bob.mcp(bobs, tool, call[1]); status != http.StatusOK ||
			!strings.Contains(body, `"code":-32602`) ||
			!strings.Contains(body, "There is no such session.") {
			t.Errorf("%s of bob in a session of ann: %d %s", tool, status, body)
		}
	}
	for _, thief := range []visitor{bob, {w, "ann", "read_only"}} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			status, body, _ := thief.post(method, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id",
				anns)
			if status != http.StatusNotFound || !isRPC(body, -32600) {
				t.Errorf("%s %s with an MCP session of ann: %d %s", thief.role, method, status, body)
			}
		}
	}
	reader := visitor{w, "ann", "read_only"}
	_, _, readers := reader.mcp("", "", "")
	for _, arguments := range []string{ask, attend} {
		if status, body, _ := reader.mcp(readers, "ask_agent", arguments); status != http.StatusOK ||
			!strings.Contains(body, `"code":-32600,"message":"You may not`) {
			t.Errorf("a reader asks: %d %s", status, body)
		}
	}
	if status, body, _ := reader.mcp(readers, "get_session", attend); status != http.StatusOK ||
		!strings.Contains(body, "say tea") {
		t.Errorf("a reader reads: %d %s", status, body)
	}
	if after := ann.head(session); after != before {
		t.Errorf("%d events were appended", after-before)
	}
	if status, body, _ := ann.post("DELETE", "/mcp", "", "Mcp-Session-Id", anns); status != http.StatusNoContent {
		t.Errorf("%d %s", status, body)
	}
	if status, body, _ := ann.mcp(anns, "list_agents", "{}"); status != http.StatusNotFound || !isRPC(body, -32600) {
		t.Errorf("an MCP session that was ended is answered %d %s", status, body)
	}
}

// isRPC reports whether a body is an error of JSON-RPC.
func isRPC(body string, code int) bool {
	var answer struct {
		Version string `json:"jsonrpc"`
		Error   struct {
			Code    int
			Message string
		}
	}
	return json.Unmarshal([]byte(body), &answer) == nil && answer.Version == "2.0" && answer.Error.Code == code &&
		answer.Error.Message != ""
}

// TestMCPRefusesInJSON checks that unreadable requests get an error of JSON-RPC, also where the SDK would answer in
// plain text.
func TestMCPRefusesInJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds["sqlite"](t))
	defer w.stop()
	ann := visitor{w, "ann", "standard_user"}
	_, _, client := ann.mcp("", "", "")
	for _, one := range []struct {
		body string
		code int
	}{
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, -32600},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"`, -32700},
		{"", -32600},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"na\xefve\"}", -32600},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_agents","name":"get_session"}}`, -32600},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_session","arguments":` +
			`{"session":"a","session":"b"}}}`, -32602},
	} {
		status, body, header := ann.post("POST", "/mcp", one.body, "Mcp-Session-Id", client, "MCP-Protocol-Version",
			"2025-11-25")
		if i := strings.LastIndex(body, "data: "); i >= 0 { // a stream with a single message
			body = body[i+len("data: "):]
		}
		if !isRPC(body, one.code) || header.Get("Content-Type") == "text/plain; charset=utf-8" {
			t.Errorf("%s: %d %s %s", one.body, status, header.Get("Content-Type"), body)
		}
	}
}

// TestMCPRunsOutliveTheirClients: a client ends its MCP session in the middle of a call, and the run continues.
func TestMCPRunsOutliveTheirClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds["sqlite"](t))
	defer w.stop()
	ann := visitor{w, "ann", "standard_user"}
	_, _, leaves := ann.mcp("", "", "")
	_, _, stays := ann.mcp("", "", "")
	session := uuid.NewString()
	ask := `{"agent":"helpful-assistant","message":%q,"session":"` + session + `"}`
	var wg sync.WaitGroup
	wg.Go(func() { ann.mcp(leaves, "ask_agent", fmt.Sprintf(ask, "count slowly to 3")) })
	for status := 0; status != http.StatusOK; { // wait until the call has opened the session
		status, _, _ = ann.post("GET", "/api/v1/sessions/"+session, "")
	}
	if status, body, _ := ann.post("DELETE", "/mcp", "", "Mcp-Session-Id", leaves); status != http.StatusNoContent {
		t.Errorf("%d %s", status, body)
	}
	wg.Wait()
	ann.mcp(stays, "ask_agent", fmt.Sprintf(ask, "say on")) // answered after the first run has ended
	_, body, _ := ann.mcp(stays, "get_session", fmt.Sprintf(`{"session":%q}`, session))
	if !strings.Contains(body, `{"role":"assistant","text":"1 2 3"},{"role":"user"`) &&
		!strings.Contains(body, `"text":"1 2 3"}`) {
		t.Errorf("after the client has left: %s", body)
	}
}

// TestA2AListsTasks checks that ListTasks lists the tasks of an agent that match the filters, newest first, in pages.
func TestA2AListsTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds["sqlite"](t))
	defer w.stop()
	ann := visitor{w, "ann", "standard_user"}
	var ids []string
	for _, text := range []string{"say one", "say two", "write it to a.txt"} {
		ids = append(ids, ann.a2a("SendMessage", said(text, `,"contextId":"tea"`)).Result.Task.ID)
	}
	other := ann.a2a("SendMessage", said("say three", "")).Result.Task.ID
	for _, one := range []struct {
		params string
		want   []string
		total  int
	}{
		{`{}`, []string{other, ids[2], ids[1], ids[0]}, 4},
		{`{"contextId":"tea"}`, []string{ids[2], ids[1], ids[0]}, 3},
		{`{"contextId":"tea","status":"TASK_STATE_COMPLETED"}`, []string{ids[1], ids[0]}, 2},
		{`{"status":"TASK_STATE_INPUT_REQUIRED"}`, []string{ids[2]}, 1},
		{`{"status":"TASK_STATE_CANCELED"}`, nil, 0},
		{`{"statusTimestampAfter":"2999-01-01T00:00:00Z"}`, nil, 0},
		{`{"pageSize":3}`, []string{other, ids[2], ids[1]}, 4},
	} {
		got := ann.a2a("ListTasks", one.params).Result
		var listed []string
		for _, k := range got.Tasks {
			listed = append(listed, k.ID)
			if len(k.Artifacts) > 0 || len(k.History) != 1 {
				t.Errorf("%s: %+v", one.params, k)
			}
		}
		if !slices.Equal(listed, one.want) || got.TotalSize != one.total ||
			(got.NextPageToken != "") != (one.total > len(one.want)) {
			t.Errorf("%s lists %v of %d, and more: %q", one.params, listed, got.TotalSize, got.NextPageToken)
		}
		if got.NextPageToken != "" {
			rest := ann.a2a("ListTasks", fmt.Sprintf(`{"pageToken":%q,"includeArtifacts":true,"historyLength":0}`,
				got.NextPageToken)).Result.Tasks
			if len(rest) != 1 || rest[0].ID != ids[0] || len(rest[0].Artifacts) != 1 || len(rest[0].History) > 0 {
				t.Errorf("the next page is %+v", rest)
			}
		}
	}
}

// TestTwoAnswersAtOnce: of two simultaneous answers to one card, one counts. The other client gets an error of its
// protocol.
func TestTwoAnswersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds["sqlite"](t))
	defer w.stop()
	ann := visitor{w, "ann", "standard_user"}
	for name, one := range map[string]struct {
		path, ask, answer string // ask needs the session; answer the session, the card and the decision
		refused           func(status int, body string) bool
	}{
		"openai": {"/v1/responses",
			`{"model":"helpful-assistant","metadata":{"session_id":"%s"},"input":"write it to a.txt"}`,
			`{"model":"helpful-assistant","metadata":{"session_id":"%s"},"input":[{"type":"mcp_approval_response",` +
				`"approval_request_id":"%s","approve":%v}]}`,
			func(status int, body string) bool {
				return status == http.StatusConflict && strings.HasPrefix(body, `{"error":{"message":`)
			}},
		"agui": {"/api/agui/helpful-assistant",
			`{"threadId":"%s","runId":"r1","messages":[{"id":"m","role":"user","content":"write it to a.txt"}]}`,
			`{"threadId":"%s","runId":"r2","messages":[],"resume":[{"interruptId":"%s","status":"resolved",` +
				`"payload":{"approved":%v}}]}`,
			func(_ int, body string) bool {
				return strings.Contains(body, `{"type":"RUN_ERROR",`) && strings.Contains(body, `"code":"closed"`)
			}},
		"aisdk": {"/api/aisdk/helpful-assistant",
			`{"id":"%s","messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"write it to a.txt"}]}]}`,
			`{"id":"%s","messages":[{"id":"a","role":"assistant","parts":[{"type":"dynamic-tool","toolName":"write_file",` +
				`"toolCallId":"x","state":"approval-responded","approval":{"id":"%s","approved":%v}}]}]}`,
			func(status int, body string) bool {
				return (status == http.StatusConflict || status == http.StatusGone) && !strings.Contains(body, "data:")
			}},
	} {
		session := uuid.NewString()
		if status, body, _ := ann.post("POST", one.path, fmt.Sprintf(one.ask, session)); status != http.StatusOK {
			t.Fatalf("%s: %d %s", name, status, body)
		}
		_, list, _ := ann.post("GET", "/api/v1/approvals", "")
		var open struct {
			Approvals []struct{ ID, Session string }
		}
		if err := json.Unmarshal([]byte(list), &open); err != nil || len(open.Approvals) != 1 {
			t.Fatalf("%s: %s", name, list)
		}
		card := open.Approvals[0].ID
		if name == "openai" {
			card = "mcpr_" + strings.NewReplacer("-", "", ".", "_").Replace(card)
		}
		refused := make([]bool, 2)
		var wg sync.WaitGroup
		for i := range refused {
			wg.Go(func() {
				status, body, _ := ann.post("POST", one.path, fmt.Sprintf(one.answer, session, card, i == 0))
				if refused[i] = one.refused(status, body); !refused[i] && status != http.StatusOK {
					t.Errorf("%s: %d %s", name, status, body)
				}
			})
		}
		wg.Wait()
		_, log, _ := ann.post("GET", "/api/v1/sessions/"+session+"/log", "", "Accept", "application/json")
		if refused[0] == refused[1] || strings.Count(log, `"type":"ApprovalDecided"`) != 1 {
			t.Errorf("%s: refused were %v, and the log is\n%s", name, refused, log)
		}
		if allowed := strings.Contains(log, `"outcome":"succeeded"`); allowed != refused[1] {
			t.Errorf("%s: the call was made: %v, refused were %v", name, allowed, refused)
		}
	}
}
