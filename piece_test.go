package parley

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// TestPlainPieceMatchesGeneralParser checks that plainPiece decodes a row
// exactly as the general parser does, or rejects it.
func TestPlainPieceMatchesGeneralParser(t *testing.T) {
	same := func(t interface{ Fatalf(string, ...any) }, raw []byte) bool {
		quick, ok := plainPiece(raw)
		if !ok {
			return false
		}
		var slow OutputAppended
		if err := json.Unmarshal(raw, &slow); err != nil || !reflect.DeepEqual(quick, slow) {
			t.Fatalf("%q is read as %+v, not as %+v, %v", raw, quick, slow, err)
		}
		return true
	}
	rapid.Check(t, func(t *rapid.T) {
		piece := OutputAppended{Output: OutputID(rapid.Int64Range(0, 1<<40).Draw(t, "output")),
			Kind:   rapid.SampledFrom([]OutputKind{Text, Thinking, "other"}).Draw(t, "kind"),
			Offset: rapid.IntRange(0, 1<<30).Draw(t, "offset"), Text: rapid.String().Draw(t, "text")}
		raw, err := json.Marshal(piece)
		if err != nil {
			t.Fatal(err)
		}
		same(t, raw)
		if n := len(raw); n > 0 { // and near misses
			i := rapid.IntRange(0, n-1).Draw(t, "at")
			same(t, append(append([]byte{}, raw[:i]...), raw[i+1:]...))
			raw[i] = rapid.Byte().Draw(t, "byte")
			same(t, raw)
		}
	})
	for _, raw := range []string{`{"output":7,"kind":"text","offset":0,"text":"hello ü"}`,
		`{"output":7,"kind":"thinking","offset":12,"text":""}`} {
		if !same(t, []byte(raw)) {
			t.Errorf("%s is not read the quick way", raw)
		}
	}
	for _, raw := range []string{`{"output":07,"kind":"text","offset":0,"text":"x"}`,
		`{"output":7,"kind":"text","offset":0,"text":"x"}}`, `{"output":7,"kind":"text","offset":0,"text":"a\\n"}`,
		`{}`, ``} {
		if _, ok := plainPiece([]byte(raw)); ok {
			t.Errorf("%s was read the quick way", raw)
		}
	}
}
