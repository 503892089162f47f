package patch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	kept := func(text string) Line { return Line{' ', text} }
	update := func(hunks ...Hunk) Patch { return Patch{{Kind: Update, Path: "a", Line: 2, Hunks: hunks}} }
	removed, added := Line{'-', "x"}, Line{'+', "y"}
	plain := update(Hunk{Number: 1, Line: 3, Lines: []Line{removed, added}})
	at := func(line int, p Patch) Patch { // the same, later in the text
		s := p[0]
		s.Line += line
		h := s.Hunks[0]
		h.Line += line
		s.Hunks = []Hunk{h}
		return Patch{s}
	}
	for name, c := range map[string]struct {
		text string
		want Patch
	}{
		"plain":           {"*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch", plain},
		"no end":          {"*** Begin Patch\n*** Update File: a\n@@\n-x\n+y", plain},
		"no end, newline": {"*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n", plain},
		"padded":          {" *** Begin Patch \n  *** Update File:   a  \n@@ \n-x\n+y\n *** End Patch \n\n", plain},
		"returns":         {"*** Begin Patch\r\n*** Update File: a\r\n@@\r\n-x\r\n+y\r\n*** End Patch\r\n", plain},
		"some returns":    {"*** Begin Patch\n*** Update File: a\n@@\r\n-x\r\n+y\r\n*** End Patch\n", plain},
		"numbers":         {"*** Begin Patch\n*** Update File: a\n@@ -1,3 +1,4 @@\n-x\n+y\n*** End Patch", plain},
		"few numbers": {"*** Begin Patch\n*** Update File: a\n@@ -1 +1 @@ func f() {\n-x\n+y\n\\ No newline at " +
			"end of file\n*** End Patch", plain},
		"heredoc": {"<<'EOF'\n*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\nEOF\n",
			at(1, plain)},
		"bare heredoc": {"\n<<PATCH\n*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\nPATCH", at(2, plain)},
		"quoted heredoc": {"apply_patch <<\"EOF\"\n*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\nEOF",
			at(1, plain)},
		"no header": {"*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch",
			update(Hunk{Number: 1, Line: 3, Lines: []Line{removed, added}})},
		"context": {"*** Begin Patch\n*** Update File: a\n@@ class A\n@@   def b\n k\n-x\n\n+y\n*** End of " +
			"File\n\n*** End Patch",
			update(Hunk{Number: 1, Line: 3, Contexts: []string{"class A", "  def b"},
				Lines: []Line{kept("k"), removed, kept(""), added}, AtEnd: true})},
		"two hunks": {"*** Begin Patch\n*** Update File: a\n\n@@\n-x\n@@\n+y\n*** End Patch",
			update(Hunk{Number: 1, Line: 4, Lines: []Line{removed}}, Hunk{Number: 2, Line: 6, Lines: []Line{added}})},
		"all kinds": {"*** Begin Patch\n*** Add File: n\n+one\r\n+\n\n*** Delete File: d\n*** Update File: a\n*** " +
			"Move to: b\n*** Add File: e\n*** End Patch", Patch{
			{Kind: Add, Path: "n", Line: 2, Added: "one\r\n\n"},
			{Kind: Delete, Path: "d", Line: 6},
			{Kind: Update, Path: "a", To: "b", Line: 7},
			{Kind: Add, Path: "e", Line: 9},
		}},
		"moved to where it is": {"*** Begin Patch\n*** Update File: a\n*** Move to: ./a\n@@\n-x\n*** End Patch",
			Patch{{Kind: Update, Path: "a", To: "./a", Line: 2,
				Hunks: []Hunk{{Number: 1, Line: 4, Lines: []Line{removed}}}}}},
		"markers as text": {"*** Begin Patch\n*** Update File: a\n@@\n *** End Patch\n+*** Add File: x\n*** End Patch",
			update(Hunk{Number: 1, Line: 3, Lines: []Line{kept("*** End Patch"), {'+', "*** Add File: x"}}})},
	} {
		got, err := Parse(c.text)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	in := func(lines string) string { return "*** Begin Patch\n" + lines + "\n*** End Patch" }
	for text, want := range map[string]string{
		"":                                   "Patch must start with *** Begin Patch (line 1 of the patch)",
		"\n\nhello":                          "Patch must start with *** Begin Patch (line 3 of the patch)",
		"<<EOF\nEOF":                         "Patch must start with *** Begin Patch (line 1 of the patch)",
		"*** Begin Patch":                    "The patch is empty: it has no Add, Delete or Update File section (line 1 of the patch)",
		in(""):                               "The patch is empty: it has no Add, Delete or Update File section (line 1 of the patch)",
		in("*** Frobnicate File: a"):         "Unknown Line: *** Frobnicate File: a (line 2 of the patch)",
		in("*** Add File: a\n+x\ny"):         "Unknown Line: y (line 4 of the patch)",
		in("*** Add File: "):                 "Add File Error: no path is given (line 2 of the patch)",
		in("*** Delete File: a\n-x"):         "Unknown Line: -x (line 3 of the patch)",
		in("*** Update File: a"):             "Update File Error: nothing is to be changed in a (line 2 of the patch)",
		in("*** Update File: a\n\n"):         "Update File Error: nothing is to be changed in a (line 2 of the patch)",
		in("*** Update File: a\n@@"):         "The hunk is empty: it needs lines that begin with a space, - or + (line 3 of the patch)",
		in("*** Update File: a\n@@\n-x\noh"): "Unknown Line: oh (line 5 of the patch)",
		in("*** Update File: a\n*** Move to:\n-x"):                     "Update File Error: no path to move to is given (line 3 of the patch)",
		in("*** Delete File: a\n*** Add File: ./a"):                    "Add File Error: Duplicate Path: ./a (line 3 of the patch)",
		in("*** Add File: b\n*** Update File: a\n*** Move to: b"):      "Update File Error: Duplicate Path: b (line 3 of the patch)",
		in("*** Delete File: a\n*** Update File: a\n*** Move to: ./a"): "Update File Error: Duplicate Path: a (line 3 of the patch)",
		in("*** Delete File: a\n*** End Patch\nmore"):                  "There is more after *** End Patch (line 3 of the patch)",
		"*** Begin Patch\n*** Delete File: a\n*** End Pa":              "Missing End Patch (line 3 of the patch)",
	} {
		if got, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
}

func updated(t *testing.T, content, hunks string) (string, error) {
	t.Helper()
	p, err := Parse("*** Begin Patch\n*** Update File: f\n" + hunks + "\n*** End Patch")
	if err != nil {
		t.Fatal(err)
	}
	return p[0].Update(content)
}

func TestUpdate(t *testing.T) {
	for name, c := range map[string]struct{ content, hunks, want string }{
		"the first of equals":          {"x\nx\n", "@@\n-x\n+y", "y\nx\n"},
		"after the context":            {"a\nx\nb\nx\n", "@@ b\n-x\n+y", "a\nx\nb\ny\n"},
		"after context in context":     {"f\nx\nA\nx\nf\nx\n", "@@ A\n@@ f\n-x\n+y", "f\nx\nA\nx\nf\ny\n"},
		"hunks in order":               {"x\nx\nx\n", "@@\n-x\n+1\n@@\n-x\n+2", "1\n2\nx\n"},
		"insert after context":         {"a\nb\n", "@@ a\n+new", "a\nnew\nb\n"},
		"append":                       {"a\nb\n", "@@\n+new", "a\nb\nnew\n"},
		"append, then change":          {"a\nb\n", "@@\n+new\n@@\n-a\n+A", "A\nb\nnew\n"},
		"append at the end of context": {"a\nb\nc\n", "@@ a\n+new\n*** End of File", "a\nb\nc\nnew\n"},
		"into an empty file":           {"", "@@\n+new", "new\n"},
		"everything goes":              {"a\n", "@@\n-a", ""},
		"end first":                    {"x\na\nx\n", "@@\n-x\n+y\n*** End of File", "x\na\ny\n"},
		"end, else anywhere":           {"x\na\n", "@@\n-x\n+y\n*** End of File", "y\na\n"},
		"exact before similar":         {"  x\nx\n", "@@\n-x\n+y", "  x\ny\n"},
		"blanks at the right":          {"x \t\n", "@@\n-x\n+y", "y\n"},
		"blanks at the left":           {"\tx\n", "@@\n-  x\n+y", "y\n"},
		"dashes, quotes, spaces":       {"“a” – ‘b’\u00a0c\n", "@@\n-\"a\" - 'b' c\n+y", "y\n"},
		"composed":                     {"cafe\u0301\n", "@@\n-caf\u00e9\n+y", "y\n"},
		"exact before folded":          {"a – b\na - b\n", "@@\n-a - b\n+y", "a – b\ny\n"},
		"kept as the file has it":      {"“k”  \nx\n", "@@\n \"k\"\n-x\n+y", "“k”  \ny\n"},
		"returns stay":                 {"k\r\nx\r\n", "@@\n k\n-x\n+y\n+z", "k\r\ny\r\nz\r\n"},
		"most lines decide":            {"a\nb\r\nx\r\n", "@@\n-a\n+y", "y\r\nb\r\nx\r\n"},
		"a return ends a line":         {"a\rb\rc", "@@\n-b\n+y", "a\ry\rc"},
		"a return within a line":       {"a\rb\nc\n", "@@\n-c\n+y", "a\rb\ny\n"},
		"no newline, untouched":        {"x\nlast", "@@\n-x\n+y", "y\nlast"},
		"no newline, kept":             {"x\nlast", "@@\n-x\n+y\n last", "y\nlast"},
		"no newline, followed":         {"last", "@@\n last\n+more", "last\nmore\n"},
		"no newline, replaced":         {"last", "@@\n-last\n+new", "new\n"},
		"no newline, removed":          {"a\nlast", "@@\n-last", "a\n"},
		"blank lines behind a hunk":    {"x\na\n", "@@\n-x\n+y\n\n", "y\na\n"},
		"a blank line that is there":   {"x\n\na\n", "@@\n-x\n+y\n\n+z", "y\n\nz\na\n"},
		"bytes that are no text":       {"\xff\xfe\nx\n\xfe", "@@\n-x\n+y", "\xff\xfe\ny\n\xfe"},
		"the example of the document": {"import express from 'express';\nconst app = express();\n",
			"@@ -1,3 +1,4 @@\n import express from 'express';\n+import cors from 'cors';\n const app = express();", "import express from 'express';\nimport cors from 'cors';\nconst app = express();\n"},
		"nothing but lines to be kept":  {"x\n", "@@\n x", "x\n"},
		"a hunk that begins at the end": {"a\nb", "@@ b\n+c", "a\nb\nc\n"},
	} {
		got, err := updated(t, c.content, c.hunks)
		if got != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestUpdateSaysWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct{ content, hunks, want string }{
		"lines": {"a\n", "@@\n-x\n-y\n+z", "Update File Error: f: hunk 1: these lines are not found after line 0 " +
			"of the file:\nx\ny (line 3 of the patch)"},
		"context": {"a\n", "@@ x\n-a", "Update File Error: f: hunk 1: these lines are not found after line 0 of " +
			"the file:\nx (line 3 of the patch)"},
		"order": {"a\nb\n", "@@\n-b\n@@\n-a", "Update File Error: f: hunk 2: these lines are not found after " +
			"line 2 of the file, but before it; hunks come in the order of the file:\na (line 5 of the patch)"},
		"bytes": {"caf\xe9\n", "@@\n-caf\ufffd", "Update File Error: f: hunk 1: these lines are not found after " +
			"line 0 of the file:\ncaf\ufffd (line 3 of the patch)"},
		"empty file": {"", "@@\n-x", "Update File Error: f: hunk 1: these lines are not found after line 0 of the " +
			"file:\nx (line 3 of the patch)"},
	} {
		if got, err := updated(t, c.content, c.hunks); err == nil || err.Error() != c.want {
			t.Errorf("%s: %q, %v, want %s", name, got, err, c.want)
		}
	}
}

// TestAPatchIsGivenUpInTime: without a limit, this would compare 10^12 lines.
func TestAPatchIsGivenUpInTime(t *testing.T) {
	_, err := updated(t, strings.Repeat("a\n", 2_000_000), "@@\n"+strings.Repeat("-a\n", 500_000)+"-b")
	if err == nil || !strings.Contains(err.Error(), errWork.Error()) {
		t.Errorf("%.300v", err)
	}
}

// TestOneHunkCanMakeAnyChange: one hunk that spans the whole text can replace any
// range of its lines by any others, with LF and with CRLF endings.
func TestOneHunkCanMakeAnyChange(t *testing.T) {
	line := rapid.SampledFrom([]string{"", "a", "b", " a", "a ", "\ta", "–", "-", "+", "@@", "*** End Patch",
		"*** End of File", "žluť"})
	rapid.Check(t, func(t *rapid.T) {
		old := rapid.SliceOfN(line, 1, 8).Draw(t, "old")
		from := rapid.IntRange(0, len(old)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(old)).Draw(t, "to")
		with := rapid.SliceOfN(line, 0, 4).Draw(t, "with")
		ending := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "ending")
		var b strings.Builder
		b.WriteString("*** Begin Patch\n*** Update File: f\n@@\n")
		for i, l := range old {
			op := " "
			if i >= from && i < to {
				op = "-"
			}
			fmt.Fprintf(&b, "%s%s\n", op, l)
			if i == to-1 {
				for _, w := range with {
					fmt.Fprintf(&b, "+%s\n", w)
				}
			}
		}
		b.WriteString("*** End Patch\n")
		p, err := Parse(b.String())
		if err != nil {
			t.Fatal(err)
		}
		join := func(lines ...string) string { return strings.Join(append(lines, ""), ending) }
		got, err := p[0].Update(join(old...))
		want := join(append(append(append([]string{}, old[:from]...), with...), old[to:]...)...)
		if len(old) == to-from && len(with) == 0 {
			want = ""
		}
		if got != want || err != nil {
			t.Fatalf("%q became %q, %v, want %q", join(old...), got, err, want)
		}
	})
}

// FuzzPatch: whatever a model writes, nothing panics. A parsed patch satisfies
// the contract of Patch, and lines that no hunk names stay.
func FuzzPatch(f *testing.F) {
	f.Add("*** Begin Patch\n*** Update File: a\n@@ -1,3 +1,4 @@\n-x\n+y\n*** End of File\n*** End Patch", "x\r\ny\rz")
	f.Add("<<'EOF'\n*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ c\n@@ d\n k\n\n*** Add File: n\n+x\nEOF",
		"c\nd\nk\n")
	f.Fuzz(func(t *testing.T, text, content string) {
		p, err := Parse(text)
		if err != nil {
			if _, ok := err.(*Error); !ok || p != nil {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		for _, s := range p {
			if s.Path == "" || s.Line < 2 || s.Kind == Update && s.To == "" && len(s.Hunks) == 0 {
				t.Fatalf("%+v", s)
			}
			got, err := s.Update(content)
			if err != nil {
				continue
			}
			adds, removes := 0, 0
			for _, h := range s.Hunks {
				for _, l := range h.Lines {
					switch l.Op {
					case '+':
						adds += len(l.Text) + 2
					case '-':
						removes += len(l.Text)
					}
				}
			}
			if len(got) > len(content)+adds+2 {
				t.Fatalf("%q became %q", content, got)
			}
			if adds+removes == 0 && got != content {
				t.Fatalf("nothing was to change, and %q became %q", content, got)
			}
		}
	})
}
