package tui

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// complete asks the server for completions of a word; completedMsg has them.
type (
	complete struct {
		word    string // including its / or @
		project string
	}
	completedMsg struct {
		word  string
		found []string // whole words
	}
	// editor opens $EDITOR for the draft; editedMsg has the changed text.
	editor    struct{ text string }
	editedMsg struct{ text string }
)

// lastWord returns the word that the user is typing.
func lastWord(text string) string {
	return text[strings.LastIndexAny(text, " \n\t")+1:]
}

// completeDraft completes the last word of the draft: a command, an agent, or a file of the project.
func (m model) completeDraft() (model, []effect) {
	text := m.draft.Value()
	word := lastWord(text)
	switch {
	case word == text && strings.HasPrefix(word, "/"):
		if found := completeSlash(word); len(found) == 1 {
			return m.completeWord(word, found), nil
		}
	case !strings.HasPrefix(word, "@"):
		return m, nil
	}
	return m, []effect{complete{word, m.project()}}
}

// project returns the project of the session.
func (m model) project() string { return firstOf(m.talk.Project, m.wish.Project) }

// completed handles completions from the server. Names of agents count only at the beginning of a message.
func (m model) completed(msg completedMsg) model {
	text := m.draft.Value()
	if lastWord(text) != msg.word {
		return m // the user has typed more
	}
	found := msg.found
	if text == msg.word {
		found = append(slices.Clip(found), completeSlash(text)...)
		for _, a := range m.agents {
			if strings.HasPrefix("@"+a, text) {
				found = append(found, "@"+a)
			}
		}
	}
	return m.completeWord(msg.word, found)
}

// completeWord replaces a word by the common beginning of all completions. If there are several, it shows them.
func (m model) completeWord(word string, found []string) model {
	if len(found) == 0 {
		m.hint = "Nothing begins with " + word + "."
		return m
	}
	common := found[0]
	for _, f := range found[1:] {
		for !strings.HasPrefix(f, common) {
			common = common[:len(common)-1]
		}
	}
	for !utf8.ValidString(common) {
		common = common[:len(common)-1]
	}
	if len(found) == 1 && !strings.HasSuffix(common, "/") {
		common += " "
	}
	if strings.HasPrefix(common, word) {
		m.draft.SetValue(strings.TrimSuffix(m.draft.Value(), word) + common)
	}
	if len(found) > 1 {
		m.hint = strings.Join(found, "  ")
	}
	return m
}

// addressed splits a message into the agent at its beginning and the rest of the text.
func (m model) addressed(text string) (agent, rest string) {
	name, rest, ok := strings.Cut(strings.TrimPrefix(text, "@"), " ")
	if !ok || !strings.HasPrefix(text, "@") || !slices.Contains(m.agents, name) || strings.TrimSpace(rest) == "" {
		return "", text
	}
	return name, strings.TrimSpace(rest)
}
