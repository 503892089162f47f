package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
)

// TestPromptInjectionByMail: an agent reads a mail by an MCP server and does what the mail says. The sentinel flags
// nothing in the mail. Under auto-edit and under full-auto the write asks, and the card names the server, also after a
// restart. An agent whose file trusts the server writes without asking.
func TestPromptInjectionByMail(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	agentFile(t, workspace, "auto", "approval: full-auto")
	agentFile(t, workspace, "edit", "approval: auto-edit")
	agentFile(t, workspace, "trusting", "approval: full-auto\ntrust: [workspace, mcp:mail]")
	write := func(name string) toolCall {
		return call("write_file", map[string]any{"path": name, "content": "done"})
	}
	var scripts [][]fixture
	for _, agent := range []string{"auto", "edit", "trusting"} {
		scripts = append(scripts, script("mail of "+agent+".", asks("I read it.", call("mail__read", map[string]any{})),
			asks("I do that.", write(agent+".txt")), says("I see.")))
	}
	mock := startModel(t, append(scripts, script("hello", says("Hello.")))...)
	program := absolute(t, "testdata/mail.mjs")
	config := filepath.Join(t.TempDir(), "parley.yaml")
	text := fmt.Sprintf("mcp:\n  servers:\n    mail: {command: [node, %s], read: [%s]}\n", program,
		filepath.Dir(program))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, withModel(mock, options{workspace: workspace}, "PARLEY_CONFIG="+config,
		"PATH="+os.Getenv("PATH")))
	s.ends(s.says("auto", "hello")) // starts the MCP server
	s.logged("an MCP server is connected", 1)

	auto := &chat{s, s.says("auto", "mail of auto.")}
	edit := &chat{s, s.says("edit", "mail of edit.")}
	card := edit.await("ApprovalRequested", 1)
	if !strings.Contains(card, "mail__read") || strings.Contains(card, `"sources"`) {
		t.Errorf("under auto-edit calls of MCP servers ask, and nothing was read yet: %s", card)
	}
	edit.allow(1)
	for _, c := range []struct {
		*chat
		card int
	}{{auto, 1}, {edit, 2}} {
		card := c.await("ApprovalRequested", c.card)
		for _, part := range []string{`"write_file"`, "content from mcp:mail, which ", `"sources":["mcp:mail"]`} {
			if !strings.Contains(card, part) {
				t.Errorf("%s is not in the card %s", part, card)
			}
		}
	}
	wantNoFile(t, s, "auto.txt")
	wantNoFile(t, s, "edit.txt")

	s.stop()
	s = s.again()
	auto.server, edit.server = s, s
	status, open := s.get("/api/v1/approvals", nil)
	var list struct {
		Approvals []struct{ Tool, Why string }
	}
	if err := json.Unmarshal([]byte(open), &list); err != nil || status != http.StatusOK || len(list.Approvals) != 2 {
		t.Fatalf("%d %s", status, open)
	}
	for _, a := range list.Approvals {
		if !strings.Contains(a.Why, "mcp:mail") {
			t.Errorf("%+v", a)
		}
	}
	auto.allow(1)
	s.ends(auto.id)
	wantFile(t, s, "auto.txt", "done")
	wantNoFile(t, s, "edit.txt")

	log := s.ends(s.says("trusting", "mail of trusting."))
	if cards := those[parley.ApprovalRequested](log); len(cards) > 0 {
		t.Errorf("an agent that trusts the server is asked about: %+v", cards)
	}
	wantFile(t, s, "trusting.txt", "done")
	for _, e := range those[parley.ToolCallFinished](log) {
		if e.Finding != nil {
			t.Errorf("the mail was flagged, so this shows nothing: %+v", e.Finding)
		}
	}
}
