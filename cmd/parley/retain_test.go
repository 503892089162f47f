package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/port"
)

var exportedAt = regexp.MustCompile(`"at":"\d{4}-\d\d-\d\d`)

// TestRetain checks that a server with retention rules reports and deletes old sessions, except those under a legal
// hold.
func TestRetain(t *testing.T) {
	t.Parallel()
	store := kinds["sqlite"](t)
	var held, old *conversation
	exports := map[*conversation]string{}
	served(t, store, func(addr, _ string) {
		held, old = open(t, addr), open(t, addr)
		for _, c := range []*conversation{held, old} {
			c.say("say hello")
			c.until("RunFinished", 1)
			exports[c] = mustRun(t, "", with(store, "export", c.session)...)
		}
	})
	store = kinds["sqlite"](t)
	for _, text := range exports { // make the sessions years old
		mustRun(t, exportedAt.ReplaceAllString(text, `"at":"2020-01-02`), with(store, "import")...)
	}
	file := filepath.Join(t.TempDir(), "parley.yaml")
	if err := os.WriteFile(file, []byte("retention: {transcripts: 365d}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	served(t, store, func(addr, _ string) {
		server := []string{"--server", addr}
		mustRun(t, "", with(server, "hold", "--session", held.session, "--reason", "Case 4711")...)
		if out := mustRun(t, "", with(server, "hold")...); !strings.Contains(out, held.session) ||
			!strings.Contains(out, "Case 4711") {
			t.Errorf("%s", out)
		}
		refused(t, "Case 4711", "", with(server, "erase", "--user", "local")...)
		refused(t, "needs a reason", "", with(server, "hold", "--user", "local")...)
		refused(t, "There is no legal hold", "", with(server, "hold", "--user", "local", "--release")...)
		if out := mustRun(t, "", with(server, "retain", "--dry-run")...); !strings.Contains(out, "0 sessions") {
			t.Errorf("without rules: %s", out)
		}
	})
	store = append(store, "--config", file)
	served(t, store, func(addr, _ string) {
		// The server's first pass may already have deleted sessions, which the audit shows.
		server := []string{"--server", addr}
		mustRun(t, "", with(server, "retain")...)
		out := mustRun(t, "", with(server, "retain", "--dry-run")...)
		if !strings.Contains(out, "Would be deleted: 0 sessions") || !strings.Contains(out, held.session) ||
			!strings.Contains(out, "Case 4711") || strings.Contains(out, old.session) {
			t.Errorf("%s", out)
		}
		if out := mustRun(t, "", with(server, "sessions")...); strings.Contains(out, old.session) ||
			!strings.Contains(out, held.session) {
			t.Errorf("%s", out)
		}
		mustRun(t, "", with(server, "hold", "--session", held.session, "--release")...)
		var report port.RetentionReport
		if err := json.Unmarshal([]byte(mustRun(t, "", with(server, "retain", "--json")...)), &report); err != nil ||
			report.Sessions != 1 || len(report.Kept) != 0 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}
