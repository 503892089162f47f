package main

import (
	"cmp"
	"log/slog"
	"slices"

	"parley"
	"parley/config"
	"parley/provider"
)

// newModels returns clients for all vendors.
func newModels(c *config.Settings) *provider.Models {
	api := c.OpenAIAPI
	if api == "auto" {
		api = ""
	}
	return provider.New(provider.Config{
		Provider:    c.Provider,
		Model:       c.Model,
		OpenAI:      provider.Account{Key: string(c.OpenAIKey), BaseURL: string(c.OpenAIURL), API: api},
		Anthropic:   provider.Account{Key: string(c.AnthropicKey), BaseURL: string(c.AnthropicURL)},
		Google:      provider.Account{Key: string(c.GoogleKey), BaseURL: string(c.GoogleURL)},
		Idle:        c.ModelSilence,
		ShowAddress: c.Auth == "local", // the only user is the operator
	})
}

// titles returns a function that reports whether a model writes titles of
// conversations. It returns nil if none does.
func titles(setting string, models *provider.Models) func(model string) bool {
	switch setting {
	case "on":
		return func(string) bool { return true }
	case "auto":
		return models.OwnAddress
	}
	return nil
}

// warnOfModels logs which models of these agents cannot be called.
func warnOfModels(c *config.Settings, models *provider.Models, agents []parley.Agent, log *slog.Logger) {
	for _, name := range modelsOf(agents, models.Default(), c.Classifier) {
		if err := models.Check(name); err != nil {
			log.Warn("a model cannot be called", "error", err)
		}
	}
	if hint := demoHint(c, models); hint != "" {
		log.Warn(hint)
	}
}

// demoHint tells an operator who has set the address of a model server why the
// demo answers nevertheless. It is empty if the demo does not answer, was
// chosen, or if no address is set.
func demoHint(c *config.Settings, models *provider.Models) string {
	if c.Model != "" || c.Provider != "" || models.Default() != provider.Demo {
		return "" // a model, a provider or a key is set
	}
	for _, v := range []struct {
		url      config.SecretURL
		variable string
	}{{c.OpenAIURL, "OPENAI_BASE_URL"}, {c.AnthropicURL, "ANTHROPIC_BASE_URL"},
		{c.GoogleURL, "GOOGLE_GEMINI_BASE_URL"}} {
		if v.url != "" {
			return v.variable + " is set and no model is: the scripted demo answers; " +
				"name a model of that server with MODEL"
		}
	}
	return ""
}

// modelsOf lists every model that may be called, each once. An agent without a
// model uses the default.
func modelsOf(agents []parley.Agent, byDefault, classifier string) (names []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, a := range agents {
		if !a.Elsewhere() { // a remote agent chooses its model itself
			a.Model = cmp.Or(a.Model, byDefault)
		}
		add(a.Model)
		for _, name := range a.Fallback {
			add(name)
		}
		add(a.Autonomy.Evaluator)
	}
	add(classifier)
	return names
}
