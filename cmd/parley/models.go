package main

import (
	"slices"

	"parley"
	"parley/config"
	"parley/provider"
)

// newModels is everybody who can answer.
func newModels(c *config.Settings) *provider.Models {
	api := c.OpenAIAPI
	if api == "auto" {
		api = ""
	}
	return provider.New(provider.Config{
		Provider:  c.Provider,
		Model:     c.Model,
		OpenAI:    provider.Account{Key: string(c.OpenAIKey), BaseURL: c.OpenAIURL, API: api},
		Anthropic: provider.Account{Key: string(c.AnthropicKey), BaseURL: c.AnthropicURL},
		Google:    provider.Account{Key: string(c.GoogleKey), BaseURL: c.GoogleURL},
		Idle:      c.ModelSilence,
	})
}

// withModel gives agents that name no model the server's default. It is a part
// of their definition from then on: a run goes on with the model it began with,
// and the log says which that is.
type withModel struct {
	parley.Agents
	model string
}

func (w withModel) Agent(tenant parley.TenantID, name string) (parley.Agent, error) {
	agent, err := w.Agents.Agent(tenant, name)
	return w.complete(agent), err
}

func (w withModel) List(tenant parley.TenantID) []parley.Agent {
	agents := slices.Clone(w.Agents.List(tenant))
	for i, agent := range agents {
		agents[i] = w.complete(agent)
	}
	return agents
}

func (w withModel) complete(agent parley.Agent) parley.Agent {
	if agent.Model == "" && agent.Address == "" {
		agent.Model = w.model
	}
	return agent
}

// modelsOf lists every model that may be called, each once.
func modelsOf(agents []parley.Agent, classifier string) (names []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, a := range agents {
		add(a.Model)
		for _, name := range a.Fallback {
			add(name)
		}
		add(a.Autonomy.Evaluator)
	}
	add(classifier)
	return names
}
