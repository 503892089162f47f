package main

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/config"
)

// TestModelsOf: the default stands in for the model of an agent that names none.
func TestModelsOf(t *testing.T) {
	given := []parley.Agent{{Name: "a", Fallback: []string{"m-2", "m-0"}}, {Name: "b", Model: "m-1"}}
	if got := modelsOf(given, "m-0", "m-3"); !slices.Equal(got, []string{"m-0", "m-2", "m-1", "m-3"}) {
		t.Errorf("%v", got)
	}
	if given[0].Model != "" {
		t.Error("the definition itself was changed")
	}
}

// TestDialectsShowTheModelOfTheTenant: the model that runs use, in the native
// protocol and on the event bus.
func TestDialectsShowTheModelOfTheTenant(t *testing.T) {
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir(),
		"--drain", "1ms")
	defer stop()
	for _, test := range []struct{ setting, want string }{
		{"null", "demo"}, {`"llama-of-the-tenant"`, "llama-of-the-tenant"}, {"null", "demo"},
	} {
		if status, body := ask(t, "PATCH", addr+"/api/v1/settings", `{"model":`+test.setting+`}`); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		for _, path := range []string{"/api/v1/agents", "/api/v1/agents/" + config.BuiltIn.Name, "/api/settings"} {
			if body := get(t, addr+path); !strings.Contains(body, `"model":"`+test.want+`"`) {
				t.Errorf("with the setting %s, %s says %s", test.setting, path, body)
			}
		}
	}
}

// TestUsersAreNotToldAddresses: only in local mode, where the user is the operator,
// does an error name the address of a model's server.
func TestUsersAreNotToldAddresses(t *testing.T) {
	t.Parallel()
	for auth, want := range map[string]string{
		"local": "The model's server cannot be reached at http://127.0.0.1:1.",
		"jwt":   "The model's server cannot be reached; the server's log says where it was looked for.",
	} {
		models := newModels(&config.Settings{Models: config.Models{OpenAIURL: "http://127.0.0.1:1/v1"},
			Access: config.Access{Auth: auth}})
		for _, err := range models.Stream(t.Context(), parley.ModelRequest{Model: "llama"}) {
			if got := parley.MessageOf(err); got != want {
				t.Errorf("%s: %s", auth, got)
			}
		}
		models.Close()
	}
}
