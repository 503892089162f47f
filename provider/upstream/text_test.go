package upstream

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTextsAreEncodedForJSON(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, text string) {
		var got string
		if err := json.Unmarshal(AppendText(nil, text), &got); err != nil || got != strings.ToValidUTF8(text, "\uFFFD") {
			t.Fatalf("%q was encoded as %s (%v)", text, AppendText(nil, text), err)
		}
	}
	for c := range 256 { // every byte, at every place of eight
		for place := range 8 {
			text := strings.Repeat("a", place) + string([]byte{byte(c)}) + strings.Repeat("b", 15-place)
			check(t, text)
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.String().Draw(t, "text")) })
	rapid.Check(t, func(t *rapid.T) { check(t, string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))) })
}

func BenchmarkText(b *testing.B) {
	text := strings.Repeat("An answer of a model has some lines\nand \"quotes\". ", 20)
	buffer := make([]byte, 0, 2*len(text))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_ = AppendText(buffer, text)
	}
}

func TestRequestsKeepTheCharactersOfCode(t *testing.T) {
	raw, err := Encode(Object{"content": "if a < b && c > d"})
	if want := `{"content":"if a < b && c > d"}`; err != nil || string(raw) != want {
		t.Errorf("%s (%v), want %s", raw, err, want)
	}
}
