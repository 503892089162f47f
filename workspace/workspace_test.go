package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley"
)

// A site is a workspace with files of every kind, and a folder beside it.
type site struct {
	t             *testing.T
	root, outside string
	*Workspace
}

func newSite(t *testing.T) *site {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, root: filepath.Join(top, "project"), outside: filepath.Join(top, "outside")}
	for name, text := range map[string]string{
		"main.go": "harmless", "sub/deep/x": "harmless", ".git/config": "git", "sub/.git/HEAD": "git",
		".env": "secret", "sub/.ENV": "secret", "sub/deep/.env.local": "secret", "venv/.Env.d/x": "secret",
		"var/parley.key": "hidden", "var/sub/x": "hidden", "agents/a.md": "hidden", "parley.yaml": "hidden",
		".environment": "harmless", "variety": "harmless", "sub/.env.example": "harmless",
		"skills/greet/SKILL.md": "kept", ".parley/skills/x/SKILL.md": "kept",
		"../outside/x": "outside",
	} {
		s.put(name, text)
	}
	w, err := Open(s.root, s.rules())
	if err != nil {
		t.Fatal(err)
	}
	s.Workspace = w
	return s
}

func (s *site) rules() Rules {
	in := func(name, setting string) Place { return Place{Path: filepath.Join(s.root, name), Setting: setting} }
	return Rules{
		Hidden: []Place{in("var", "--data"), in("agents", "--agents"), in("parley.yaml", "--config")},
		Kept:   []Place{in("skills", "skills"), in(".parley", ".parley"), {Path: s.outside, Setting: "--skills"}},
	}
}

