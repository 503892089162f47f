package debugconsole

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var place = Place{Session: dialecttest.Session, Agent: "scout", Request: "uuid"}

func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[View]{
		Name:    "debugconsole",
		Project: Project,
		Views:   map[string]View{"": {}},
		Starts:  func([]parley.Event) []int { return []int{0} }, // a socket follows its session from the beginning
		Ignored: Ignored,
		Trees:   true,
		Decode: func(message []byte) dialecttest.Decoded {
			d := Decode(place, message)
			switch {
			case d.Refusal != "":
				d.Refusal = string(dialect.Encode(failure{head: head{"error", place.Request}, Message: d.Refusal}))
			case d.Command.Do == nil:
				d.Refusal = "(ignored)"
			}
			return dialecttest.Decoded{Command: d.Command, Refusal: d.Refusal}
		},
	})
}

// TestEveryExampleOfTheDocumentIsShown: every example of the document is in a transcript, byte for byte except for
// white space.
func TestEveryExampleOfTheDocumentIsShown(t *testing.T) {
	shown, examples := dialecttest.Transcripts(t), 0
	for _, block := range dialecttest.Examples(dialecttest.Document(t, "000")) {
		for line := range strings.Lines(block) {
			examples++
			var example bytes.Buffer
			if err := json.Compact(&example, []byte(line)); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(shown, "\n"+example.String()+"\n") {
				t.Errorf("no transcript shows %s", example.Bytes())
			}
		}
	}
	if examples != 7 {
		t.Errorf("the document has %d examples", examples)
	}
}
