package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"parley"
	"parley/client"
)

// cardGuard is how long the keyboard must be silent before a key answers a card that has just appeared. So a person who
// is typing cannot answer a card by accident.
const cardGuard = 600 * time.Millisecond

// A cardView is the card on the screen, with the state of its answer.
type cardView struct {
	kind     CardKind
	id       string
	from     time.Time // earlier keys do not answer it
	sent     bool      // an answer was sent; the log does not have it yet
	aside    bool      // the user writes a message first
	typing   bool      // the draft is a part of the answer
	saved    string    // the draft before the typed answer
	question int       // index of the current question
	choice   int       // index of the marked option
	chosen   []int     // selected options, if the question allows several
	answers  [][]string
	top      int      // first visible line of the body
	body     []string // as drawn
}

// Effects of cards.
type (
	decide struct {
		card     string
		approval client.Approval
	}
	explain struct{ card string }
	answer  struct {
		card    string
		answers [][]string
	}
	resolve struct {
		card       string
		resolution parley.Resolution
	}
	decidePlan struct {
		session parley.SessionID
		answer  client.PlanAnswer
	}
)

// waitingCard returns the card that has waited longest. A plan counts only after its run has ended.
func (m model) waitingCard() (Card, bool) {
	for _, c := range m.talk.Cards {
		if c.Kind != PlanCard || m.talk.Run == 0 {
			return c, true
		}
	}
	return Card{}, false
}

// present shows the next card if the one on the screen is settled.
func (m model) present() model {
	c, ok := m.waitingCard()
	if ok && m.card.id == c.ID() && m.card.kind == c.Kind {
		return m
	}
	if m.card.typing {
		m.draft.SetValue(m.card.saved)
	}
	if m.card = (cardView{}); ok {
		m.card = cardView{kind: c.Kind, id: c.ID(), from: m.at.Add(cardGuard)}
	}
	return m
}

// asks returns the card on the screen, and whether it has the keyboard.
func (m model) asks() (Card, bool) {
	c, ok := m.waitingCard()
	return c, ok && !m.card.aside && !m.card.sent && m.card.id == c.ID()
}

// armed reports whether keys answer the card.
func (m model) armed() bool { return !m.at.Before(m.card.from) }

// cardKey handles a key while a card has the keyboard.
func (m model) cardKey(c Card, k tea.KeyPressMsg) (model, []effect) {
	name := k.String()
	switch {
	case !m.armed():
		m.card.from = m.at.Add(cardGuard)
		if name == "enter" || name == "esc" {
			return m.keepTicking(nil)
		}
		m, _ = m.edit(k) // the user continues to type the message
		return m.keepTicking(nil)
	case m.card.typing:
		return m.typeAnswer(c, k)
	case name == "esc":
		m.card.aside = true
		return m, nil
	case name == "shift+up", name == "shift+down", name == "[", name == "]":
		by := map[string]int{"shift+up": -1, "[": -1, "shift+down": 1, "]": 1}[name]
		m.card.top = min(max(m.card.top+by, 0), max(len(m.card.body)-1, 0))
		return m, nil
	}
	switch c.Kind {
	case Approval:
		return m.approvalKey(c, name)
	case Questions:
		return m.questionKey(c, k)
	case LostCall:
		return m.lostKey(c, name)
	}
	return m.planKey(c, name)
}

func (m model) approvalKey(c Card, name string) (model, []effect) {
	decision := func(d parley.Decision, scope parley.GrantScope) (model, []effect) {
		m.card.sent = true
		return m, []effect{decide{c.ID(), client.Approval{Decision: d, Scope: scope, Digest: c.Digest}}}
	}
	switch name {
	case "y":
		return decision(parley.AllowOnce, "")
	case "a":
		return decision(parley.AllowAlways, "")
	case "l":
		if c.Similar != "" {
			return decision(parley.AllowAlways, parley.ScopeSimilar)
		}
	case "n":
		return decision(parley.Deny, "")
	case "s":
		return decision(parley.DenyAndStop, "")
	case "e":
		m.hint = "The model is asked to explain this call."
		return m, []effect{explain{c.ID()}}
	case "r":
		return m.beginTyping(""), nil
	}
	return m, nil
}

func (m model) lostKey(c Card, name string) (model, []effect) {
	resolution := map[string]parley.Resolution{"r": parley.Rerun, "d": parley.MarkDone, "a": parley.Abandon}[name]
	if resolution == "" {
		return m, nil
	}
	m.card.sent = true
	return m, []effect{resolve{c.ID(), resolution}}
}

