package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/workspace/workspacetest"
)

// rush returns a workspace in which a file and a link, and a folder and a link,
// are exchanged all the time. The links lead to the data folder and to .env.
func rush(t *testing.T) *site {
	s := newSite(t)
	for _, name := range []string{"a/x", "a/sub/x", "a/parley.key", "file", "env", "a/SKILL.md"} {
		s.put(name, "harmless")
	}
	s.put("var/x", "hidden")
	s.put("var/SKILL.md", "hidden")
	s.put("var/parley.db", "hidden") // the folder a has no such file
	s.link("var", "b")
	s.link("var/parley.key", "link")
	s.link(".env", "dot")
	at := func(name string) string { return filepath.Join(s.root, name) }
	workspacetest.Swap(t, at("a"), at("b"))
	workspacetest.Swap(t, at("file"), at("link"))
	workspacetest.Swap(t, at("env"), at("dot"))
	return s
}

func (s *site) harmless(what, text string) {
	s.t.Helper()
	if strings.Contains(text, "hidden") || strings.Contains(text, "secret") {
		s.t.Fatalf("%s shows %q", what, text)
	}
}

// TestReadingWhileNamesAreSwapped: only the server's own purpose ever gets a
// protected file, both with /proc and without it.
func TestReadingWhileNamesAreSwapped(t *testing.T) {
	for _, blind := range []bool{false, true} {
		t.Run(fmt.Sprintf("blind=%v", blind), func(t *testing.T) {
			s := rush(t)
			seen := map[bool]int{}
			for range workspacetest.Rounds(t, 500, workspacetest.Both(seen)) {
				for _, purpose := range []Purpose{AgentReads, AgentWrites, PersonReads} {
					v, err := s.For(purpose)
					if err != nil {
						t.Fatal(err)
					}
					if blind {
						v.at = ""
					}
					for _, name := range []string{"a/x", "a/sub/x", "a/parley.key", "file", "env"} {
						text, err := read(v, name)
						s.harmless(name, text)
						seen[err == nil]++
					}
					if dir, err := v.Dir("a"); err == nil {
						if text, err := readIn(dir, "parley.key"); err == nil {
							s.harmless("a", text)
						}
						entries, _, _ := dir.Entries(t.Context(), 10)
						if len(entries) != 4 {
							t.Fatalf("%d entries of a: %v", len(entries), entries)
						}
						dir.Close()
					}
					v.Close()
				}
			}
		})
	}
}

func readIn(dir *Dir, base string) (string, error) {
	f, info, err := dir.Open(base)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw := make([]byte, info.Size())
	_, err = f.Read(raw)
	return string(raw), err
}

// TestShowingWhileNamesAreSwapped does the same for files that are shown to
// people.
func TestShowingWhileNamesAreSwapped(t *testing.T) {
	s := rush(t)
	seen := map[bool]int{}
	for range workspacetest.Rounds(t, 400, workspacetest.Both(seen)) {
		for _, name := range []string{"file", "env", "a/parley.key", "a/sub/x"} {
			text, err := s.ShowFile(t.Context(), name)
			s.harmless(name, text)
			seen[err == nil]++
		}
		list, _ := s.ShowFolder(t.Context(), "a")
		if list != nil && len(list) != 4 {
			t.Fatalf("%v", list)
		}
		tree, err := s.ShowTree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, child := range tree.Children {
			if name == "var" || name == ".env" || len(child.Children) > 4 {
				t.Fatalf("%s: %v", name, child)
			}
		}
	}
}

// TestWritingWhileNamesAreSwapped: an edit changes the approved folder, or
// nothing.
func TestWritingWhileNamesAreSwapped(t *testing.T) {
	for to, count := range map[string]int{"var": 2, "skills": 1, "../outside": 1, ".git": 1} {
		t.Run(to, func(t *testing.T) {
			s := newSite(t)
			s.put("a/x", "harmless")
			s.link(to, "b")
			stop := workspacetest.Swap(t, filepath.Join(s.root, "a"), filepath.Join(s.root, "b"))
			seen := map[bool]int{}
			for i := range workspacetest.Rounds(t, 300, workspacetest.Both(seen)) {
				seen[s.write(fmt.Sprintf("a/new%d", i%3), "evil") == nil]++
				seen[s.write(fmt.Sprintf("a/made%d/new", i%3), "evil") == nil]++
			}
			stop()
			entries, err := os.ReadDir(filepath.Join(s.root, to))
			if err != nil || len(entries) != count {
				t.Errorf("%v, %v", entries, err)
			}
		})
	}
}

func (s *site) write(name, text string) error {
	e, err := s.Edit()
	if err != nil {
		return err
	}
	defer e.Close()
	was, err := e.Look(name)
	if err != nil {
		return err
	}
	e.Write(name, text, was, 0)
	return e.Commit(s.t.Context())
}

// TestLoadingWhileNamesAreSwapped: the server loads the contents of the folder,
// never the target of a link in its place.
func TestLoadingWhileNamesAreSwapped(t *testing.T) {
	s := newSite(t)
	s.put("evil/greet/SKILL.md", "secret")
	s.link("evil", "b")
	workspacetest.Swap(t, filepath.Join(s.root, "skills"), filepath.Join(s.root, "b"))
	seen := map[bool]int{}
	for range workspacetest.Rounds(t, 1000, workspacetest.Both(seen)) {
		dir, err := s.Load(filepath.Join(s.root, "skills"))
		if err == nil {
			var greet *Dir
			if greet, err = dir.Dir("greet"); err == nil {
				var text string
				if text, err = readIn(greet, "SKILL.md"); err == nil {
					s.harmless("skills", text)
				}
				greet.Close()
			}
			dir.Close()
		}
		seen[err == nil]++
	}
}
