package anthropic

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/provider/providertest"
	"parley/provider/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMessages(t *testing.T) {
	providertest.Run(t, providertest.Provider{Model: "claude-sonnet-4-5", Variable: "ANTHROPIC_API_KEY", Signs: true,
		Pages: `"type":"document"`,
		New: func(url string, silence time.Duration) providertest.Model {
			return New(Options{Account: upstream.Account{Key: providertest.Key, BaseURL: url, Idle: silence}})
		}})
}
