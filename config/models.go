package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Models contains the default model, and the keys and addresses of vendors. Keys
// and addresses also have the variables that the vendors' own tools use.
type Models struct {
	Provider string `var:"PARLEY_PROVIDER,PROVIDER" placeholder:"NAME" help:"Provider of every model: openai (or a compatible server), anthropic, google, or demo (scripted, needs no key). Default: chosen by the model's name."`
	Model    string `var:"PARLEY_MODEL,MODEL" placeholder:"NAME" help:"Model of agents that name none (default: a model of the first provider with a key, in the order anthropic, openai, google; without a key, the scripted demo)."`

	OpenAIKey    Secret        `name:"openai-api-key" var:"PARLEY_OPENAI_API_KEY,OPENAI_API_KEY" placeholder:"KEY" help:"API key for OpenAI or a compatible server. Prefer the variable, as for all keys: other users of the machine can see flags."`
	OpenAIURL    SecretURL     `name:"openai-base-url" var:"PARLEY_OPENAI_BASE_URL,OPENAI_BASE_URL" placeholder:"URL" help:"Base URL of a server with an OpenAI-compatible API, such as http://127.0.0.1:11434/v1 for Ollama (default: OpenAI)."`
	OpenAIAPI    string        `name:"openai-api" var:"PARLEY_OPENAI_API" default:"auto" help:"API to use with that server: responses, chat, or auto (responses for OpenAI, chat for other servers)."`
	AnthropicKey Secret        `name:"anthropic-api-key" var:"PARLEY_ANTHROPIC_API_KEY,ANTHROPIC_API_KEY" placeholder:"KEY" help:"API key for Anthropic."`
	AnthropicURL SecretURL     `name:"anthropic-base-url" var:"PARLEY_ANTHROPIC_BASE_URL,ANTHROPIC_BASE_URL" placeholder:"URL" help:"Base URL of the Anthropic API (default: Anthropic)."`
	GoogleKey    Secret        `name:"gemini-api-key" var:"PARLEY_GEMINI_API_KEY,GEMINI_API_KEY,GOOGLE_API_KEY" placeholder:"KEY" help:"API key for Google Gemini."`
	GoogleURL    SecretURL     `name:"google-gemini-base-url" var:"PARLEY_GOOGLE_GEMINI_BASE_URL,GOOGLE_GEMINI_BASE_URL" placeholder:"URL" help:"Base URL of the Gemini API (default: Google)."`
	Titles       string        `var:"PARLEY_TITLES" default:"auto" help:"Whether the model writes the title of a conversation after its first answer, with one short call: on, off, or auto (on for models at their vendor's own address)."`
	ModelSilence time.Duration `var:"PARLEY_MODEL_SILENCE" default:"1m" help:"How long a model may pause in the middle of an answer before the call counts as lost."`
	ModelCalls   int           `var:"PARLEY_MODEL_CALLS" default:"256" placeholder:"N" help:"Number of model calls that the server makes at the same time, up to 4096; further calls wait (default: 256)."`
}

// providers are the possible values of --provider.
var providers = []string{"openai", "anthropic", "google", "demo"}

// CheckModels reports mistakes in these settings.
func (m *Models) CheckModels() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if m.Provider != "" && !slices.Contains(providers, m.Provider) {
		wrong("--provider %s is not known; use %s, or leave it out to go by the model's name", m.Provider,
			strings.Join(providers, ", "))
	}
	if !slices.Contains([]string{"auto", "responses", "chat"}, m.OpenAIAPI) {
		wrong("--openai-api %s is not known; use responses, chat or auto", m.OpenAIAPI)
	}
	if !slices.Contains([]string{"auto", "on", "off"}, m.Titles) {
		wrong("--titles %s is not known; use on, off or auto", m.Titles)
	}
	if m.ModelSilence < time.Second {
		wrong("--model-silence %s would cut off every answer; use a second or more", m.ModelSilence)
	}
	if m.ModelCalls < 1 || m.ModelCalls > 4096 {
		wrong("--model-calls %d is out of range; use 1 to 4096", m.ModelCalls)
	}
	for flag, address := range map[string]SecretURL{
		"openai-base-url": m.OpenAIURL, "anthropic-base-url": m.AnthropicURL, "google-gemini-base-url": m.GoogleURL} {
		// The error does not contain the address, which may hold a password.
		if u, err := url.Parse(string(address)); address != "" && (err != nil || u.Host == "" || u.Scheme != "http" &&
			u.Scheme != "https") {
			wrong("--%s is not the address of a server; write it like https://host/v1", flag)
		}
	}
	return errors.Join(errs...)
}
