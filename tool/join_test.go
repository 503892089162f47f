package tool

import (
	"context"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// far is a toolbox of MCP servers.
type far struct{ said string }

func (f far) Of(context.Context, port.ToolLedger) port.Toolbox { return f }
func (f far) Specs(parley.Agent) []parley.ToolSpec {
	return []parley.ToolSpec{{Name: "far__away"}}
}
func (f far) Judge(_ parley.Agent, name, _ string) parley.Verdict {
	return parley.Verdict{Kind: parley.VerdictAsk, Show: name}
}
func (f far) Perform(_ context.Context, _ parley.Agent, name, _ string, progress port.Progress) (port.ToolResult,
	error) {
	for range 3 * liveLimit / 1000 {
		progress(parley.Stdout, strings.Repeat("p", 1000))
	}
	return port.ToolResult{Text: f.said, Failed: true}, nil
}

// TestJoinedTools: results of MCP servers have the same limit as all others,
// and are kept in full.
func TestJoinedTools(t *testing.T) {
	b := newBox(t, t.TempDir())
	b.artifacts = t.TempDir()
	if b.Of(t.Context(), nil) != port.Toolbox(b) {
		t.Error("a box without servers is not the same for all")
	}
	b.servers = far{said: "begin\n" + strings.Repeat("x", 100<<10) + "\x01end"}
	all := b.Of(t.Context(), nil)
	var names []string
	for _, s := range all.Specs(parley.Agent{}) {
		names = append(names, s.Name)
	}
	if !slices.Contains(names, "far__away") || !slices.Contains(names, "read_file") {
		t.Errorf("%q", names)
	}
	if v := all.Judge(parley.Agent{}, "far__away", "{}"); v.Kind != parley.VerdictAsk || v.Show != "far__away" {
		t.Errorf("%+v", v)
	}
	if v := all.Judge(parley.Agent{}, "list_files", "{}"); v.Kind != parley.VerdictRun {
		t.Errorf("%+v", v)
	}
	live := 0
	got, err := all.Perform(t.Context(), parley.Agent{}, "far__away", "{}",
		func(_ parley.Stream, text string) { live += len(text) })
	if err != nil || !got.Failed || len(got.Text) > outputLimit || !strings.HasPrefix(got.Text, "begin\n") ||
		!strings.HasSuffix(got.Text, `\x01end`) {
		t.Errorf("%d bytes, %+v", len(got.Text), err)
	}
	_, name, ok := strings.Cut(got.Text, artifactScheme)
	name, _, _ = strings.Cut(name, " ")
	if !ok {
		t.Fatal("it is not kept")
	}
	if rest, err := all.Perform(t.Context(), parley.Agent{}, "read_file", `{"path":"artifact://`+name+`"}`,
		nil); err != nil || !strings.Contains(rest.Text, "begin") {
		t.Errorf("%+v, %v", rest, err)
	}
	// If it is read again, in this session or another, its source is still the
	// server.
	again := args{"path": artifactScheme + name}.String()
	if v := all.Judge(parley.Agent{}, "read_file", again); v.Source != "mcp:far" {
		t.Errorf("%s comes from %q", name, v.Source)
	}
	if live > liveLimit+1100 {
		t.Errorf("%d bytes were shown live", live)
	}
}

// ledgerOf is the ledger of a tenant.
type ledgerOf struct {
	port.ToolLedger
	tenant parley.TenantID
}

func (l ledgerOf) Tenant() parley.TenantID { return l.tenant }

// TestArtifactsOfTenants: results of one tenant do not push out those of
// another, and another tenant cannot read them.
func TestArtifactsOfTenants(t *testing.T) {
	b := newBox(t, t.TempDir())
	b.artifacts = t.TempDir()
	keep := func(box *Box) string {
		s := box.spool(parley.SourceWorkspace)
		s.add(strings.Repeat("x", outputLimit+1))
		return s.close()
	}
	read := func(all port.Toolbox, name string) error {
		_, err := all.Perform(t.Context(), parley.Agent{}, "read_file", `{"path":"`+name+`"}`, nil)
		return err
	}
	early := keep(b)
	b.servers = far{}
	acme, rival := b.Of(t.Context(), ledgerOf{tenant: "acme"}), b.Of(t.Context(), ledgerOf{tenant: "rival"})
	first := keep(acme.(*joined).Box)
	for range maxArtifacts + 1 {
		keep(rival.(*joined).Box)
	}
	for _, name := range []string{early, first} {
		if err := read(acme, name); err != nil {
			t.Error(err)
		}
	}
	if err := read(rival, first); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("another tenant reads it: %v", err)
	}
}
