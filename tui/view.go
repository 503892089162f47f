package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	xansi "github.com/charmbracelet/x/ansi"

	"parley"
	"parley/client"
)

// view draws the screen. All of it has passed onlyStyles.
func (m model) view() tea.View {
	v := tea.NewView("")
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	if m.width == 0 {
		return v
	}
	v.WindowTitle = oneLine("parley "+m.talk.Title, 60)
	if m.width < leastWidth || m.height < leastHeight {
		v.SetContent(m.tooSmall())
		return v
	}
	rows := m.conversation()
	footer := m.footer()
	rows = append(rows, footer[:len(footer)-1]...)
	v.Cursor = m.draft.Cursor()
	draftAt := len(rows)
	rows = append(rows, strings.Split(m.draft.View(), "\n")...)
	rows = append(rows, footer[len(footer)-1])
	over := max(len(rows)-m.height, 0) // a card with many options on a small screen
	rows = rows[over:]
	if v.Cursor != nil {
		v.Cursor.Y += draftAt - over
	}
	for i, r := range rows {
		rows[i] = xansi.Truncate(onlyStyles(r), m.width, "")
	}
	v.SetContent(strings.Join(rows, "\n"))
	return v
}

func (m model) tooSmall() string {
	text := fmt.Sprintf("The terminal is too small: %d×%d, and parley needs %d×%d.", m.width, m.height, leastWidth,
		leastHeight)
	lines := wrapAt(text, m.width)
	return strings.Join(lines[:min(len(lines), max(m.height, 1))], "\n")
}

// conversation draws the visible part of the conversation, with exactly as many lines as the page.
func (m model) conversation() []string {
	page := m.page()
	if m.picker != nil {
		return m.pickerRows(page)
	}
	from := max(m.lines-page, 0)
	if m.scrolled {
		from = min(m.top, from)
	}
	rows := make([]string, 0, page+8)
	at := 0
	for _, b := range m.blocks {
		end := at + len(b.lines)
		if end > from && at < from+page {
			rows = append(rows, b.lines[max(from-at, 0):min(len(b.lines), from+page-at)]...)
		}
		at = end
	}
	if len(m.blocks) == 0 {
		rows = m.welcome(page)
	}
	for len(rows) < page {
		rows = append(rows, "")
	}
	return rows
}

func (m model) welcome(page int) []string {
	p := m.painter.palette
	lines := []string{p.strong.Render("Parley"), ""}
	for _, l := range []string{"Write a message and press Enter.", "Alt-Enter or Ctrl-J begins a new line.",
		"Ctrl-C stops an answer, Ctrl-D leaves.", "PgUp and PgDn scroll. /help shows everything."} {
		lines = append(lines, p.dim.Render(xansi.Truncate(l, m.width, "…")))
	}
	return lines[:min(len(lines), page)]
}

// footer draws everything below the conversation except the draft. Its last line, the status, is below the draft.
func (m model) footer() []string {
	if m.painter == nil {
		return []string{""}
	}
	p := m.painter.palette
	var rows []string
	if m.scrolled {
		rows = append(rows, p.dim.Render(fmt.Sprintf("↓ %s below (Ctrl-End)", count(max(m.lines-m.top-1, 1), "line"))))
	}
	for _, w := range m.talk.Queue {
		rows = append(rows, p.dim.Render("⏳ "+oneLine(w.Text, m.width-3)))
	}
	for _, s := range m.sending {
		rows = append(rows, p.dim.Render("… "+oneLine(s.text, m.width-2)))
	}
	if most := max(m.height/4, 1); len(rows) > most {
		rows = append(rows[:most-1:most-1], p.dim.Render(fmt.Sprintf("… %s wait", count(len(rows)-most+1, "message"))))
	}
	rows = append(rows, m.cardRows()...)
	if hint := m.hintLine(); hint != "" {
		rows = append(rows, hint)
	}
	rows = append(rows, p.dim.Render(strings.Repeat("─", m.width)))
	return append(rows, m.status())
}

func (m model) hintLine() string {
	p := m.painter.palette
	if m.ended != nil {
		return p.bad.Render(oneLine(m.ended.Error(), m.width))
	}
	if m.hint == "" {
		return ""
	}
	return p.warn.Render(oneLine(m.hint, m.width))
}

// status draws the last line: the current activity, and as many facts about the session as fit.
func (m model) status() string {
	p := m.painter.palette
	state, render := m.state()
	left := render(state)
	facts := []string{}
	add := func(text string) {
		if text != "" {
			facts = append(facts, oneLine(text, 40))
		}
	}
	if m.wish.Plan {
		add("plan mode")
	}
	if len(m.projects) > 1 {
		add(client.ProjectName(m.projects, m.project()))
	}
	add(firstOf(m.wish.Agent, m.talk.Agent))
	add(firstOf(m.wish.Model, m.talk.Model, m.me.Model))
	if c := m.talk.Context; c.Limit > 0 {
		add(fmt.Sprintf("context %d%%", 100*c.Tokens/c.Limit))
	}
	if u := m.talk.Total(); u.Input+u.Output > 0 {
		add(short3(u.Input+u.Output) + " tokens")
		if u.CostMicros > 0 {
			add(dollars(u))
		}
	}
	for len(facts) > 0 {
		right := strings.Join(facts, " · ")
		if room := m.width - lipgloss.Width(left) - lipgloss.Width(right); room >= 2 {
			return left + strings.Repeat(" ", room) + p.dim.Render(right)
		}
		facts = facts[:len(facts)-1]
	}
	return xansi.Truncate(left, m.width, "…")
}

// state returns the current activity, in words, so that it is also clear without colours.
func (m model) state() (string, func(...string) string) {
	p := m.painter.palette
	switch {
	case m.lost != nil:
		return "✗ no connection, retrying", p.bad.Render
	case m.ended != nil, m.talk.Deleted:
		return "✗ ended", p.bad.Render
	case m.waits():
		return "? waits for you", p.warn.Render
	case m.talk.Run != 0:
		return "● " + oneLine(m.talk.Doing, m.width/2) + " " + span(m.at.Sub(m.talk.Since)), p.tool.Render
	case len(m.sending) > 0:
		return "● sending", p.tool.Render
	case m.talk.Halted != "":
		return "■ halted", p.bad.Render
	}
	return "✓ ready", p.good.Render
}

func (m model) waits() bool {
	_, ok := m.waitingCard()
	return ok && !m.card.sent
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func short3(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

func dollars(u parley.Usage) string { return fmt.Sprintf("$%.4f", u.CostUSD()) }
