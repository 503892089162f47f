package aisdk

import (
	"testing"

	"go.uber.org/goleak"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ann = port.Principal{ID: "ann", Tenant: "acme"}

func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[View]{
		Name:    "aisdk",
		Project: Project,
		Views:   map[string]View{"": {session: dialecttest.Session}},
		Starts:  dialecttest.FromRuns,
		Ignored: Ignored,
		Decode:  decodeOne,
	})
}

// decodeOne returns the command for the last message of a request.
func decodeOne(message []byte) dialecttest.Decoded {
	o, err := dialect.ParseObject(message)
	if err != nil {
		return dialecttest.Decoded{Refusal: err.Error()}
	}
	a, err := decode(o)
	if err != nil {
		return dialecttest.Decoded{Refusal: parley.MessageOf(err)}
	}
	id, label, err := dialect.SessionNamed(ann, a.chat)
	if err != nil {
		return dialecttest.Decoded{Refusal: parley.MessageOf(err)}
	}
	in := a.said[len(a.said)-1]
	in.Do.Name = label
	return dialecttest.Decoded{Command: parley.Command{ID: in.ID, Session: id, Do: in.Do}}
}
