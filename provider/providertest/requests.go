package providertest

import (
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley"
	"parley/port"
)

var update = flag.Bool("update", false, "write the requests of providers that have no file of them")

// A recorded is a request as the vendor receives it.
type recorded struct {
	Request string            `json:"request"` // method, path and query
	Header  map[string]string `json:"header"`
	Body    any               `json:"body,omitempty"`
}

// recordedHeader has the headers that vendors require.
var recordedHeader = []string{"Accept", "Anthropic-Version", "Authorization", "Content-Type", "X-Api-Key",
	"X-Goog-Api-Key"}

// Requests compares the requests of a provider with testdata/name.json in the folder of the test. parts are the memo of
// a turn of the provider with thinking, a text, two calls and a text of its own format.
func Requests(t *testing.T, name string, p Provider, provider, parts string, models ...string) {
	got := map[string]recorded{}
	var current string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		one := recorded{Request: r.Method + " " + r.URL.RequestURI(), Header: map[string]string{}}
		for _, name := range recordedHeader {
			if value := r.Header.Get(name); value != "" {
				one.Header[name] = value
			}
		}
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &one.Body); err != nil {
				t.Errorf("%s: %v in %s", current, err, raw)
			}
		}
		got[current] = one
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	model := p.New(server.URL, patient)
	defer model.Close()
	for _, m := range models {
		for title, req := range requestsOf(provider, parts, m) {
			current, req.Model = m+": "+title, m
			if a := Ask(t.Context(), model, req); a.Err == nil {
				t.Errorf("%s: the refusal was lost", current)
			}
		}
	}
	current = "list"
	if _, err := model.List(t.Context()); err == nil {
		t.Error("the refusal of the list was lost")
	}
	compareRequests(t, filepath.Join("testdata", name+".json"), got)
}

func compareRequests(t *testing.T, file string, got map[string]recorded) {
	raw, err := os.ReadFile(file)
	if os.IsNotExist(err) && *update {
		if raw, err = json.MarshalIndent(got, "", "\t"); err == nil {
			err = os.WriteFile(file, append(raw, '\n'), 0o600)
		}
	}
	want := map[string]recorded{}
	if err == nil {
		err = json.Unmarshal(raw, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	for title := range want {
		if diff := cmp.Diff(want[title], got[title]); diff != "" {
			t.Errorf("%s: %s", title, diff)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d requests, not %d", len(got), len(want))
	}
}

// requestsOf returns requests with everything that a conversation may have.
func requestsOf(provider, parts, model string) map[string]port.ModelRequest {
	const odd = "<b>&\"quotes\" \\ \u2028 é 🙂\n\ttab"
	calls := []parley.MessageCall{{ID: 5, Provider: "call_a", Name: "read_file", Arguments: `{"path":"a <b>","n":1.5}`},
		{ID: 6, Provider: "not valid!", Name: "a.dot", Arguments: `{"broken`}}
	answered := func(memo *parley.Memo) []parley.Message {
		return append(User("go"),
			parley.Message{Role: parley.RoleAssistant, Text: "One moment.", Thinking: "Hm, well.", Calls: calls, Memo: memo},
			parley.Message{Role: parley.RoleTool, Call: 5, Text: odd}, parley.Message{Role: parley.RoleTool, Call: 6})
	}
	memo := func(provider, model string) *parley.Memo {
		return &parley.Memo{Provider: provider, Model: model, Data: json.RawMessage(parts)}
	}
	document := parley.Image{Type: parley.TypePDF, Data: []byte("%PDF-1.4"), Name: "a.pdf", Pages: 3, Text: "Words."}
	long, unnamed := document, document
	long.Pages, unnamed.Name = 1000, ""
	image := parley.Image{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}
	return map[string]port.ModelRequest{
		"a message":    {Messages: User("hello")},
		"instructions": {Messages: User(odd), Instructions: "Be brief. " + odd, MaxTokens: 1234},
		"much room":    {Messages: User("hello"), MaxTokens: 1 << 20},
		"tools": {Messages: User("hello"), Tools: append(tools, parley.ToolSpec{Name: "none"},
			parley.ToolSpec{Name: "strict", Description: odd, Parameters: `{"type":"object","additionalProperties":false,` +
				`"$defs":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a"}},"required":["x"]}`})},
		"images":         {Messages: []parley.Message{{Role: parley.RoleUser, Text: odd, Images: []parley.Image{image}}}},
		"an image alone": {Messages: []parley.Message{{Role: parley.RoleUser, Images: []parley.Image{image}}}},
		"documents": {Messages: []parley.Message{{Role: parley.RoleUser, Text: "read",
			Images: []parley.Image{document, long, unnamed}}}},
		"calls":           {Messages: answered(nil), Tools: tools},
		"calls of it":     {Messages: answered(memo(provider, model)), Tools: tools},
		"calls of others": {Messages: answered(memo(provider, "another"))},
		"a conversation": {Messages: append(answered(memo(provider, model)),
			parley.Message{Role: parley.RoleAssistant, Text: "It is " + odd},
			parley.Message{Role: parley.RoleUser, Text: "And then?"},
			parley.Message{Role: parley.RoleAssistant, Text: " "})},
	}
}