func (s *site) put(name, text string) {
	s.t.Helper()
	full := filepath.Join(s.root, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) link(to, name string) {
	s.t.Helper()
	if err := os.Symlink(to, filepath.Join(s.root, name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) view(purpose Purpose) *View {
	s.t.Helper()
	v, err := s.For(purpose)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(v.Close)
	return v
}

func read(v *View, name string) (string, error) {
	f, _, err := v.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(f)
	return string(raw), err
}

var purposes = map[Purpose]string{
	AgentReads: "agent reads", AgentWrites: "agent writes", PersonReads: "person reads", ServerLoads: "server loads",
}

// TestRules checks that the same rule applies to a name, to the target of a
// link, and to an entry of a folder, both with /proc and without it.
func TestRules(t *testing.T) {
	everybody := []Purpose{AgentReads, AgentWrites, PersonReads, ServerLoads}
	server := []Purpose{ServerLoads}
	s := newSite(t)
	s.link("..", "sub/up")
	for name, allowed := range map[string][]Purpose{
		"main.go": everybody, "sub/deep/x": everybody, ".environment": everybody, "variety": everybody,
		"sub/.env.example": everybody,
		".env":             nil, "sub/.ENV": nil, "sub/deep/.env.local": nil, "venv/.Env.d/x": nil,
		"var/parley.key": server, "var/sub/x": server, "agents/a.md": server, "parley.yaml": server,
		"skills/greet/SKILL.md":     {AgentReads, PersonReads, ServerLoads},
		".parley/skills/x/SKILL.md": {AgentReads, PersonReads, ServerLoads},
		".git/config":               {AgentReads, ServerLoads}, "sub/.git/HEAD": {AgentReads, ServerLoads},
	} {
		for _, purpose := range everybody {
			want := slices.Contains(allowed, purpose)
			code := parley.CodeForbidden
			if purpose == PersonReads || purpose == ServerLoads {
				code = parley.CodeNotFound
			}
			if err := s.Check(name, purpose); (err == nil) != want || err != nil && parley.CodeOf(err) != code {
				t.Errorf("%s, by name, %s: %v", name, purposes[purpose], err)
			}
			if upper := strings.ToUpper(name); (s.Check(upper, purpose) == nil) != want && name != ".environment" {
				t.Errorf("%s, by name, %s: %v", upper, purposes[purpose], s.Check(upper, purpose))
			}
			for _, blind := range []bool{false, true} { // with the path that the system reports, and without
				v := s.view(purpose)
				if blind {
					v.at = ""
				} else if v.at == "" {
					t.Skip("there is no /proc here")
				}
				text, err := read(v, name)
				if (err == nil) != want || err != nil && parley.CodeOf(err) != code || want && text == "" {
					t.Errorf("%s, %s: %q, %v", name, purposes[purpose], text, err)
				}
				dir, err := v.Dir(filepath.ToSlash(filepath.Dir(name)))
				if err == nil {
					entries, _, err := dir.Entries(t.Context(), 100)
					listed := slices.ContainsFunc(entries,
						func(e fs.DirEntry) bool { return e.Name() == filepath.Base(name) })
					if err != nil || listed != want {
						t.Errorf("%s, %s: listed %v, %v", name, purposes[purpose], listed, err)
					}
					_, _, err = dir.Open(filepath.Base(name))
					if (err == nil) != want {
						t.Errorf("%s in its folder, %s: %v", name, purposes[purpose], err)
					}
					dir.Close()
				} else if want {
					t.Errorf("%s, %s: %v", name, purposes[purpose], err)
				}
				through := "sub/up/" + name
				text, err = read(v, through)
				if (err == nil) != (want && v.follows()) || err != nil && strings.Contains(parley.MessageOf(err),
					s.root) {
					t.Errorf("%s, %s: %q, %v", through, purposes[purpose], text, err)
				}
			}
		}
	}
}

func TestNothingOutsideIsOpened(t *testing.T) {
	s := newSite(t)
	s.link(s.outside, "out")
	s.link("../outside/x", "stolen")
	s.link("loop", "loop")
	s.link(filepath.Join(s.root, "main.go"), "absolute") // absolute links are not followed, even if they lead inside
	for purpose := range purposes {
		v := s.view(purpose)
		for _, name := range []string{"out/x", "stolen", "loop", "absolute", "sub", "../outside/x"} {
			if text, err := read(v, name); err == nil {
				t.Errorf("%s, %s: %q", name, purposes[purpose], text)
			}
		}
	}
}

// TestPipesAreNotWaitedFor checks that no operation blocks on a named pipe.
func TestPipesAreNotWaitedFor(t *testing.T) {
	s := newSite(t)
	if err := syscall.Mkfifo(filepath.Join(s.root, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	s.link("pipe", "alias")
	for purpose := range purposes {
		v := s.view(purpose)
		for _, name := range []string{"pipe", "alias"} {
			if _, err := read(v, name); err == nil {
				t.Errorf("%s is open", name)
			}
			if _, err := v.Dir(name); err == nil {
				t.Errorf("%s is a folder", name)
			}
		}
	}
	if _, err := s.ShowFolder(t.Context(), "."); err != nil {
		t.Error(err)
	}
}

// TestDeletedFilesAreJudgedByName covers a file that was deleted after it
// was opened, and one whose real name ends in " (deleted)".
func TestDeletedFilesAreJudgedByName(t *testing.T) {
	s := newSite(t)
	v := s.view(AgentReads)
	for name, want := range map[string]bool{"var/parley.key": false, ".env": false, "main.go": true} {
		f, err := os.Open(filepath.Join(s.root, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := os.Remove(filepath.Join(s.root, name)); err != nil {
			t.Fatal(err)
		}
		if v.at == "" {
			continue // unknown without /proc
		}
		if _, _, err := v.judge(f, name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.put("var (deleted)", "harmless")
	if _, err := read(v, "var (deleted)"); err == nil {
		t.Error("a file named like a hidden one that is gone is read")
	}
	strange, err := Open(s.root,
		Rules{Hidden: []Place{{Path: filepath.Join(s.root, "sub (deleted)"), Setting: "--data"}}})
	if err != nil {
		t.Fatal(err)
	}
	s.put("sub (deleted)/x", "hidden")
	s.Workspace = strange
	if dir, err := s.view(AgentReads).Dir("sub (deleted)"); err == nil {
		t.Errorf("%s is open", dir.Name())
	}
}

// TestFilesWithUnknownPathsAreRefused: if the system cannot report the path of a
// file, the file is not shown.
func TestFilesWithUnknownPathsAreRefused(t *testing.T) {
	s := newSite(t)
	v := s.view(AgentReads)
	if v.at == "" {
		t.Skip("there is no /proc here")
	}
	root, err := os.OpenRoot(s.root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { root.Close() }()
	base := strings.Repeat("d", 200)
	dir, err := v.Dir(".")
	for depth := 0; err == nil && depth < 40; depth++ {
		if err := root.Mkdir(base, 0o755); err != nil {
			t.Fatal(err)
		}
		next, rootErr := root.OpenRoot(base)
		if rootErr != nil {
			t.Fatal(rootErr)
		}
		root.Close()
		root = next
		if f, err := root.Create(".env"); err == nil {
			f.Close()
		}
		inner, innerErr := dir.Dir(base)
		dir.Close()
		if dir, err = inner, innerErr; err == nil {
			if _, _, err := dir.Open(".env"); err == nil {
				t.Fatal("a secret is open")
			}
		}
	}
	if err == nil {
		t.Error("there is no end")
	}
}

func TestOpenRefuses(t *testing.T) {
	s := newSite(t)
	s.link("sub", "linked")
	s.link("nowhere", "dangling")
	if err := syscall.Mkfifo(filepath.Join(s.root, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	in := func(name string) string { return filepath.Join(s.root, name) }
	for _, c := range []struct {
		root  string
		place string
		want  string
	}{
		{s.root, in("linked"), "--data " + in("linked") + " leads through the symbolic link " + in("linked") +
			" inside"},
		{s.root, in("linked/deep"), "leads through the symbolic link " + in("linked")},
		{s.root, in("dangling"), "leads through the symbolic link"},
		{s.root, in("dangling/new"), "leads through the symbolic link"},
		{s.root, in("pipe"), "is neither a file nor a folder"},
		{in("var/sub"), in("var"), "the workspace " + in("var/sub") + " is inside --data " + in("var")},
		{in("var"), in("var"), "is the same folder as --data"},
		{s.root, "/", "is inside --data /"},
		{in("main.go"), in("var"), "is not a folder"},
		{in("absent"), in("var"), in("absent")},
	} {
		for _, hidden := range []bool{true, false} {
			places := []Place{{Path: c.place, Setting: "--data"}}
			rules := Rules{Kept: places}
			if hidden {
				rules = Rules{Hidden: places}
			}
			if _, err := Open(c.root, rules); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s in %s: %v", c.place, c.root, err)
			}
		}
	}
}

// TestPlacesBehindLinksOutside: links outside the workspace, which agents
// cannot change, are followed, and their targets are protected.
func TestPlacesBehindLinksOutside(t *testing.T) {
	s := newSite(t)
	alias, data := s.outside+"/project", s.outside+"/data"
	for to, name := range map[string]string{s.root: alias, s.root + "/var": data} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Open(alias, Rules{
		Hidden: []Place{{data, "--data"}, {alias + "/agents", "--agents"}, {s.outside + "/x", "--config"}},
		Kept:   []Place{{alias + "/new/skills", "--skills"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	diff := cmp.Diff([]Protected{{"var", true}, {"agents", true}, {"new/skills", false}}, w.Protected())
	if diff != "" || w.Root() != s.root {
		t.Errorf("%s %s", w.Root(), diff)
	}
}

func TestLoad(t *testing.T) {
	s := newSite(t)
	open := func(folder string) (names []string, problem error) {
		dir, err := s.Load(folder)
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		entries, _, err := dir.Entries(t.Context(), 100)
		for _, e := range entries {
			names = append(names, e.Name())
			if f, _, err := dir.Open(e.Name()); err == nil {
				f.Close()
			} else if inner, innerErr := dir.Dir(e.Name()); innerErr == nil {
				inner.Close()
			} else {
				problem = err
			}
		}
		if err != nil {
			problem = err
		}
		return names, problem
	}
	in := func(name string) string { return filepath.Join(s.root, name) }
	for folder, want := range map[string]string{
		in("agents"): "a.md", in("skills"): "greet", in(".parley/skills"): "x", s.outside: "x",
	} {
		if names, err := open(folder); err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %q, %v", folder, names, err)
		}
	}
	for _, folder := range []string{in("absent"), in("absent/inner"), s.outside + "/absent"} {
		if _, err := open(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", folder, err)
		}
	}
	// In the workspace, links are not followed, wherever they lead.
	s.link("../sub/deep/x", "agents/b.md")
	s.link("skills", "link")
	for _, folder := range []string{in("agents"), in("link"), in("link/greet")} {
		_, err := open(folder)
		if err == nil || !strings.Contains(err.Error(), "is a symbolic link, and links in the workspace are not "+
			"followed") {
			t.Errorf("%s: %v", folder, err)
		}
	}
	// Outside, links are followed if they stay in their folder.
	s.link("x", "../outside/good.md")
	if names, err := open(s.outside); err != nil || strings.Join(names, " ") != "good.md x" {
		t.Errorf("%q, %v", names, err)
	}
	s.link(s.root+"/main.go", "../outside/bad.md")
	if _, err := open(s.outside); err == nil {
		t.Error("a link leads out of the folder of agents")
	}
}
