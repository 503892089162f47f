package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// docs/man has a page for parley and one for each command. The pages are generated from the commands and their flags.

const manFolder = "../../docs/man"

// TestManPages checks the pages. "go generate ./cmd/parley" writes them again.
func TestManPages(t *testing.T) {
	p := &program{ctx: t.Context(), env: noEnv}
	var cli commands
	k, err := p.parser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{"parley.1": manOfAll(k.Model.Node)}
	for _, command := range k.Model.Children {
		if !command.Hidden {
			pages["parley-"+command.Name+".1"] = manOf(command)
		}
	}
	for name, want := range pages {
		file := filepath.Join(manFolder, name)
		if *update {
			if err := os.MkdirAll(manFolder, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(want), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not of these flags; go generate ./cmd/parley writes it\n%s", name, diff)
		}
	}
	there, err := os.ReadDir(manFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range there {
		if pages[file.Name()] == "" {
			t.Errorf("%s is the page of no command", file.Name())
		}
	}
}

// roff escapes a text, so that roff does not interpret it.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	var ascii strings.Builder
	for _, r := range text {
		if r < 0x80 {
			ascii.WriteRune(r)
		} else {
			fmt.Fprintf(&ascii, `\[u%04X]`, r)
		}
	}
	var lines []string
	for line := range strings.SplitSeq(ascii.String(), "\n") {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func manHead(b *strings.Builder, title, help string) {
	fmt.Fprintf(b, ".\\\" Written from the flags by the tests of cmd/parley.\n.TH %s 1\n.SH NAME\n%s \\- %s\n",
		strings.ToUpper(roff(title)), roff(title), roff(strings.TrimSuffix(help, ".")))
}

func manOfAll(root *kong.Node) string {
	var b strings.Builder
	manHead(&b, "parley", root.Help)
	b.WriteString(".SH SYNOPSIS\n.B parley\n.I command\n[flags]\n.SH COMMANDS\n")
	for _, command := range root.Children {
		if !command.Hidden {
			fmt.Fprintf(&b, ".TP\n.BR parley\\-%s (1)\n%s\n", roff(command.Name), roff(command.Help))
		}
	}
	return b.String()
}

func manOf(command *kong.Node) string {
	var b strings.Builder
	manHead(&b, "parley-"+command.Name, command.Help)
	b.WriteString(".SH SYNOPSIS\n")
	leaves := []*kong.Node{command}
	if len(command.Children) > 0 {
		leaves = command.Leaves(true)
	}
	for i, leaf := range leaves {
		if i > 0 {
			b.WriteString(".br\n")
		}
		fmt.Fprintf(&b, ".B %s\n", roff(synopsis(leaf)))
	}
	for _, leaf := range leaves {
		if leaf != command {
			fmt.Fprintf(&b, ".SH %s\n%s\n", strings.ToUpper(roff(leaf.Name)), roff(leaf.Help))
		} else {
			b.WriteString(".SH OPTIONS\n")
		}
		for _, argument := range leaf.Positional {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(argument.Name), roff(argument.Help))
		}
		for _, f := range leaf.Flags {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(flagText(f)), roff(f.Help))
		}
		if leaf.Detail != "" {
			fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", notesTitle(leaf, command), roff(leaf.Detail))
		}
	}
	b.WriteString(".SH SEE ALSO\n.BR parley (1)\n")
	return b.String()
}

func notesTitle(leaf, command *kong.Node) string {
	if leaf == command {
		return "NOTES"
	}
	return "NOTES ON " + strings.ToUpper(roff(leaf.Name))
}

func synopsis(leaf *kong.Node) string {
	text := "parley " + strings.TrimPrefix(leaf.Path(), "parley ")
	for _, argument := range leaf.Positional {
		text += " " + argument.Summary()
	}
	return strings.TrimSpace(text) + " [flags]"
}

func flagText(f *kong.Flag) string {
	text := "--" + f.Name
	if f.Short != 0 {
		text = "-" + string(f.Short) + ", " + text
	}
	if !f.IsBool() {
		text += " " + f.FormatPlaceHolder()
	}
	return text
}
