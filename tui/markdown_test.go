package tui

import (
	"runtime"
	"strings"
	"testing"

	xansi "github.com/charmbracelet/x/ansi"
)

// TestMarkdown checks what each element of Markdown looks like without its colours.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"paragraphs", "one two\nthree\n\nfour", "one two three|four"},
		{"a hard line end", "one  \ntwo\\\nthree", "one|two|three"},
		{"wrapped", "some words that are longer than a line", "some words that are|longer than a line"},
		{"headings", "# Big\n\ntext\n\n### Small", "Big|text|Small"},
		{"emphasis", "*a* **b** ***c*** ~~d~~ `e*f*`", "a b c d e*f*"},
		{"escapes", `\*a\* &lt;b&gt; &amp;`, "*a* <b> &"},
		{"a list", "- a\n- b\n  - c\n- [x] d\n- [ ] e", "• a|• b|  • c|• [x] d|• [ ] e"},
		{"numbers", "9. a\n10. b\n\n    c", "9. a|10. b|    c"},
		{"a quote", "> a\n> > b", "│ a|│|│ │ b"},
		{"code", "```go\nfunc  f() {\n\treturn\n}\n```\n\n    indented", "  func  f() {|      return|  }|  indented"},
		{"a long line of code", "```\n" + strings.Repeat("x", 30) + "\n```", "  " + strings.Repeat("x", 18) + "|  " + strings.Repeat("x", 12)},
		{"links", "[here](http://b.c) <http://d.e> ![alt](i.png)", "here (http://b.c)|http://d.e alt|(i.png)"},
		{"a link that says where it goes", "[http://b.c](http://b.c)", "http://b.c"},
		{"a table", "| a | b |\n|---|--:|\n| long | 1 |\n| c | 100 |", "a    │   b|─────┼────|long │   1|c    │ 100"},
		{"HTML", "<div>\n<b>x</b>\n</div>\n\na <i>b</i>", "<div>|<b>x</b>|</div>|a <i>b</i>"},
		{"a rule", "a\n\n---\n\nb", "a|────────────────────|b"},
		{"nothing that is drawn", "[a]: http://b.c", "[a]: http://b.c"},
		{"deep quotes", strings.Repeat("> ", 5000) + "x", strings.Repeat("│ ", 7) + "x"},
	} {
		var got []string
		for _, l := range newPainter(look{width: 20}).markdown(c.text) {
			if l = strings.TrimRight(xansi.Strip(l), " "); l != "" {
				got = append(got, l)
			}
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%s: %q, not %q", c.name, s, c.want)
		}
	}
}

// TestMarkdownHasStyles checks that a style holds on every line that it covers, and ends there.
func TestMarkdownHasStyles(t *testing.T) {
	t.Parallel()
	lines := newPainter(look{width: 20}).markdown("**bold words that need two lines** plain `code`")
	want := []string{"\x1b[1mbold words that need\x1b[m", "\x1b[1mtwo lines\x1b[m plain \x1b[36mcode\x1b[m"}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, not %q", lines, want)
	}
}

// TestCodeIsColoured checks the colours of code in a language, and that blocks without a language have one colour.
func TestCodeIsColoured(t *testing.T) {
	t.Parallel()
	dim, word, quoted := "\x1b[38;5;245m", "\x1b[1;35m", "\x1b[32m"
	for _, c := range []struct{ block, part, want string }{
		{"go", `x := f("a \"b\" // c") // why`, quoted + `"a \"b\" // c"`},
		{"go", `x := f("a") // why "it" is`, dim + ` // why "it" is`},
		{"python", "return 'it' # done", dim + " # done"},
		{"python", "return 'it' # done", word + "return"},
		{"python", "return 'it' # done", quoted + "'it'"},
		{"sql", "SELECT a -- all", dim + " -- all"},
		{"sh", "curl https://a.b --fail", "curl https://a.b --fail"},
		{"", "return 'it' # done", "return 'it' # done"},
		{"text", "return 'it'", "return 'it'"},
	} {
		lines := newPainter(look{width: 60}).markdown("```" + c.block + "\n" + c.part + "\n```")
		if len(lines) != 1 || !strings.Contains(lines[0], c.want) || xansi.Strip(lines[0]) != "  "+c.part {
			t.Errorf("%s: %q has no %q", c.part, lines, c.want)
		}
	}
}

// TestTablesCostNoMoreThanTheirText checks tables that would be drawn, or filled up by the parser, far beyond their size.
func TestTablesCostNoMoreThanTheirText(t *testing.T) {
	p := newPainter(look{width: 80})
	for name, words := range map[string]string{
		"a long cell": "|a|\n|-|\n|" + strings.Repeat("x", 30_000) + "|\n" + strings.Repeat("|b|\n", 15_000),
		"many columns": "|" + strings.Repeat("a|", 2000) + "\n|" + strings.Repeat("-|", 2000) + "\n" +
			strings.Repeat("|b|\n", 2000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p.markdown(words)
		runtime.ReadMemStats(&after)
		// Without the limits: 2,361 MB and more. The race detector makes 289 MB of 21 MB.
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 600 {
			t.Errorf("%s: %d bytes of Markdown take %d MB", name, len(words), mb)
		}
	}
}
