package agentchat

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

var ann = parley.Principal{ID: "ann", Tenant: "acme"}

func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[View]{
		Name:    "agentchat",
		Project: Project,
		Views:   map[string]View{"": {}},
		Starts:  dialecttest.FromRuns, // what came before somebody connected is read, and not shown
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

// Every example of the document is in a transcript, byte for byte but for space.
func TestEveryExampleOfTheDocumentIsShown(t *testing.T) {
	seeds := cmp.Or(os.Getenv("PARLEY_SEEDS"), filepath.Join("..", "..", "..", "shared", "seeds"))
	documents, err := filepath.Glob(filepath.Join(seeds, "001_*.txt"))
	if err != nil || len(documents) == 0 {
		t.Skipf("document 001 is not in %s; PARLEY_SEEDS says where it is", seeds)
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
	blocks := strings.Split(string(document), "```json\n")[1:]
	if len(blocks) != 7 {
		t.Errorf("the document has %d examples", len(blocks))
	}
	for _, block := range blocks {
		example, _, _ := strings.Cut(block, "```")
		var line bytes.Buffer
		if err := json.Compact(&line, []byte(example)); err != nil {
			t.Fatal(err)
		}
		refusal := dialect.Encode(map[string]string{"refusal": line.String()})
		if !strings.Contains(shown.String(), "\n"+line.String()+"\n") && !strings.Contains(shown.String(), "\n"+string(refusal)+"\n") {
			t.Errorf("no transcript shows %s", line.Bytes())
		}
	}
}
