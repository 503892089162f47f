package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveTenantTools runs this program as an MCP server, which reads and writes any
// file that a caller names, as far as the sandbox allows it.
func serveTenantTools(shared string) {
	s := sdk.NewServer(&sdk.Implementation{Name: "tenants", Version: "1"}, nil)
	type arguments struct {
		Path string `json:"path,omitempty"`
		Text string `json:"text,omitempty"`
	}
	add := func(name string, do func(arguments) (string, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "Does " + name + "."},
			func(_ context.Context, _ *sdk.CallToolRequest, a arguments) (*sdk.CallToolResult, any, error) {
				text, err := do(a)
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, err
			})
	}
	add("read", func(a arguments) (string, error) {
		text, err := os.ReadFile(a.Path)
		return string(text), err
	})
	add("list", func(a arguments) (string, error) {
		names, err := filepath.Glob(filepath.Join(a.Path, "*"))
		return strings.Join(names, "\n"), err
	})
	add("write", func(a arguments) (string, error) { return "written", os.WriteFile(a.Path, []byte(a.Text), 0o644) })
	add("where", func(arguments) (string, error) { return os.Getwd() })
	add("environment", func(arguments) (string, error) { return strings.Join(os.Environ(), "\n"), nil })
	// hold reports progress, and returns only after the test has created a file.
	sdk.AddTool(s, &sdk.Tool{Name: "hold", Description: "Waits."},
		func(ctx context.Context, r *sdk.CallToolRequest, a arguments) (*sdk.CallToolResult, any, error) {
			_ = r.Session.NotifyProgress(ctx,
				&sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(),
					Progress: 1, Message: "begun"})
			for {
				if _, err := os.Stat(filepath.Join(shared, filepath.Base(a.Text))); err == nil {
					return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "held"}}}, nil, nil
				}
				time.Sleep(10 * time.Millisecond) // there is no event to wait for in another process
			}
		})
	_ = s.Run(context.Background(), &sdk.StdioTransport{}) // ends when its input ends
	os.Exit(0)
}

var toolOrder = regexp.MustCompile(`(?s)^tool (\S+) (\{.*\})$`)

// newObedientModel is a model server that obeys the last message: "tool NAME
// ARGUMENTS" calls that tool, even if the request does not offer it. It repeats
// other messages and the results of tools. It passes each request to asked.
func newObedientModel(t *testing.T, asked func(body string)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		asked(string(raw))
		var q struct {
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
		if err := json.Unmarshal(raw, &q); err != nil || len(q.Messages) == 0 {
			http.Error(w, "no messages", http.StatusBadRequest)
			return
		}
		last := q.Messages[len(q.Messages)-1]
		text := contentText(last.Content)
		delta := map[string]any{"role": "assistant", "content": "I heard: " + text}
		finish := "stop"
		if m := toolOrder.FindStringSubmatch(text); m != nil && last.Role == "user" {
			delta = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"index": 0, "id": "call_1",
				"type":     "function",
				"function": map[string]string{"name": m[1], "arguments": m[2]}}}}
			finish = "tool_calls"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, choice := range []map[string]any{{"index": 0, "delta": delta},
			{"index": 0, "delta": map[string]any{}, "finish_reason": finish}} {
			chunk, _ := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk",
				"choices": []any{choice}})
			fmt.Fprintf(w, "data: %s\n\n", chunk)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// contentText returns the text of a message, whose content is a string or a list of
// parts.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(raw, &parts) // other content has no text
	for _, p := range parts {
		text += p.Text
	}
	return text
}
