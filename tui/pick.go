package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"parley"
)

// A picker is a list in the place of the conversation. The user chooses one row.
type picker struct {
	kind    pickKind
	filter  string
	named   string // row named by a command
	rows    []pickRow
	at      int
	loading bool
}

type pickKind string

const (
	pickSession pickKind = "Sessions"
	pickAgent   pickKind = "Agents"
	pickModel   pickKind = "Models"
	pickProject pickKind = "Projects"
	pickQueued  pickKind = "Waiting messages"
	pickHelp    pickKind = "Help"
)

// A pickRow is one choice. Its texts are untrusted.
type pickRow struct{ id, name, about string }

// list asks the server for the rows of a list; listedMsg has them.
type (
	list struct {
		kind            pickKind
		filter, project string
	}
	listedMsg struct {
		list
		rows []pickRow
	}
)

// listAgents asks for the agents of the project, unless they are known.
func (m model) listAgents() (model, []effect) {
	if m.agentsOf == m.project() && !m.unlisted {
		return m, nil
	}
	m.agents, m.agentsOf, m.unlisted = nil, m.project(), false
	return m, []effect{list{pickAgent, "", m.agentsOf}}
}

// listed handles the rows of a list. It ignores rows for an older search.
func (m model) listed(msg listedMsg) (model, []effect) {
	if msg.project != m.project() && msg.kind == pickAgent {
		return m, nil // the user has switched to another project
	}
	if msg.kind == pickAgent {
		m.agents = nil
		for _, r := range msg.rows {
			m.agents = append(m.agents, r.id)
		}
	}
	if m.picker == nil || m.picker.kind != msg.kind || msg.kind == pickSession && m.picker.filter != msg.filter {
		return m, nil
	}
	p := *m.picker
	p.rows, p.loading, p.at = msg.rows, false, 0
	m.picker = &p
	if p.named == "" {
		return m, nil
	}
	for _, r := range p.rows {
		if strings.EqualFold(r.id, p.named) || strings.EqualFold(r.name, p.named) {
			return m.chosen(r)
		}
	}
	m.hint = fmt.Sprintf("There is no %q in this list.", p.named)
	p.filter, p.named = p.named, ""
	return m, nil
}

func (m model) showQueue(string) (model, []effect) {
	p := &picker{kind: pickQueued}
	for _, w := range m.talk.Queue {
		p.rows = append(p.rows, pickRow{fmt.Sprint(w.ID), w.Text, "Enter withdraws it"})
	}
	m.picker = p
	return m, nil
}

// matching returns the rows that match the filter. For sessions, the server filters.
func (p picker) matching() (rows []pickRow) {
	if p.kind == pickSession {
		return p.rows
	}
	for _, r := range p.rows {
		if strings.Contains(strings.ToLower(r.name+" "+r.id+" "+r.about), strings.ToLower(p.filter)) {
			rows = append(rows, r)
		}
	}
	return rows
}

// pickerKey handles a key while a list is open.
func (m model) pickerKey(k tea.KeyPressMsg) (model, []effect) {
	p := *m.picker
	m.picker = &p
	rows := p.matching()
	last := max(len(rows)-1, 0)
	if p.kind == pickHelp {
		last = len(slashes()) + len(keys)
	}
	switch name := k.String(); {
	case name == "esc" || name == "ctrl+c":
		m.picker, m.stopping = nil, false
	case name == "up":
		p.at = max(p.at-1, 0)
	case name == "down":
		p.at = min(p.at+1, last)
	case name == "pgup":
		p.at = max(p.at-m.page(), 0)
	case name == "pgdown":
		p.at = min(p.at+m.page(), last)
	case name == "enter" && p.at < len(rows):
		return m.chosen(rows[p.at])
	case name == "enter":
		m.picker = nil
	case name == "backspace" && p.filter != "":
		letters := []rune(p.filter)
		return m.filtered(p, string(letters[:len(letters)-1]))
	case k.Text != "":
		return m.filtered(p, p.filter+k.Text)
	}
	return m, nil
}