func (m model) planKey(c Card, name string) (model, []effect) {
	a := client.PlanAnswer{}
	switch name {
	case "a":
		a.Decision = parley.ApprovePlan
	case "f":
		a.Decision, a.Fresh = parley.ApprovePlan, true
	case "r":
		a.Decision = parley.RejectPlan
	case "e":
		return m.beginTyping(planText(c.Plan)), nil
	default:
		return m, nil
	}
	m.card.sent = true
	return m, []effect{decidePlan{c.Session, a}}
}

// planText returns a plan as text for the user to edit.
func planText(p parley.Plan) string {
	if p.Text != "" {
		return p.Text
	}
	var b strings.Builder
	b.WriteString(p.Summary + "\n")
	for _, i := range p.Items {
		b.WriteString("- " + i.Title + "\n")
		if i.Description != "" {
			b.WriteString("  " + strings.ReplaceAll(i.Description, "\n", "\n  ") + "\n")
		}
	}
	return strings.TrimSpace(b.String())
}

func (m model) questionKey(c Card, k tea.KeyPressMsg) (model, []effect) {
	q := c.Questions[m.card.question]
	if len(q.Options) == 0 {
		return m.beginTyping("").typeAnswer(c, k)
	}
	name := k.String()
	switch {
	case name == "up":
		m.card.choice = (m.card.choice + len(q.Options) - 1) % len(q.Options)
	case name == "down":
		m.card.choice = (m.card.choice + 1) % len(q.Options)
	case name == "o":
		return m.beginTyping(""), nil
	case len(name) == 1 && name[0] >= '1' && int(name[0]-'0') <= len(q.Options):
		m.card.choice = int(name[0] - '1')
		if !q.MultiSelect {
			return m.answered(c, q.Options[m.card.choice].Label)
		}
		return m.toggle(), nil
	case name == "space" || name == " ":
		if q.MultiSelect {
			return m.toggle(), nil
		}
	case name == "enter" && q.MultiSelect && len(m.card.chosen) > 0:
		var labels []string
		for i, o := range q.Options {
			if slices.Contains(m.card.chosen, i) {
				labels = append(labels, o.Label)
			}
		}
		return m.answered(c, labels...)
	case name == "enter":
		return m.answered(c, q.Options[m.card.choice].Label)
	}
	return m, nil
}

func (m model) toggle() model {
	n := slices.Index(m.card.chosen, m.card.choice)
	m.card.chosen = slices.Clone(m.card.chosen)
	if n < 0 {
		m.card.chosen = append(m.card.chosen, m.card.choice)
	} else {
		m.card.chosen = slices.Delete(m.card.chosen, n, n+1)
	}
	return m
}

// answered adds the answer to a question. The last answer sends the answers of the card.
func (m model) answered(c Card, labels ...string) (model, []effect) {
	m.card.answers = append(slices.Clip(m.card.answers), labels)
	m.card.choice, m.card.chosen = 0, nil
	if m.card.question++; m.card.question < len(c.Questions) {
		return m.layout(), nil
	}
	m.card.sent, m.card.question = true, 0
	answers := m.card.answers
	m.card.answers = nil
	return m, []effect{answer{c.ID(), answers}}
}

// beginTyping makes the draft a part of the answer.
func (m model) beginTyping(text string) model {
	m.card.typing, m.card.saved = true, m.draft.Value()
	m.draft.SetValue(text)
	return m
}

// paste pastes a text into the draft. If a question has no options, the draft becomes the answer. The path of an image
// becomes a name that attaches the image.
func (m model) paste(msg tea.PasteMsg) (model, []effect) {
	if c, ok := m.asks(); ok && m.armed() && !m.card.typing && c.Kind == Questions &&
		len(c.Questions[m.card.question].Options) == 0 {
		m = m.beginTyping("")
	}
	if name := pastedImage(msg.Content); name != "" && !m.card.typing {
		msg.Content = name
	}
	return m.edit(msg)
}

func (m model) endTyping() model {
	m.draft.SetValue(m.card.saved)
	m.card.typing, m.card.saved = false, ""
	return m
}

// typeAnswer handles a key of a typed answer: the reason for a denial, a free answer to a question, or a changed plan.
func (m model) typeAnswer(c Card, k tea.KeyPressMsg) (model, []effect) {
	switch k.String() {
	case "esc":
		return m.endTyping(), nil
	case "enter":
	default:
		return m.edit(k)
	}
	text := strings.TrimSpace(m.draft.Value())
	if text == "" {
		return m, nil
	}
	m = m.endTyping()
	switch c.Kind {
	case Approval:
		m.card.sent = true
		return m, []effect{decide{c.ID(), client.Approval{Decision: parley.Deny, Note: text, Digest: c.Digest}}}
	case Questions:
		return m.answered(c, text)
	}
	return m, []effect{decidePlan{c.Session, client.PlanAnswer{Decision: parley.EditPlan, Text: text}}}
}
