package openai

import (
	"context"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
)

// answered returns the session that an entry answers a card or call of, possibly a sub-agent's.
func answered(e entry) (session parley.SessionID, ok bool) {
	switch e.kind {
	case result:
		session, _, ok = parseID("call", e.id)
	case approval:
		session, _, ok = parseID("mcpr", e.id)
	}
	return session, ok
}

// hasAnswers reports whether some entries are answers. Results of calls that are not the server's count only if a run
// waits: then they must be meant for it.
func hasAnswers(entries []entry, waits bool) bool {
	return slices.ContainsFunc(entries, func(e entry) bool {
		_, ok := answered(e)
		return ok || e.kind == approval || e.kind == result && waits
	})
}

var errNotWaiting = parley.Errorf(parley.CodeClosed, "This was already answered, has ended or never was.")

// answer submits the answers to everything that the last response has ended for. said answers the open questions. If
// there are none, it becomes a message to the run. The next response is the next part of the run.
func (h *Handler) answer(ctx context.Context, q request, now View, entries []entry,
	said parley.SubmitInput) (id responseID, err error) {
	if !now.paused() {
		return id, ofParam(entries[0].at, errNotWaiting)
	}
	var commands []parley.Command
	waiting := now.run.waiting()
	for _, e := range entries {
		if e.kind != result && e.kind != approval {
			continue
		}
		i := slices.IndexFunc(waiting, func(w wait) bool { return e.answers(w, now.Session) })
		if i < 0 {
			return id, ofParam(e.at, errNotWaiting)
		}
		commands = append(commands, e.command(waiting[i], now.Session))
		waiting = slices.Delete(waiting, i, i+1)
	}
	asked := false
	for _, w := range waiting {
		switch {
		case w.card != nil && w.card.Kind == parley.CardQuestion && said.Content != "":
			asked = true
			commands = append(commands, parley.Command{Session: w.card.Session, Do: answerOf(*w.card, said.Content)})
		case w.card != nil && w.card.Kind == parley.CardCall, !slices.Contains(now.run.told, w.id):
			// The first can only be answered elsewhere. The client does not know of the second yet.
		case w.call != nil:
			return id, invalid(entries[0].at, "there is no output for the function call %s",
				idOf("call", now.Session, parley.Seq(w.call.id)))
		default:
			return id, invalid(entries[0].at, "this waits, too, and has no answer: %s", cardID(w.id))
		}
	}
	if said.Content != "" && !asked { // the run adopts it when it continues
		said.Busy, said.Earlier, said.Agent.Name = parley.Steer, nil, now.run.agent
		commands = append([]parley.Command{{Session: now.Session, Do: said}}, commands...)
	}
	for _, c := range commands { // a request must not be refused after a part of it was submitted
		if err := c.Do.Rules().Check(); err != nil {
			return id, ofParam(entries[0].at, err)
		}
	}
	for i, c := range commands {
		c.Via = parley.ViaHTTP
		_, err := q.door.Submit(ctx, q.who, c)
		if err != nil && (i == 0 || parley.CodeOf(err) != parley.CodeClosed) { // another client answered first
			return id, ofParam(entries[0].at, err)
		}
	}
	return responseID{now.Session, now.run.input, now.run.part}, nil
}

// answers reports whether an entry answers something that a run waits for.
func (e entry) answers(w wait, top parley.SessionID) bool {
	if e.kind == approval {
		return w.card != nil && w.card.Kind == parley.CardApproval && cardID(w.id) == e.id
	}
	return w.call != nil && idOf("call", top, parley.Seq(w.call.id)) == e.id
}

// command returns the command for an answer.
func (e entry) command(w wait, top parley.SessionID) parley.Command {
	if e.kind == result {
		return parley.Command{Session: top, Do: parley.ReturnToolResult{Call: w.call.id, Result: e.text}}
	}
	decision := parley.Deny
	if e.yes {
		decision = parley.AllowOnce
	}
	return parley.Command{Session: w.card.Session,
		Do: parley.DecideApproval{Card: parley.CardID(w.card.Seq), Decision: decision, Note: e.text}}
}

// answerOf returns a text as the answers to a card: a line for each question if the numbers match, or else the whole
// text for each.
func answerOf(c dialect.Card, text string) parley.AnswerQuestion {
	questions := c.Asks.(parley.QuestionAsked).Questions
	do := parley.AnswerQuestion{Card: parley.CardID(c.Seq)}
	lines := strings.Split(text, "\n")
	for i := range questions {
		answer := text
		if len(lines) == len(questions) {
			answer = strings.TrimSpace(lines[i])
		}
		do.Answers = append(do.Answers, []string{answer})
	}
	return do
}
