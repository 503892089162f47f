package google

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/provider/providertest"
	"parley/provider/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGemini(t *testing.T) {
	providertest.Run(t, providertest.Provider{Model: "gemini-2.5-flash", Variable: "GEMINI_API_KEY",
		Pages: `"mimeType":"application/pdf"`,
		New: func(url string, silence time.Duration) providertest.Model {
			return New(upstream.Account{Key: providertest.Key, BaseURL: url, Idle: silence})
		}})
}
