package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley"
	"parley/port"
	"parley/provider/providertest"
	"parley/provider/upstream"
)

// Based on https://platform.claude.com/docs/en/build-with-claude/streaming,
// with thinking, a part of it redacted, and two calls.
var thought = providertest.Events(`
message_start {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":25,"cache_read_input_tokens":1000,"cache_creation_input_tokens":200,"output_tokens":1}}}
content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
ping {"type":"ping"}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"First the "}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"weather."}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2lnbmVk"}}
content_block_stop {"type":"content_block_stop","index":0}
content_block_start {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"aGlkZGVu"}}
content_block_stop {"type":"content_block_stop","index":1}
content_block_start {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}
content_block_delta {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Let me see."}}
content_block_stop {"type":"content_block_stop","index":2}
content_block_start {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}}
content_block_delta {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}
content_block_delta {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Par"}}
content_block_delta {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"is\"}"}}
content_block_stop {"type":"content_block_stop","index":3}
content_block_start {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"time","input":{}}}
content_block_stop {"type":"content_block_stop","index":4}
message_delta {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}
message_stop {"type":"message_stop"}
`)

var answered = providertest.Events(`
message_start {"type":"message_start","message":{"id":"msg_2","type":"message","role":"assistant","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}
content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Sunny."}}
content_block_stop {"type":"content_block_stop","index":0}
message_delta {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}
message_stop {"type":"message_stop"}
`)

const model = "claude-sonnet-4-5"

// sent returns the last request of a script.
func sent(t *testing.T, s *providertest.Script) (body struct {
	Messages  []struct{ Content []map[string]any }
	Thinking  map[string]any
	System    []map[string]any
	MaxTokens int `json:"max_tokens"`
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.Last().Body), &body); err != nil {
		t.Fatal(err)
	}
	return body
}

// turn returns the messages of the first answer, for the second request.
func turn(a providertest.Answer) []parley.Message {
	a.Calls[0].ID, a.Calls[1].ID = 5, 6
	return append(providertest.User("What is it like in Paris?"),
		parley.Message{Role: parley.RoleAssistant, Text: a.Text, Thinking: a.Thinking, Calls: a.Calls,
			Memo: a.Done.Memo},
		parley.Message{Role: parley.RoleTool, Call: 5, Text: "sun"},
		parley.Message{Role: parley.RoleTool, Call: 6, Text: "noon"})
}

func TestThinkingIsGivenBackAsItCame(t *testing.T) {
	script := providertest.Play(t, thought, answered)
	m := New(Options{Account: upstream.Account{Key: providertest.Key, BaseURL: script.URL},
		Limit: func(string) int { return 64_000 }})
	defer m.Close()
	a := providertest.Ask(t.Context(), m, port.ModelRequest{Model: model, Instructions: "Be brief.",
		Messages: providertest.User("What is it like in Paris?")})
	if a.Err != nil || a.Thinking != "First the weather." || a.Text != "Let me see." ||
		a.Done.Stop != parley.StopTools {
		t.Fatalf("%+v", a)
	}
	if want := (parley.Usage{Input: 1225, Cached: 1000, Written: 200, Output: 89}); a.Done.Usage != want {
		t.Errorf("usage %+v, want %+v", a.Done.Usage, want)
	}
	if diff := cmp.Diff([]parley.MessageCall{{Provider: "toolu_1", Name: "weather", Arguments: `{"city": "Paris"}`},
		{Provider: "toolu_2", Name: "time", Arguments: "{}"}}, a.Calls); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(a.Done.Memo.Data), "weather") {
		t.Errorf("the memo repeats what the log has: %s", a.Done.Memo.Data)
	}
	first := sent(t, script)
	if first.Thinking["type"] != "enabled" || first.System[0]["cache_control"] == nil ||
		first.Messages[0].Content[0]["cache_control"] == nil || first.MaxTokens != mostSaid {
		t.Errorf("asked %s", script.Last().Body)
	}

	b := providertest.Ask(t.Context(), m, port.ModelRequest{Model: model, Messages: turn(a)})
	if b.Err != nil || b.Text != "Sunny." {
		t.Fatalf("%+v", b)
	}
	got := sent(t, script)
	want := []map[string]any{
		{"type": "thinking", "thinking": "First the weather.", "signature": "c2lnbmVk"},
		{"type": "redacted_thinking", "data": "aGlkZGVu"},
		{"type": "text", "text": "Let me see."},
		{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": map[string]any{"city": "Paris"}},
		{"type": "tool_use", "id": "toolu_2", "name": "time", "input": map[string]any{}},
	}
	if diff := cmp.Diff(want, got.Messages[1].Content); diff != "" {
		t.Error(diff)
	}
	if len(got.Messages) != 3 || len(got.Messages[2].Content) != 2 ||
		got.Messages[2].Content[1]["tool_use_id"] != "toolu_2" {
		t.Errorf("results: %+v", got.Messages)
	}
	if got.Thinking["type"] != "enabled" {
		t.Errorf("thinking %v", got.Thinking)
	}
}

