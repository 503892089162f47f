package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/provider/providertest"
)

// A fixture is the answer of aimock to a matching request. npm
// @copilotkit/aimock is an independent mock of the vendors' servers.
type fixture struct {
	Match               match          `json:"match"`
	Response            response       `json:"response"`
	ChunkSize           int            `json:"chunkSize,omitempty"`       // in characters
	Timings             map[string]any `json:"recordedTimings,omitempty"` // timings of a recorded stream
	TruncateAfterChunks int            `json:"truncateAfterChunks,omitempty"`
	Chaos               map[string]any `json:"chaos,omitempty"`
}

type match struct {
	User     string `json:"userMessage,omitempty"` // a part of the last user message
	Turn     *int   `json:"turnIndex,omitempty"`   // number of assistant messages so far
	Model    string `json:"model,omitempty"`
	Sequence *int   `json:"sequenceIndex,omitempty"` // number of matching requests so far
}

type response struct {
	Content string         `json:"content,omitempty"`
	Calls   []toolCall     `json:"toolCalls,omitempty"`
	Usage   map[string]int `json:"usage,omitempty"`
	Error   map[string]any `json:"error,omitempty"`
	Status  int            `json:"status,omitempty"`
}

type toolCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // sent as it is
	ID        string `json:"id,omitempty"`
}

// call asks for a tool with arguments in JSON.
func call(name string, arguments map[string]any) toolCall {
	raw, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // the arguments come from the test itself
	}
	return toolCall{Name: name, Arguments: string(raw)}
}

// shellCall asks for a command.
func shellCall(argv ...string) toolCall { return call("shell", map[string]any{"command": argv}) }

func asks(text string, calls ...toolCall) response { return response{Content: text, Calls: calls} }

func says(text string) response { return response{Content: text} }

// script answers a user message turn by turn.
func script(user string, turns ...response) (list []fixture) {
	for i, turn := range turns {
		list = append(list, fixture{Match: match{User: user, Turn: &i}, Response: turn, ChunkSize: 1 << 16})
	}
	return list
}

// startModel starts aimock, which ends with the test. It refuses requests that
// match no fixture.
func startModel(t *testing.T, scripts ...[]fixture) *providertest.Mock {
	t.Helper()
	var file struct {
		Fixtures []fixture `json:"fixtures"`
	}
	for _, s := range scripts {
		file.Fixtures = append(file.Fixtures, s...)
	}
	raw, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "model.json")
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return providertest.Start(t, "--fixtures", name)
}

// withModel returns the settings of a server that uses the mock for the models
// of every vendor.
func withModel(m *providertest.Mock, o options, env ...string) options {
	o.env = append(append(o.env, "OPENAI_BASE_URL="+m.URL+"/v1", "OPENAI_API_KEY="+providertest.Key,
		"ANTHROPIC_BASE_URL="+m.URL, "ANTHROPIC_API_KEY="+providertest.Key,
		"GOOGLE_GEMINI_BASE_URL="+m.URL, "GEMINI_API_KEY="+providertest.Key, "MODEL=gpt-4.1"), env...)
	return o
}

// toldModel returns the model requests of the run whose user message begins with the given words.
func toldModel(m *providertest.Mock, user string) (bodies []string) {
	for _, r := range m.Asked() {
		if strings.Contains(r.Body, user) {
			bodies = append(bodies, r.Body)
		}
	}
	return bodies
}
