package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"parley/port"
)

// TestAReachedQuotaInEveryDialect checks the error for a message above a quota, in the form of each protocol. It says
// how much is left and when the quota renews. No model is called, and nothing is stored.
func TestAReachedQuotaInEveryDialect(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "parley.yaml")
	if err := os.WriteFile(file, []byte("quotas: {user: {tokens: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir(), "--config",
		file)
	defer stop()
	q := &quotaUser{t: t, addr: addr}
	for day := ""; day != port.Day(time.Now()); { // repeat if the day has changed meanwhile
		day = port.Day(time.Now())
		q.wrong = nil
		q.refused()
	}
	for _, wrong := range q.wrong {
		t.Error(wrong)
	}
}

// quotaCases send a message in every dialect. ID stands for a session. shape is a part of the answer, in which SENTENCE
// stands for the message of the error.
var quotaCases = []struct{ dialect, path, send, shape string }{
	{"native", "/api/v1/sessions/ID/inputs", `{"content":"say hi"}`, `{"error":{"code":"quota","message":"SENTENCE"}}`},
	{"native, new session", "/api/v1/sessions/NEW/inputs", `{"content":"say hi"}`,
		`{"error":{"code":"quota","message":"SENTENCE"}}`},
	{"debug console, one answer", "/api/v1/agents/helpful-assistant/message", `{"content":"say hi"}`,
		`{"error":"SENTENCE"}`},
	{"debug console, stream", "/api/v1/agents/helpful-assistant/stream", `{"content":"say hi"}`,
		`{"error":"SENTENCE"}`},
	{"debug console", "/api/v1/agents/helpful-assistant/ws", `{"type":"message","content":"say hi"}`,
		`"message":"SENTENCE"}`},
	{"agent chat", "/ws", `{"type":"chat","message":"say hi","session_id":"ID"}`,
		`{"type":"error","error":"SENTENCE"}`},
	{"thread chat", "/api/chat/ws?threadId=ID",
		`{"type":"chat.request","threadId":"ID","requestId":"r","content":"say hi"}`,
		`{"type":"error","requestId":"r","error":"SENTENCE"}`},
	{"thread chat, request", "/api/chat", `{"message":"say hi","threadId":"ID"}`, `{"error":"SENTENCE"}`},
	{"agent loop", "/api/agentloop/ws?session=ID",
		`{"id":"x","type":"user_input","payload":{"input":[{"role":"user","content":"say hi"}]}}`,
		`"type":"error","payload":{"message":"Failed to process user input","details":{"error":"SENTENCE","code":429}}}`},
	{"event bus", "/api/chat", `{"message":"say hi","session_id":"ID"}`, `{"error":"SENTENCE"}`},
	{"OpenAI chat", "/v1/chat/completions",
		`{"model":"helpful-assistant","messages":[{"role":"user","content":"say hi"}]}`,
		`{"error":{"message":"SENTENCE","type":"rate_limit_error","param":null,"code":"insufficient_quota"}}`},
	{"OpenAI responses", "/v1/responses", `{"model":"helpful-assistant","input":"say hi","stream":true}`,
		`{"error":{"message":"SENTENCE","type":"rate_limit_error","param":null,"code":"insufficient_quota"}}`},
	{"AG-UI", "/api/agui/helpful-assistant",
		`{"threadId":"ID","runId":"r","messages":[{"id":"m","role":"user","content":"say hi"}]}`,
		`{"type":"RUN_ERROR","message":"SENTENCE","code":"quota"}`},
	{"AI SDK", "/api/aisdk/helpful-assistant",
		`{"id":"ID","messages":[{"role":"user","parts":[{"type":"text","text":"say hi"}]}]}`, `SENTENCE`},
	{"A2A", "/a2a/helpful-assistant", a2aMessage,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"SENTENCE"}}`},
	{"MCP", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask_agent",` +
		`"arguments":{"agent":"helpful-assistant","message":"say hi"}}}`,
		`{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"SENTENCE","data":{"code":"quota"}}}`},
}

// refused uses up the quota, and notes the dialects with wrong answers.
func (q *quotaUser) refused() {
	id := uuid.NewString()
	q.post("/api/v1/sessions", fmt.Sprintf(`{"id":%q}`, id))
	q.post("/api/v1/agents/helpful-assistant/message", `{"content":"say hi"}`)
	_, initialized, header := q.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+
		`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	before := q.usage()
	if before.Calls == 0 || header.Get("Mcp-Session-Id") == "" {
		q.t.Fatal(before, initialized)
	}
	sentence := fmt.Sprintf("The daily quota of this user for tokens is reached: %d of 1 are used, 0 are left. It "+
		"renews at %s.", before.Input+before.Output, port.Renews(time.Now()).Format(time.RFC3339))
	for _, c := range quotaCases {
		named := strings.NewReplacer("ID", id, "NEW", uuid.NewString(), "SENTENCE", sentence)
		path, send, shape := named.Replace(c.path), named.Replace(c.send), named.Replace(c.shape)
		if strings.Contains(path, "/ws") {
			if got := q.socket(path, send); !strings.Contains(got, shape) {
				q.note("%s: %s, want %s", c.dialect, got, shape)
			}
			continue
		}
		status, got, header := q.post(path, send, "Mcp-Session-Id", header.Get("Mcp-Session-Id"))
		if !strings.Contains(got, shape) {
			q.note("%s: %s, want %s", c.dialect, got, shape)
		}
		after, err := time.ParseDuration(header.Get("Retry-After") + "s")
		if c.dialect != "MCP" && (status != http.StatusTooManyRequests || err != nil || after <= 0) {
			q.note("%s: status %d, Retry-After %s", c.dialect, status, header.Get("Retry-After"))
		}
	}
	if after := q.usage(); after != before {
		q.note("%+v was used before and %+v is after", before, after)
	}
}

// socket sends a frame, and returns the first frame that contains the word quota.
func (q *quotaUser) socket(path, send string) string {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.t.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, strings.Replace(q.addr, "http", "ws", 1)+path, nil)
	if err != nil {
		q.t.Fatal(path, err)
	}
	defer conn.CloseNow()
	if err := conn.Write(ctx, websocket.MessageText, []byte(send)); err != nil {
		q.t.Fatal(path, err)
	}
	for {
		_, got, err := conn.Read(ctx)
		if err != nil {
			return err.Error()
		}
		if strings.Contains(string(got), "quota") {
			return string(got)
		}
	}
}

func (q *quotaUser) note(format string, args ...any) {
	q.wrong = append(q.wrong, fmt.Sprintf(format, args...))
}

// A quotaUser is the user of a server in local mode.
type quotaUser struct {
	t     *testing.T
	addr  string
	wrong []string
}

func (q *quotaUser) post(path, body string, headers ...string) (int, string, http.Header) {
	q.t.Helper()
	method := "POST"
	if body == "" {
		method = "GET"
	}
	r, err := http.NewRequestWithContext(q.t.Context(), method, q.addr+path, strings.NewReader(body))
	if err != nil {
		q.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := plainHTTP.Do(r)
	if err != nil {
		q.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		q.t.Fatal(err)
	}
	return res.StatusCode, string(raw), res.Header
}

func (q *quotaUser) usage() port.Spent {
	q.t.Helper()
	_, body, _ := q.post("/api/v1/usage", "")
	var report port.UsageReport
	if err := json.Unmarshal([]byte(body), &report); err != nil {
		q.t.Fatal(body, err)
	}
	return report.User.Used
}
