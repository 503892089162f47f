package provider

import (
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley"
	"parley/port"
	"parley/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestVendorOfModel(t *testing.T) {
	for model, want := range map[string]string{
		"claude-sonnet-4-5": Anthropic, "Claude-3-Opus": Anthropic, "us.anthropic.something": Anthropic,
		"gemini-2.5-pro": Google, "google/gemma": Google,
		"gpt-4.1": OpenAI, "o3": OpenAI, "llama3.2": OpenAI, "not-claude-": OpenAI, "": OpenAI, "demo": Demo,
	} {
		if got := New(Config{}).Provider(model); got != want {
			t.Errorf("%s is %s's, want %s's", model, got, want)
		}
		for _, name := range Names {
			if got := New(Config{Provider: name}).Provider(model); got != name && model != Demo {
				t.Errorf("with PROVIDER=%s %s is %s's", name, model, got)
			}
		}
	}
}

func TestWhichModelIsTheDefault(t *testing.T) {
	key := Account{Key: "k"}
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, "demo"},
		{Config{OpenAI: key, Anthropic: key, Google: key}, "claude-sonnet-4-5"},
		{Config{OpenAI: key, Google: key}, "gpt-4.1"},
		{Config{Google: key}, "gemini-2.5-flash"},
		{Config{Google: key, Model: "llama"}, "llama"},
		{Config{Provider: "google"}, "gemini-2.5-flash"}, // the key is missing, which a call reports
		{Config{Provider: "demo", OpenAI: key}, "demo"},
		{Config{OpenAI: Account{BaseURL: "http://127.0.0.1:1"}}, "demo"},
	} {
		if got := New(c.config).Default(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.config, got, c.want)
		}
	}
}

// TestAModelWithoutItsKey checks that the call fails with the name of the
// variable, and that no other model answers.
func TestAModelWithoutItsKey(t *testing.T) {
	for model, want := range map[string]string{"claude-sonnet-4-5": "ANTHROPIC_API_KEY", "gpt-4.1": "OPENAI_API_KEY",
		"gemini-2.5-pro": "GEMINI_API_KEY", "anything": "OPENAI_API_KEY"} {
		a := providertest.Ask(t.Context(), New(Config{}),
			port.ModelRequest{Model: model, Messages: providertest.User("say hello")})
		if parley.CodeOf(a.Err) != parley.CodeModel || !strings.Contains(parley.MessageOf(a.Err), want) ||
			a.Text != "" {
			t.Errorf("%s: %+v", model, a)
		}
	}
	if err := New(Config{OpenAI: Account{BaseURL: "http://127.0.0.1:11434/v1"}}).Check("llama3.2"); err != nil {
		t.Errorf("a server of one's own: %v", err)
	}
	if a := providertest.Ask(t.Context(), New(Config{}),
		port.ModelRequest{Messages: providertest.User("say hello")}); a.Err != nil || a.Text != "hello" {
		t.Errorf("the demo: %+v", a)
	}
}

func TestEveryVendorThroughOneDoor(t *testing.T) {
	mock := providertest.Start(t)
	m := New(Config{
		OpenAI:    Account{Key: providertest.Key, BaseURL: mock.URL + "/v1"},
		Anthropic: Account{Key: providertest.Key, BaseURL: mock.URL},
		Google:    Account{Key: providertest.Key, BaseURL: mock.URL},
	})
	defer m.Close()
	for model, cost := range map[string]int64{"gpt-4.1": 12*2 + 5*8, "claude-sonnet-4-5": 12*3 + 5*15,
		"anthropic/claude-opus-4-1": 12*15 + 5*75, "gemini-2.5-flash": 16, "llama3.2": 0} {
		a := providertest.Ask(t.Context(), m,
			port.ModelRequest{Model: model, Messages: providertest.User("say hello")})
		if a.Err != nil || a.Text != "Hello there, this is a whole answer." {
			t.Errorf("%s: %+v", model, a)
			continue
		}
		if a.Done.Usage.CostMicros != cost {
			t.Errorf("%s costs %d, want %d", model, a.Done.Usage.CostMicros, cost)
		}
		if strings.Contains(mock.Last().Body+mock.Last().Path, "anthropic/") {
			t.Errorf("the vendor was asked for %s", model)
		}
	}
}

