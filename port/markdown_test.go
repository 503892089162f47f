package port

import (
	"strings"
	"testing"
)

func TestHugeTables(t *testing.T) {
	row := func(columns int) string { return strings.Repeat("|a", columns) + "\n" }
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"many columns and short rows", row(2000) + strings.Repeat("|b\n", 2000), true},
		{"a large table", strings.Repeat(row(10), 9000), false},
		{"a long text with a wide table", row(1000) + "\n" + strings.Repeat("words\n", 5000), false},
		{"many tables", strings.Repeat(row(300)+row(300)+"\n", 300), false},
	} {
		if got := HasHugeTable(c.text); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
