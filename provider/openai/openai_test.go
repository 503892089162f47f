package openai

import (
	"testing"
	"time"

	"go.uber.org/goleak"

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

func at(api string) func(string, time.Duration) providertest.Model {
	return func(url string, silence time.Duration) providertest.Model {
		return New(Options{Account: upstream.Account{Key: providertest.Key, BaseURL: url + "/v1", Idle: silence}, API: api})
	}
}
