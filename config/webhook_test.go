package config

import (
	"reflect"
	"strings"
	"testing"

	"parley"
)

// TestWebhooksOfFiles checks webhooks in agents' files, and the lines of mistakes.
func TestWebhooksOfFiles(t *testing.T) {
	file := func(keys string) (*parley.AgentWebhook, error) {
		def, err := parseAgent("a.md", "---\nname: a\nwebhook: "+keys+"\n---\nHelp.\n")
		return def.agent.Webhook, err
	}
	got, err := file("{url: 'https://Hooks.Example.com/a', events: [run_finished], secret_env: HOOK}")
	want := &parley.AgentWebhook{URL: "https://Hooks.Example.com/a", Events: []parley.HookEvent{parley.HookFinished},
		SecretEnv: "HOOK", Target: "hooks.example.com:443"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if ref := (parley.Agent{Webhook: got}).Ref(); ref.Hook != (parley.Hook{Target: "hooks.example.com:443",
		Finished: true}) {
		t.Errorf("%+v", ref.Hook)
	}
	if got, err := file("{url: 'http://10.0.0.1:8080/a', secret_env: HOOK}"); err != nil ||
		got.Target != "10.0.0.1:8080" ||
		parley.HookOf("x", got.Events) != (parley.Hook{Target: "x", Finished: true, Needed: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	for keys, words := range map[string]string{
		"{secret_env: HOOK}":                                                                         "webhook.url",
		"{url: 'hooks.example.com', secret_env: HOOK}":                                               "webhook.url",
		"{url: 'ftp://hooks.example.com', secret_env: HOOK}":                                         "webhook.url",
		"{url: 'https://hooks.example.com'}":                                                         "secret_env",
		"{url: 'https://hooks.example.com', secret_env: 'whsec_AAAA+BBB='}":                          "secret_env",
		"{url: 'https://hooks.example.com', secret_env: HOOK, events: []}":                           "webhook.events",
		"{url: 'https://hooks.example.com', secret_env: HOOK, events: [deleted]}":                    "webhook.events",
		"{url: 'https://hooks.example.com', secret_env: HOOK, secret: whsec_x}":                      "secret",
		"{url: 'https://hooks.example.com', secret_env: HOOK, events: [run_finished, run_finished]}": "webhook.events",
	} {
		if _, err := file(keys); err == nil || !strings.Contains(err.Error(), "a.md:3") ||
			!strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", keys, err)
		}
	}
}

func TestPublicURLs(t *testing.T) {
	for url, ok := range map[string]bool{"": true, "https://parley.example.com": true,
		"http://10.0.0.1:8080/parley": true,
		"https://parley.example.com/": true, "parley.example.com": false, "https://a@b.example": false,
		"https://b.example?x": false, "ftp://b.example": false} {
		inDir(t, nil)
		if _, err := parse([]string{"serve"}, map[string]string{"PARLEY_PUBLIC_URL": url}); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
}
