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
	Hint        string   // describes its arguments; with a | in it, a choice of words
	Model       string   // model that runs it, if a person calls it; empty: the agent's
	Tools       []string // nil: all tools of the agent; else it has no others while the skill runs
	People      bool     // people may call it
	Models      bool     // models may call it
	Text        string
}

// Choices returns the words of a hint that is a choice, or nil.
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

// Use returns the skill with its arguments. CodeInvalid: arguments are missing,
// and the message lists the choices.
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

// Skills returns the current skills.
type Skills interface {
	// Skills lists the skills of a tenant, by name.
	Skills(parley.TenantID) []Skill
	// Problems describes the skills that could not be loaded, each with its
	// file and line.
	Problems(parley.TenantID) []string
}

var skillCall = regexp.MustCompile(`^/([a-z0-9][a-z0-9_-]{0,62})(?:\s+|$)`)

// ParseSkillCall parses "/name arguments". It does not check whether the skill
// exists. If it does not, the text is an ordinary message.
func ParseSkillCall(content string) (name, arguments string, ok bool) {
	content = strings.TrimSpace(content)
	m := skillCall.FindStringSubmatchIndex(content)
	if m == nil {
		return "", "", false
	}
	return content[m[2]:m[3]], strings.TrimSpace(content[m[1]:]), true
}
