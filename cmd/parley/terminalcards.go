package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley"
)

// A card is an approval, a question or an unresolved call that waits for the
// person.
type card struct {
	ref
	call      parley.CallID
	kind      string // approvals, questions or calls, as in the protocol
	tool      string
	text      string // exactly what the call would do, or what is known of its outcome
	digest    string // of the call as it was shown
	why       string
	similar   string // the rule that could allow similar calls
	questions []parley.Question
}

// alsoSimilar returns text if the card offers a rule for similar calls, else
// nothing.
func (c card) alsoSimilar(text string) string {
	if c.similar == "" {
		return ""
	}
	return text
}

func (c card) path() string { return "/" + c.kind + "/" + c.String() }

func (t *terminal) card() *card {
	if len(t.cards) == 0 {
		return nil
	}
	return &t.cards[0]
}

// showCards shows new cards, and removes settled ones.
func (t *terminal) showCards(e parley.Event) {
	here := ref{e.Session, e.Seq}
	switch b := e.Body.(type) {
	case parley.ApprovalRequested:
		t.add(card{ref: here, call: b.Call, kind: "approvals", tool: b.Name, text: b.Show, digest: b.Digest,
			why: b.Why, similar: b.Similar.Text})
	case parley.QuestionAsked:
		t.add(card{ref: here, call: b.Call, kind: "questions", questions: b.Questions})
	case parley.ToolCallFinished:
		if b.Outcome == parley.CallUnknown {
			t.add(card{ref: ref{e.Session, parley.Seq(b.Call)}, call: b.Call, kind: "calls", tool: b.Name,
				text: b.Result})
		}
	case parley.ApprovalExplained:
		if c := t.card(); c != nil && c.ref == (ref{e.Session, parley.Seq(b.Card)}) {
			t.line()
			t.say("\n" + strings.TrimSpace(b.Text) + "\n")
			t.ask()
		}
	case parley.ApprovalDecided:
		t.settle(ref{e.Session, parley.Seq(b.Card)}, string(b.Decision))
	case parley.QuestionAnswered:
		t.settle(ref{e.Session, parley.Seq(b.Card)}, string(b.Ending))
	case parley.ToolCallResolved:
		t.settle(ref{e.Session, parley.Seq(b.Call)}, string(b.Resolution))
	case parley.RunFinished:
		for _, c := range slices.Clone(t.cards) {
			if c.session == e.Session {
				t.settle(c.ref, "over")
			}
		}
	}
}

func (t *terminal) add(c card) {
	if slices.ContainsFunc(t.cards, func(known card) bool { return known.ref == c.ref }) {
		return
	}
	if t.cards = append(t.cards, c); len(t.cards) == 1 {
		t.present()
	}
}

// putBack returns a card to the front, because its answer did not arrive.
func (t *terminal) putBack(c card) {
	t.cards = append([]card{c}, t.cards...)
	t.answers = nil
}

// settle removes a card that was answered elsewhere, has expired or was cancelled.
func (t *terminal) settle(which ref, how string) {
	i := slices.IndexFunc(t.cards, func(c card) bool { return c.ref == which })
	if i < 0 {
		return // the person has answered it here
	}
	t.cards = slices.Delete(t.cards, i, i+1)
	if i == 0 {
		t.note(dim, "("+how+")")
		t.next()
	}
}

// next shows the next card, if there is one.
func (t *terminal) next() {
	if t.answers = nil; len(t.cards) > 0 {
		t.present()
	}
}

// present shows the first card and its question.
func (t *terminal) present() {
	c := t.cards[0]
	t.line()
	who := ""
	if agent := t.agents[c.session]; agent != "" {
		who = agent + ": "
	}
	switch c.kind {
	case "approvals":
		why := ""
		if c.why != "" {
			why = ": " + c.why
		}
		t.print("\n" + t.in(bold, visible("["+who+c.tool+" wants your approval"+why+"]")) + "\n")
		t.print(t.diff(c.text))
		t.line()
	case "calls":
		t.print("\n" + t.in(bold, visible("["+who+c.tool+": outcome unknown]")) + " ")
		t.say(c.text + "\n")
	}
	t.ask()
}

