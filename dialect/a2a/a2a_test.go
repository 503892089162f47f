package a2a

import (
	"reflect"
	"testing"

	"go.uber.org/goleak"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ann = port.Principal{ID: "ann", Tenant: "acme"}

// waiting is the open card of the tasks in transcripts.
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

// meaning returns the command for a message to the agent scout.
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

// TestAnAnswerNamesItsCard: if several cards are open, an answer must name one of them, so that a text for one card
// cannot decide another.
func TestAnAnswerNamesItsCard(t *testing.T) {
	other := waiting
	other.ID, other.Seq = parley.Ref(dialecttest.Session, 12), 12
	question := dialect.Card{ID: parley.Ref(dialecttest.Session, 14), Kind: parley.CardQuestion, Seq: 14,
		Session: dialecttest.Session, Asks: parley.QuestionAsked{Questions: []parley.Question{{Question: "Tea?"}}}}
	lost := dialect.Card{ID: parley.Ref(dialecttest.Session, 6), Kind: parley.CardCall, Seq: 6,
		Session: dialecttest.Session, Asks: parley.ToolCallFinished{Name: "send"}}
	for _, one := range []struct {
		cards []dialect.Card
		text  string
		data  string
		want  parley.CommandBody // nil: refused
	}{
		{[]dialect.Card{waiting, other}, "allow", "", nil},
		{[]dialect.Card{waiting, other}, "", `{"decision":"allow"}`, nil},
		{[]dialect.Card{waiting, other}, "allow " + other.ID, "", parley.DecideApproval{Card: 12, Decision: "allow"}},
		{[]dialect.Card{waiting, other}, "deny " + waiting.ID + " not now", "", parley.DecideApproval{Card: 10,
			Decision: "deny", Note: "not now"}},
		{[]dialect.Card{waiting, other}, "", `{"id":"` + other.ID + `","decision":"deny"}`,
			parley.DecideApproval{Card: 12,
				Decision: "deny"}},
		{[]dialect.Card{question}, "allow " + waiting.ID, "", parley.AnswerQuestion{Card: 14,
			Answers: [][]string{{"allow " + waiting.ID}}}},
		{[]dialect.Card{question}, "", `{"answers":[["Yes"]]}`,
			parley.AnswerQuestion{Card: 14, Answers: [][]string{{"Yes"}}}},
		{[]dialect.Card{question, waiting}, "Yes", "", nil},
		{[]dialect.Card{lost}, "mark_done it was sent", "", parley.ResolveToolCall{Call: 6, Resolution: "mark_done",
			Note: "it was sent"}},
		{[]dialect.Card{lost}, "", `{"resolution":"rerun"}`, parley.ResolveToolCall{Call: 6, Resolution: "rerun"}},
		{nil, "allow", "", nil},
	} {
		var data dialect.Object
		if one.data != "" {
			data, _ = dialect.ParseObject([]byte(one.data))
		}
		a, err := newAnswer(one.text, data)
		var got parley.Command
		if err == nil {
			got, err = a.to(one.cards)
		}
		if (err != nil) != (one.want == nil) || err == nil && !reflect.DeepEqual(got.Do, one.want) {
			t.Errorf("%q %s means %+v (%v), want %+v", one.text, one.data, got.Do, err, one.want)
		}
	}
}
