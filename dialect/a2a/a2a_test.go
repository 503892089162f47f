package a2a

import (
	"testing"

	"go.uber.org/goleak"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ann = parley.Principal{ID: "ann", Tenant: "acme"}

// waiting is the card of tasks in transcripts.
var waiting = dialect.Card{ID: parley.Ref(dialecttest.Session, 10), Kind: parley.CardApproval,
	Asks: parley.ApprovalRequested{Name: "shell", Show: "rm old.log"}, Session: dialecttest.Session, Seq: 10}

func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[View]{
		Name:    "a2a",
		Project: Project,
		Views:   map[string]View{"": {shape: v1}, "0.3": {shape: v03}},
		Starts:  func([]parley.Event) []int { return []int{0} }, // see TestATaskIsTheSameFromItsBeginning
		Ignored: Ignored,
		Decode: func(body []byte) dialecttest.Decoded {
			c, err := meaning(body)
			if err != nil {
				return dialecttest.Decoded{Refusal: string(dialect.Encode(errorOf(err)))}
			}
			return dialecttest.Decoded{Command: c}
		},
	})
}

// meaning is the command of a message to the agent scout.
func meaning(body []byte) (c parley.Command, err error) {
	q, err := decode(body)
	if err != nil {
		return c, err
	}
	s := v1
	if _, ok := methods[s][q.method]; !ok {
		s = v03
	}
	m, err := s.decodeSaid(q.params)
	if err != nil {
		return c, err
	}
	if m.task == "" {
		return m.input(ann, "scout", dialecttest.Session)
	}
	a, err := newAnswer(m.text, m.data)
	if err != nil {
		return c, err
	}
	c, err = a.to([]dialect.Card{waiting})
	if err != nil {
		return parley.Command{}, err
	}
	return c, nil
}
