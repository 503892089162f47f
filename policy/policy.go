// Package policy says what may run unasked.
//
// A command is judged by what it is made of, never by how it begins: the words
// of an argv as they are, a shell script by parsing it and judging every simple
// command in it. A command is safe if its program is one of a list that is known
// only to read, with arguments each of which is known to leave it at that. The
// lists name what is allowed; whatever they do not name, and whatever cannot be
// parsed, asks a person.
//
// Everything here computes, and touches nothing: no file is looked at, so what
// is judged safe may still fail. What the lists overlook, the sandbox is for: a
// command that is called safe here is run with nothing it could write to.
package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Judgement is what there is to say about a command.
type Judgement struct {
	Safe     bool       // it only reads, and nothing that is protected: it may run unasked
	Reads    bool       // it only reads
	Why      string     // it is not safe, for a person to read
	Commands [][]string // the simple commands it is made of, as far as it could be parsed
	Risks    []string   // what it may do, as far as that can be told from its words
}

const (
	maxWords = 4096
	maxBytes = 64 << 10 // of all words
	maxDepth = 8        // of shells within shells
)

// A Place is where a command is to run.
type Place struct {
	Workspace string // an absolute path; paths under it are not held against a command
	Dir       string // relative to the workspace; empty: the workspace itself
	// Protected are names of folders whose committed files a command must not print
	// unasked, beside agents and .env files.
	Protected []string
}

// Judge judges a command that is run without a shell of ours around it.
func Judge(argv []string, at Place) Judgement {
	j := judging{Place: at}
	if err := j.command(plain(argv), 0); err != nil {
		return Judgement{Why: err.Error(), Reads: isProtected(err), Commands: j.commands, Risks: j.risks()}
	}
	return Judgement{Safe: true, Reads: true, Commands: j.commands}
}

// A protectedError is why a command asks that only reads: it may show what is not
// for everybody to see.
type protectedError struct{ error }

func protectedf(format string, args ...any) error { return protectedError{fmt.Errorf(format, args...)} }

func isProtected(err error) bool {
	_, ok := errors.AsType[protectedError](err)
	return ok
}

// graver is the error that says more against a command: that it may do more than
// read. Of two alike it is the first.
func graver(a, b error) error {
	if a == nil || b != nil && isProtected(a) && !isProtected(b) {
		return b
	}
	return a
}

// A word is an argument as the program will see it or, if it is a glob, a
// pattern that a shell replaces by any number of names first.
type word struct {
	text string
	glob bool
}

// plain are words that no shell reads.
func plain(argv []string) []word {
	words := make([]word, len(argv))
	for i, text := range argv {
		words[i] = word{text: text}
	}
	return words
}

// judging gathers what a command is made of on the way.
type judging struct {
	Place
	commands [][]string
	writes   []string // targets of redirections
	similar  bool     // commands that a rule for similar commands covers are accepted, too
	covered  []string // names of those rules
}

// command returns nil if it is safe, else why that is not known. It looks at
// all of a command, so that nothing is missing from what a person is shown.
func (j *judging) command(words []word, depth int) error {
	size := 0
	for _, w := range words {
		size += len(w.text)
	}
	switch {
	case len(words) == 0 || words[0].text == "":
		return fmt.Errorf("it names no program")
	case len(words) > maxWords || size > maxBytes:
		return fmt.Errorf("it is too long to be judged")
	case depth > maxDepth:
		return fmt.Errorf("it has commands within commands more than %d deep", maxDepth)
	case words[0].glob:
		return fmt.Errorf("which program %q is cannot be told", words[0].text)
	}
	name, err := program(words[0].text)
	if err == nil && slices.Contains(shells, name) {
		return j.shell(name, words, depth)
	}
	j.commands = append(j.commands, texts(words))
	if err != nil {
		return err
	}
	if inner, err := unwrap(name, words[1:]); err != nil {
		return err
	} else if inner != nil {
		return j.command(inner, depth+1)
	}
	if err := j.reads(name, words); err != nil && !j.covers(words) {
		return err
	}
	return nil
}

