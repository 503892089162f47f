package policy

import (
	"bytes"
	"crypto/rand"
	"maps"
	random "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestGitPrintsNothingProtected runs git commands that were judged safe in a
// repository whose history contains keys and instructions of agents. The files
// themselves are gone from the disk, as they are for a command in the sandbox.
// PARLEY_HISTORY_CALLS sets how many commands it runs.
func TestGitPrintsNothingProtected(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here")
	}
	secret, repo := rand.Text(), t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = repo
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+repo, "GIT_PAGER=cat",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, _ := cmd.CombinedOutput() // a command that fails has output too
		return string(out)
	}
	put := func(name, text string) {
		path := filepath.Join(repo, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q", "-b", "main")
	protected := []string{".env", "sub/.env.local", "agents/x.md", "src/agents/y.md"}
	for round := range 3 {
		for _, name := range protected {
			put(name, "KEY="+secret+strconv.Itoa(round)+"\nTODO\n")
		}
		put("main.go", "package main // TODO "+strconv.Itoa(round)+"\n")
		put("src/a.go", "package src // "+strconv.Itoa(round)+" \n")
		git("add", "-A")
		git("commit", "-qm", "round "+strconv.Itoa(round))
		git("tag", "-a", "-m", "x", "v"+strconv.Itoa(round)+".0")
	}
	for _, name := range protected { // stage, stash, and remove them
		put(name, "KEY="+secret+"stashed\n")
	}
	git("stash")
	put(".env", "KEY="+secret+"staged\n")
	git("add", "-A")
	for _, name := range protected {
		if err := os.Remove(filepath.Join(repo, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range [][]string{{"log", "-p", "--all"}, {"diff"}, {"stash", "show", "-p"}} {
		if !strings.Contains(git(call...), secret) {
			t.Fatalf("git %q has nothing to hide", call)
		}
	}

	line := func(args ...string) string { return strings.TrimSpace(git(args...)) }
	blob, commit := line("rev-parse", "HEAD:.env"), line("rev-parse", "HEAD")
	words := strings.Fields(`-p -u -U0 -c -W -s -1 -n3 -S x -L1,2:.env -L 1,2 -e -A 3 -C -M -m -r -t -v -vv -i -l
		--stat --name-only --raw --cc --patch --unified --word-diff --color-words --check --cached --staged --no-index
		--follow --all --oneline --format=%B --pretty=fuller --patch-with-stat --numstat --no-patch --diff-merges=on
		--function-context --submodule=diff --exit-code --quiet --root --objects --reverse --graph --text --full-index
		--verbose --porcelain blob commit tree -- -- -- . .env agents agents/x.md src src/a.go main.go main.go sub/ ./sub
		TODO KEY *.md :!main.go :(glob)**/* HEAD HEAD HEAD~1 main v1.0 stash@{0} @ HEAD:.env HEAD:agents/x.md
		HEAD:main.go :.env :0:.env :agents/x.md v1.0:sub/.env.local HEAD:sub/.env.local HEAD:./.env HEAD..main HEAD:agents`)
	words = append(words, commit, commit[:8], blob, blob[:8], blob+"^{}", blob+".."+blob, "v1.0-0-g"+blob[:8],
		blob[:7]+"^{blob}")
	names := slices.Sorted(maps.Keys(gitRules))
	for two := range gitSecond {
		names = append(names, two)
	}
	slices.Sort(names)
	most := 300
	if n, err := strconv.Atoi(os.Getenv("PARLEY_HISTORY_CALLS")); err == nil {
		most = n
	}
	seed := random.Uint64()
	dice := random.New(random.NewPCG(seed, 1))
	ran, tried := 0, 0
	for ; ran < most && tried < 400*most; tried++ {
		argv := append([]string{"git"}, strings.Fields(names[dice.IntN(len(names))])...)
		if dice.IntN(8) == 0 {
			argv = slices.Insert(argv, 1, "-C", []string{"src", "."}[dice.IntN(2)])
		}
		for range dice.IntN(5) {
			argv = append(argv, words[dice.IntN(len(words))])
		}
		if !Judge(argv, Place{}).Safe {
			continue
		}
		ran++
		if out := git(argv[1:]...); strings.Contains(out, secret) {
			t.Errorf("seed %d: safe, and prints what is protected: %q\n%s", seed, argv, out)
		}
	}
	for _, list := range []string{"reads.txt", "unasked.txt"} {
		for _, c := range commands(t, list) {
			if !strings.Contains(c.script, "git ") || !Judge(c.argv, Place{}).Safe {
				continue
			}
			cmd := exec.Command("bash", "-c", c.script)
			cmd.Dir = repo
			if out, _ := cmd.CombinedOutput(); bytes.Contains(out, []byte(secret)) {
				t.Errorf("safe, and prints what is protected: %s", c.script)
			}
		}
	}
	t.Logf("seed %d: %d of %d calls were safe and run", seed, ran, tried)
}
