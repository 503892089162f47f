package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestTranscriptsSatisfyTheirClients: the official clients accept the
// transcripts of their dialects. Their schemas check each event; their verifier
// or reader checks the order.
func TestTranscriptsSatisfyTheirClients(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	for _, dialect := range []string{"agui", "aisdk"} {
		files, err := filepath.Glob("../dialect/" + dialect + "/testdata/*.txtar")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no transcripts (%v)", dialect, err)
		}
		streams := 0
		for _, name := range files {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range a.Files {
				if !strings.HasPrefix(f.Name, "frames") {
					continue
				}
				events := []json.RawMessage{}
				for line := range strings.Lines(string(f.Data)) {
					if strings.HasPrefix(line, "{") {
						events = append(events, json.RawMessage(line))
					}
				}
				streams++
				c := n.begin(map[string]any{"do": "use", "module": dialect, "act": "check", "events": events})
				if h := c.next(); h.Event != "checked" || h.Data != "" {
					t.Errorf("%s: %s %s", name, h.Event, h.Data)
				}
			}
		}
		if streams < 20 {
			t.Errorf("%s: only %d streams were looked at", dialect, streams)
		}
	}
}
