package eval

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "", ""},
		{"the same", "the same", "same:the same"},
		{"", "new", "added:new"},
		{"It is blue.", "It was blue.", "same:It |removed:is |added:was |same:blue."},
		{"a b c", "c", "removed:a b |same:c"},
		{"one two\n\nthree", "one two\n\nfour", "same:one two\n\n|removed:three|added:four"},
	} {
		var got []string
		for _, p := range Words(c.a, c.b) {
			got = append(got, string(p.Op)+":"+p.Text)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q, %q: %q, want %q", c.a, c.b, strings.Join(got, "|"), c.want)
		}
	}
}

// TestWordsKeepBothTexts checks that both texts can be restored from their
// difference.
func TestWordsKeepBothTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab \n]{0,40}`)
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		var first, second string
		for _, p := range Words(a, b) {
			if p.Op != Added {
				first += p.Text
			}
			if p.Op != Removed {
				second += p.Text
			}
		}
		if first != a || second != b {
			t.Fatalf("%q is read as %q, %q as %q", a, first, b, second)
		}
	})
}

// TestLongTexts checks that the memory of a difference is limited.
func TestLongTexts(t *testing.T) {
	parts := Words("same "+strings.Repeat("a ", 5000)+"end", "same "+strings.Repeat("b ", 5000)+"end")
	if len(parts) != 4 || parts[1].Op != Removed || parts[3].Text != "end" {
		t.Errorf("%d parts", len(parts))
	}
}
