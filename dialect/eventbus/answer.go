package eventbus

import (
	"encoding/json"
	"slices"

	"parley"
	"parley/dialect"
	"parley/port"
)

// given is one answer of a client: an object or, in short, a string.
type given struct {
	Index    *int     `json:"question_index"`
	Selected []string `json:"selected"`
	Custom   *string  `json:"custom_text"`

	short bool // the answer was a string, which is in Selected
}

func (g *given) UnmarshalJSON(raw []byte) error {
	var text string
	if raw[0] == '"' {
		err := json.Unmarshal(raw, &text)
		*g = given{Selected: []string{text}, short: true}
		return err
	}
	type object given
	return json.Unmarshal(raw, (*object)(g))
}

var unknownQuestion = parley.Errorf(parley.CodeNotFound, "Unknown question_id")

// answer answers a card: a question, an approval, or a call of unknown outcome.
func (h *Handler) answer(r request) (any, error) {
	if err := h.may(r, parley.ActMessage, port.OwnSessions); err != nil {
		return nil, err
	}
	id, err := r.need("question_id")
	if err != nil {
		return nil, err
	}
	session, seq, ok := parley.ParseRef(id)
	if !ok {
		return nil, unknownQuestion
	}
	if !r.body.Has("answers") {
		return nil, dialect.Invalid("answers is missing")
	}
	var answers []given
	if json.Unmarshal(r.body["answers"], &answers) != nil {
		return nil, dialect.Invalid("answers must be a list of {question_index, selected, custom_text}, or of strings")
	}
	asked, err := h.eventAt(r, session, seq)
	if err != nil {
		return nil, err
	}
	do, err := answerTo(asked, answers)
	if err != nil {
		return nil, err
	}
	if _, err := h.submit(r, []parley.SessionID{session}, do); err != nil {
		return nil, err
	}
	return map[string]string{"status": "ok"}, nil
}

// eventAt returns the event that the id of a card names. It refuses a card of another project than the one the request
// names.
func (h *Handler) eventAt(r request, session parley.SessionID, seq parley.Seq) (e parley.Event, err error) {
	m, err := h.Door.Session(r.Context(), r.who, session)
	if parley.CodeOf(err) == parley.CodeNotFound && err != nil || err == nil && seq > m.Head {
		return e, unknownQuestion
	}
	if err == nil {
		err = r.belongs(m.Project)
	}
	if err == nil {
		err = dialect.ReadLog(r.Context(), h.Door, r.who, session, seq, seq, func(found parley.Event) { e = found })
	}
	return e, err
}

// answerTo returns the command that answers the card of an event.
func answerTo(e parley.Event, answers []given) (parley.CommandBody, error) {
	switch b := e.Body.(type) {
	case parley.ApprovalRequested:
		label, note, err := choice(answers, allowOnce, allowAlways, allowSimilar, deny, denyAndStop, explain)
		do := parley.DecideApproval{Card: parley.CardID(e.Seq), Decision: decisions[label], Note: note,
			Digest: b.Digest}
		switch label {
		case allowSimilar:
			do.Scope = parley.ScopeSimilar
		case explain:
			return parley.ExplainApproval{Card: do.Card}, err
		}
		return do, err
	case parley.QuestionAsked:
		list, err := answersTo(b.Questions, answers)
		return parley.AnswerQuestion{Card: parley.CardID(e.Seq), Answers: list}, err
	case parley.ToolCallRequested:
		label, note, err := choice(answers, runAgain, markAsDone, abandonRun)
		return parley.ResolveToolCall{Call: parley.CallID(e.Seq), Resolution: resolutions[label], Note: note}, err
	}
	return nil, unknownQuestion
}

// choice reads the answer to a card with one question and an optional note.
func choice(answers []given, labels ...string) (label, note string, err error) {
	if len(answers) != 1 || answers[0].Index != nil && *answers[0].Index != 0 {
		return "", "", dialect.Invalid("answers must be one, with question_index 0")
	}
	a := answers[0]
	if len(a.Selected) != 1 || !slices.Contains(labels, a.Selected[0]) {
		return "", "", dialect.Invalid("answers[0].selected must be one of %q", labels)
	}
	if a.Custom != nil {
		note = *a.Custom
	}
	return a.Selected[0], note, nil
}

// answersTo returns the answers in the order of their questions.
func answersTo(questions []parley.Question, answers []given) ([][]string, error) {
	list := make([][]string, len(questions))
	for i, a := range answers {
		n := i
		if a.Index != nil {
			n = *a.Index
		}
		if n < 0 || n >= len(questions) || list[n] != nil {
			return nil, dialect.Invalid(
				"answers[%d].question_index: there is no question %d, or it is answered twice", i, n)
		}
		q := questions[n]
		offered := func(label string) bool {
			return slices.ContainsFunc(q.Options, func(o parley.Option) bool { return o.Label == label })
		}
		if a.short && !offered(a.Selected[0]) { // text of the person's own
			a.Selected, a.Custom = nil, &a.Selected[0]
		}
		for _, label := range a.Selected {
			if !offered(label) {
				return nil, dialect.Invalid("answers[%d].selected: %q is no option", i, clip(label, maxPreview))
			}
		}
		if len(a.Selected) > 1 && !q.MultiSelect {
			return nil, dialect.Invalid("answers[%d].selected: only one can be chosen", i)
		}
		list[n] = slices.Clone(a.Selected)
		if a.Custom != nil && !parley.IsBlank(*a.Custom) {
			list[n] = append(list[n], *a.Custom)
		}
		if len(list[n]) == 0 {
			return nil, dialect.Invalid("answers[%d] is empty: selected or custom_text is needed", i)
		}
	}
	for n := range list {
		if list[n] == nil {
			return nil, dialect.Invalid("answers: question %d is not answered", n)
		}
	}
	return list, nil
}
