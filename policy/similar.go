package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// A person who allows a command for the rest of a session may also allow similar
// commands: the same program and sub-command, with other arguments. Such a rule is
// offered only for the programs in this table. Every later command is parsed and judged
// anew: it is covered only if this table accepts its own arguments.
//
// The table lists options that run no program and write only what the rule describes.
// Each row needs a reason for its arguments, as in docs/tools.md. Programs that run
// code of the workspace are not in it: tests, package managers, make, linters with
// plugins, and compilers. Nor is git: it runs programs from the settings of any
// repository, including one that an edit has just made.
var similarRules = map[string]similarRule{
	"mkdir":  {"make folders in the workspace", options{flags: "pv", long: "parents verbose", files: many}},
	"touch":  {"make empty files in the workspace, or set the times of files", options{flags: "acm", files: many}},
	"gofmt":  {"list or format Go files of the workspace", goOptions{flags: "l d s e w"}},
	"go fmt": {"format Go packages of the workspace", goOptions{flags: "n x"}},
	"go doc": {"show documentation of Go packages", goOptions{flags: "all c cmd short src u"}},
}

type similarRule struct {
	does string // for a person to read
	rule rule
}

// A SimilarCommands rule covers commands of one program and sub-command.
type SimilarCommands struct {
	Name string // the program and sub-command; empty: there is no rule
	Does string
}

func (s SimilarCommands) String() string {
	return fmt.Sprintf("%s with other arguments, to %s", s.Name, s.Does)
}

// besides lists programs that may accompany a covered command in a script, if their
// arguments are safe. They have no settings and run no program. Other programs that
// only read are not allowed: here they would run with write access.
var besides = strings.Fields("cat echo grep head ls pwd sort tail true uniq wc")

// Similar returns the rule that covers a command. It returns no rule for
// commands that are not in the table or that have a risk.
func Similar(argv []string, at Place) SimilarCommands {
	j := judging{Place: at, similar: true}
	err := j.command(plain(argv), 0)
	slices.Sort(j.covered)
	covered := slices.Compact(j.covered)
	others := slices.ContainsFunc(j.commands, func(c []string) bool {
		_, ruled := similarName(plain(c))
		return !ruled && !slices.Contains(besides, c[0])
	})
	if err != nil || len(covered) != 1 || others || len(j.risks()) > 0 || !j.ordinary(at.Dir) {
		return SimilarCommands{}
	}
	return SimilarCommands{covered[0], similarRules[covered[0]].does}
}

// covers reports whether the table has a rule for a simple command, and records the rule.
func (j *judging) covers(words []word) bool {
	if !j.similar {
		return false
	}
	name, ok := similarName(words)
	ok = ok && !slices.ContainsFunc(words[1:], func(w word) bool { return !j.ordinary(w.text) })
	if ok {
		j.covered = append(j.covered, name)
	}
	return ok
}

// similarName finds the row of the table that accepts a simple command. Shell
// patterns are not accepted: the files they match are unknown.
func similarName(words []word) (string, bool) {
	if len(words) == 0 || slices.ContainsFunc(words, func(w word) bool { return w.glob }) {
		return "", false
	}
	name, err := program(words[0].text)
	if err != nil {
		return "", false
	}
	args := words[1:]
	row, found := similarRules[name]
	if !found && len(args) > 0 {
		name += " " + args[0].text
		row, found = similarRules[name]
		args = args[1:]
	}
	return name, found && row.rule.judge(args) == nil
}

// ordinary reports whether a word is harmless as a path: it stays in the workspace, does
// not go up, and names no hidden file and no protected folder. A word that begins with a
// colon is refused: it is a pattern of git.
func (j *judging) ordinary(text string) bool {
	if rest, ok := strings.CutPrefix(text, j.Workspace+"/"); ok && j.Workspace != "" {
		text = rest
	}
	if strings.HasPrefix(text, ":") || path.IsAbs(text) {
		return false
	}
	protected := j.names()
	for part := range strings.SplitSeq(text, "/") {
		hidden := strings.HasPrefix(part, ".") && part != "." && part != "..."
		if hidden || slices.Contains(protected, strings.ToLower(part)) {
			return false
		}
	}
	return true
}

// goOptions is the rule for programs that parse options as package flag does:
// one or two dashes, whole names, all before the first argument.
type goOptions struct {
	flags  string // names of options with a value, after = or as the next word
	values string // names of options with one, after = or as the next word
}

func (r goOptions) judge(args []word) error {
	ended := false
	for i := 0; i < len(args); i++ {
		text := args[i].text
		if err := place(args[i]); err != nil {
			return err
		}
		if !strings.HasPrefix(text, "-") {
			ended = true
			continue
		}
		name, _, glued := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(text, "-"), "-"), "=")
		switch {
		case ended:
			return fmt.Errorf("the option %.80q stands behind an argument", text)
		case slices.Contains(strings.Fields(r.flags), name) && !glued:
		case slices.Contains(strings.Fields(r.values), name) && glued:
		case slices.Contains(strings.Fields(r.values), name) && i+1 < len(args) && isValue(args[i+1].text):
			i++
		default:
			return fmt.Errorf("the option %.80q is not known to be harmless", text)
		}
	}
	return nil
}
