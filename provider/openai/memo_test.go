package openai

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

// Based on https://platform.openai.com/docs/api-reference/responses-streaming,
// with encrypted reasoning and a call.
var reasoned = providertest.Events(`
response.created {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"output":[]}}
response.output_item.added {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"half"}}
response.reasoning_summary_text.delta {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Looking "}
response.reasoning_summary_text.delta {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"around"}
response.reasoning_summary_text.delta {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"Deciding"}
response.output_item.done {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Looking around"},{"type":"summary_text","text":"Deciding"}],"encrypted_content":"gAAAA-whole"}}
response.output_item.added {"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[],"phase":"commentary"}}
response.output_text.delta {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"One moment."}
response.output_text.done {"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"One moment."}
response.output_item.done {"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"One moment."}]}}
response.output_item.added {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"weather","arguments":""}}
response.function_call_arguments.delta {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"city\":"}
response.function_call_arguments.done {"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"city\":\"Paris\"}"}
response.output_item.done {"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Paris\"}"}}
response.completed {"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"usage":{"input_tokens":1200,"input_tokens_details":{"cached_tokens":1024},"output_tokens":80,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":1280}}}
`)

var answered = providertest.Events(`
response.output_text.delta {"type":"response.output_text.delta","item_id":"msg_2","delta":"Sunny."}
response.completed {"type":"response.completed","response":{"id":"resp_2","status":"completed","usage":{"input_tokens":1,"output_tokens":1}}}
`)

type body struct {
	Input, Messages []map[string]any
	Include         []string
	Store           *bool
	Reasoning       map[string]any
}

func sent(t *testing.T, s *providertest.Script) (b body) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.Last().Body), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func after(a providertest.Answer) []parley.Message {
	a.Calls[0].ID = 5
	return append(providertest.User("What is it like in Paris?"),
		parley.Message{Role: parley.RoleAssistant, Text: a.Text, Thinking: a.Thinking, Calls: a.Calls,
			Memo: a.Done.Memo},
		parley.Message{Role: parley.RoleTool, Call: 5, Text: "sun"})
}

func TestReasoningIsGivenBackEncrypted(t *testing.T) {
	script := providertest.Play(t, reasoned, answered, answered)
	m := New(Options{Account: upstream.Account{Key: providertest.Key, BaseURL: script.URL}, API: Responses})
	defer m.Close()
	a := providertest.Ask(t.Context(), m,
		port.ModelRequest{Model: "gpt-5", Messages: providertest.User("What is it like in Paris?")})
	if a.Err != nil || a.Thinking != "Looking around\n\nDeciding" || a.Text != "One moment." ||
		a.Done.Stop != parley.StopTools {
		t.Fatalf("%+v", a)
	}
	if want := (parley.Usage{Input: 1200, Cached: 1024, Output: 80}); a.Done.Usage != want {
		t.Errorf("usage %+v", a.Done.Usage)
	}
	if diff := cmp.Diff([]parley.MessageCall{{Provider: "call_1", Name: "weather", Arguments: `{"city":"Paris"}`}},
		a.Calls); diff != "" {
		t.Error(diff)
	}
	if first := sent(t, script); first.Store == nil || *first.Store || first.Reasoning["summary"] != "auto" ||
		!cmp.Equal(first.Include, []string{"reasoning.encrypted_content"}) {
		t.Errorf("asked %s", script.Last().Body)
	}

	if b := providertest.Ask(t.Context(), m, port.ModelRequest{Model: "gpt-5", Messages: after(a)}); b.Err != nil {
		t.Fatal(b.Err)
	}
	want := []map[string]any{
		{"role": "user", "content": []any{map[string]any{"type": "input_text", "text": "What is it like in Paris?"}}},
		{"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAAA-whole",
			"summary": []any{map[string]any{"type": "summary_text", "text": "Looking around\n\nDeciding"}}},
		{"role": "assistant", "content": "One moment.", "phase": "commentary"},
		{"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": `{"city":"Paris"}`},
		{"type": "function_call_output", "call_id": "call_1", "output": "sun"},
	}
	if diff := cmp.Diff(want, sent(t, script).Input); diff != "" {
		t.Error(diff)
	}

	// Another model of the same vendor gets only the text and the calls.
	if b := providertest.Ask(t.Context(), m, port.ModelRequest{Model: "gpt-4.1", Messages: after(a)}); b.Err != nil {
		t.Fatal(b.Err)
	}
	if got := sent(t, script); strings.Contains(script.Last().Body, "encrypted") || got.Reasoning != nil ||
		got.Include != nil || len(got.Input) != 4 {
		t.Errorf("gpt-4.1 was asked %s", script.Last().Body)
	}
}

