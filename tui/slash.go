package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"parley"
)

// A slash is a command that the user types instead of a message.
type slash struct {
	name, argument, about string
	run                   func(m model, argument string) (model, []effect)
}

// slashes returns all commands. Other messages that begin with a slash go to the server, which calls skills by such
// names.
func slashes() []slash {
	return []slash{
		{"help", "", "show the commands and keys", func(m model, _ string) (model, []effect) {
			m.picker = &picker{kind: pickHelp}
			return m, nil
		}},
		{"agent", "[name]", "choose the agent of the next messages", choose(pickAgent)},
		{"model", "[name]", "choose the model of the next messages", choose(pickModel)},
		{"project", "[name]", "begin a session in another project", choose(pickProject)},
		{"sessions", "[text]", "find a session and go on with it", choose(pickSession)},
		{"new", "", "begin a new session", func(m model, _ string) (model, []effect) {
			return m.visit(newSessionID(), false)
		}},
		{"plan", "[message]", "plan first; nothing changes until you approve", model.planMode},
		{"queue", "", "show messages that wait, and withdraw one", model.showQueue},
		{"compact", "", "replace earlier messages by a summary", inSession(func(s parley.SessionID) effect {
			return compact{s}
		})},
		{"fork", "", "go on in a copy of this session", inSession(func(s parley.SessionID) effect {
			return fork{s}
		})},
		{"export", "[file]", "write the conversation to a Markdown file", model.export},
		{"theme", "[light|dark|auto]", "choose colours for a light or a dark background", model.setTheme},
		{"quit", "", "leave; the session stays", func(m model, _ string) (model, []effect) { return m.leave() }},
	}
}

// Effects of commands.
type (
	compact  struct{ session parley.SessionID }
	fork     struct{ session parley.SessionID }
	withdraw struct {
		session parley.SessionID
		input   parley.InputID
	}
	export struct{ path, text string }
	// unfollow ends the feed of a session that the user has left.
	unfollow struct{}

	exportedMsg struct{ path string }
	forkedMsg   struct{ session parley.SessionID }
)

// command runs a command. It returns false if the text is not a command.
func (m model) command(text string) (model, []effect, bool) {
	if !strings.HasPrefix(text, "/") {
		return m, nil, false
	}
	name, argument, _ := strings.Cut(text[1:], " ")
	for _, s := range slashes() {
		if s.name == name {
			m, effects := s.run(m, strings.TrimSpace(argument))
			return m, effects, true
		}
	}
	for _, s := range slashes() {
		if oneApart(s.name, name) {
			m.draft.SetValue(text)
			m.hint = fmt.Sprintf("There is no command /%s. Did you mean /%s?", name, s.name)
			return m, nil, true
		}
	}
	return m, nil, false
}

// oneApart reports whether the words differ by one added, removed or changed letter.
func oneApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] {
			return len(a) == len(b) && a[i+1:] == b[i+1:] || len(a) < len(b) && a[i:] == b[i+1:]
		}
	}
	return true
}

// choose returns a command that opens a list. With an argument, it chooses the row of that name.
func choose(kind pickKind) func(model, string) (model, []effect) {
	return func(m model, name string) (model, []effect) {
		m.picker = &picker{kind: kind, loading: true}
		if kind == pickSession {
			m.picker.filter = name
			return m, []effect{list{kind, name, m.project()}}
		}
		m.picker.named = name
		return m, []effect{list{kind, "", m.project()}}
	}
}

// inSession returns a command that needs an existing session.
func inSession(do func(parley.SessionID) effect) func(model, string) (model, []effect) {
	return func(m model, _ string) (model, []effect) {
		if !m.started {
			m.hint = "There is no conversation yet."
			return m, nil
		}
		return m, []effect{do(m.talk.Session)}
	}
}

func (m model) planMode(message string) (model, []effect) {
	if message == "" {
		m.wish.Plan = !m.wish.Plan
		m.hint = map[bool]string{true: "Plan mode is on: the agent proposes plans and changes nothing.",
			false: "Plan mode is off."}[m.wish.Plan]
		return m, nil
	}
	was := m.wish.Plan
	m.wish.Plan = true
	m, effects := m.submit(message)
	m.wish.Plan = was
	return m, effects
}

func (m model) export(file string) (model, []effect) {
	file = cmp.Or(file, fmt.Sprintf("parley-%.8s.md", m.talk.Session))
	return m, []effect{export{file, Markdown(m.talk)}}
}

func (m model) setTheme(name string) (model, []effect) {
	switch name {
	case "light", "dark":
		m.theme = name
	case "auto", "":
		m.theme = ""
	default:
		m.hint = fmt.Sprintf("There is no theme %q. Themes are light, dark and auto.", name)
		return m, nil
	}
	return m.layout(), nil
}

func newSessionID() parley.SessionID { return parley.SessionID(uuid.NewString()) }

// visit leaves the session for another one. A new session is in the same project.
func (m model) visit(session parley.SessionID, existing bool) (model, []effect) {
	m.wish.Project = m.project()
	m.talk, m.started, m.lost, m.ended = Talk{Session: session}, false, nil, nil
	m.blocks, m.scrolled, m.sending, m.card, m.recalled = nil, false, nil, cardView{}, 0
	m = m.layout()
	if !existing {
		return m, []effect{unfollow{}}
	}
	m.wish = wishes{Plan: m.wish.Plan} // an existing session has its own project, agent and model
	m.agents, m.unlisted = nil, true
	return m, []effect{open{session: session}}
}

// Markdown returns a conversation as a Markdown document.
func Markdown(t Talk) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", cmp.Or(t.Title, string(t.Session)))
	for _, i := range t.Items {
		switch i.Kind {
		case Said:
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", cmp.Or(string(i.By), "You"), i.Text)
		case Answered:
			fmt.Fprintf(&b, "\n%s\n", i.Text)
		case Worked:
			b.WriteString("\n")
			for _, c := range i.Calls {
				fmt.Fprintf(&b, "%s- `%s` (%s)\n", strings.Repeat("  ", c.Depth), c.Line, c.State)
			}
		case Planned:
			fmt.Fprintf(&b, "\n%s\n", planText(i.Plan))
		case Changed:
			for _, f := range i.Files {
				fmt.Fprintf(&b, "\n%s `%s`\n\n```diff\n%s\n```\n", f.Summary, f.Path, strings.TrimSuffix(f.Diff, "\n"))
			}
		case Noted, Troubled:
			fmt.Fprintf(&b, "\n> %s\n", strings.ReplaceAll(i.Text, "\n", "\n> "))
		}
	}
	return b.String()
}

// completeSlash returns the commands that begin with a text.
func completeSlash(text string) (names []string) {
	for _, s := range slashes() {
		if strings.HasPrefix("/"+s.name, text) {
			names = append(names, "/"+s.name)
		}
	}
	slices.Sort(names)
	return names
}
