package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

var weather = object{"type": "function", "name": "get_weather", "description": "the weather of a city",
	"parameters": object{"type": "object", "properties": object{"city": object{"type": "string"}}}}

// Client tools, as used by programs that keep the conversation themselves: each request has all of it, and no name of a
// session. The calls wait in the log, also while the server is down.
func TestOpenAIClientTools(t *testing.T) {
	t.Parallel()
	m := startModel(t, script("weather in Paris",
		asks("I look.", call("get_weather", map[string]any{"city": "Paris"}),
			call("get_weather", map[string]any{"city": "Rome"})), says("Sunny in Paris, wet in Rome.")),
		script("thank you", says(""), says(""), says("You are welcome.")),
		script("bring news", asks("", call("get_weather", map[string]any{"city": "Oslo"}))),
		script("in one word", says(""), says("Snow.")))
	s, n := startServer(t, withModel(m, options{})), startNode(t)

	// Chat Completions.
	function := object{"type": "function", "function": weather}
	request := merged(messages(by("user", "weather in Paris")), object{"tools": []object{function}})
	a := n.openAI(s, "", "chat.completions.create", request).answer()
	calls := a.Choices[0].Message.ToolCalls
	if a.Choices[0].Finish != "tool_calls" || len(calls) != 2 || calls[0].Function.Arguments != `{"city":"Paris"}` {
		t.Fatalf("%s", a.raw)
	}
	told := []object{by("user", "weather in Paris"),
		{"role": "assistant", "content": "I look.", "tool_calls": []object{functionCall(calls[0]),
			functionCall(calls[1])}},
		{"role": "tool", "tool_call_id": calls[0].ID, "content": "sunny"}}
	request["messages"] = told
	if class, status, about := n.openAI(s, "", "chat.completions.create", request).refused(); status !=
		http.StatusBadRequest {
		t.Errorf("one of two results is missing: %s %s", class, about)
	}
	s.kill()
	s = s.again()
	told = append(told, object{"role": "tool", "tool_call_id": calls[1].ID, "content": "wet"})
	request["messages"] = told
	c := n.openAI(s, "", "chat.completions.create", merged(request, object{"stream": true}))
	if c.answer(); c.text() != "Sunny in Paris, wet in Rome." {
		t.Errorf("%q", c.text())
	}
	if class, _, about := n.openAI(s, "", "chat.completions.create", request).refused(); class != "ConflictError" {
		t.Errorf("results that nothing waits for: %s", about)
	}

	// Results that come too late are part of the conversation.
	request["messages"] = append(told, by("user", "in one word"))
	if a := n.openAI(s, "", "chat.completions.create", request).answer(); a.said() != "Snow." {
		t.Errorf("%s", a.raw)
	}
	// The run adopts a message that comes with a result.
	request["messages"] = []object{by("user", "bring news")}
	calls = n.openAI(s, "", "chat.completions.create", request).answer().Choices[0].Message.ToolCalls
	request["messages"] = []object{by("user", "bring news"), {"role": "assistant", "tool_calls": []object{
		functionCall(calls[0])}}, {"role": "tool", "tool_call_id": calls[0].ID, "content": "cold"},
		by("user", "in one word")}
	if a := n.openAI(s, "", "chat.completions.create", request).answer(); a.said() != "Snow." {
		t.Errorf("%s", a.raw)
	}

	// Responses that the server stores.
	kept := n.openAI(s, "", "responses.create", asking("weather in Paris", object{"tools": []object{weather}})).answer()
	var results []object
	for _, i := range kept.Output {
		if i.Type == "function_call" {
			results = append(results, object{"type": "function_call_output", "call_id": i.CallID, "output": "sunny"})
		}
	}
	kept = n.openAI(s, "", "responses.create",
		asking("", object{"input": results, "previous_response_id": kept.ID})).answer()
	if items := n.openAI(s, "", "responses.inputItems.list", kept.ID).answer(); len(items.Data) != 2 ||
		items.Data[0].Output != "sunny" || kept.Text != "Sunny in Paris, wet in Rome." {
		t.Errorf("%s\n%s", kept.raw, items.raw)
	}

	// Responses as Codex uses them: nothing is stored, and the client sends all output back.
	codex := asking("", object{"store": false, "stream": true, "include": []string{"reasoning.encrypted_content"},
		"instructions": "You are a weather frog.", "tools": []object{weather, {"type": "web_search"}}})
	input := []object{{"type": "message", "role": "user", "content": []object{{"type": "input_text",
		"text": "weather in Paris"}}}}
	codex["input"] = input
	first := n.openAI(s, "", "responses.create", codex)
	first.answer()
	for _, e := range first.events {
		if e.Type != "response.output_item.done" || e.Item.Type != "function_call" {
			continue
		}
		input = append(input, object{"type": "function_call", "call_id": e.Item.CallID, "name": e.Item.Name,
			"arguments": e.Item.Arguments})
	}
	for _, i := range input[1:] {
		input = append(input, object{"type": "function_call_output", "call_id": i["call_id"], "output": "sunny"})
	}
	codex["input"] = input
	second := n.openAI(s, "", "responses.create", codex)
	if second.answer(); second.text() != "Sunny in Paris, wet in Rome." {
		t.Errorf("%q", second.text())
	}
	input = append(input, object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text",
		"text": second.text()}}}, object{"type": "message", "role": "user", "content": "thank you"})
	codex["input"] = input
	third := n.openAI(s, "", "responses.create", codex)
	if third.answer(); third.text() != "You are welcome." {
		t.Errorf("%q", third.text())
	}
	bodies := toldModel(m, "thank you")
	if len(bodies) != 1 || !strings.Contains(bodies[0], "weather frog") ||
		!strings.Contains(bodies[0], "get_weather") ||
		strings.Count(bodies[0], "weather in Paris") != 1 {
		t.Errorf("the model was told %s", bodies)
	}
	// The conversation that was not to be stored is gone.
	last := third.events[len(third.events)-1].Response.ID
	n.heard(s, "thank you", `"SessionDeleted"`)
	if class, _, about := n.openAI(s, "", "responses.retrieve", last).refused(); class != "NotFoundError" {
		t.Errorf("%s", about)
	}
}

