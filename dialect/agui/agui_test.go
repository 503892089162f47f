package agui

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
		Name:    "agui",
		Project: Project,
		Views:   map[string]View{"": {Thread: "my thread", Session: dialecttest.Session}},
		Starts:  func([]parley.Event) []int { return []int{0} }, // see TestWhereAThreadIsFollowedFrom
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
	id, label, err := dialect.SessionNamed(ann, a.thread)
	if err != nil {
		return dialecttest.Decoded{Refusal: parley.MessageOf(err)}
	}
	said := a.said[len(a.said)-1]
	said.Do.Name = label
	return dialecttest.Decoded{Command: parley.Command{ID: said.ID, Session: id, Do: said.Do}}
}
