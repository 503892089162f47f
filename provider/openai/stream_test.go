package openai

import (
	"strings"
	"testing"

	"parley"
	"parley/provider/providertest"
)

// TestOddChunks: servers that are compatible differ in what they send.
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
		"an error in the middle": {hello + `data: {"error":{"message":"no more","type":"rate_limit_exceeded"}}` + "\n\n",
			func(a providertest.Answer) bool { return parley.CodeOf(a.Err) == parley.CodeOverloaded }},
		"nothing but the end of the stream": {hello + "data: [DONE]\n\n" + end, func(a providertest.Answer) bool {
			return parley.MessageOf(a.Err) == "The model's server stopped in the middle of the answer."
		}},
	} {
		t.Run(name, func(t *testing.T) {
			script := providertest.Play(t, providertest.Reply{
				Header: map[string]string{"Content-Type": "text/event-stream"}, Body: c.body})
			m := New(Options{BaseURL: script.URL, API: Chat})
			defer m.Close()
			a := providertest.Ask(t.Context(), m, parley.ModelRequest{Model: "m", Messages: providertest.User("hi")})
			if !c.want(a) {
				t.Errorf("%+v", a)
			}
		})
	}
}