// TestAccountsWithoutSummaries checks that a request is repeated without
// summaries, and that later requests do not ask for them.
func TestAccountsWithoutSummaries(t *testing.T) {
	refusal := providertest.Reply{Status: 400,
		Body: `{"error":{"message":"Your organization must be verified to generate reasoning summaries.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}`}
	script := providertest.Play(t, refusal, answered, answered)
	m := New(Options{Account: upstream.Account{Key: providertest.Key, BaseURL: script.URL}, API: Responses})
	defer m.Close()
	for range 2 {
		a := providertest.Ask(t.Context(), m, port.ModelRequest{Model: "o3", Messages: providertest.User("x")})
		if a.Err != nil || a.Text != "Sunny." || sent(t, script).Reasoning != nil {
			t.Errorf("%+v after %s", a, script.Last().Body)
		}
	}
}

func TestErrorsInTheMiddleOfAResponse(t *testing.T) {
	for event, code := range map[string]parley.Code{
		`response.failed {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"Oh."}}}`:        parley.CodeUnavailable,
		`response.failed {"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Oh."}}}`: parley.CodeOverloaded,
		`error {"type":"error","code":"server_error","message":"Oh.","param":null}`:                                                        parley.CodeUnavailable,
		`error {"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Oh."}}`:                                parley.CodeContext,
	} {
		script := providertest.Play(t,
			providertest.Events(`response.output_text.delta {"type":"response.output_text.delta","delta":"One"}
			`+event+`
			response.completed {"type":"response.completed","response":{"status":"completed"}}`))
		m := New(Options{Account: upstream.Account{Key: providertest.Key, BaseURL: script.URL}, API: Responses})
		a := providertest.Ask(t.Context(), m, port.ModelRequest{Model: "gpt-5", Messages: providertest.User("x")})
		if a.Text != "One" || a.Done != nil || parley.CodeOf(a.Err) != code {
			t.Errorf("%s: %+v", event, a)
		}
		m.Close()
	}
}

// chatted is a stream as DeepSeek, vLLM and others send it. All calls have
// index 0, as from some servers.
var chatted = providertest.Events(`
{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"Hm, "},"finish_reason":null}]}
{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"reasoning_content":"Paris."},"finish_reason":null}]}
{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":"}}]},"finish_reason":null}]}
{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Paris\"}"}}]},"finish_reason":null}]}
{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_2","type":"function","function":{"name":"time","arguments":""}}]},"finish_reason":"tool_calls"}]}
{"id":"1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64}}}
[DONE]
`)

var chatAnswered = providertest.Events(`
{"id":"2","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Sunny."},"finish_reason":"stop"}]}
`)

func TestReasoningOfCompatibleServers(t *testing.T) {
	script := providertest.Play(t, chatted, chatAnswered)
	m := New(Options{Account: upstream.Account{BaseURL: script.URL}}) // the server needs no key
	defer m.Close()
	a := providertest.Ask(t.Context(), m,
		port.ModelRequest{Model: "deepseek", Messages: providertest.User("What is it like in Paris?")})
	if a.Err != nil || a.Thinking != "Hm, Paris." || a.Done.Stop != parley.StopTools ||
		a.Done.Usage != (parley.Usage{Input: 100, Cached: 64, Output: 20}) {
		t.Fatalf("%+v", a)
	}
	if diff := cmp.Diff([]parley.MessageCall{{Provider: "call_1", Name: "weather", Arguments: `{"city":"Paris"}`},
		{Provider: "call_2", Name: "time", Arguments: "{}"}}, a.Calls); diff != "" {
		t.Error(diff)
	}
	if header := script.Last().Header; header.Get("Authorization") != "" {
		t.Errorf("a key was sent: %v", header)
	}
	talk := after(a)
	talk[1].Calls[1].ID = 6
	talk = append(talk, parley.Message{Role: parley.RoleTool, Call: 6, Text: "noon"})
	if b := providertest.Ask(t.Context(), m, port.ModelRequest{Model: "deepseek", Messages: talk}); b.Err != nil ||
		b.Text != "Sunny." || b.Done.Memo != nil {
		t.Fatalf("%+v", b)
	}
	if got := sent(t, script).Messages[1]; got["reasoning_content"] != "Hm, Paris." ||
		len(got["tool_calls"].([]any)) != 2 {
		t.Errorf("told %v", got)
	}
}

func TestWhichAPI(t *testing.T) {
	for base, want := range map[string]string{"": Responses, "https://api.openai.com/v1/": Responses,
		"http://127.0.0.1:11434/v1": Chat, "https://api.openai.com.example.com": Chat} {
		m := New(Options{Account: upstream.Account{BaseURL: base}})
		if m.api != want {
			t.Errorf("%q is spoken to by %s", base, m.api)
		}
		m.Close()
	}
}
