package google

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley"
	"parley/port"
	"parley/provider/providertest"
	"parley/provider/upstream"
)

// Based on https://ai.google.dev/gemini-api/docs/thought-signatures: of
// parallel calls the first is signed, and the end of a text has its signature
// on an empty part.
var signed = providertest.Events(`
{"candidates":[{"content":{"role":"model","parts":[{"text":"Where is that?","thought":true}]},"index":0}],"usageMetadata":{"promptTokenCount":900,"cachedContentTokenCount":512,"totalTokenCount":900}}
{"candidates":[{"content":{"role":"model","parts":[{"text":"One "}]},"index":0}]}
{"candidates":[{"content":{"role":"model","parts":[{"text":"moment."}]},"index":0}]}
{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"weather","args":{"city":"Paris"}},"thoughtSignature":"AbCd+/8="},{"functionCall":{"name":"time"}}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":900,"cachedContentTokenCount":512,"candidatesTokenCount":20,"thoughtsTokenCount":30,"totalTokenCount":950}}
`)

var signedText = providertest.Events(`
{"candidates":[{"content":{"role":"model","parts":[{"text":"Sunny."}]},"index":0}]}
{"candidates":[{"content":{"role":"model","parts":[{"text":"","thoughtSignature":"ZW5k"}]},"finishReason":"STOP","index":0}]}
`)

var blocked = providertest.Events(
	`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3,"totalTokenCount":3}}`)

func parts(t *testing.T, s *providertest.Script, i int) (list []map[string]any) {
	t.Helper()
	var body struct {
		Contents []struct{ Parts []map[string]any }
	}
	if err := json.Unmarshal([]byte(s.Last().Body), &body); err != nil {
		t.Fatal(err)
	}
	return body.Contents[i].Parts
}

func TestSignaturesStayWhereTheyWere(t *testing.T) {
	script := providertest.Play(t, signed, signedText, signedText, signedText, blocked)
	m := New(upstream.Account{Key: providertest.Key, BaseURL: script.URL})
	defer m.Close()
	ask := func(model string, talk []parley.Message) providertest.Answer {
		t.Helper()
		a := providertest.Ask(t.Context(), m, port.ModelRequest{Model: model, Messages: talk})
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		return a
	}
	const model = "gemini-3-pro-preview"
	a := ask(model, providertest.User("What is it like in Paris?"))
	if a.Thinking != "Where is that?" || a.Text != "One moment." || a.Done.Stop != parley.StopTools {
		t.Fatalf("%+v", a)
	}
	if want := (parley.Usage{Input: 900, Cached: 512, Output: 50}); a.Done.Usage != want {
		t.Errorf("usage %+v", a.Done.Usage)
	}
	a.Calls[0].ID, a.Calls[1].ID = 5, 6
	talk := append(providertest.User("What is it like in Paris?"),
		parley.Message{Role: parley.RoleAssistant, Text: a.Text, Thinking: a.Thinking, Calls: a.Calls,
			Memo: a.Done.Memo},
		parley.Message{Role: parley.RoleTool, Call: 5, Text: "sun"}, parley.Message{Role: parley.RoleTool, Call: 6,
			Text: "noon"})
	b := ask(model, talk)
	call := func(name string, args map[string]any) map[string]any {
		c := map[string]any{"name": name}
		if len(args) > 0 {
			c["args"] = args
		}
		return map[string]any{"functionCall": c}
	}
	first := call("weather", map[string]any{"city": "Paris"})
	first["thoughtSignature"] = "AbCd+/8="
	if diff := cmp.Diff([]map[string]any{{"text": "One moment."}, first, call("time", nil)},
		parts(t, script, 1)); diff != "" {
		t.Error(diff)
	}
	if results := parts(t, script, 2); len(results) != 2 {
		t.Errorf("the results are %v", results)
	}

	talk = append(talk, parley.Message{Role: parley.RoleAssistant, Text: b.Text, Memo: b.Done.Memo},
		parley.Message{Role: parley.RoleUser, Text: "And tomorrow?"})
	ask(model, talk)
	if end := parts(t, script, 3); len(end) != 2 || end[1]["thoughtSignature"] != "ZW5k" {
		t.Errorf("the end of the text is %v", end)
	}

	// A call of another model gets the dummy signature.
	talk[1].Memo = nil
	ask(model, talk[:4])
	if foreign := parts(t, script, 1); foreign[1]["thoughtSignature"] == nil ||
		foreign[1]["thoughtSignature"] == "AbCd+/8=" || foreign[2]["thoughtSignature"] != nil {
		t.Errorf("told %v", foreign)
	}

	if c := ask(model, providertest.User("something bad")); c.Done.Stop != parley.StopRefusal {
		t.Errorf("%+v", c.Done)
	}
}

func TestErrorsOfGoogle(t *testing.T) {
	for _, c := range []struct {
		reply providertest.Reply
		code  parley.Code
		after string
	}{
		{providertest.Reply{Status: 429,
			Body: `[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"}]}}]`}, parley.CodeOverloaded, "2s"},
		{providertest.Reply{Status: 400,
			Body: `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`}, parley.CodeModel, "0s"},
		{providertest.Reply{Status: 400,
			Body: `{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}`}, parley.CodeContext, "0s"},
		{providertest.Events(`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`),
			parley.CodeOverloaded, "0s"},
	} {
		script := providertest.Play(t, c.reply)
		m := New(upstream.Account{Key: providertest.Key, BaseURL: script.URL})
		a := providertest.Ask(t.Context(), m, port.ModelRequest{Model: "gemini-2.5-flash",
			Messages: providertest.User("x")})
		e, ok := a.Err.(*parley.Error)
		if !ok || e.Code != c.code || e.RetryAfter.String() != c.after {
			t.Errorf("%s: %#v", c.reply.Body, a.Err)
		}
		m.Close()
	}
}
