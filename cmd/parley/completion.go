package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"parley/client"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

func (*completionCommand) Help() string {
	return `Names of commands, flags, sessions, agents, models and cards are completed. Names come from the server.

Example:

  $ source <(parley completion bash)
  $ parley completion zsh > ~/.zfunc/_parley
  $ parley completion fish > ~/.config/fish/completions/parley.fish`
}

var completionScripts = map[string]string{
	"bash": `_parley() {
	local IFS=$'\n'
	COMPREPLY=($(parley complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _parley parley
`,
	"zsh": `#compdef parley
_parley() {
	local -a names
	names=("${(@f)$(parley complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	compadd -a names
}
if [ "$funcstack[1]" = "_parley" ]; then
	_parley
else
	compdef _parley parley
fi
`,
	"fish": `complete -c parley -f -a '(parley complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

// Run prints a script that makes the shell run parley complete.
func (c *completionCommand) Run(p *program) error {
	_, err := fmt.Fprint(p.stdout, completionScripts[c.Shell])
	return err
}

// completeCommand lists completions; shells run it.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"Words of the command line, the last one unfinished."`
}

// completeWithin is how long a completion may wait for names from the server.
const completeWithin = time.Second

func (c *completeCommand) Run(p *program) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	var cli commands
	k, err := p.parser(&cli)
	if err != nil {
		return err
	}
	for _, name := range p.complete(k.Model.Node, words) {
		if _, err := fmt.Fprintln(p.stdout, name); err != nil {
			return err
		}
	}
	return nil
}

// complete lists the possible values of the last word.
func (p *program) complete(node *kong.Node, words []string) (names []string) {
	last := words[len(words)-1]
	var waits *kong.Flag // the flag that the next word is a value of
	arguments := 0
	for _, word := range words[:len(words)-1] {
		child := childOf(node, word)
		switch {
		case waits != nil:
			waits = nil
		case strings.HasPrefix(word, "-"):
			if waits = flagOf(node, word); waits != nil && (waits.IsBool() || strings.Contains(word, "=")) {
				waits = nil
			}
		case child != nil:
			node, arguments = child, 0
		default:
			arguments++
		}
	}
	switch {
	case waits != nil:
		names = p.values(waits.Name, waits.Enum)
	case strings.HasPrefix(last, "-"):
		for _, f := range flagsOf(node) {
			names = append(names, "--"+f.Name)
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				names = append(names, child.Name)
			}
		}
		if list := argumentsOf(node); len(list) > 0 {
			one := list[min(arguments, len(list)-1)]
			names = append(names, p.values(one.Name, one.Enum)...)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, last) })
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// flagsOf returns the flags that may follow a command: its own, those of its parent commands, and those of its default
// sub-command.
func flagsOf(node *kong.Node) (list []*kong.Flag) {
	for _, group := range node.AllFlags(true) {
		list = append(list, group...)
	}
	if node.DefaultCmd != nil {
		list = append(list, node.DefaultCmd.Flags...)
	}
	return list
}

func flagOf(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, f := range flagsOf(node) {
		if f.Name == name || f.Short != 0 && word == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

func argumentsOf(node *kong.Node) []*kong.Positional {
	if len(node.Positional) == 0 && node.DefaultCmd != nil {
		return node.DefaultCmd.Positional
	}
	return node.Positional
}

// values returns the possible values of a flag or argument with this name. Names from the server are missing if no
// server runs.
func (p *program) values(name, enum string) (names []string) {
	if enum != "" {
		return strings.Split(enum, ",")
	}
	ctx, cancel := context.WithTimeout(p.ctx, completeWithin)
	defer cancel()
	to, err := p.connect(serverFlags{})
	if err != nil {
		return nil
	}
	defer to.close()
	switch name {
	case "session", "sessions", "thread":
		list, _ := to.Sessions(ctx, client.SessionQuery{Limit: 100}) // without a server there are no names
		for _, s := range list {
			names = append(names, string(s.ID))
		}
	case "agent":
		list, _ := to.Agents(ctx, "")
		for _, a := range list {
			names = append(names, a.Name)
		}
	case "model":
		list, _ := to.Models(ctx)
		for _, m := range list {
			names = append(names, m.ID)
		}
	case "card":
		list, _ := cards(p, to.Client, client.CardQuery{})
		for _, c := range list {
			names = append(names, c.ID)
		}
	case "run":
		list, _ := to.Runs(ctx, client.RunQuery{Open: true})
		for _, r := range list {
			names = append(names, r.ID)
		}
	}
	return names
}
