package a2a

import (
	"fmt"
	"strings"

	"parley"
	"parley/dialect"
)

// asks describes in words what a card waits for and how to answer it. named says that other cards are open too, so the
// answer must name this one.
func asks(c dialect.Card, named bool) string {
	id := ""
	if named {
		id = " " + c.ID
	}
	who := ""
	if c.Agent != "" {
		who = "The sub-agent " + c.Agent + " asks. "
	}
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		return fmt.Sprintf("%sApproval needed for %s: %s\nAnswer allow%s or deny%s.", who, b.Name, b.Show, id, id)
	case parley.QuestionAsked:
		var lines []string
		for _, q := range b.Questions {
			line := q.Question
			var labels []string
			for _, o := range q.Options {
				labels = append(labels, o.Label)
			}
			if len(labels) > 0 {
				line += " (" + strings.Join(labels, ", ") + ")"
			}
			lines = append(lines, line)
		}
		return who + strings.Join(lines, "\n")
	}
	b := c.Asks.(parley.ToolCallFinished) // dialect.Opens returns no other cards
	return fmt.Sprintf("%sThe outcome of %s is unknown. %s\nAnswer rerun%s, mark_done%s or abandon%s.", who, b.Name,
		b.Result, id, id, id)
}

// fields returns a card as data, with its type.
func fields(c dialect.Card) any {
	switch f := c.Fields().(type) {
	case dialect.ApprovalFields:
		return struct {
			Type string `json:"type"`
			dialect.ApprovalFields
		}{c.Frame(), f}
	case dialect.QuestionFields:
		return struct {
			Type string `json:"type"`
			dialect.QuestionFields
		}{c.Frame(), f}
	default:
		return struct {
			Type string `json:"type"`
			dialect.CallFields
		}{c.Frame(), f.(dialect.CallFields)}
	}
}

// answer is a client's message to a task that waits: text or an object.
type answer struct {
	card string // id of the card; empty: the only open card
	word string // first word in lower case, for cards that take one word
	rest string // text after the word and the id
	text string // the whole text
	data dialect.Object
}

func newAnswer(text string, data dialect.Object) (a answer, err error) {
	a.text, a.data = text, data
	if data != nil {
		if strings.TrimSpace(text) != "" { // they could contradict each other
			return a, invalid("Answer with text or with data, not with both")
		}
		if a.card, err = data.String("id"); err != nil {
			return a, invalid("%s", err)
		}
		return a, nil
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	a.word, a.rest = strings.ToLower(strings.TrimRight(first, ".:,!")), strings.TrimSpace(rest)
	if id, more, _ := strings.Cut(a.rest, " "); id != "" {
		if _, _, ok := parley.ParseRef(strings.TrimRight(id, ".:,")); ok {
			a.card, a.rest = strings.TrimRight(id, ".:,"), strings.TrimSpace(more)
		}
	}
	return a, nil
}

// to returns the command that gives the answer to one of the open cards.
func (a answer) to(cards []dialect.Card) (parley.Command, error) {
	c, err := a.choose(cards)
	if err != nil {
		return parley.Command{}, err
	}
	var do parley.CommandBody
	switch b := c.Asks.(type) {
	case parley.ApprovalRequested:
		do, err = a.decision(c.Seq)
	case parley.QuestionAsked:
		do, err = a.answers(c.Seq, b.Questions)
	default:
		do, err = a.resolution(c.Seq)
	}
	return parley.Command{Session: c.Session, Do: do}, err
}

func (a answer) choose(cards []dialect.Card) (dialect.Card, error) {
	if len(cards) == 0 {
		return dialect.Card{}, errNotWaiting
	}
	if len(cards) == 1 && (a.card == "" || a.data == nil && cards[0].Kind == parley.CardQuestion) {
		return cards[0], nil // the text of an answer to a question may contain anything
	}
	var ids []string
	for _, c := range cards {
		if c.ID == a.card {
			return c, nil
		}
		ids = append(ids, c.ID)
	}
	if a.card != "" {
		return dialect.Card{}, unsupported("Nothing of the id %s waits for an answer.", a.card)
	}
	return dialect.Card{}, invalid("%d answers are awaited. Name one: %s", len(cards), strings.Join(ids, ", "))
}

// decision reads the answer to an approval. It refuses text after allow: it could be a condition, which the server
// would not enforce.
func (a answer) decision(seq parley.Seq) (parley.CommandBody, error) {
	if a.data != nil {
		return read(dialect.DecideApproval, seq, a.data)
	}
	do := parley.DecideApproval{Card: parley.CardID(seq), Decision: parley.Decision(a.word)}
	switch do.Decision {
	case parley.Deny, parley.DenyAndStop:
		do.Note = a.rest
		return do, nil
	case parley.AllowOnce, parley.AllowAlways:
		if a.rest == "" {
			return do, nil
		}
	}
	return nil, invalid("Answer with the text allow or deny, or with data {\"decision\": \"allow\"}")
}

// answers reads the answer to questions: the whole text for one question, a line each for several.
func (a answer) answers(seq parley.Seq, questions []parley.Question) (parley.CommandBody, error) {
	if a.data != nil {
		return read(dialect.AnswerQuestion, seq, a.data)
	}
	do := parley.AnswerQuestion{Card: parley.CardID(seq)}
	lines := []string{strings.TrimSpace(a.text)}
	if len(questions) > 1 {
		lines = strings.Split(lines[0], "\n")
	}
	if len(lines) != len(questions) {
		return nil, invalid("There are %d questions. Answer each on a line of its own", len(questions))
	}
	for _, line := range lines {
		do.Answers = append(do.Answers, []string{strings.TrimSpace(line)})
	}
	return do, nil
}

func (a answer) resolution(seq parley.Seq) (parley.CommandBody, error) {
	if a.data != nil {
		return read(dialect.ResolveCall, seq, a.data)
	}
	return parley.ResolveToolCall{Call: parley.CallID(seq), Resolution: parley.Resolution(a.word), Note: a.rest}, nil
}

func read(f dialect.ReadAnswer, seq parley.Seq, data dialect.Object) (parley.CommandBody, error) {
	do, err := f(seq, data)
	if err != nil {
		return nil, invalid("%s", err)
	}
	return do, nil
}
