package agentloop

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"

	"parley/dialect"
	"parley/dialect/dialecttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var views = map[string]View{"": {}, "local_shell": {LocalShell: true}}

// shownCard is the approval that the clients of transcripts were shown.
var shownCard = Asked{Card: 7, Patch: &patchCommand{"*** Begin Patch"}, Requests: []string{"req-0", "req-1"}}

func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[View]{
		Name:       "agentloop",
		Project:    Project,
		Views:      views,
		Starts:     dialecttest.FromRuns,
		Ignored:    Ignored,
		Trees:      true,
		OneAtATime: true,
		Decode: func(message []byte) dialecttest.Decoded {
			d := Decode(dialecttest.Session, shownCard, message)
			out := dialecttest.Decoded{Command: d.Command}
			switch {
			case d.Query != "":
				out.Refusal = "asks for what is known: " + d.Query
			case d.Refusal != nil:
				out.Refusal = string(dialect.Encode(d.Refusal))
			}
			return out
		},
	})
}

// TestEveryExampleOfTheDocumentIsShown: every example of the document is in a
// transcript. Client messages are the same byte for byte except for white
// space. Server messages may also differ in ids and in the white space of JSON
// within strings.
func TestEveryExampleOfTheDocumentIsShown(t *testing.T) {
	shown := map[string]bool{}
	transcripts, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range transcripts {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			for line := range strings.Lines(string(f.Data)) {
				if f.Name == "in" {
					shown[strings.TrimSpace(line)] = true
				} else if strings.HasPrefix(f.Name, "frames") && line[0] == '{' {
					shown[plain(t, []byte(line))] = true
				}
			}
		}
	}
	blocks := dialecttest.Examples(dialecttest.Document(t, "003"))
	if len(blocks) != 19 {
		t.Errorf("the document has %d examples", len(blocks))
	}
	left := 0
	for _, example := range blocks {
		var line bytes.Buffer
		if err := json.Compact(&line, []byte(example)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(example, "AgentLoop not initialized") {
			left++
			continue // an accepted connection is always ready
		}
		if !shown[line.String()] && !shown[plain(t, line.Bytes())] {
			t.Errorf("no transcript shows %s\nin plain %s", line.Bytes(), plain(t, line.Bytes()))
		}
	}
	if left != 1 {
		t.Errorf("%d examples were left out", left)
	}
}

// plain returns a frame without the parts that are always different.
func plain(t *testing.T, raw []byte) string {
	t.Helper()
	var m struct {
		Type    string
		Payload map[string]any
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	for key, value := range m.Payload {
		words, _ := value.(string)
		switch key {
		case "id", "responseId":
			if !strings.HasPrefix(words, "call_") && !strings.HasPrefix(words, "output_") {
				words = words[:strings.LastIndex(words, "_")]
			}
			m.Payload[key] = words
		case "output", "arguments":
			var inside any
			if json.Unmarshal([]byte(words), &inside) == nil {
				m.Payload[key] = inside
			}
		case "applyPatch": // the document does not repeat the patch
			argv := slices.Clone(m.Payload["command"].([]any))
			argv[1] = "*** Begin Patch..."
			m.Payload["command"] = argv
		}
	}
	return string(dialect.Encode(m))
}
