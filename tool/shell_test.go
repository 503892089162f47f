package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/sandbox"
	"parley/workspace"
)

// newShellBench returns a bench that runs commands, with folders they must not see.
func newShellBench(t testing.TB, hidden ...string) *bench {
	t.Helper()
	b := newBench(t)
	b.put("var/key", "the server's own secret")
	b.put("agents/a.md", "an agent")
	b.put("file", "one\ntwo\n")
	box := newBox(t, b.workspace, append(hidden, "var", "agents")...)
	s, err := sandbox.New(sandbox.Options{
		Workspace: b.workspace, Protected: []sandbox.Protected{{Path: "var", Hidden: true},
			{Path: "agents", Hidden: true}}, Secret: workspace.IsSecret,
	})
	if err != nil {
		t.Fatal(err)
	}
	box.sandbox, box.artifacts = s, filepath.Join(b.workspace, "var", "artifacts")
	b.box = box
	return b
}

func sandboxed(t testing.TB, hidden ...string) *bench {
	t.Helper()
	b := newShellBench(t, hidden...)
	if err := b.box.sandbox.Missing(); err != nil {
		t.Skip(err)
	}
	return b
}

// bared returns a bench on a machine where no sandbox works.
func bared(t testing.TB) *bench {
	t.Helper()
	b := newShellBench(t)
	s, err := sandbox.New(sandbox.Options{Workspace: "/"}) // which has no sandbox
	if err != nil || s.Missing() == nil {
		t.Fatal(err)
	}
	b.box.sandbox = s
	return b
}

func (b *bench) exit(code int, words ...string) string {
	b.t.Helper()
	result, err := b.box.Perform(b.t.Context(), parley.Agent{}, "shell", args{"command": words}.String(), nil)
	if err != nil || result.Exit == nil || *result.Exit != code || result.Failed != (code != 0) {
		b.t.Fatalf("%q: %+v, %v", words, result, err)
	}
	text, ok := strings.CutPrefix(result.Text, fmt.Sprintf("exit code %d\n", code))
	if !ok {
		b.t.Fatalf("%q: %q", words, result.Text)
	}
	return text
}

func TestShell(t *testing.T) {
	b := sandboxed(t)
	if got := b.exit(0, "cat", "file"); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	// Each stream stays in order; stderr may come before or after stdout.
	if got := b.exit(7, "bash", "-c", "echo out; echo err >&2; printf 'bin\\x00\\xff'; exit 7"); !slices.Contains(
		[]string{"out\nerr\nbin\\x00\\xff", "err\nout\nbin\\x00\\xff", "out\nbin\\x00\\xfferr\n"}, got) {
		t.Errorf("%q", got)
	}
	b.exit(0, "bash", "-c", "mkdir sub && echo made > sub/new")
	if got := b.content("sub/new"); got != "made\n" {
		t.Errorf("%q", got)
	}
	if got := b.result("shell",
		args{"command": []string{"cat", "new"}, "workdir": "sub"}); got != "exit code 0\nmade\n" {
		t.Errorf("%q", got)
	}
	b.exit(1, "cat", "var/key")
	b.fails("shell", args{"command": []string{"no-such-program"}},
		`"no-such-program" cannot be started: there is no such program`)
	b.fails("shell", args{"command": []string{"ls"}, "workdir": "absent"}, "Running it failed: the folder")
}

// TestReadOnlyCommandsCannotWrite: even if policy were wrong about a
// command, the sandbox would keep it from writing.
func TestReadOnlyCommandsCannotWrite(t *testing.T) {
	b := sandboxed(t)
	b.exit(0, "git", "init", "-q", ".")
	b.exit(0, "bash", "-c", `echo 'file diff=evil' > .gitattributes && git add file && echo three >> file &&
		git config core.fsmonitor 'touch run; false' && git config diff.evil.textconv 'touch run; cat'`)
	if out := b.exit(0, "git", "status", "--short"); !strings.Contains(out, "AM file") { // which would run fsmonitor
		t.Errorf("%q", out)
	}
	b.box.Perform(t.Context(), parley.Agent{}, "shell", `{"command":["git","diff"]}`, nil) // which would run textconv
	for _, name := range []string{"run", ".git/run"} {
		if _, err := os.Stat(filepath.Join(b.workspace, name)); err == nil {
			t.Errorf("%s was made by a command that only reads", name)
		}
	}
}