func TestAbout(t *testing.T) {
	for name, want := range map[string]int{
		"gpt-4": 8_192, "gpt-4-0613": 8_192, "gpt-3.5-turbo": 16_385, "codex-mini-latest": 200_000, "o3": 200_000,
		"o4-mini-2025-04-16": 200_000,
		"gpt-4.1-mini":       1_047_576, "claude-3-5-sonnet-20241022": 200_000, "claude-3-opus-latest": 200_000,
		"anthropic/claude-sonnet-4-5-20250929": 200_000,
		"gemini-1.5-pro-002":                   2_097_152, "models/gemini-1.5-flash": 1_048_576,
		"gemini-2.5-pro-preview-05-06": 1_048_576,
		"gpt-4-unheard-of":             128_000, "gpt-5-superb": 128_000, "llama3.2": 128_000, "": 128_000,
	} {
		if got := About(name).Window; got != want {
			t.Errorf("%s reads %d, want %d", name, got, want)
		}
	}
	for name, m := range known {
		if m.Window < 4_096 || m.Output < 1 || m.Output > m.Window || len(m.prices) == 0 {
			t.Errorf("%s: %+v", name, m)
		}
		for _, p := range m.prices {
			if p.input <= 0 || p.output <= p.input || p.cached > p.input || p.written != 0 && p.written < p.input {
				t.Errorf("%s costs %+v", name, p)
			}
		}
	}
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		model string
		usage parley.Usage
		want  int64
	}{
		{"gpt-4o", parley.Usage{Input: 1_000_000, Output: 1_000_000}, 12_500_000},
		{"gpt-4o", parley.Usage{Input: 1_000_000, Cached: 1_000_000}, 1_250_000},
		{"claude-sonnet-4-5", parley.Usage{Input: 1225, Cached: 1000, Written: 200, Output: 89},
			25*3 + 300 + 750 + 1335},
		{"gemini-2.5-pro", parley.Usage{Input: 200_000, Output: 1000}, 260_000},
		{"gemini-2.5-pro", parley.Usage{Input: 200_001, Output: 1000}, 515_003}, // all at the higher price
		{"gpt-5-nano", parley.Usage{Input: 1}, 0},                               // a twentieth of a millionth
		{"gpt-5-nano", parley.Usage{Input: 10}, 1},
		{"unheard-of", parley.Usage{Input: 1_000_000, Output: 1_000_000}, 0},
		{"gpt-4", parley.Usage{Input: 10, Cached: 10, Output: 0}, 300}, // no discount
	} {
		if got := About(c.model).Cost(c.usage); got != c.want {
			t.Errorf("%s: %+v costs %d, want %d", c.model, c.usage, got, c.want)
		}
	}
}

// TestAddressInErrors checks that users who may know the address get it,
// without its password.
func TestAddressInErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // now the port is free
	gone := Account{Key: "k", BaseURL: "http://ann:hidden@" + l.Addr().String() + "/v1"}
	for _, show := range []bool{false, true} {
		models := New(Config{OpenAI: gone, Anthropic: gone, Google: gone, ShowAddress: show})
		defer models.Close()
		for name, variable := range map[string]string{"llama": "OPENAI_BASE_URL",
			"claude-sonnet-4-5": "ANTHROPIC_BASE_URL", "gemini-2.5-pro": "GOOGLE_GEMINI_BASE_URL"} {
			a := providertest.Ask(t.Context(), models,
				port.ModelRequest{Model: name, Messages: providertest.User("say hello")})
			want := "cannot be reached; the server's log says where it was looked for."
			if show {
				want = "cannot be reached at http://" + l.Addr().String() + ". Start it, or correct " + variable + "."
			}
			if said := parley.MessageOf(a.Err); !strings.HasSuffix(said, want) || strings.Contains(said, "hidden") {
				t.Errorf("%s, shown %v: %s", name, show, said)
			}
			if !strings.Contains(a.Err.Error(), "tart it, or correct "+variable) { // the operator gets it in any case
				t.Errorf("%s, shown %v: %v", name, show, a.Err)
			}
		}
	}
}
