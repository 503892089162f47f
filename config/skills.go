package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/goccy/go-yaml"

	"parley"
	"parley/port"
	"parley/workspace"
)

// Skills are the skills defined by folders that contain a SKILL.md. They belong
// to one tenant. Skills implements port.Skills. Its methods may be called
// concurrently, except that only one goroutine may call Reload at a time.
type Skills struct {
	files   *workspace.Workspace
	dirs    []string
	tenant  parley.TenantID
	current atomic.Pointer[skillSet]
}

type skillSet struct {
	skills   []port.Skill
	from     map[string]string // the file of each, by name
	problems []string
}

var _ port.Skills = (*Skills)(nil)

// SkillFile is the file that defines a skill, in a folder of its own.
const SkillFile = "SKILL.md"

// LoadSkills reads DIR/*/SKILL.md of each folder. If two skills have the same
// name, the first one counts. Skills with mistakes are left out and listed by
// Problems. In the workspace, a symbolic link is a mistake, too.
func LoadSkills(files *workspace.Workspace, tenant parley.TenantID, dirs ...string) *Skills {
	s := &Skills{files: files, dirs: dirs, tenant: tenant}
	s.Reload()
	return s
}

// Reload reads the folders again.
func (s *Skills) Reload() {
	set := skillSet{from: map[string]string{}}
	for _, dir := range s.dirs {
		if err := s.load(&set, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			set.problems = append(set.problems, parley.MessageOf(err))
		}
	}
	for i, text := range set.problems {
		for _, dir := range s.dirs { // clients need not know where the folder is
			text = strings.ReplaceAll(text, filepath.Dir(dir)+string(filepath.Separator), "")
		}
		set.problems[i] = text
	}
	slices.SortFunc(set.skills, func(a, b port.Skill) int { return strings.Compare(a.Name, b.Name) })
	s.current.Store(&set)
}

const maxSkillEntries = 10_000 // entries read in a folder of skills

// load adds the skills of a folder.
func (s *Skills) load(set *skillSet, dir string) error {
	folder, err := s.files.Load(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	entries, _, err := folder.Entries(context.Background(), maxSkillEntries)
	for _, e := range entries {
		if e.Name()[0] == '.' || !e.IsDir() && e.Type() != fs.ModeSymlink {
			continue
		}
		path := filepath.Join(dir, e.Name(), SkillFile)
		skill, err := openSkill(folder, e, path)
		switch other, taken := set.from[skill.Name]; {
		case errors.Is(err, fs.ErrNotExist): // the entry is not a skill
		case err != nil:
			set.problems = append(set.problems, err.Error())
		case taken:
			set.problems = append(set.problems, at(path, 1, "the name %s is taken by %s", skill.Name, other).Error())
		case len(set.skills) == parley.MaxSkills:
			set.problems = append(set.problems, at(path, 1, "there are %d skills already", parley.MaxSkills).Error())
		default:
			set.from[skill.Name] = path
			set.skills = append(set.skills, skill)
		}
	}
	return err
}

// openSkill reads the skill of an entry of a folder. The path is used in messages.
func openSkill(folder *workspace.Dir, e fs.DirEntry, path string) (port.Skill, error) {
	var none port.Skill
	dir, err := folder.Dir(e.Name())
	if err != nil {
		if !e.IsDir() && !errors.Is(err, workspace.ErrLink) {
			return none, fs.ErrNotExist // a link to something that is not a folder
		}
		return none, at(path, 1, "%s", parley.MessageOf(err))
	}
	defer dir.Close()
	f, info, err := dir.Open(SkillFile)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return none, fs.ErrNotExist
		}
		return none, at(path, 1, "%s", parley.MessageOf(err))
	}
	defer f.Close()
	if info.Size() > parley.MaxSkillText {
		return none, at(path, 1, "a skill is a file of at most %d bytes", parley.MaxSkillText)
	}
	raw, err := io.ReadAll(io.LimitReader(f, parley.MaxSkillText))
	if err != nil {
		return none, err
	}
	return parseSkill(path, string(raw))
}

func (s *Skills) Skills(tenant parley.TenantID) []port.Skill {
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

// A skillHead is the front matter of a skill. Skills are often written for other
// programs, so unknown keys are ignored.
type skillHead struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Hint        string `yaml:"argument-hint"`
	NoModels    bool   `yaml:"disable-model-invocation"`
	People      *bool  `yaml:"user-invocable"`
	Tools       any    `yaml:"allowed-tools"`
	Model       string `yaml:"model"`
}

func parseSkill(path, text string) (port.Skill, error) {
	var none port.Skill
	front, body, end, err := splitFrontMatter(path, text)
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
	s := port.Skill{Name: cmp.Or(head.Name, filepath.Base(filepath.Dir(path))),
		Description: parley.CleanText(strings.TrimSpace(head.Description)), Hint: head.Hint,
		Model: head.Model, Models: !head.NoModels, People: head.People == nil || *head.People,
		Text: strings.TrimSpace(parley.CleanText(body))}
	if s.Model == "inherit" {
		s.Model = ""
	}
	s.Tools, err = toolNames(head.Tools)
	switch {
	case err != nil:
		return none, at(path, doc.line("allowed-tools"), "%w", err)
	case !parley.ValidAgentName(s.Name):
		return none, at(path, doc.line("name"), "%q cannot be a skill's name; use up to 63 of a-z, 0-9, - and _, "+
			"beginning with a letter or digit", s.Name)
	case len(s.Description) > parley.MaxSkillDescription:
		return none, at(path, doc.line("description"), "the description is longer than %d bytes",
			parley.MaxSkillDescription)
	case parley.IsBlank(s.Text):
		return none, at(path, end, "the text is missing; it follows this line")
	}
	return s, nil
}

// toolNames parses a list of names, or names in one line that are separated by
// commas or spaces.
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
