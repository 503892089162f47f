package agentchat

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ann = port.Principal{ID: "ann", Tenant: "acme"}

func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[View]{
		Name:    "agentchat",
		Project: Project,
		Views: map[string]View{"": {Notices: dialect.Notices{Console: "https://parley.example.com"}},
			"cards": {Notices: dialect.Notices{Off: true}}, "path": {}},
		Starts:  dialecttest.FromRuns, // earlier events are read but not shown
		Ignored: Ignored,
		Decode: func(message []byte) dialecttest.Decoded {
			d := Decode(ann, dialecttest.Session, message)
			if d.Refusal != "" {
				d.Refusal = string(dialect.Encode(failure{"error", d.Refusal}))
			}
			return dialecttest.Decoded{Command: d.Command, Refusal: d.Refusal}
		},
	})
}

// TestEveryExampleOfTheDocumentIsShown: every example of the document is in a transcript, byte for byte except for
// white space.
func TestEveryExampleOfTheDocumentIsShown(t *testing.T) {
	shown := dialecttest.Transcripts(t)
	blocks := dialecttest.Examples(dialecttest.Document(t, "001"))
	if len(blocks) != 7 {
		t.Errorf("the document has %d examples", len(blocks))
	}
	for _, example := range blocks {
		var line bytes.Buffer
		if err := json.Compact(&line, []byte(example)); err != nil {
			t.Fatal(err)
		}
		refusal := dialect.Encode(map[string]string{"refusal": line.String()})
		if !strings.Contains(shown, "\n"+line.String()+"\n") && !strings.Contains(shown, "\n"+string(refusal)+"\n") {
			t.Errorf("no transcript shows %s", line.Bytes())
		}
	}
}