func TestShellArguments(t *testing.T) {
	b := sandboxed(t)
	for arguments, want := range map[string]string{
		`{}`:                                          "command",
		`{"command":[]}`:                              "command",
		`{"command":[""]}`:                            "command[0]: it is blank",
		`{"command":["a\u0000b"]}`:                    "NUL",
		`{"command":"ls"}`:                            "command",
		`{"command":["ls"],"workdir":".."}`:           "workdir",
		`{"command":["ls"],"workdir":"/etc"}`:         "workdir",
		`{"command":["ls"],"workdir":"var"}`:          "not for tools",
		`{"command":["ls"],"timeout_ms":0}`:           "timeout_ms",
		`{"command":["ls"],"timeout_ms":600001}`:      "timeout_ms",
		`{"command":["ls"],"env":{"LD_PRELOAD":"x"}}`: "env",
	} {
		if v := b.box.Judge(parley.Agent{Approval: "full-auto"}, "shell", arguments); v.Kind != parley.VerdictBlock ||
			!strings.Contains(v.Reason, want) {
			t.Errorf("%s: %+v", arguments, v)
		}
	}
}

func TestShellVerdictsByApprovalMode(t *testing.T) {
	read, write := `{"command":["ls","-la"]}`, `{"command":["bash","-lc","ls && rm -rf x\u202e"]}`
	in, out := sandboxed(t), bared(t)
	for _, c := range []struct {
		b         *bench
		mode      parley.ApprovalMode
		arguments string
		kind      parley.VerdictKind
		class     parley.ToolClass
	}{
		{in, parley.ApprovalSuggest, read, parley.VerdictRun, parley.Pure},
		{in, parley.ApprovalSuggest, write, parley.VerdictAsk, parley.Effectful},
		{in, "", write, parley.VerdictAsk, parley.Effectful},
		{in, parley.ApprovalAutoEdit, write, parley.VerdictAsk, parley.Effectful},
		{in, parley.ApprovalFullAuto, write, parley.VerdictRun, parley.Effectful},
		{in, parley.ApprovalFullAuto, read, parley.VerdictRun, parley.Pure},
		{out, parley.ApprovalSuggest, read, parley.VerdictAsk, parley.Effectful},
		{out, parley.ApprovalSuggest, write, parley.VerdictAsk, parley.Effectful},
		{out, parley.ApprovalFullAuto, read, parley.VerdictBlock, parley.Effectful},
		{out, parley.ApprovalFullAuto, write, parley.VerdictBlock, parley.Effectful},
	} {
		v := c.b.box.Judge(parley.Agent{Approval: c.mode}, "shell", c.arguments)
		if v.Kind != c.kind || v.Class != c.class {
			t.Errorf("%s %s: %+v", c.mode, c.arguments, v)
		}
	}
	v := in.box.Judge(parley.Agent{}, "shell", write)
	want := "Run in the workspace, for at most 2m0s:\n\nbash -lc \"ls && rm -rf x\\u202e\"\n\nThese commands are in it:\n  ls\n  rm -rf \"x\\u202e\"\n\nThis asks because "
	if !strings.HasPrefix(v.Show, want) {
		t.Errorf("%q", v.Show)
	}
	v = in.box.Judge(parley.Agent{}, "shell",
		`{"command":["bash","-lc","ls && curl -o /etc/x http://y"],"workdir":"sub"}`)
	want = "Run in the workspace, in \"sub\", for at most 2m0s:\n\nbash -lc \"ls && curl -o /etc/x http://y\"\n\nThese commands are in it:\n  ls\n  curl -o /etc/x http://y\n\n" +
		"This asks because curl: only --version or -V is known to be harmless.\nNote that it uses the network, names places outside the workspace."
	if v.Show != want {
		t.Errorf("%s", v.Show)
	}
	v = out.box.Judge(parley.Agent{}, "shell", read)
	if !strings.Contains(v.Show, "it would run without a sandbox: ") {
		t.Errorf("%s", v.Show)
	}
}

// TestFullAutoWithoutASandbox: Perform refuses commands that Judge blocks.
func TestFullAutoWithoutASandbox(t *testing.T) {
	b := bared(t)
	_, err := b.box.Perform(t.Context(), parley.Agent{Approval: parley.ApprovalFullAuto}, "shell",
		`{"command":["touch","made"]}`, nil)
	if parley.CodeOf(err) != parley.CodeInvalid || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "made")); err == nil {
		t.Error("it ran")
	}
	b.exit(0, "touch", "made") // as after an approval
	if b.content("made") != "" {
		t.Error("it did not run")
	}
}

