package dialecttest

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/dialect"
)

// Document returns the text of the document with this number. If the document
// is not on this machine, the test is skipped. PARLEY_SEEDS is the folder of
// the documents.
func Document(t testing.TB, number string) string {
	t.Helper()
	seeds := cmp.Or(os.Getenv("PARLEY_SEEDS"), filepath.Join("..", "..", "..", "shared", "seeds"))
	documents, err := filepath.Glob(filepath.Join(seeds, number+"_*.txt"))
	if err != nil || len(documents) == 0 {
		t.Skipf("document %s is not in %s; PARLEY_SEEDS says where it is", number, seeds)
	}
	raw, err := os.ReadFile(documents[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Examples returns the blocks of JSON in a document.
func Examples(document string) (blocks []string) {
	for _, block := range strings.Split(document, "```json\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// Transcripts returns the text of all transcripts in testdata.
func Transcripts(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, name := range glob(t) {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	return all.String()
}

// NaughtyStrings returns strings that programs often handle wrongly. If the
// data is not on this machine, the test is skipped. PARLEY_CORPORA is the
// folder of such data.
func NaughtyStrings(t testing.TB) (list []string) {
	t.Helper()
	data := cmp.Or(os.Getenv("PARLEY_CORPORA"), filepath.Join("..", "..", "..", "shared", "data"))
	name := filepath.Join(data, "text", "blns.json")
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Skip("no naughty strings here: ", err)
	}
	if err := json.Unmarshal(raw, &list); err != nil || len(list) < 500 {
		t.Fatalf("%s holds %d strings (%v)", name, len(list), err)
	}
	return list
}

// AnyMessage draws a message of a client: any bytes, or an AnyObject.
func AnyMessage(t *rapid.T, keys, values []string) []byte {
	if rapid.Bool().Draw(t, "any") {
		return rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	}
	return []byte(AnyObject(t, 1, 8, keys, values))
}

// AnyObject draws text that is nearly a JSON object, with between least and most of the keys. Keys may repeat. values
// are JSON, or nearly.
func AnyObject(t *rapid.T, least, most int, keys, values []string) string {
	values = append(values, `null`, `1`, `{}`, `[["a"]]`, `"\ud800"`, `"\u0000"`, ``)
	value := rapid.OneOf(
		rapid.SampledFrom(values),
		rapid.Map(rapid.String(), func(s string) string { return string(dialect.Encode(s)) }),
	)
	var pairs []string
	for _, key := range rapid.SliceOfN(rapid.SampledFrom(keys), least, most).Draw(t, "keys") {
		pairs = append(pairs, `"`+key+`":`+value.Draw(t, key))
	}
	return "{" + strings.Join(pairs, ",") + "}"
}
