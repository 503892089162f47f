package openai

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley"
	"parley/provider/providertest"
	"parley/provider/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestResponses(t *testing.T) {
	providertest.Run(t, providertest.Provider{Model: "gpt-5", Variable: "OPENAI_API_KEY", New: at(Responses),
		Pages: `"type":"input_file"`})
}

func TestChat(t *testing.T) {
	providertest.Run(t, providertest.Provider{Model: "llama3.2", Variable: "OPENAI_API_KEY", New: at(Chat),
		Signs: true})
}

// TestRequests covers requests with and without thinking, and with a server of another vendor.
func TestRequests(t *testing.T) {
	providertest.Requests(t, "responses", providertest.Provider{New: at(Responses)}, Name, `[{"kind":"thinking","size":4,
		"sign":"secret","data":"rs_1"},{"kind":"thinking","size":5},{"kind":"text","size":11,"data":"commentary"},
		{"kind":"call"},{"kind":"call"}]`, "gpt-5", "gpt-4.1")
	providertest.Requests(t, "chat", providertest.Provider{New: at(Chat)}, Name, `[{"kind":"thinking","size":9,
		"data":"reasoning_content"},{"kind":"text","size":11},{"kind":"call"},{"kind":"call"}]`, "llama3.2")
}

func at(api string) func(string, time.Duration) providertest.Model {
	return func(url string, silence time.Duration) providertest.Model {
		return New(Options{Account: upstream.Account{Key: providertest.Key, BaseURL: url + "/v1", Idle: silence}, API: api})
	}
}

// TestToolsHaveAnObjectOfParameters: OpenAI refuses a request with a tool whose schema has no type or no properties.
func TestToolsHaveAnObjectOfParameters(t *testing.T) {
	for _, given := range []string{"", "{}", `{"type":"object"}`} {
		p := parameters(parley.ToolSpec{Name: "now", Parameters: given})
		if _, ok := p["properties"].(map[string]any); !ok || p["type"] != "object" {
			t.Errorf("%q becomes %v", given, p)
		}
	}
}
