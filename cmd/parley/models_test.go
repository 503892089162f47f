package main

import (
	"slices"
	"testing"

	"parley"
	"parley/config"
)

// TestKeysAreSecrets wherever they come from: those of .env are not in the
// environment.
func TestKeysAreSecrets(t *testing.T) {
	c := &config.Settings{Models: config.Models{OpenAIKey: "sk-openai-1", AnthropicKey: "sk-anthropic-1", GoogleKey: "sk-google-1"}}
	env := func(name string) (string, bool) { return "sk-other-google", name == "GOOGLE_API_KEY" }
	own := ownSecrets(c, env, make([]byte, 32))
	for _, want := range []string{"sk-openai-1", "sk-anthropic-1", "sk-google-1", "sk-other-google"} {
		if !slices.Contains(own, want) {
			t.Errorf("%s is not among them", want)
		}
	}
}

type fixed []parley.Agent

func (f fixed) Agent(parley.TenantID, string) (parley.Agent, error) { return f[0], nil }
func (f fixed) List(parley.TenantID) []parley.Agent                 { return f }

// TestTheDefaultIsAPartOfAnAgent that names no model, and of no other.
func TestTheDefaultIsAPartOfAnAgent(t *testing.T) {
	given := fixed{{Name: "a", Fallback: []string{"m-2", "m-0"}}, {Name: "b", Model: "m-1"}}
	agents := withModel{given, "m-0"}
	if a, err := agents.Agent("", ""); err != nil || a.Model != "m-0" || a.Ref().Model != "m-0" {
		t.Errorf("%+v, %v", a, err)
	}
	if got := modelsOf(agents.List(""), "m-3"); !slices.Equal(got, []string{"m-0", "m-2", "m-1", "m-3"}) {
		t.Errorf("%v", got)
	}
	if given[0].Model != "" {
		t.Error("the definition itself was changed")
	}
}
