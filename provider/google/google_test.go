package google

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/provider/providertest"
	"parley/provider/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGemini(t *testing.T) {
	providertest.Run(t, providertest.Provider{Model: "gemini-2.5-flash", Variable: "GEMINI_API_KEY",
		Pages: `"mimeType":"application/pdf"`,
		New:   at})
}

// TestRequests covers models that think and that do not.
func TestRequests(t *testing.T) {
	providertest.Requests(t, "generate", providertest.Provider{New: at}, Name, `[{"kind":"thinking","size":9},
		{"kind":"text","size":11,"sign":"ZW5k"},{"kind":"call","sign":"AbCd+/8="},{"kind":"call"}]`,
		"gemini-3-pro", "gemini-2.0-flash")
}

func at(url string, silence time.Duration) providertest.Model {
	return New(upstream.Account{Key: providertest.Key, BaseURL: url, Idle: silence})
}

// TestNamesOfModels checks that names may begin with the folder of the vendor's lists.
func TestNamesOfModels(t *testing.T) {
	for name, want := range map[string]string{"gemini-2.5-pro": "v1beta/models/gemini-2.5-pro",
		"models/gemini-2.5-pro": "v1beta/models/gemini-2.5-pro", "tunedModels/mine": "v1beta/tunedModels/mine",
		"a/b": "v1beta/models/a%2Fb"} {
		if got := path(name); got != want {
			t.Errorf("%s is called at %s, want %s", name, got, want)
		}
	}
}
