package port

import (
	"regexp"
	"strings"

	"parley"
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
func (s Skill) Use(arguments string) (parley.SkillUse, error) {
	if choices := s.Choices(); arguments == "" && choices != nil {
		usage := "Say which:"
		for _, word := range choices {
			usage += "\n/" + s.Name + " " + word
		}
		return parley.SkillUse{}, parley.Errorf(parley.CodeInvalid, "%s", usage)
	}
	text := strings.ReplaceAll(s.Text, "$ARGUMENTS", arguments)
	if len(text) > parley.MaxSkillText {
		return parley.SkillUse{}, parley.Errorf(parley.CodeTooLarge,
			"The skill %s has more than %d bytes with these arguments.", s.Name, parley.MaxSkillText)
	}
	return parley.SkillUse{Name: s.Name, Text: text, Tools: s.Tools, Model: s.Model}, nil
}

// Skills knows the skills there are now.
type Skills interface {
	// Skills lists those of a tenant, by name.
	Skills(parley.TenantID) []Skill
	// Problems says what is wrong with those that are not listed, each with its
	// file and line.
	Problems(parley.TenantID) []string
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
