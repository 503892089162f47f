package parley

import (
	"regexp"
	"slices"
	"strings"
)

// A Skill is a text that tells an agent how something is done. A person calls it
// with "/name arguments", a model with a tool.
type Skill struct {
	Name        string
	Description string
	Hint        string   // what its arguments are; with a | in it, a choice of words
	Model       string   // that runs it, if a person calls it; empty: the agent's
	Tools       []string // nil: the agent's; else no others while it runs
	People      bool     // may call it
	Models      bool     // may call it
	Text        string
}

// A SkillUse is what a skill adds to the run that was started by calling it. It
// is kept with the input: the file may change.
type SkillUse struct {
	Name  string   `json:"name"`
	Text  string   `json:"text"`
	Tools []string `json:"tools,omitempty"`
	Model string   `json:"model,omitempty"`
}

var skillCall = regexp.MustCompile(`^/([a-z0-9][a-z0-9_-]{0,62})(?:\s+|$)`)

// ParseSkillCall reads "/name arguments". Whether there is such a skill is
// another question: without one it is a text like any other.
func ParseSkillCall(content string) (name, arguments string, ok bool) {
	content = strings.TrimSpace(content)
	m := skillCall.FindStringSubmatchIndex(content)
	if m == nil {
		return "", "", false
	}
	return content[m[2]:m[3]], strings.TrimSpace(content[m[1]:]), true
}

// Choices are the words that a hint offers, if it is a choice.
func (s Skill) Choices() (words []string) {
	if !strings.Contains(s.Hint, "|") {
		return nil
	}
	for _, word := range strings.Split(strings.Trim(s.Hint, "[]<> "), "|") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// Use is the skill with its arguments. CodeInvalid: it wants some, and the
// message says which.
func (s Skill) Use(arguments string) (SkillUse, error) {
	if choices := s.Choices(); arguments == "" && choices != nil {
		usage := "Say which:"
		for _, word := range choices {
			usage += "\n/" + s.Name + " " + word
		}
		return SkillUse{}, Errorf(CodeInvalid, "%s", usage)
	}
	text := strings.ReplaceAll(s.Text, "$ARGUMENTS", arguments)
	if len(text) > MaxSkillText {
		return SkillUse{}, Errorf(CodeTooLarge, "The skill %s has more than %d bytes with these arguments.", s.Name,
			MaxSkillText)
	}
	return SkillUse{Name: s.Name, Text: text, Tools: s.Tools, Model: s.Model}, nil
}

// With is an agent that runs a skill: it is told it, and has no tools that the
// skill does not name.
func (a Agent) With(u SkillUse) Agent {
	a.Instructions = strings.TrimSpace(a.Instructions + "\n\nThe skill " + u.Name +
		" was called for this. It says:\n\n" + u.Text)
	if u.Model != "" {
		a.Model = u.Model
	}
	switch all := a.Tools == nil || slices.Contains(a.Tools, "*"); {
	case u.Tools == nil:
	case all:
		a.Tools = u.Tools
	default:
		a.Tools = slices.DeleteFunc(slices.Clone(a.Tools),
			func(name string) bool { return !slices.Contains(u.Tools, name) })
	}
	return a
}

// Skills knows the skills there are now.
type Skills interface {
	// Skills lists those of a tenant, by name.
	Skills(TenantID) []Skill
	// Problems says what is wrong with those that are not listed, each with its
	// file and line.
	Problems(TenantID) []string
}