func functionCall(c openAITool) object {
	return object{"id": c.ID, "type": "function", "function": object{"name": c.Function.Name,
		"arguments": c.Function.Arguments}}
}

// The client raises its own error class for each refusal, and nothing is appended.
func TestOpenAIRefusals(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	a := n.openAI(s, "", "responses.create", asking("say hello")).answer()
	session := a.Metadata["session_id"]
	before := len(s.events(session))
	mine := object{"previous_response_id": a.ID}
	for _, r := range []struct {
		what, class string
		call        string
		args        []any
	}{
		{"an unknown agent", "NotFoundError", "responses.create", []any{asking("x", object{"model": "nobody"})}},
		{"an unknown agent", "NotFoundError", "models.retrieve", []any{"nobody"}},
		{"an unknown agent", "NotFoundError", "chat.completions.create",
			[]any{merged(messages(by("user", "x")), object{"model": "nobody"})}},
		{"empty input", "BadRequestError", "responses.create", []any{asking(" ", mine)}},
		{"empty input", "BadRequestError", "chat.completions.create", []any{messages(by("user", ""))}},
		{"a body of a wrong type", "BadRequestError", "responses.create", []any{object{"model": 7}}},
		{"a body that is no object", "BadRequestError", "responses.create", []any{"{"}},
		{"an unknown response", "NotFoundError", "responses.create",
			[]any{asking("x", object{"previous_response_id": "resp_x"})}},
		{"an unknown response", "NotFoundError", "responses.retrieve",
			[]any{strings.TrimSuffix(a.ID, "_2") + "_3"}},
		{"a part that is not there", "NotFoundError", "responses.retrieve", []any{a.ID + "_1"}},
		{"a deleted session", "NotFoundError", "responses.create",
			[]any{asking("x", object{"metadata": object{"session_id": s.deleted(n)}})}},
		{"a cursor that is gone", "BadRequestError", "responses.retrieve",
			[]any{a.ID, object{"stream": true, "starting_after": 100000}}},
		{"an answer to what does not wait", "ConflictError", "responses.create",
			[]any{asking("", mine, object{"input": []object{{"type": "mcp_approval_response", "approve": true,
				"approval_request_id": "mcpr_" + strings.ReplaceAll(session, "-", "") + "_5"}}})}},
		{"a result of an unknown call", "ConflictError", "responses.create",
			[]any{asking("", mine, object{"input": []object{{"type": "function_call_output", "output": "x",
				"call_id": "call_" + strings.ReplaceAll(session, "-", "") + "_5"}}})}},
		{"too much", "BadRequestError", "responses.create", []any{asking(strings.Repeat("x", 1<<20+1), mine)}},
	} {
		if class, _, about := n.openAI(s, "", r.call, r.args...).refused(); class != r.class {
			t.Errorf("%s, by %s: %s", r.what, r.call, about)
		}
	}
	if after := len(s.events(session)); after != before {
		t.Errorf("%d events were appended", after-before)
	}
	// The client retries failures by itself, but not a message that is in the log.
	failed := newThread()
	if class, _, about := n.openAI(s, failed, "chat.completions.create",
		messages(by("user", "fail"))).refused(); class != "InternalServerError" {
		t.Errorf("a run that fails: %s", about)
	}
	if said := of("InputReceived", s.events(failed)); len(said) != 1 {
		t.Errorf("the message was said %d times", len(said))
	}
	if a := n.openAI(s, "", "responses.create", asking("fail")).answer(); a.Status != "failed" {
		t.Errorf("%s", a.raw)
	}
}