// diff colours the added and removed lines of a card's text.
func (t *terminal) diff(text string) string {
	text = visible(text)
	if !t.color {
		return text
	}
	var b strings.Builder
	for l := range strings.Lines(text) {
		line, end := strings.TrimSuffix(l, "\n"), ""
		if line != l {
			end = "\n"
		}
		switch {
		case strings.HasPrefix(line, "+"):
			line = t.in(green, line)
		case strings.HasPrefix(line, "-"):
			line = t.in(red, line)
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "*** "):
			line = t.in(cyan, line)
		}
		b.WriteString(line + end)
	}
	return b.String()
}

// ask prints the question of the first card.
func (t *terminal) ask() {
	t.line()
	switch c := t.cards[0]; c.kind {
	case "approvals":
		t.print(c.alsoSimilar(visible("Similar: "+c.similar) + "\n"))
		t.print("Allow? [y]es, [a]lways exactly this, " + c.alsoSimilar("a[l]ways similar, ") +
			"[n]o (and why), [e]xplain, [s]top: ")
	case "calls":
		t.print("[r]un it again, it is [d]one, [a]bandon the run: ")
	default:
		q := c.questions[len(t.answers)]
		t.say("\n[question] " + q.Question + "\n")
		for i, o := range q.Options {
			t.say(strings.TrimRight(fmt.Sprintf("  %d  %s  %s", i+1, o.Label, o.Description), " ") + "\n")
		}
		if q.MultiSelect {
			t.print("Your answers, with commas between: ")
		} else {
			t.print("Your answer: ")
		}
	}
	t.dialog = true
}

// allowSimilar stands for parley.AllowAlways with the rule that the card offers.
const allowSimilar = parley.AllowAlways + " " + parley.Decision(parley.ScopeSimilar)

var (
	decisions = map[string]parley.Decision{"y": parley.AllowOnce, "yes": parley.AllowOnce, "a": parley.AllowAlways,
		"always": parley.AllowAlways, "l": allowSimilar, "similar": allowSimilar,
		"n": parley.Deny, "no": parley.Deny, "e": "explain", "explain": "explain", "s": parley.DenyAndStop,
		"stop": parley.DenyAndStop}
	resolutions = map[string]parley.Resolution{"r": parley.Rerun, "run": parley.Rerun, "d": parley.MarkDone,
		"done": parley.MarkDone,
		"a":    parley.Abandon, "abandon": parley.Abandon}
)

// answer parses a line as an answer to the first card, and returns nil if more
// input is needed. A reason may follow "no", and the model gets it. Text after any
// other word is refused, so that a longer sentence does not allow a call by
// mistake.
func (t *terminal) answer(line string) map[string]any {
	c := t.cards[0]
	word, note, _ := strings.Cut(strings.TrimSpace(line), " ")
	word, note = strings.ToLower(word), strings.TrimSpace(note)
	var body map[string]any
	switch c.kind {
	case "approvals":
		decision := decisions[word]
		scope := parley.GrantScope("")
		if decision == allowSimilar {
			decision, scope = parley.AllowAlways, parley.ScopeSimilar
		}
		if decision == "" || note != "" && decision != parley.Deny || scope != "" && c.similar == "" {
			t.print("Answer y, a, " + c.alsoSimilar("l, ") + "n, e or s: ")
			return nil
		}
		body = map[string]any{"decision": decision, "note": note}
		if scope != "" {
			body["scope"] = scope
		}
		if decision == "explain" {
			return map[string]any{"decision": decision} // the card still waits
		}
		body["digest"] = c.digest
	case "calls":
		if resolutions[word] == "" || note != "" {
			t.print("Answer r, d or a: ")
			return nil
		}
		body = map[string]any{"resolution": resolutions[word]}
	default:
		if strings.TrimSpace(line) == "" {
			t.print("Your answer: ")
			return nil
		}
		t.answers = append(t.answers, choices(c.questions[len(t.answers)], line))
		if len(t.answers) < len(c.questions) {
			t.ask()
			return nil
		}
		body = map[string]any{"answers": t.answers}
	}
	t.cards = t.cards[1:]
	t.next()
	return body
}

// choices replaces the numbers of options by their labels.
func choices(q parley.Question, line string) (chosen []string) {
	parts := []string{line}
	if q.MultiSelect {
		parts = strings.Split(line, ",")
	}
	for _, part := range parts {
		part = strings.TrimSpace(part)
		if n, err := strconv.Atoi(part); err == nil && n >= 1 && n <= len(q.Options) {
			part = q.Options[n-1].Label
		}
		if part != "" {
			chosen = append(chosen, part)
		}
	}
	return chosen
}
