package threadchat

import (
	"testing"

	"go.uber.org/goleak"

	"parley/dialect/dialecttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thread is the one the connections of these tests are of.
const thread = dialecttest.Session

var views = map[string]View{"": {Shape: Document}, "original": {Shape: Original}}

func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[View]{
		Name:    "threadchat",
		Project: Project,
		Views:   views,
		Starts:  dialecttest.FromRuns,
		Ignored: Ignored,
		Decode: func(message []byte) dialecttest.Decoded {
			d := Decode(thread, message, "req-fresh")
			return dialecttest.Decoded{Command: d.Command, Refusal: d.Refusal, Request: d.Request, Shape: string(d.Shape)}
		},
	})
}
