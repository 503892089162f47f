package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDotenv(t *testing.T) {
	got, err := parseDotenv(".env", "\ufeff# comment\n\n"+
		"PLAIN=a b#c\r\n"+
		"COMMENT=a b # c # d\n"+
		" INDENTED = x \n"+
		"export EXPORTED=y\n"+
		"export=z\n"+
		"EMPTY=\n"+
		"BLANK= # nothing\n"+
		"EQUALS=k=v==\n"+
		`SINGLE='a "b" \n $c # d' # e`+"\n"+
		`DOUBLE="a\n\t\"b\" \\ \$c $d # e"# f`+"\n"+
		"TWICE=1\nTWICE=2\n"+
		"LAST=no newline")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"PLAIN": "a b#c", "COMMENT": "a b", "INDENTED": "x", "EXPORTED": "y", "export": "z", "EMPTY": "", "BLANK": "",
		"EQUALS": "k=v==", "SINGLE": `a "b" \n $c # d`, "DOUBLE": "a\n\t\"b\" \\ $c $d # e", "TWICE": "2",
		"LAST": "no newline",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDotenvErrors(t *testing.T) {
	for line, want := range map[string]string{
		"secret":         "not of the form KEY=VALUE",
		"=secret":        "not of the form KEY=VALUE",
		"1A=secret":      "not of the form KEY=VALUE",
		"A-B=secret":     "not of the form KEY=VALUE",
		"A B=secret":     "not of the form KEY=VALUE",
		"export secret":  "not of the form KEY=VALUE",
		"A='secret":      "A: the ' is never closed",
		`A="secret`:      `A: the " is never closed`,
		`A="secret\`:     `A: the " is never closed`,
		`A="secret\"`:    `A: the " is never closed`,
		`A="secret\q"`:   `A: \q is no escape; write \\ for a backslash`,
		`A="a"secret`:    "A: something follows the closing quote",
		"A='a' 'secret'": "A: something follows the closing quote",
	} {
		_, err := parseDotenv("dir/.env", "OK=1\n"+line+"\nOK=2\n")
		if want := "dir/.env:2: " + want; err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", line, err, want)
		}
	}
}