// TestAnApprovalIsForOnePlace: an approval for a command in the sandbox does
// not cover it outside of one, nor in another folder.
func TestAnApprovalIsForOnePlace(t *testing.T) {
	b := sandboxed(t)
	digests := map[string]string{}
	judge := func(where, arguments string) {
		v := b.box.Judge(parley.Agent{}, "shell", arguments)
		if v.Kind != parley.VerdictAsk || len(v.Digest) != 64 {
			t.Fatalf("%+v", v)
		}
		if other, ok := digests[v.Digest]; ok {
			t.Errorf("%s and %s have one digest", where, other)
		}
		digests[v.Digest] = where
	}
	judge("inside", `{"command":["make"]}`)
	judge("in a folder", `{"command":["make"],"workdir":"sub"}`)
	judge("for longer", `{"command":["make"],"timeout_ms":5}`)
	judge("another", `{"command":["make","x"]}`)
	s, err := sandbox.New(sandbox.Options{Workspace: "/"})
	if err != nil {
		t.Fatal(err)
	}
	b.box.sandbox = s
	judge("outside", `{"command":["make"]}`)
}

// TestSimilarCommandsOfShell: a rule is for one folder of one workspace, and
// for commands in the sandbox.
func TestSimilarCommandsOfShell(t *testing.T) {
	b := sandboxed(t)
	judge := func(arguments string) parley.SimilarRule {
		t.Helper()
		v := b.box.Judge(parley.Agent{}, "shell", arguments)
		if v.Kind != parley.VerdictAsk {
			t.Fatalf("%+v", v)
		}
		return v.Similar
	}
	first := judge(`{"command":["mkdir","a"]}`)
	if first.Text != "mkdir with other arguments, to make folders in the workspace" || len(first.Digest) != 64 {
		t.Errorf("%+v", first)
	}
	for _, same := range []string{`{"command":["mkdir","-p","b/c"]}`, `{"command":["bash","-lc","mkdir d"]}`,
		`{"command":["mkdir","a"],"timeout_ms":5}`} {
		if rule := judge(same); rule != first {
			t.Errorf("%s: %+v", same, rule)
		}
	}
	for _, other := range []string{`{"command":["mkdir","a"],"workdir":"sub"}`, `{"command":["touch","a"]}`} {
		if rule := judge(other); rule.Digest == "" || rule.Digest == first.Digest || rule.Text == first.Text {
			t.Errorf("%s: %+v", other, rule)
		}
	}
	for _, none := range []string{`{"command":["rm","a"]}`, `{"command":["bash","-lc","mkdir a; rm b"]}`,
		`{"command":["mkdir","/etc/x"]}`, `{"command":["mkdir","../x"]}`} {
		if rule := judge(none); rule != (parley.SimilarRule{}) {
			t.Errorf("%s: %+v", none, rule)
		}
	}
	if v := b.box.Judge(parley.Agent{}, "write_file", `{"path":"a","content":"b"}`); v.Similar != (parley.SimilarRule{}) {
		t.Errorf("%+v", v)
	}
	s, err := sandbox.New(sandbox.Options{Workspace: "/"})
	if err != nil {
		t.Fatal(err)
	}
	b.box.sandbox = s
	if rule := judge(`{"command":["mkdir","a"]}`); rule != (parley.SimilarRule{}) {
		t.Errorf("without a sandbox: %+v", rule)
	}
}

