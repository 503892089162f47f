package sabotage

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A code is a source text without its layout: without white space, semicolons,
// and commas before a closing bracket. gofmt and line wrapping change nothing
// else, except string literals that are split and joined by +.
type code struct {
	text []byte
	at   []int // the offset in the source of each byte of text
}

func codeOf(source string) (c code) {
	c.text = make([]byte, 0, len(source))
	c.at = make([]int, 0, len(source))
	for i := range len(source) {
		switch b := source[i]; b {
		case ' ', '\t', '\n', '\r', ';':
		case ')', ']', '}':
			if last := len(c.text) - 1; last >= 0 && c.text[last] == ',' {
				c.text, c.at = c.text[:last], c.at[:last]
			}
			fallthrough
		default:
			c.text, c.at = append(c.text, b), append(c.at, i)
		}
	}
	return c
}

// A source is a file and its code.
type source struct {
	file string // relative to the root
	raw  string
	code
}

// A codeIndex has the source files of each folder and extension that find was
// asked about.
type codeIndex map[string][]source

func (x codeIndex) sources(root, file string) ([]source, error) {
	pattern := path.Join(path.Dir(file), "*"+path.Ext(file))
	if x[pattern] != nil {
		return x[pattern], nil
	}
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		x[pattern] = append(x[pattern], source{path.Join(path.Dir(file), filepath.Base(name)), string(raw),
			codeOf(string(raw))})
	}
	return x[pattern], nil
}

// find returns the file to change, relative to root, and its text with the bug.
// If the code has moved to another file of its package, find follows it there.
// Layout does not count, so a rewrapped line is still found.
func (x codeIndex) find(root string, b bug) (file, changed string, err error) {
	all, err := x.sources(root, b.file)
	if err != nil {
		return "", "", err
	}
	old := codeOf(b.old).text
	places := map[string]int{} // how often old occurs in each file that contains it
	for _, s := range all {
		if strings.HasSuffix(s.file, "_test.go") && s.file != b.file {
			continue
		}
		n := bytes.Count(s.text, old)
		if n > 0 {
			places[s.file] = n
		}
		if n == 1 && (s.file == b.file || changed == "") {
			first := bytes.Index(s.text, old)
			file, changed = s.file, s.raw[:s.at[first]]+b.new+s.raw[s.at[first+len(old)-1]+1:]
		}
	}
	switch n := places[b.file]; {
	case n == 1:
		return b.file, changed, nil
	case n == 0 && len(places) == 1 && file != "":
		return file, changed, nil
	default:
		return "", "",
			fmt.Errorf("%s has %d places, and its package %v, with the code\n%s\nThe bug needs exactly one. "+
				"If the code was renamed, rename it in the entry too", b.file, n, places, b.old)
	}
}

func TestFindFollowsMovedCode(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"p/a.go": "one two two", "p/b.go": "three four", "p/c.go": "four", "p/b_test.go": "three", "q/a.go": "five",
	} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ file, old, want, changed string }{
		{"p/a.go", "one", "p/a.go", "NEW two two"},
		{"p/a.go", "three", "p/b.go", "NEW four"},    // moved to another file
		{"p/gone.go", "three", "p/b.go", "NEW four"}, // its file was renamed
		{"p/b.go", "four", "p/b.go", "three NEW"},    // a copy in another file does not matter
		{"p/c.go", "four", "p/c.go", "NEW"},          //
		{"p/a.go", "two", "", ""},                    // twice in its file
		{"p/a.go", "four", "", ""},                   // in two other files
		{"p/b.go", "two", "", ""},                    // twice in another file
		{"p/a.go", "five", "", ""},                   // in another package
		{"p/a.go", "renamed", "", ""},                // nowhere
	} {
		file, changed, err := codeIndex{}.find(root, bug{file: c.file, old: c.old, new: "NEW"})
		if file != c.want || changed != c.changed || (err != nil) != (c.want == "") {
			t.Errorf("%q of %s: found %q with %q (%v), want %q with %q", c.old, c.file, file, changed, err, c.want,
				c.changed)
		}
	}
}

// TestFindIgnoresLayout checks that find ignores line breaks and other layout.
func TestFindIgnoresLayout(t *testing.T) {
	root := t.TempDir()
	for _, c := range []struct{ source, old, new, want string }{
		{"\tgo run(a, b, c)\n", "run(a, b, c)", "run(a)", "\tgo run(a)\n"},
		{"\tgo run(\n\t\ta, b,\n\t\tc,\n\t)\n", "run(a, b, c)", "run(a)", "\tgo run(a)\n"},
		{"\tgo run(a, b, c)\n", "run(\n\t\ta,\n\t\tb,\n\t\tc,\n\t)", "run(a)", "\tgo run(a)\n"},
		{"if x &&\n\ty {\n\tz()\n}", "if x && y { z() }", "", ""},
		{"x()\ny()\n", "x(); y()", "y()", "y()\n"},
		{"x = []int{\n\t1,\n\t2,\n}\n", "2}", "3}", "x = []int{\n\t1,\n\t3}\n"},
		{"`SELECT a\n\t\tFROM b WHERE c`", "FROM b\n\tWHERE c`", "FROM b`", "`SELECT a\n\t\tFROM b`"},
		{"x()\ny()\n", "\tx()\n", "", "\ny()\n"}, // layout around the match stays
		{"run(a)\nrun(\n\ta,\n)\n", "run(a)", "", "twice"},
		{"run(a, b)\n", "run(a)", "", "nowhere"},
	} {
		if err := os.WriteFile(filepath.Join(root, "a.go"), []byte(c.source), 0o600); err != nil {
			t.Fatal(err)
		}
		_, got, err := codeIndex{}.find(root, bug{file: "a.go", old: c.old, new: c.new})
		if none := c.want == "twice" || c.want == "nowhere"; none != (err != nil) || !none && got != c.want {
			t.Errorf("%q in %q: got %q (%v), want %q", c.old, c.source, got, err, c.want)
		}
	}
}
