package openai

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley"
	"parley/port"
	"parley/provider/providertest"
	"parley/provider/upstream"
)

// TestOddChunks covers the different chunks that compatible servers send.
func TestOddChunks(t *testing.T) {
	const end = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	const hello = `data: {"choices":[{"delta":{"content":"hello"}}]}` + "\n\n"
	for name, c := range map[string]struct {
		body string
		want func(providertest.Answer) bool
	}{
		"whole": {hello + end, func(a providertest.Answer) bool { return a.Text == "hello" && a.Err == nil }},
		"nulls": {`data: {"error":null,"usage":null,"choices":[{"delta":{"content":null,"tool_calls":null},` +
			`"finish_reason":null}]}` + "\n\n" + hello + end,
			func(a providertest.Answer) bool { return a.Text == "hello" && a.Err == nil }},
		"arguments that are an object": {`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":` +
			`{"name":"read","arguments":{"path":"a"}}}]},"finish_reason":"stop"}]}` + "\n\n",
			func(a providertest.Answer) bool {
				return a.Err == nil && len(a.Calls) == 1 && a.Calls[0].Arguments == `{"path":"a"}` &&
					a.Done.Stop == parley.StopTools
			}},
		"numbers with a fraction": {hello + `data: {"choices":[],"usage":{"prompt_tokens":7.0,"completion_tokens":2,` +
			`"total_tokens":9}}` + "\n\n" + end,
			func(a providertest.Answer) bool { return a.Done.Usage == parley.Usage{Input: 7, Output: 2} }},
		"nonsense after the end": {hello + end[:strings.Index(end, "data: [DONE]")] + "data: {nonsense\n\n",
			func(a providertest.Answer) bool { return a.Text == "hello" && a.Err == nil }},
		"nonsense before the end": {hello + "data: {nonsense\n\n" + end, func(a providertest.Answer) bool {
			return parley.MessageOf(a.Err) == "The model's server sent something that cannot be understood."
		}},
		"an error in the middle": {hello + `data: {"error":{"message":"no more","type":"rate_limit_exceeded"}}` +
			"\n\n",
			func(a providertest.Answer) bool { return parley.CodeOf(a.Err) == parley.CodeOverloaded }},
		"nothing but the end of the stream": {hello + "data: [DONE]\n\n" + end, func(a providertest.Answer) bool {
			return parley.MessageOf(a.Err) == "The model's server stopped in the middle of the answer."
		}},
	} {
		t.Run(name, func(t *testing.T) {
			script := providertest.Play(t, providertest.Reply{
				Header: map[string]string{"Content-Type": "text/event-stream"}, Body: c.body})
			m := New(Options{Account: upstream.Account{BaseURL: script.URL}, API: Chat})
			defer m.Close()
			a := providertest.Ask(t.Context(), m, port.ModelRequest{Model: "m", Messages: providertest.User("hi")})
			if !c.want(a) {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestConnectionsAreUsedAgain checks that connections are reused: a new one for
// every call would cost a handshake before the first token.
func TestConnectionsAreUsedAgain(t *testing.T) {
	const atOnce, rounds = 8, 5
	var made atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"hello"},"finish_reason":"stop"}]}`+"\n\n")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	m := New(Options{Account: upstream.Account{BaseURL: server.URL}, API: Chat})
	defer m.Close()
	for range rounds {
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() {
				if a := providertest.Ask(t.Context(), m, port.ModelRequest{Model: "m",
					Messages: providertest.User("hi")}); a.Err != nil {
					t.Error(a.Err)
				}
			})
		}
		all.Wait()
	}
	if n := made.Load(); n >= atOnce*rounds/2 {
		t.Errorf("%d connections for %d calls, %d at a time", n, atOnce*rounds, atOnce)
	}
}

// TestToolsAreEncodedOnce also checks the tools of the request.
func TestToolsAreEncodedOnce(t *testing.T) {
	script := providertest.Play(t, answered, answered)
	m := New(Options{Account: upstream.Account{BaseURL: script.URL}, API: Responses})
	defer m.Close()
	encoded := 0
	m.responsesTools.Encode = func(spec parley.ToolSpec) any {
		encoded++
		return responsesTool(spec)
	}
	tools := []parley.ToolSpec{{Name: "read", Description: "Reads <a> file.", Parameters: `{"type":"object"}`},
		{Name: "stop"}}
	for range 2 {
		a := providertest.Ask(t.Context(), m, port.ModelRequest{Model: "gpt-4.1", Messages: providertest.User("hi"),
			Tools: tools})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	var got struct {
		Stream bool
		Tools  []struct {
			Type, Name, Description string
			Parameters              map[string]any
		}
	}
	if err := json.Unmarshal([]byte(script.Last().Body), &got); err != nil {
		t.Fatal(err)
	}
	if encoded != 2 || !got.Stream || len(got.Tools) != 2 || got.Tools[0].Description != "Reads <a> file." ||
		got.Tools[1].Parameters["type"] != "object" || got.Tools[0].Type != "function" {
		t.Errorf("%d, %+v", encoded, got)
	}
}
