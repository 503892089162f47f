package tool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"parley"
	"parley/port"
	"parley/sandbox"
	"parley/workspace"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	goleak.VerifyTestMain(m)
}

// A bench is a box over a temporary workspace, with a directory beside it that
// tools must not touch.
type bench struct {
	t                  testing.TB
	box                *Box
	workspace, outside string
}

func newBench(t testing.TB) *bench {
	t.Helper()
	top := t.TempDir()
	b := &bench{t: t, workspace: filepath.Join(top, "workspace"), outside: filepath.Join(top, "outside")}
	for _, dir := range []string{b.workspace, b.outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.box = newBox(t, b.workspace)
	return b
}

// newBox returns a box over a workspace with hidden places in it.
func newBox(t testing.TB, folder string, hidden ...string) *Box {
	t.Helper()
	var rules workspace.Rules
	for _, name := range hidden {
		rules.Hidden = append(rules.Hidden, workspace.Place{Path: filepath.Join(folder, name), Setting: name})
	}
	for _, name := range []string{"skills", ".parley"} {
		rules.Kept = append(rules.Kept, workspace.Place{Path: filepath.Join(folder, name), Setting: name})
	}
	files, err := workspace.Open(folder, rules)
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Files: files})
}

// put makes a file of the workspace, or a directory if the name ends in a slash.
func (b *bench) put(name, content string) {
	b.t.Helper()
	full := filepath.Join(b.workspace, name)
	dir := filepath.Dir(full)
	if strings.HasSuffix(name, "/") {
		dir = full
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if dir != full {
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) link(target, name string) {
	b.t.Helper()
	if err := os.Symlink(target, filepath.Join(b.workspace, name)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) content(name string) string {
	b.t.Helper()
	raw, err := os.ReadFile(filepath.Join(b.workspace, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(raw)
}

type args map[string]any

func (a args) String() string {
	raw, _ := json.Marshal(a)
	return string(raw)
}

func (b *bench) perform(name string, a args) (string, error) {
	result, err := b.box.Perform(b.t.Context(), parley.Agent{}, name, a.String(), func(parley.Stream, string) {})
	return result.Text, err
}

func (b *bench) result(name string, a args) string {
	b.t.Helper()
	result, err := b.perform(name, a)
	if err != nil {
		b.t.Fatalf("%s %s: %v", name, a, err)
	}
	return result
}

// fails performs a call that must fail with a message that a model can use.
func (b *bench) fails(name string, a args, want string) {
	b.t.Helper()
	result, err := b.perform(name, a)
	if err == nil {
		b.t.Fatalf("%s %s gave %q", name, a, result)
	}
	if said := parley.MessageOf(err); !strings.Contains(said, want) || strings.Contains(said, b.workspace) {
		b.t.Errorf("%s %s failed with %q, want %q", name, a, said, want)
	}
}

// untouched checks that a directory holds only these names.
func (b *bench) untouched(dir string, names ...string) {
	b.t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(names, got); diff != "" {
		b.t.Errorf("%s: %s", dir, diff)
	}
}

func TestAnAgentHasTheToolsItLists(t *testing.T) {
	all := []string{"list_files", "find_files", "search_files", "read_file", "write_file", "edit_file", "apply_patch",
		"ask_user", "update_plan", "delegate", "finalize_task"}
	for _, c := range []struct{ tools, want []string }{
		{nil, all},
		{[]string{"*"}, all},
		{[]string{"ask_user", "read_file", "shell"}, []string{"read_file", "ask_user"}},
		{[]string{}, nil},
	} {
		b := newBench(t)
		agent := parley.Agent{Tools: c.tools}
		var got []string
		for _, s := range b.box.Specs(agent) {
			if s.Description == "" || !json.Valid([]byte(s.Parameters)) {
				t.Errorf("%s is told badly: %+v", s.Name, s)
			}
			got = append(got, s.Name)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v: %s", c.tools, diff)
		}
		b.put("a", "")
		for _, name := range all {
			arguments := map[string]string{"list_files": `{}`, "read_file": `{"path":"a"}`,
				"write_file": `{"path":"a","content":""}`,
				"find_files": `{"pattern":"*"}`, "search_files": `{"pattern":"x"}`,
				"edit_file":     `{"path":"a","old_text":"x","new_text":"y"}`,
				"apply_patch":   `{"patch":"*** Begin Patch\n*** Delete File: a"}`,
				"finalize_task": `{"title":"t","summary":"s"}`,
				"ask_user":      `{"questions":[{"question":"?","header":"","options":[],"multi_select":false}]}`,
				"update_plan":   `{"items":[{"title":"x","status":"pending"}]}`,
				"delegate":      `{"agent_id":"x","task":"y"}`}[name]
			blocked := b.box.Judge(agent, name, arguments).Kind == parley.VerdictBlock
			if blocked == slices.Contains(c.want, name) {
				t.Errorf("%v: %s blocked: %v", c.tools, name, blocked)
			}
			if _, err := b.box.Perform(t.Context(), agent, name, arguments, nil); blocked &&
				parley.CodeOf(err) != parley.CodeInvalid {
				t.Errorf("%v: %s is blocked and yet performed: %v", c.tools, name, err)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	write := `{"path":"a.txt","content":"x"}`
	for _, c := range []struct {
		approval        parley.ApprovalMode
		name, arguments string
		kind            parley.VerdictKind
		class           parley.ToolClass
	}{
		{"suggest", "list_files", `{}`, parley.VerdictRun, parley.Pure},
		{"suggest", "list_files", ``, parley.VerdictRun, parley.Pure},
		{"suggest", "read_file", `{"path":"a.txt"}`, parley.VerdictRun, parley.Pure},
		{"suggest", "write_file", write, parley.VerdictAsk, parley.Effectful},
		{"", "write_file", write, parley.VerdictAsk, parley.Effectful},
		{"whatever", "write_file", write, parley.VerdictAsk, parley.Effectful},
		{"auto-edit", "write_file", write, parley.VerdictRun, parley.Effectful},
		{"full-auto", "write_file", write, parley.VerdictRun, parley.Effectful},
		{"full-auto", "write_file", `{"path":"../a.txt","content":"x"}`, parley.VerdictBlock, ""},
		{"suggest", "find_files", `{"pattern":"*"}`, parley.VerdictRun, parley.Pure},
		{"suggest", "search_files", `{"pattern":"x"}`, parley.VerdictRun, parley.Pure},
		{"suggest", "finalize_task", `{"title":"t","summary":"s"}`, parley.VerdictRun, parley.Pure},
		{"suggest", "edit_file", `{"path":"a","old_text":"x","new_text":"y"}`, parley.VerdictAsk, parley.Effectful},
		{"auto-edit", "edit_file", `{"path":"a","old_text":"x","new_text":"y"}`, parley.VerdictRun, parley.Effectful},
		{"suggest", "apply_patch", `{"patch":"*** Begin Patch\n*** Delete File: a"}`, parley.VerdictAsk,
			parley.Effectful},
		{"auto-edit", "apply_patch", `{"patch":"*** Begin Patch\n*** Delete File: a"}`, parley.VerdictRun,
			parley.Effectful},
		{"full-auto", "apply_patch", `{"patch":"*** Begin Patch\n*** Delete File: a"}`, parley.VerdictRun,
			parley.Effectful},
		{"full-auto", "apply_patch",
			`{"patch":"*** Begin Patch\n*** Delete File: a\n*** Add File: .github/workflows/ci.yml"}`,
			parley.VerdictAsk, parley.Effectful},
		{"full-auto", "write_file", `{"path":"sub/.GitLab-CI.yml","content":""}`, parley.VerdictAsk, parley.Effectful},
		{"auto-edit", "edit_file", `{"path":".husky/pre-commit","old_text":"x","new_text":"y"}`, parley.VerdictAsk,
			parley.Effectful},
		{"full-auto", "shell", `{}`, parley.VerdictBlock, ""},
	} {
		b := newBench(t)
		v := b.box.Judge(parley.Agent{Approval: c.approval}, c.name, c.arguments)
		if v.Kind != c.kind || v.Class != c.class {
			t.Errorf("%s %s %s: %+v", c.approval, c.name, c.arguments, v)
		}
		if (v.Kind == parley.VerdictBlock) != (v.Reason != "") {
			t.Errorf("%s: the reason is %q", c.name, v.Reason)
		}
		b.untouched(b.workspace)
	}
}

// TestSources checks the sources of tool results. A new tool counts as reading the
// workspace unless it is marked with anywhere.
func TestSources(t *testing.T) {
	artifact := args{"path": artifactScheme + strings.Repeat("A", 26) + ".txt"}.String()
	outside := args{"path": artifactScheme + "network." + strings.Repeat("A", 26) + ".txt"}.String()
	command := func(argv ...string) string { return args{"command": argv}.String() }
	in, out := sandboxed(t), bared(t)
	for _, c := range []struct {
		b               *bench
		name, arguments string
		want            parley.Source
	}{
		{in, "read_file", `{"path":"a.txt"}`, "workspace"},
		{in, "search_files", `{"pattern":"x"}`, "workspace"},
		{in, "edit_file", `{"path":"a","old_text":"x","new_text":"y"}`, "workspace"},
		{in, "read_file", artifact, "workspace"},
		{in, "read_file", outside, "network"},
		{in, "shell", command("cat", "a.txt"), "workspace"},
		{in, "shell", command("make"), "workspace"},
		{out, "shell", command("cat", "a.txt"), "workspace"},
		{out, "shell", command("curl", "https://example.com"), "network"},
		{in, "finalize_task", `{"title":"t","summary":"s"}`, ""},
		{in, "delegate", `{"agent_id":"a","task":"t"}`, ""},
	} {
		if v := c.b.box.Judge(parley.Agent{}, c.name, c.arguments); v.Source != c.want ||
			v.Kind == parley.VerdictBlock {
			t.Errorf("%s %s comes from %q: %+v", c.name, c.arguments, v.Source, v)
		}
	}
}

func TestApprovalsShowTheWholeCall(t *testing.T) {
	b := newBench(t)
	content := strings.Repeat("line\n", 30000) + "the end\x1b[2K"
	v := b.box.Judge(parley.Agent{}, "write_file", args{"path": "./a\n\u202etxt", "content": content}.String())
	if want := "Write 150011 bytes to \"a\\n\\u202etxt\", replacing it if it exists:\n\n" + content; v.Show != want {
		t.Errorf("shown is %.200q…", v.Show)
	}
}

func TestADigestCoversEveryByte(t *testing.T) {
	b, other := newBench(t), newBench(t)
	judged := func(b *bench, arguments string) string {
		v := b.box.Judge(parley.Agent{}, "write_file", arguments)
		if v.Kind != parley.VerdictAsk || len(v.Digest) != 64 {
			t.Fatalf("%s: %+v", arguments, v)
		}
		return v.Digest
	}
	base := `{"path":"a","content":"xyz"}`
	if again := judged(b, base); again != judged(b, base) {
		t.Error("the same call has two digests")
	}
	for _, arguments := range []string{`{"path":"b","content":"xyz"}`, `{"path":"a","content":"xyy"}`,
		`{"path":"a", "content":"xyz"}`} {
		if judged(b, base) == judged(b, arguments) {
			t.Errorf("%s has the digest of %s", arguments, base)
		}
	}
	if judged(b, base) == judged(other, base) {
		t.Error("two workspaces share a digest")
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.String(), 3, 3)
		x, y := parts.Draw(t, "x"), parts.Draw(t, "y")
		if (port.Digest(x...) == port.Digest(y...)) != slices.Equal(x, y) {
			t.Fatalf("%q and %q", x, y)
		}
	})
	if port.Digest("ab", "c") == port.Digest("a", "bc") {
		t.Error("bytes may move between parts")
	}
}

func TestAQuestionIsACard(t *testing.T) {
	b := newBench(t)
	arguments := `{"questions":[{"question":"Tea?","header":"Drink","options":[{"label":"Yes","description":"hot"},{"label":"No"}],"multi_select":true}]}`
	v := b.box.Judge(parley.Agent{}, "ask_user", arguments)
	want := []parley.Question{{Question: "Tea?", Header: "Drink", MultiSelect: true,
		Options: []parley.Option{{Label: "Yes", Description: "hot"}, {Label: "No"}}}}
	if diff := cmp.Diff(want, v.Questions); v.Kind != parley.VerdictCard || diff != "" {
		t.Errorf("%s: %s", v.Kind, diff)
	}
	if _, err := b.box.Perform(t.Context(), parley.Agent{}, "ask_user", arguments, nil); parley.CodeOf(
		err) != parley.CodeInvalid {
		t.Errorf("performed: %v", err)
	}
}

func TestAnEndedContextDoesNothing(t *testing.T) {
	b := newBench(t)
	b.put("a", "old")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, arguments := range map[string]string{"list_files": `{}`, "read_file": `{"path":"a"}`,
		"write_file": `{"path":"a","content":"new"}`,
		"find_files": `{"pattern":"*"}`, "search_files": `{"pattern":"x"}`,
		"edit_file":   `{"path":"a","old_text":"old","new_text":"new"}`,
		"apply_patch": `{"patch":"*** Begin Patch\n*** Delete File: a"}`} {
		if _, err := b.box.Perform(ctx, parley.Agent{}, name, arguments, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := b.content("a"); got != "old" {
		t.Errorf("a holds %q", got)
	}
}

func TestAWorkspaceThatIsGoneIsReported(t *testing.T) {
	b := newBench(t)
	if err := os.Remove(b.workspace); err != nil {
		t.Fatal(err)
	}
	b.fails("list_files", args{}, "The workspace cannot be opened.")
}