func TestShellStops(t *testing.T) {
	b := sandboxed(t)
	result, err := b.box.Perform(t.Context(), parley.Agent{}, "shell",
		`{"command":["bash","-c","echo begun; sleep 1000 & sleep 1000"],"timeout_ms":300}`, nil)
	if err != nil || !result.Failed || result.Exit != nil ||
		!strings.HasPrefix(result.Text, "stopped: it took longer than 300ms\n") {
		t.Errorf("%+v, %v", result, err)
	}
	result, err = b.box.Perform(t.Context(), parley.Agent{}, "shell", `{"command":["yes","yes"]}`, nil)
	if err != nil || !result.Failed || !strings.HasPrefix(result.Text, "stopped: it printed more than") ||
		len(result.Text) > outputLimit+200 {
		t.Errorf("%.200s, %v", result.Text, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = b.box.Perform(ctx, parley.Agent{}, "shell", `{"command":["bash","-c","echo begun; sleep 1000"]}`,
		func(_ parley.Stream, text string) {
			if strings.Contains(text, "begun") {
				cancel()
			}
		})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestCommandsTakeTurns: a running command holds a slot, and no command runs without one.
func TestCommandsTakeTurns(t *testing.T) {
	b := sandboxed(t)
	taken := 0
	_, err := b.box.Perform(t.Context(), parley.Agent{}, "shell", `{"command":["echo","begun"]}`,
		func(parley.Stream, string) { taken = len(b.box.slots) })
	if err != nil || taken != 1 || len(b.box.slots) != 0 {
		t.Errorf("%d slots were taken, %d are: %v", taken, len(b.box.slots), err)
	}
	for range maxCommands {
		b.box.slots <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = b.box.Perform(ctx, parley.Agent{}, "shell", `{"command":["touch","made"]}`, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "made")); err == nil {
		t.Error("it did not wait")
	}
}

func TestShellIsWatched(t *testing.T) {
	b := sandboxed(t)
	var live []string
	result, err := b.box.Perform(t.Context(), parley.Agent{}, "shell",
		`{"command":["bash","-c","echo one; head -c 200000 /dev/zero | tr '\\0' 'x'; echo; echo the end"]}`,
		func(_ parley.Stream, text string) { live = append(live, text) })
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(live, "")
	if !strings.HasPrefix(all, "one\nxxx") || !strings.HasSuffix(all, "[… more is not shown live …]\n") ||
		len(all) > 2*liveLimit {
		t.Errorf("%d bytes: %.20q … %q", len(all), all, all[max(0, len(all)-50):])
	}

	// The complete output can be read in parts.
	if !strings.HasSuffix(result.Text, "xxx\nthe end\n") || len(result.Text) > outputLimit+100 {
		t.Errorf("%d bytes", len(result.Text))
	}
	at := strings.Index(result.Text, artifactScheme)
	if at < 0 {
		t.Fatal("there is no artifact")
	}
	name, _, _ := strings.Cut(result.Text[at:], " ")
	if got := b.result("read_file", args{"path": name, "offset": 3}); got != "the end\n" {
		t.Errorf("%q", got)
	}
	if got := b.result("read_file", args{"path": name, "limit": 1}); !strings.HasPrefix(got, "one\n") {
		t.Errorf("%q", got)
	}
	for _, path := range []string{artifactScheme + "../key", artifactScheme, artifactScheme + strings.Repeat("A", 26) +
		".txt", "var/artifacts"} {
		if _, err := b.perform("read_file", args{"path": path}); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

func TestArtifactsMakeRoom(t *testing.T) {
	b := newBench(t)
	folder := filepath.Join(b.outside, "artifacts")
	b.box.artifacts = folder
	var names []string
	for range maxArtifacts + 3 {
		s := b.box.spool(parley.SourceWorkspace)
		s.add(strings.Repeat("x", outputLimit))
		s.add("y")
		names = append(names, strings.TrimPrefix(s.close(), artifactScheme))
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != maxArtifacts {
		t.Errorf("%d, %v", len(entries), err)
	}
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == names[len(names)-1] }) {
		t.Error("the newest is gone")
	}
	short := b.box.spool(parley.SourceWorkspace)
	short.add("x")
	if short.close() != "" {
		t.Error("a short one was kept")
	}
}

// TestShellTellsTheStream: live output names its stream, even if a character
// arrives in two parts. The model gets both streams together.
func TestShellTellsTheStream(t *testing.T) {
	b := sandboxed(t)
	live := map[parley.Stream]string{}
	result, err := b.box.Perform(t.Context(), parley.Agent{}, "shell",
		`{"command":["bash","-c","printf 'gr\\303'; sleep 0.2; printf '\\303\\245' >&2; sleep 0.2; printf '\\274n'"]}`,
		func(stream parley.Stream, text string) { live[stream] += text })
	if err != nil || live[parley.Stdout] != "grün" || live[parley.Stderr] != "å" || len(live) != 2 {
		t.Errorf("%q, %v", live, err)
	}
	if result.Text != "exit code 0\ngråün" {
		t.Errorf("%q", result.Text)
	}
}