// TestTurnsWithoutThinking checks that a turn of another model, or a changed
// turn, is sent without thinking, and that the model is not asked to think in
// the middle of it.
func TestTurnsWithoutThinking(t *testing.T) {
	for name, change := range map[string]func(*parley.Message){
		"of another provider": func(m *parley.Message) {
			m.Memo = &parley.Memo{Provider: "openai", Model: model,
				Data: m.Memo.Data}
		},
		"of another model": func(m *parley.Message) {
			m.Memo = &parley.Memo{Provider: Name, Model: "claude-opus-4-1", Data: m.Memo.Data}
		},
		"with a shorter text": func(m *parley.Message) { m.Text = "Let me" },
		"with more thinking":  func(m *parley.Message) { m.Thinking += "!" },
		"without a memo":      func(m *parley.Message) { m.Memo = nil },
		"with a broken one":   func(m *parley.Message) { m.Memo.Data = json.RawMessage(`{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			script := providertest.Play(t, thought, answered)
			m := New(Options{Account: upstream.Account{Key: providertest.Key, BaseURL: script.URL},
				Limit: func(string) int { return 64_000 }})
			defer m.Close()
			talk := turn(
				providertest.Ask(t.Context(), m, port.ModelRequest{Model: model, Messages: providertest.User("Hm?")}))
			change(&talk[1])
			if b := providertest.Ask(t.Context(), m, port.ModelRequest{Model: model, Messages: talk}); b.Err != nil {
				t.Fatal(b.Err)
			}
			got := sent(t, script)
			if len(got.Messages[1].Content) != 3 || got.Messages[1].Content[0]["type"] != "text" ||
				got.Thinking != nil {
				t.Errorf("thinking %v, %+v", got.Thinking, got.Messages[1])
			}
		})
	}
}

// TestErrorsInTheMiddle checks errors in a stream with status 200.
func TestErrorsInTheMiddle(t *testing.T) {
	for kind, code := range map[string]parley.Code{"overloaded_error": parley.CodeOverloaded,
		"api_error": parley.CodeUnavailable, "invalid_request_error": parley.CodeModel} {
		script := providertest.Play(t, providertest.Events(`
message_start {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}
content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"One"}}
error {"type":"error","error":{"type":"`+kind+`","message":"Oh."}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Two"}}
message_stop {"type":"message_stop"}`))
		m := New(Options{Account: upstream.Account{Key: providertest.Key, BaseURL: script.URL}})
		a := providertest.Ask(t.Context(), m, port.ModelRequest{Model: model, Messages: providertest.User("x")})
		if a.Text != "One" || a.Done != nil || parley.CodeOf(a.Err) != code {
			t.Errorf("%s: %+v", kind, a)
		}
		m.Close()
	}
}

func TestVersions(t *testing.T) {
	for name, want := range map[string]way{
		"claude-3-opus-20240229": notAtAll, "claude-3-5-sonnet-latest": notAtAll, "claude-instant": notAtAll,
		"anthropic.model":            notAtAll,
		"claude-3-7-sonnet-20250219": withBudget, "claude-sonnet-4-20250514": withBudget, "claude-opus-4-1": withBudget,
		"claude-haiku-4-5-20251001": withBudget,
		"claude-opus-4-6":           asItSeesFit, "claude-sonnet-5": asItSeesFit, "claude-opus-5-5": asItSeesFit,
		"claude-sonnet-10-1": asItSeesFit,
	} {
		if got := thinks(name); got != want {
			t.Errorf("%s thinks %v, want %v", name, got, want)
		}
	}
}
