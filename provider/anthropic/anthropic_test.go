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
		New:   at})
}

// TestRequests covers models with each way to think.
func TestRequests(t *testing.T) {
	providertest.Requests(t, "messages", providertest.Provider{New: at}, Name, `[{"kind":"thinking","size":9,
		"sign":"secret"},{"kind":"redacted","data":"hidden"},{"kind":"text","size":11},{"kind":"call"},{"kind":"call"}]`,
		"claude-opus-4-6", "claude-sonnet-4-5", "claude-3-5-haiku-latest")
}

func at(url string, silence time.Duration) providertest.Model {
	return New(Options{Account: upstream.Account{Key: providertest.Key, BaseURL: url, Idle: silence}})
}
