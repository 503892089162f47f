package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/goccy/go-yaml"

	"parley"
)

// Skills are the skills defined by folders with a SKILL.md in them. They belong
// to one tenant. It implements parley.Skills; its methods may be called
// concurrently, Reload by one goroutine at a time.
type Skills struct {
	dirs    []string
	tenant  parley.TenantID
	current atomic.Pointer[skillSet]
}

type skillSet struct {
	skills   []parley.Skill
	problems []string
}

var _ parley.Skills = (*Skills)(nil)

// SkillFile is what a skill's folder must have.
const SkillFile = "SKILL.md"

// LoadSkills reads DIR/*/SKILL.md of each folder; where two have a name, the
// first one counts. What is wrong is left out, and told by Problems.
func LoadSkills(tenant parley.TenantID, dirs ...string) *Skills {
	s := &Skills{dirs: dirs, tenant: tenant}
	s.Reload()
	return s
}

// Reload reads the folders again.
func (s *Skills) Reload() {
	var set skillSet
	from := map[string]string{}
	for _, path := range s.files(&set) {
		skill, err := readSkill(path)
		switch other, taken := from[skill.Name]; {
		case err != nil:
			set.problems = append(set.problems, err.Error())
		case taken:
			set.problems = append(set.problems, at(path, 1, "the name %s is taken by %s", skill.Name, other).Error())
		case len(set.skills) == parley.MaxSkills:
			set.problems = append(set.problems, at(path, 1, "there are %d skills already", parley.MaxSkills).Error())
		default:
			from[skill.Name] = path
			set.skills = append(set.skills, skill)
		}
	}
	for i, text := range set.problems {
		for _, dir := range s.dirs { // where the folder is concerns nobody who is told
			text = strings.ReplaceAll(text, filepath.Dir(dir)+string(filepath.Separator), "")
		}
		set.problems[i] = text
	}
	slices.SortFunc(set.skills, func(a, b parley.Skill) int { return strings.Compare(a.Name, b.Name) })
	s.current.Store(&set)
}

func (s *Skills) files(set *skillSet) (paths []string) {
	for _, dir := range s.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			set.problems = append(set.problems, err.Error())
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name(), SkillFile)
			if _, err := os.Stat(path); err == nil && e.Name()[0] != '.' {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

func (s *Skills) Skills(tenant parley.TenantID) []parley.Skill {
	if tenant != s.tenant {
		return nil
	}
	return s.current.Load().skills
}

func (s *Skills) Problems(tenant parley.TenantID) []string {
	if tenant != s.tenant {
		return nil
	}
	return s.current.Load().problems
}

// A skillHead is the front matter of a skill. Such files come from elsewhere, so
// keys that are not known here are passed over.
type skillHead struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Hint        string `yaml:"argument-hint"`
	NoModels    bool   `yaml:"disable-model-invocation"`
	People      *bool  `yaml:"user-invocable"`
	Tools       any    `yaml:"allowed-tools"`
	Model       string `yaml:"model"`
}

func readSkill(path string) (parley.Skill, error) {
	var none parley.Skill
	if info, err := os.Stat(path); err != nil {
		return none, err
	} else if !info.Mode().IsRegular() || info.Size() > parley.MaxSkillText {
		return none, at(path, 1, "a skill is a file of at most %d bytes", parley.MaxSkillText)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return none, err
	}
	front, body, end, err := splitFrontMatter(path, string(raw))
	if err != nil {
		return none, err
	}
	doc, err := parseYAML(path, []byte(front))
	if err != nil {
		return none, err
	}
	var head skillHead
	if doc.body != nil {
		if err := doc.explain(yaml.NodeToValue(doc.body, &head)); err != nil {
			return none, err
		}
	}
	s := parley.Skill{Name: cmp.Or(head.Name, filepath.Base(filepath.Dir(path))), Description: parley.CleanText(strings.TrimSpace(head.Description)), Hint: head.Hint,
		Model: head.Model, Models: !head.NoModels, People: head.People == nil || *head.People, Text: strings.TrimSpace(parley.CleanText(body))}
	if s.Model == "inherit" {
		s.Model = ""
	}
	s.Tools, err = toolNames(head.Tools)
	switch {
	case err != nil:
		return none, at(path, doc.line("allowed-tools"), "%w", err)
	case !parley.ValidAgentName(s.Name):
		return none, at(path, doc.line("name"), "%q cannot be a skill's name; use up to 63 of a-z, 0-9, - and _, beginning with a letter or digit", s.Name)
	case len(s.Description) > parley.MaxSkillDescription:
		return none, at(path, doc.line("description"), "the description is longer than %d bytes", parley.MaxSkillDescription)
	case parley.IsBlank(s.Text):
		return none, at(path, end, "the text is missing; it follows this line")
	}
	return s, nil
}

// toolNames is a list, or its names in one line with commas or spaces.
func toolNames(value any) ([]string, error) {
	switch value := value.(type) {
	case nil:
		return nil, nil
	case string:
		return append([]string{}, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...), nil
	case []any:
		names := []string{}
		for _, v := range value {
			name, ok := v.(string)
			if !ok {
				return nil, fmt.Errorf("the names of tools are wanted here")
			}
			names = append(names, name)
		}
		return names, nil
	}
	return nil, fmt.Errorf("the names of tools are wanted here")
}
