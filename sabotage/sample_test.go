package sabotage

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The size of a sample. The time for a full run grows with every entry; that for a sample does not.
const (
	recentCommits = 30 // a sample covers the files that these commits touched
	maxRecent     = 20 // at most so many bugs in these files
	maxOthers     = 20 // at most so many other bugs
)

// sample selects the bugs for one CI run: bugs in files that recent commits
// touched, which may have hidden them, and some others at random.
// PARLEY_SABOTAGE_SEED repeats a sample.
func sample(t *testing.T, root string) []bug {
	seed := rand.Uint64()
	if given := os.Getenv("PARLEY_SABOTAGE_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("PARLEY_SABOTAGE_SEED: %v", err)
		}
	}
	touched, err := touchedFiles(root)
	if err != nil {
		t.Logf("Without the history, all bugs of the sample are chosen at random: %v", err)
	}
	recent, others, tests, code := []bug(nil), []bug(nil), testIndex{}, codeIndex{}
	for _, b := range bugs {
		file, _, err := code.find(root, b)
		if err != nil {
			t.Fatalf("%s: %v", b.what, err)
		}
		files, err := tests.files(root, b)
		if err != nil {
			t.Fatalf("%s: %v", b.what, err)
		}
		if slices.ContainsFunc(append(files, file), func(f string) bool { return touched[f] }) {
			recent = append(recent, b)
		} else {
			others = append(others, b)
		}
	}
	some, more := choose(recent, others, seed)
	t.Logf("PARLEY_SABOTAGE_SEED=%d repeats this sample of %d bugs: %d of %d in files or tests of the last %d commits "+
		"(%d left out), and %d of %d others. make sabotage plants all %d.", seed, len(some)+len(more), len(some),
		len(recent),
		recentCommits, len(recent)-len(some), len(more), len(others), len(bugs))
	return append(some, more...)
}

// choose picks at random. The same seed and lists always give the same choice.
func choose(recent, others []bug, seed uint64) (some, more []bug) {
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(from []bug, most int) (picked []bug) {
		chosen := r.Perm(len(from))
		chosen = chosen[:min(most, len(chosen))]
		slices.Sort(chosen)
		for _, i := range chosen {
			picked = append(picked, from[i])
		}
		return picked
	}
	return pick(recent, maxRecent), pick(others, maxOthers)
}

// touchedFiles returns the files that differ from HEAD or were changed by one
// of the recent commits. In CI, main is often equal to HEAD, so the sample
// cannot use the difference to a branch.
func touchedFiles(root string) (map[string]bool, error) {
	touched := map[string]bool{}
	for _, args := range [][]string{
		{"log", "--no-merges", "-n", strconv.Itoa(recentCommits), "--format=", "--name-only", "-z"},
		{"diff", "HEAD", "--name-only", "-z"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			return touched, fmt.Errorf("git %s: %w", args[0], err)
		}
		for name := range strings.SplitSeq(string(out), "\x00") {
			touched[strings.TrimSpace(name)] = true
		}
	}
	return touched, nil
}

// A testIndex maps the tests of a package to their files. It reads a package
// when it is first needed.
type testIndex map[string]map[string]string

// files returns the files of the tests that must notice a bug.
func (x testIndex) files(root string, b bug) (files []string, err error) {
	top, _, _ := strings.Cut(b.run, "/") // the rest names subtests
	matches, err := regexp.Compile("^(" + top + ")$")
	if err != nil {
		return nil, err
	}
	if x[b.pkg] == nil {
		if x[b.pkg], err = testsOf(root, b.pkg); err != nil {
			return nil, err
		}
	}
	for name, file := range x[b.pkg] {
		if matches.MatchString(name) {
			files = append(files, file)
		}
	}
	return files, nil
}

func testsOf(root, pkg string) (map[string]string, error) {
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		return nil, err
	}
	tests := map[string]string{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				tests[f.Name.Name] = path.Join(pkg, filepath.Base(name))
			}
		}
	}
	return tests, nil
}

func TestSampleHasALimitAndCanBeRepeated(t *testing.T) {
	many := make([]bug, 500)
	for i := range many {
		many[i].what = strconv.Itoa(i)
	}
	some, more := choose(many[:300], many[300:], 7)
	if len(some) != maxRecent || len(more) != maxOthers {
		t.Errorf("chose %d and %d bugs, want %d and %d", len(some), len(more), maxRecent, maxOthers)
	}
	again, alike := choose(many[:300], many[300:], 7)
	if !slices.Equal(some, again) || !slices.Equal(more, alike) {
		t.Error("one seed led to two samples")
	}
	if other, _ := choose(many[:300], many[300:], 8); slices.Equal(some, other) {
		t.Error("two seeds led to one sample")
	}
	if some, more := choose(many[:3], nil, 7); !slices.Equal(some, many[:3]) || more != nil {
		t.Errorf("of three bugs chose %v and %v", some, more)
	}
}
