package tui

import (
	"fmt"
	"slices"
	"strings"
)

// cardBody draws the whole body of a card. The screen shows a part of it.
func (p *painter) cardBody(c Card, v cardView) []string {
	switch c.Kind {
	case Approval:
		lines := p.diff(c.Show, p.width-2)
		if c.Explained != "" {
			lines = append(append(lines, ""), p.markdown(c.Explained)...)
		}
		return lines
	case LostCall:
		return p.wrap(c.Show)
	case PlanCard:
		return p.plan(c.Plan)
	}
	if v.question >= len(c.Questions) {
		return nil
	}
	q := c.Questions[v.question]
	return p.each(p.strong.Render, p.wrap(q.Question))
}

// cardRows draws the card on the screen: a title, as much of the body as fits, and the keys.
func (m model) cardRows() []string {
	c, ok := m.waitingCard()
	if !ok || m.card.id != c.ID() {
		return nil
	}
	p := m.painter.palette
	if m.card.aside {
		return []string{p.warn.Render(oneLine("? "+m.cardTitle(c)+" (Tab shows it)", m.width))}
	}
	if m.card.sent {
		return []string{p.dim.Render(oneLine("… "+m.cardTitle(c), m.width))}
	}
	rows := []string{p.warn.Render("━━ " + oneLine(m.cardTitle(c), m.width-4) + " ")}
	options := m.optionRows(c)
	keys := wrapAt(m.cardKeys(c), m.width)
	room := max(m.height*3/5-len(options)-len(keys)-1, 1)
	rows = append(rows, m.window(room)...)
	rows = append(rows, options...)
	if !m.armed() { // the same number of lines, so that nothing moves when keys answer
		soon := make([]string, len(keys))
		soon[0] = p.dim.Render(oneLine("Keys answer this in a moment.", m.width))
		return append(rows, soon...)
	}
	return append(rows, m.painter.each(p.strong.Render, keys)...)
}

// window returns the part of the body that fits.
func (m model) window(room int) []string {
	body := m.card.body
	if len(body) <= room {
		return body
	}
	top := min(m.card.top, len(body)-room+1)
	shown := slices.Clone(body[top : top+room-1])
	return append(shown, m.painter.dim.Render(fmt.Sprintf("lines %d to %d of %d; [ and ] scroll", top+1, top+room-1,
		len(body))))
}

func (m model) cardTitle(c Card) string {
	who := ""
	if c.Agent != "" {
		who = c.Agent + ": "
	}
	switch c.Kind {
	case Approval:
		if c.Why != "" {
			return who + c.Tool + " wants your approval: " + c.Why
		}
		return who + c.Tool + " wants your approval"
	case Questions:
		if len(c.Questions) > 1 {
			return fmt.Sprintf("%sQuestion %d of %d", who, m.card.question+1, len(c.Questions))
		}
		return who + "Question"
	case LostCall:
		return who + c.Tool + ": the outcome is unknown"
	}
	return "The plan waits for your approval"
}

// optionRows draws the options of a question.
func (m model) optionRows(c Card) (rows []string) {
	if c.Kind != Questions || m.card.question >= len(c.Questions) {
		return nil
	}
	q := c.Questions[m.card.question]
	for i, o := range q.Options {
		mark := "  "
		if i == m.card.choice && !m.card.typing {
			mark = "▸ "
		}
		if q.MultiSelect {
			box := "[ ] "
			if slices.Contains(m.card.chosen, i) {
				box = "[x] "
			}
			mark += box
		}
		line := fmt.Sprintf("%s%d %s", mark, i+1, o.Label)
		if o.Description != "" {
			line += "  " + o.Description
		}
		rows = append(rows, oneLineKeeping(line, m.width))
	}
	return rows
}

// oneLineKeeping is oneLine, but keeps the leading spaces.
func oneLineKeeping(text string, width int) string {
	trimmed := strings.TrimLeft(text, " ")
	room := text[:len(text)-len(trimmed)]
	return room + oneLine(trimmed, width-len(room))
}

// cardKeys lists the keys that answer the card.
func (m model) cardKeys(c Card) string {
	if m.card.typing {
		return map[CardKind]string{Approval: "Write why not. Enter denies, Esc goes back.",
			Questions: "Write your answer. Enter sends it, Esc goes back.",
			PlanCard:  "Change the plan. Enter saves it, Alt-Enter begins a line, Esc goes back."}[c.Kind]
	}
	switch c.Kind {
	case Approval:
		keys := "[y]es  [a]lways exactly this  [n]o  [r]eason for no  [e]xplain  [s]top"
		if c.Similar != "" {
			keys = "Similar: " + Visible(c.Similar) + "\n" + strings.Replace(keys, "[n]o", "a[l]ways similar  [n]o", 1)
		}
		return keys + "  Esc later"
	case LostCall:
		return "[r]un it again  it is [d]one  [a]bandon the run  Esc later"
	case PlanCard:
		return "[a]pprove  approve with a [f]resh context  [e]dit  [r]eject  Esc later"
	}
	q := c.Questions[min(m.card.question, len(c.Questions)-1)]
	switch {
	case len(q.Options) == 0:
		return "Write your answer. Enter sends it."
	case q.MultiSelect:
		return "Space marks, Enter sends, [o]wn answer, Esc later"
	}
	return "A number or Enter answers, [o]wn answer, Esc later"
}
