package main

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/config"
	"parley/port"
)

// TestModelsOf checks that the default stands in for agents without a model.
func TestModelsOf(t *testing.T) {
	given := []parley.Agent{{Name: "a", Fallback: []string{"m-2", "m-0"}}, {Name: "b", Model: "m-1"}}
	if got := modelsOf(given, "m-0", "m-3"); !slices.Equal(got, []string{"m-0", "m-2", "m-1", "m-3"}) {
		t.Errorf("%v", got)
	}
	if given[0].Model != "" {
		t.Error("the definition itself was changed")
	}
}

// TestDialectsShowTheModelOfTheTenant checks that the native protocol and the
// event bus show the model that runs use.
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

// TestModelAddressIsHiddenFromUsers checks that an error names the address of a model
// server only in local mode, where the user is the operator.
func TestModelAddressIsHiddenFromUsers(t *testing.T) {
	t.Parallel()
	for auth, want := range map[string]string{
		"local": "The model's server cannot be reached at http://127.0.0.1:1. Start it, or correct OPENAI_BASE_URL.",
		"jwt":   "The model's server cannot be reached; the server's log says where it was looked for.",
	} {
		models := newModels(&config.Settings{Models: config.Models{OpenAIURL: "http://127.0.0.1:1/v1"},
			Access: config.Access{Auth: auth}})
		for _, err := range models.Stream(t.Context(), port.ModelRequest{Model: "llama"}) {
			if got := parley.MessageOf(err); got != want {
				t.Errorf("%s: %s", auth, got)
			}
		}
		models.Close()
	}
}

// TestAnAddressWithoutAModel checks that the log and the first line of a chat
// explain why the demo answers. In jwt mode users do not get this hint.
func TestAnAddressWithoutAModel(t *testing.T) {
	t.Parallel()
	const hint = "OPENAI_BASE_URL is set and no model is: the scripted demo answers; name a model of that server " +
		"with MODEL"
	for _, test := range []struct {
		args                []string
		inLog, inChat, inMe bool
	}{
		{[]string{"--openai-base-url", "http://127.0.0.1:1/v1"}, true, true, true},
		{[]string{"--openai-base-url", "http://127.0.0.1:1/v1", "--model", "demo"}, false, false, false},
		{nil, false, false, false},
	} {
		var log strings.Builder
		addr, stop := serveLogged(t, noEnv, &log, append(test.args, "--listen", "127.0.0.1:0", "--data", t.TempDir(),
			"--workspace", t.TempDir())...)
		chat := mustRun(t, "say hello\n", "chat", "--server", addr)
		me := get(t, addr+"/api/v1/me")
		stop()
		if got := strings.Contains(log.String(), hint); got != test.inLog {
			t.Errorf("%v: the log says\n%s", test.args, log.String())
		}
		if got := strings.Contains(chat, "("+hint+")\nThread "); got != test.inChat {
			t.Errorf("%v: the chat says\n%s", test.args, chat)
		}
		if got := strings.Contains(me, `"hint":"`+hint+`"`); got != test.inMe {
			t.Errorf("%v: me is %s", test.args, me)
		}
	}
	c := &config.Settings{Models: config.Models{OpenAIURL: "http://127.0.0.1:1/v1"},
		Access: config.Access{Auth: "jwt"}}
	if about := aboutServer(c, newModels(c)); about.Hint != "" || !about.Demo {
		t.Errorf("in jwt mode: %+v", about)
	}
}
