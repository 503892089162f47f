package threadchat

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley/dialect"
	"parley/dialect/dialecttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thread is the thread of the connections in these tests.
const thread = dialecttest.Session

var (
	told  = dialect.Notices{Console: "https://parley.example.com"}
	views = map[string]View{"": {Shape: Document, Notices: told}, "original": {Shape: Original, Notices: told},
		"cards": {Shape: Document, Notices: dialect.Notices{Off: true}}, "path": {Shape: Document}}
)

func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[View]{
		Name:    "threadchat",
		Project: Project,
		Views:   views,
		Starts:  dialecttest.FromRuns,
		Ignored: Ignored,
		Trees:   true,
		Decode: func(message []byte) dialecttest.Decoded {
			d := Decode(thread, message, "req-fresh")
			return dialecttest.Decoded{Command: d.Command, Refusal: d.Refusal, Request: d.Request,
				Shape: string(d.Shape)}
		},
	})
}

// TestEveryExampleOfTheDocumentIsShown: every example of the document is in a transcript, byte for byte except for
// white space.
func TestEveryExampleOfTheDocumentIsShown(t *testing.T) {
	shown := dialecttest.Transcripts(t)
	comment := regexp.MustCompile(`(?m)^//.*$`)
	examples := 0
	for _, block := range dialecttest.Examples(dialecttest.Document(t, "002")) {
		messages := json.NewDecoder(strings.NewReader(comment.ReplaceAllString(block, "")))
		for {
			var message json.RawMessage
			if err := messages.Decode(&message); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in %s", err, block)
			}
			examples++
			var line bytes.Buffer
			if err := json.Compact(&line, message); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(shown, "\n"+line.String()+"\n") {
				t.Errorf("no transcript shows %s", line.Bytes())
			}
		}
	}
	if examples != 10 {
		t.Errorf("the document has %d examples", examples)
	}
}