func (m model) filtered(p picker, filter string) (model, []effect) {
	p.filter, p.at = filter, 0
	m.picker = &p
	if p.kind == pickSession {
		return m, []effect{list{p.kind, filter, m.project()}}
	}
	return m, nil
}

// chosen handles the choice of a row.
func (m model) chosen(r pickRow) (model, []effect) {
	kind := m.picker.kind
	m.picker = nil
	switch kind {
	case pickSession:
		return m.visit(parley.SessionID(r.id), true)
	case pickAgent:
		m.wish.Agent = r.id
		m.hint = "The next messages go to " + r.name + "."
	case pickModel:
		m.wish.Model = r.id
		m.hint = "The next messages are answered by " + r.id + "."
	case pickProject:
		m, effects := m.visit(newSessionID(), false)
		m.wish = wishes{Project: r.id, Plan: m.wish.Plan} // another project has other agents and models
		m.hint = "A new session in " + r.id + "."
		m, asked := m.listAgents()
		return m, append(effects, asked...)
	case pickQueued:
		for _, w := range m.talk.Queue {
			if fmt.Sprint(w.ID) == r.id {
				return m, []effect{withdraw{m.talk.Session, w.ID}}
			}
		}
	}
	return m, nil
}

// pickerRows draws the list, with exactly as many lines as the page.
func (m model) pickerRows(page int) []string {
	p := m.painter.palette
	if m.picker.kind == pickHelp {
		return m.helpRows(page)
	}
	title := string(m.picker.kind)
	if m.picker.filter != "" {
		title += " with “" + m.picker.filter + "”"
	}
	rows := []string{p.strong.Render(oneLine(title, m.width)),
		p.dim.Render(oneLine("Type to search, ↑ and ↓ move, Enter chooses, Esc closes.", m.width))}
	found := m.picker.matching()
	switch {
	case m.picker.loading:
		rows = append(rows, p.dim.Render("…"))
	case len(found) == 0:
		rows = append(rows, p.dim.Render("Nothing."))
	}
	room := max(page-len(rows), 1)
	from := max(m.picker.at-room+1, 0)
	for i, r := range found[from:min(len(found), from+room)] {
		name := oneLine(cmp.Or(r.name, r.id), m.width-2)
		about := oneLine(r.about, m.width-4-len([]rune(name)))
		if i+from == m.picker.at {
			rows = append(rows, p.you.Render("▸ "+name)+"  "+p.dim.Render(about))
		} else {
			rows = append(rows, "  "+name+"  "+p.dim.Render(about))
		}
	}
	for len(rows) < page {
		rows = append(rows, "")
	}
	return rows[:page]
}

// keys are the keys of the screen, for /help.
var keys = [][2]string{{"Enter", "send; while an answer arrives it steers the agent"},
	{"Alt-Enter, Ctrl-J", "new line"}, {"↑ ↓", "earlier messages"}, {"Tab", "complete /command, @agent, @file"},
	{"Ctrl-G", "write in $EDITOR"}, {"Ctrl-C", "stop the answer; twice: leave"}, {"Ctrl-D", "leave"},
	{"Ctrl-T", "unfold thinking, output and diffs"}, {"PgUp PgDn, wheel", "scroll"}, {"Ctrl-L", "draw again"}}

func (m model) helpRows(page int) []string {
	p := m.painter.palette
	rows := []string{p.strong.Render("Commands and keys") + p.dim.Render("  (Esc closes)")}
	line := func(name, about string) {
		rows = append(rows, "  "+p.tool.Render(fmt.Sprintf("%-24s", name))+" "+oneLine(about, m.width-27))
	}
	for _, s := range slashes() {
		line(strings.TrimSpace("/"+s.name+" "+s.argument), s.about)
	}
	for _, k := range keys {
		line(k[0], k[1])
	}
	rows = slices.Clip(rows)
	if m.picker.at > 0 {
		rows = rows[min(m.picker.at, max(len(rows)-page, 0)):]
	}
	for len(rows) < page {
		rows = append(rows, "")
	}
	return rows[:page]
}