// reads returns nil if a simple command only reads, else why that is not known.
func (j *judging) reads(name string, words []word) error {
	rule, known := rules[name]
	if !known {
		return fmt.Errorf("%.80q is not a program that is known only to read", name)
	}
	err := rule.judge(words[1:])
	switch {
	case err != nil:
	case name == "git":
		err = j.history(texts(words[1:]))
	case name == "cd":
		err = j.enter(texts(words[1:]))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// program is what a rule may be known for: a name that is looked up in the PATH
// the sandbox sets, or a path that leads to the same place.
func program(name string) (string, error) {
	if dir, base := path.Split(name); dir == "/bin/" || dir == "/usr/bin/" {
		name = base
	} else if dir != "" {
		return "", fmt.Errorf("%.80q is not a program of the system", name)
	}
	return name, nil
}

var shells = []string{"bash", "sh", "dash", "zsh"}

// shell judges a shell by the script it is given.
func (j *judging) shell(name string, words []word, depth int) error {
	if len(words) == 2 && words[1].text == "--version" {
		j.commands = append(j.commands, texts(words))
		return nil
	}
	if len(words) != 3 || words[2].glob || !slices.Contains([]string{"-c", "-lc", "-cl"}, words[1].text) {
		j.commands = append(j.commands, texts(words))
		return fmt.Errorf("a shell is judged by its script, as in %s -c SCRIPT, and this is something else", name)
	}
	return j.script(name, words[2].text, depth)
}

func texts(words []word) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = w.text
	}
	return all
}

// unwrap returns the command that a wrapper runs, or nil if the program is none.
// Of a wrapper's own options only those are known that do nothing but wait.
func unwrap(name string, args []word) ([]word, error) {
	at := 0
	next := func() string {
		if at < len(args) && !args[at].glob {
			return args[at].text
		}
		return ""
	}
	switch name {
	case "timeout":
		if next() == "-k" || next() == "-s" {
			at += 2
		}
		if !isNumber(strings.TrimRight(next(), "smh")) {
			return nil, fmt.Errorf("timeout is not given a plain duration")
		}
		at++
	case "nice":
		if next() == "-n" {
			at += 2
		} else if strings.HasPrefix(next(), "-n") && isNumber(next()[2:]) {
			at++
		}
	case "command":
		if next() == "-v" || next() == "-V" { // tells what a name stands for
			return nil, nil
		}
	case "xargs":
		return unwrapXargs(args)
	default:
		return nil, nil
	}
	if at >= len(args) || strings.HasPrefix(next(), "-") || next() == "" {
		return nil, fmt.Errorf("what %s runs cannot be told", name)
	}
	return args[at:], nil
}

// unwrapXargs knows the programs whose arguments may be anything, because they
// come from who knows where. They are judged as if given a pattern.
func unwrapXargs(args []word) ([]word, error) {
	at := 0
	for ; at < len(args) && strings.HasPrefix(args[at].text, "-"); at++ {
		switch option := args[at].text; {
		case args[at].glob:
			return nil, fmt.Errorf("what xargs runs cannot be told")
		case slices.Contains([]string{"-0", "-r", "-0r", "-r0", "-t", "--null", "--no-run-if-empty", "-I{}"}, option):
		case (option == "-n" || option == "-L" || option == "-P") && at+1 < len(args) && isNumber(args[at+1].text):
			at++
		case option == "-I" && at+1 < len(args) && args[at+1].text == "{}":
			at++
		default:
			return nil, fmt.Errorf("the option %.80q of xargs is not known to be harmless", option)
		}
	}
	if at >= len(args) || args[at].glob {
		return nil, fmt.Errorf("what xargs runs cannot be told")
	}
	name, err := program(args[at].text)
	if err != nil {
		return nil, err
	}
	if r, ok := rules[name].(anything); !ok || r.max >= 0 {
		return nil, fmt.Errorf("xargs may give %.80q any arguments", name)
	}
	return append(slices.Clone(args[at:]), word{text: "*", glob: true}), nil
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
