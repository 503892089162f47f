// Package policy decides which commands may run without asking a person.
//
// The package judges a command by its parts, never by how it begins. It takes
// the words of an argv as they are. It parses a shell script and judges every
// simple command in it. A command is safe if its program is listed as one that
// only reads, and if each argument is known not to change that. The lists name
// what is allowed. Any other program or argument asks a person, and so does any
// script that cannot be parsed.
//
// This package only computes. It looks at no file, so a command judged safe may
// still fail. The sandbox covers mistakes in the lists: a safe command runs
// there without write access.
package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Judgement is the result of policy for a command.
type Judgement struct {
	Safe     bool       // it only reads, and nothing protected: it may run without asking
	Reads    bool       // it only reads
	Why      string     // why it is not safe, for a person to read
	Commands [][]string // its simple commands, as far as it could be parsed
	Risks    []string   // what it may do, as far as its words tell
}

const (
	maxWords = 4096
	maxBytes = 64 << 10 // of all words, in bytes
	maxDepth = 8        // of shells within shells, and of wrapped commands
)

// A Place is where a command would run.
type Place struct {
	Workspace string // an absolute path; paths under it are not risks
	Dir       string // relative to the workspace; empty: the workspace itself
	// Protected lists names of folders whose committed files a command must not
	// print without asking, in addition to agents and .env files.
	Protected []string
}

// Judge judges a command that the caller runs directly, without adding a shell.
func Judge(argv []string, at Place) Judgement {
	j := judging{Place: at}
	if err := j.command(plain(argv), 0); err != nil {
		return Judgement{Why: err.Error(), Reads: isProtected(err), Commands: j.commands, Risks: j.risks()}
	}
	return Judgement{Safe: true, Reads: true, Commands: j.commands}
}

// A protectedError is the reason to ask about a command that only reads: it may
// show protected content.
type protectedError struct{ error }

func protectedf(format string, args ...any) error { return protectedError{fmt.Errorf(format, args...)} }

func isProtected(err error) bool {
	_, ok := errors.AsType[protectedError](err)
	return ok
}

// graver returns the more serious of two errors: one that says a command may do
// more than read. If both are alike, it returns the first.
func graver(a, b error) error {
	if a == nil || b != nil && isProtected(a) && !isProtected(b) {
		return b
	}
	return a
}

// A word is an argument as the program will see it. If it is a glob, it is a
// pattern that a shell first replaces by any number of names.
type word struct {
	text string
	glob bool
}

// plain returns words that no shell interprets.
func plain(argv []string) []word {
	words := make([]word, len(argv))
	for i, text := range argv {
		words[i] = word{text: text}
	}
	return words
}

// judging collects the parts of a command while judging it.
type judging struct {
	Place
	commands [][]string
	writes   []string // targets of redirections
	similar  bool     // also accept commands that a rule for similar commands covers
	covered  []string // names of those rules
}

// command returns nil if the command is safe, or else the first reason to doubt
// it. It looks at the whole command, so that the person sees all of it.
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
		return fmt.Errorf("it is unknown which program %q is", words[0].text)
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

// reads returns nil if a simple command is known only to read, or else the
// reason to doubt it.
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

// program returns the name under which rules know a program: either the name
// itself, which the shell looks up in the sandbox's PATH, or the base of a path
// that leads to the same folder.
func program(name string) (string, error) {
	if dir, base := path.Split(name); dir == "/bin/" || dir == "/usr/bin/" {
		name = base
	} else if dir != "" {
		return "", fmt.Errorf("%.80q is not a program of the system", name)
	}
	return name, nil
}

var shells = []string{"bash", "sh", "dash", "zsh"}

// shell judges a shell by the script in its arguments.
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

// unwrap returns the command that a wrapper runs, or nil if the program is no
// wrapper. It accepts only options of the wrapper that do nothing but wait.
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
		if next() == "-v" || next() == "-V" { // prints what a name stands for
			return nil, nil
		}
	case "xargs":
		return unwrapXargs(args)
	default:
		return nil, nil
	}
	if at >= len(args) || strings.HasPrefix(next(), "-") || next() == "" {
		return nil, fmt.Errorf("it is unknown which program %s runs", name)
	}
	return args[at:], nil
}

// unwrapXargs accepts only programs whose arguments may be anything, because
// xargs adds arguments from an unknown source. These are judged as one pattern.
func unwrapXargs(args []word) ([]word, error) {
	at := 0
	for ; at < len(args) && strings.HasPrefix(args[at].text, "-"); at++ {
		switch option := args[at].text; {
		case args[at].glob:
			return nil, fmt.Errorf("it is unknown which program xargs runs")
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
		return nil, fmt.Errorf("it is unknown which program xargs runs")
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
