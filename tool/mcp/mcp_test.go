package mcp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley"
	"parley/port"
	"parley/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	if len(os.Args) > 2 && os.Args[1] == "mcp-server" {
		serve(os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

// A book is a ledger in memory.
type book struct {
	tenant parley.TenantID
	mu     sync.Mutex
	all    map[string]map[string]string
	err    error
}

func (b *book) Tenant() parley.TenantID { return b.tenant }

func (b *book) Accepted(context.Context) (map[string]map[string]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.all), b.err
}

func (b *book) AcceptFirst(_ context.Context, server string, tools map[string]string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[server] == nil {
		b.all[server] = maps.Clone(tools)
	}
	return b.err
}

func (b *book) accept(server, tool, digest string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[server] = maps.Clone(b.all[server])
	b.all[server][tool] = digest
}

// A rig is a set of MCP servers with one server, named test, and its test.
type rig struct {
	*Servers
	t      *testing.T
	book   *book
	folder string // the workspace
	log    *lockedBuffer
}

// A lockedBuffer is a log whose contents a test can wait for.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
	more chan struct{} // closed by the next write
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.more)
	b.more = make(chan struct{})
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.more
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, folder: t.TempDir(), log: &lockedBuffer{more: make(chan struct{})},
		book: &book{tenant: "acme", all: map[string]map[string]string{}}}
	box, err := sandbox.New(sandbox.Options{Workspace: r.folder})
	if err != nil {
		t.Fatal(err)
	}
	if missing := box.Missing(); missing != nil {
		t.Skip(missing)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Workspace: r.folder, Home: "acme", Sandbox: box, Log: slog.New(slog.NewTextHandler(r.log, nil)),
		Backoff: time.Millisecond,
		Servers: []Server{{Name: "test", Command: []string{self, "mcp-server", r.folder},
			Read: []string{filepath.Dir(self)}, Writes: true, Env: []string{"GIVEN=yes"}}}}
	for _, f := range change {
		f(&o)
	}
	r.Servers = New(o)
	t.Cleanup(func() {
		_ = r.Close(context.Background())
		if left := r.processes(); len(left) > 0 {
			t.Errorf("processes are left: %q", left)
		}
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

// processes lists the command lines of the processes that the test has started.
func (r *rig) processes() (list []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		raw, _ := os.ReadFile(name)
		if text := strings.ReplaceAll(string(raw), "\x00", " "); strings.Contains(text, "mcp-server "+r.folder) {
			list = append(list, text)
		}
	}
	return list
}

func (r *rig) box() port.Toolbox { return r.Of(context.Background(), r.book) }

func (r *rig) names(agent parley.Agent) (names []string) {
	for _, s := range r.box().Specs(agent) {
		names = append(names, s.Name)
	}
	return names
}

// meet waits until the tools are offered. On a busy machine, that takes longer
// than Specs waits.
func (r *rig) meet() {
	r.t.Helper()
	r.connect(r.book)
	if len(r.names(parley.Agent{})) == 0 {
		r.t.Fatal("it has no tools")
	}
}

func (r *rig) connect(b *book) {
	r.t.Helper()
	l := r.link(b.tenant, r.Servers.Servers[0])
	if _, err := l.acquire(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	l.release()
}

// logged waits until the log contains a text.
func (r *rig) logged(words string) {
	r.t.Helper()
	late := time.After(patience)
	for {
		more := r.log.next()
		if strings.Contains(r.log.String(), words) {
			return
		}
		select {
		case <-more:
		case <-late:
			r.t.Fatalf("the log does not say %q", words)
		}
	}
}

func (r *rig) call(ctx context.Context, name, text string) (port.ToolResult, error) {
	return r.box().Perform(ctx, parley.Agent{}, "test__"+name, `{"text":"`+text+`"}`, func(parley.Stream, string) {})
}

func (r *rig) starts() int {
	raw, _ := os.ReadFile(filepath.Join(r.folder, "starts"))
	return strings.Count(string(raw), "\n")
}

func (r *rig) tool(name string) port.ServerTool {
	r.t.Helper()
	accepted, _ := r.book.Accepted(context.Background())
	for _, s := range r.List("acme", accepted) {
		for _, t := range s.Tools {
			if t.Name == "test__"+name {
				return t
			}
		}
	}
	return port.ServerTool{}
}

func TestToolsAreOfferedAndCalled(t *testing.T) {
	r := newRig(t)
	if r.starts() != 0 {
		t.Error("it was started before anybody had a use for it")
	}
	r.meet()
	specs := r.box().Specs(parley.Agent{})
	i := slices.IndexFunc(specs, func(s parley.ToolSpec) bool { return s.Name == "test__echo" })
	if i < 0 || specs[i].Description != "Says it again." || !strings.Contains(specs[i].Parameters, `"text"`) ||
		specs[i].ReadOnly {
		t.Fatalf("%+v", specs)
	}
	for tools, want := range map[string]bool{"*": true, "test__*": true, "test__echo": true, "test__put": false,
		"other__*": false, "read_file": false} {
		if got := slices.Contains(r.names(parley.Agent{Tools: []string{tools}}), "test__echo"); got != want {
			t.Errorf("with tools %q it is offered: %t", tools, got)
		}
		if v := r.box().Judge(parley.Agent{Tools: []string{tools}}, "test__echo", "{}"); (v.Kind != parley.VerdictBlock) != want {
			t.Errorf("with tools %q it is judged %+v", tools, v)
		}
		if _, err := r.box().Perform(t.Context(), parley.Agent{Tools: []string{tools}}, "test__echo", "{}", nil); (err == nil) != want {
			t.Errorf("with tools %q it is performed: %v", tools, err)
		}
	}
	if got, err := r.call(t.Context(), "echo", "hello"); err != nil || got.Text != "hello" || got.Failed {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := r.call(t.Context(), "fail", "x"); err != nil || got.Text != "this cannot be done: x" || !got.Failed {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := r.call(t.Context(), "nothing", ""); parley.CodeOf(err) != parley.CodeInvalid {
		t.Errorf("a tool that is not there: %v", err)
	}
	if r.starts() != 1 {
		t.Errorf("it was started %d times", r.starts())
	}
	if unusable := r.tool("a.name.with.dots"); unusable.Status != "unusable" || unusable.Reason == "" {
		t.Errorf("%+v", unusable)
	}
}

func TestServerAnswersBecomeResults(t *testing.T) {
	r := newRig(t)
	r.meet()
	got, err := r.call(t.Context(), "rich", "")
	want := "words\n[an image, image/png, 10 bytes]\n[a sound, audio/wav, 20 bytes]\n[a resource at file:///a: a link]\n[a resource, file:///b]\nits text\n[a resource, file:///c, x/y, 30 bytes]"
	if err != nil || got.Text != want {
		t.Errorf("%q, %v", got.Text, err)
	}
}

// TestAServerAsksForNothing: requests of a server are refused, and it continues
// without.
func TestAServerAsksForNothing(t *testing.T) {
	r := newRig(t)
	r.meet()
	if got, err := r.call(t.Context(), "ask", ""); err != nil || got.Text != "elicitation refused: true; sampling refused: true" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestVerdicts(t *testing.T) {
	r := newRig(t)
	r.meet()
	judge := func(mode parley.ApprovalMode, name, arguments string) parley.Verdict {
		return r.box().Judge(parley.Agent{Approval: mode}, "test__"+name, arguments)
	}
	for mode, want := range map[parley.ApprovalMode]parley.VerdictKind{"": parley.VerdictAsk, "suggest": parley.VerdictAsk, "auto-edit": parley.VerdictAsk, "no such": parley.VerdictAsk, "full-auto": parley.VerdictRun} {
		if v := judge(mode, "echo", `{"text":"x"}`); v.Kind != want || v.Class != parley.Effectful || !strings.Contains(v.Show, `{"text":"x"}`) {
			t.Errorf("under %q: %+v", mode, v)
		}
	}
	for _, bad := range []string{"[]", `"x"`, "{", "null", `{"a":1} {}`} {
		if v := judge("full-auto", "echo", bad); v.Kind != parley.VerdictBlock {
			t.Errorf("%s: %+v", bad, v)
		}
	}
	digest := judge("", "echo", `{"text":"x"}`).Digest
	for what, v := range map[string]parley.Verdict{"arguments": judge("", "echo", `{"text":"y"}`), "tool": judge("", "put", `{"text":"x"}`)} {
		if v.Digest == digest || v.Digest == "" {
			t.Errorf("an approval of a call covers one with another %s", what)
		}
	}
	r.changes()
	r.book.accept("test", "echo", r.tool("echo").Digest)
	if v := judge("", "echo", `{"text":"x"}`); v.Digest == digest || v.Kind != parley.VerdictAsk {
		t.Error("an approval of a call covers one of a tool that has changed")
	}
}

// TestHints: hints of a trusted server are believed. Its tools still ask.
func TestHints(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Servers[0].Trust = true })
	r.meet()
	for name, want := range map[string]parley.ToolClass{"echo": parley.Pure, "put": parley.Idempotent, "fail": parley.Effectful} {
		if v := r.box().Judge(parley.Agent{}, "test__"+name, "{}"); v.Class != want || v.Kind != parley.VerdictAsk {
			t.Errorf("%s: %+v", name, v)
		}
	}
	for _, s := range r.box().Specs(parley.Agent{}) {
		if s.ReadOnly != (s.Name == "test__echo" || s.Name == "test__dieread") {
			t.Errorf("%+v", s)
		}
	}
}

// changes makes the server change its tools, and waits until the change is
// known.
func (r *rig) changes() {
	r.t.Helper()
	if _, err := r.call(r.t.Context(), "change", ""); err != nil {
		r.t.Fatal(err)
	}
	r.logged("has listed its tools again")
	if r.tool("fresh").Name == "" {
		r.t.Fatal("it has not changed")
	}
}

// TestARugPull: a tool that changes after it was accepted is not offered until
// the new version is accepted, by digest. The same goes for a new tool. Other
// tools stay available.
func TestARugPull(t *testing.T) {
	r := newRig(t)
	r.meet()
	r.changes()
	if names := r.names(parley.Agent{}); slices.Contains(names, "test__echo") || slices.Contains(names, "test__fresh") || !slices.Contains(names, "test__put") {
		t.Errorf("on offer are %q", names)
	}
	for name, why := range map[string]string{"echo": "has changed", "fresh": "did not have it"} {
		if got := r.tool(name); got.Status != "waiting" || !strings.Contains(got.Reason, why) {
			t.Errorf("%+v", got)
		}
		if v := r.box().Judge(parley.Agent{Approval: "full-auto"}, "test__"+name, "{}"); v.Kind != parley.VerdictBlock || !strings.Contains(v.Reason, why) {
			t.Errorf("%s: %+v", name, v)
		}
		if got, err := r.call(t.Context(), name, "x"); err == nil {
			t.Errorf("%s was called, and answered %+v", name, got)
		}
	}
	r.book.accept("test", "echo", strings.Repeat("0", 64)) // a digest other than the listed one
	if _, err := r.call(t.Context(), "echo", "x"); err == nil {
		t.Error("it was called though something else was accepted")
	}
	r.book.accept("test", "echo", r.tool("echo").Digest)
	if got, err := r.call(t.Context(), "echo", "x"); err != nil || got.Text != "pulled" {
		t.Errorf("%+v, %v", got, err)
	}
	if !slices.Contains(r.names(parley.Agent{}), "test__echo") {
		t.Error("what was accepted is not on offer")
	}
}

// TestToolsAreNotOfferedUnlessRecorded: if the acceptance cannot be written, the
// tools are not offered.
func TestToolsAreNotOfferedUnlessRecorded(t *testing.T) {
	r := newRig(t)
	r.meet()
	r.book.mu.Lock()
	r.book.err, r.book.all = errors.New("the disk is full"), map[string]map[string]string{}
	r.book.mu.Unlock()
	if names := r.names(parley.Agent{}); len(names) > 0 {
		t.Errorf("on offer are %q", names)
	}
	if _, err := r.call(t.Context(), "echo", "x"); err == nil {
		t.Error("it was called")
	}
}

// suspicious is a screen that flags texts which mention repeating.
type suspicious struct{ port.Screen }

func (suspicious) Scan(_ []string, text string) (f parley.Finding) {
	if strings.Contains(text, "Says it again.") {
		f = parley.Finding{Verdict: parley.ScreenFlag, Reason: "it repeats"}
	}
	return f
}

func (suspicious) Redactor(parley.TenantID) port.Filter { return secrets{} }

func (suspicious) LogRedactor() port.Filter { return secrets{} }

type secrets struct{}

func (secrets) Write(piece string) string {
	return strings.ReplaceAll(piece, "sk-secret-1234567890", "[secret]")
}
func (secrets) Close() string { return "" }

// TestToolDescriptionsAreScreened: a description that looks like instructions is
// accepted only by a person, even at first.
func TestToolDescriptionsAreScreened(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Screen = suspicious{} })
	r.meet()
	if names := r.names(parley.Agent{}); slices.Contains(names, "test__echo") || !slices.Contains(names, "test__fail") {
		t.Errorf("on offer are %q", names)
	}
	if got := r.tool("echo"); got.Status != "waiting" || !strings.Contains(got.Reason, "it repeats") {
		t.Errorf("%+v", got)
	}
	r.logged("the server speaks of")
	if said := r.log.String(); strings.Contains(said, "sk-secret") {
		t.Error(said)
	}
}
