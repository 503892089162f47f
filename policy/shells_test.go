package policy

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fragments are the parts of random scripts, both harmless and harmful.
var fragments = []string{
	"ls", "cat", "head", "wc", "sort", "rm", "tee", "git status", "git push", "find . -name x", "-n", "-o", "a",
	"b.txt", "x=1", "-rf", " ", " ", " ", " ", " ",
	"\n", ";", "&&", "||", "|", "&", "|&", "'", "'", "\"", "\"", "\\", "\\\n", "#", " #", "# ", " #a\\\n", "\nrm a",
	"$", "$x", "${x}", "$(", "`", "(", ")", "{", "}", "{a,b}", "<", ">", ">>", "2>&1",
	">/dev/null", ">f", "<<E\n", "\nE\n", "<<<", "*", "?", "[a]", "~", "!", "! ", "^", "=", "%", "@(a)", "$'a'", "\t",
	"\r", "é", "\u00a0", "if", "then", "fi", "time ", "\v", "\f", "[", "]", "-",
}

// TestShellsRunOnlyJudgedCommands runs safe scripts in real shells. Every program is
// replaced by one that records its call. The shells must not call a program
// that was not judged, and must not write anything.
func TestShellsRunOnlyJudgedCommands(t *testing.T) {
	programs, noted := t.TempDir(), filepath.Join(t.TempDir(), "noted")
	note := "#!/bin/sh\nprintf '%s\x1e' \"${0##*/}\" \"$@\" '\x1f' >> " + noted + "\n"
	for _, name := range []string{"ls", "cat", "head", "wc", "sort", "rm", "tee", "git", "find"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(note), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	scripts := map[string]bool{}
	for _, c := range commands(t, "reads.txt") {
		scripts[c.script] = true
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 60000 {
		var b strings.Builder
		b.WriteString("ls ")
		for range 1 + random.IntN(7) {
			b.WriteString(fragments[random.IntN(len(fragments))])
		}
		scripts[b.String()] = true
	}
	order := slices.Sorted(maps.Keys(scripts))
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, shell := range []string{"bash", "dash", "zsh"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("there is no %s here", shell)
			continue
		}
		dir, runs, called := t.TempDir(), 0, 0
		for _, script := range order {
			j := Judge([]string{shell, "-c", script}, Place{})
			if !j.Safe || strings.Contains(script, "bin/") || runs >= 500 {
				continue
			}
			runs++
			cmd := exec.Command(path, "-c", script)
			cmd.Dir, cmd.Env = dir, []string{"PATH=" + programs, "HOME=" + dir}
			cmd.Run()
			raw, _ := os.ReadFile(noted)
			os.Remove(noted)
			for call := range bytes.SplitSeq(raw, []byte("\x1e\x1f\x1e")) {
				if len(call) == 0 {
					continue
				}
				called++
				argv := strings.Split(string(call), "\x1e")
				if !slices.ContainsFunc(j.Commands, func(c []string) bool {
					return slices.Equal(c, argv) ||
						wraps(c)
				}) {
					t.Errorf("%s -c %q called %q, which was not judged: %q", shell, script, argv, j.Commands)
				}
			}
			if entries, _ := os.ReadDir(dir); len(entries) > 0 {
				t.Fatalf("%s -c %q made %v", shell, script, entries)
			}
		}
		if called < runs/2 {
			t.Errorf("%s: only %d calls of %d scripts", shell, called, runs)
		}
		t.Logf("%s ran %d scripts and called %d programs", shell, runs, called)
	}
}
