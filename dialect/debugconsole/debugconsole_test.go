package debugconsole

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
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
		Starts:  func([]parley.Event) []int { return []int{0} }, // a socket sees its session from the beginning
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

// Every example of the document is in a transcript, byte for byte but for space.
func TestEveryExampleOfTheDocumentIsShown(t *testing.T) {
	seeds := cmp.Or(os.Getenv("PARLEY_SEEDS"), filepath.Join("..", "..", "..", "shared", "seeds"))
	documents, err := filepath.Glob(filepath.Join(seeds, "000_*.txt"))
	if err != nil || len(documents) == 0 {
		t.Skipf("document 000 is not in %s; PARLEY_SEEDS says where it is", seeds)
	}
	document, err := os.ReadFile(documents[0])
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	transcripts, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range transcripts {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(raw)
	}
	examples := 0
	for _, block := range strings.Split(string(document), "```json\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			examples++
			var example bytes.Buffer
			if err := json.Compact(&example, []byte(line)); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(shown.String(), "\n"+example.String()+"\n") {
				t.Errorf("no transcript shows %s", example.Bytes())
			}
		}
	}
	if examples != 7 {
		t.Errorf("the document has %d examples", examples)
	}
}