// With authentication the API key is a token, and objects of other users do not exist.
func TestOpenAITokens(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, jwt()), startNode(t)
	ann, bob := s.user("ann"), s.user("bob")
	reader := s.visitor("rita@acme", time.Hour, "read_only")
	a := ann.openAI(n, "responses.create", asking("say hello")).answer()
	named := object{"metadata": object{"session_id": a.Metadata["session_id"]}}
	if class, _, about := n.openAI(s, "", "models.list").refused(); class != "AuthenticationError" {
		t.Errorf("without a token: %s", about)
	}
	if class, _, about := reader.openAI(n, "responses.create",
		asking("x")).refused(); class != "PermissionDeniedError" {
		t.Errorf("as a reader: %s", about)
	}
	for _, c := range []*openAICall{bob.openAI(n, "responses.retrieve", a.ID), bob.openAI(n, "responses.cancel", a.ID),
		bob.openAI(n, "responses.create", asking("x", object{"previous_response_id": a.ID})),
		bob.openAI(n, "responses.create", asking("x", named)),
		bob.openAI(n, "chat.completions.create", merged(messages(by("user", "x")), named))} {
		if class, _, about := c.refused(); class != "NotFoundError" {
			t.Errorf("another's: %s", about)
		}
	}
	// For another user the same name is another session.
	tea := object{"metadata": object{"session_id": "tea"}}
	ann.openAI(n, "responses.create", asking("say hello", tea)).answer()
	if a := bob.openAI(n, "responses.create", asking("what did I say", tea)).answer(); strings.Contains(a.Text,
		"hello") {
		t.Errorf("bob was told %q", a.Text)
	}
}

// deleted is a session that was deleted.
func (s *server) deleted(n *node) string {
	s.t.Helper()
	id := newThread()
	n.fetch(s, "POST", "/api/v1/sessions", `{"id":"`+id+`"}`)
	n.fetch(s, "DELETE", "/api/v1/sessions/"+id, "")
	return id
}

// TestOpenWebUI sends the requests of Open WebUI: the list of models with a key, the whole conversation for each
// message without a name of a session, and a request for a title that is not part of the conversation.
func TestOpenWebUI(t *testing.T) {
	t.Parallel()
	s := startServer(t, jwt())
	ann := s.user("ann")
	var models struct{ Data []struct{ ID, Object string } }
	if err := json.Unmarshal([]byte(ann.must(http.StatusOK, http.MethodGet, "/v1/models", "")), &models); err != nil ||
		len(models.Data) != 1 || models.Data[0].ID != openAIModel || models.Data[0].Object != "model" {
		t.Errorf("%+v, %v", models, err)
	}
	// Its backend passes the lines of the stream on, and its page reads them.
	chat := func(list ...object) (text string) {
		t.Helper()
		body, _ := json.Marshal(object{"stream": true, "model": openAIModel, "messages": list, "temperature": 0.7,
			"stream_options": object{"include_usage": true}})
		usage, finish := 0, ""
		lines := strings.Split(strings.TrimSpace(ann.must(http.StatusOK, http.MethodPost, "/v1/chat/completions",
			string(body))), "\n\n")
		for _, line := range lines[:len(lines)-1] {
			var chunk struct {
				Object  string
				Choices []struct {
					Delta  struct{ Content string }
					Finish string `json:"finish_reason"`
				}
				Usage struct {
					Total int `json:"total_tokens"`
				}
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if err := json.Unmarshal([]byte(data), &chunk); !ok || err != nil ||
				chunk.Object != "chat.completion.chunk" {
				t.Fatalf("%q, %v", line, err)
			}
			for _, c := range chunk.Choices {
				text += c.Delta.Content
				finish += c.Finish
			}
			usage += chunk.Usage.Total
		}
		if last := lines[len(lines)-1]; last != "data: [DONE]" || usage == 0 || finish != "stop" {
			t.Errorf("it ends with %q, finish_reason %q and %d tokens", last, finish, usage)
		}
		return text
	}
	// plain is a request for a title.
	plain := func(prompt string) string {
		t.Helper()
		body, _ := json.Marshal(object{"model": openAIModel, "messages": []object{by("user", prompt)}, "stream": false,
			"max_completion_tokens": 1000})
		var a openAIAnswer
		if err := json.Unmarshal([]byte(ann.must(http.StatusOK, http.MethodPost, "/v1/chat/completions",
			string(body))), &a); err != nil {
			t.Fatal(err)
		}
		return a.said()
	}
	said := []object{by("user", "say the sky is blue")}
	if got := chat(said...); got != "the sky is blue" {
		t.Errorf("%q", got)
	}
	if got := plain(`say {"title":"Sky"}`); got != `{"title":"Sky"}` {
		t.Errorf("%q", got)
	}
	said = append(said, by("assistant", "the sky is blue"), object{"role": "user", "content": []object{
		{"type": "text", "text": "what did I say"},
		{"type": "image_url", "image_url": object{"url": "data:image/png;base64,iVBORw0KGgo="}}}})
	if got := chat(said...); !strings.Contains(got, "1. say the sky is blue") || strings.Contains(got, "Sky") {
		t.Errorf("%q", got)
	}
	stranger := &visitor{s, "nobody", "not a token"}
	if body := stranger.must(http.StatusUnauthorized, http.MethodGet, "/v1/models", ""); !strings.HasPrefix(body,
		`{"error":{"message":`) {
		t.Errorf("%s", body)
	}
}
