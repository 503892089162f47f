package native

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[struct{}]{
		Name: "native",
		Project: func(_ struct{}, e parley.Event) (struct{}, []dialect.Frame) {
			return struct{}{}, []dialect.Frame{{Body: json.RawMessage(line(e))}}
		},
		Views: map[string]struct{}{"": {}},
	})
}
