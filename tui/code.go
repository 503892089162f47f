package tui

import (
	"regexp"
	"strings"
	"sync"

	xansi "github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
)

// codeParts finds, in a line of code of almost any language, a comment up to the end of the line, a text in quotes, or
// a word. It knows no language, so it takes some lines for what they are not; only their colours are wrong then.
var codeParts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|\s)(//|#(\s|!)|--\s).*$|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'` + "|`[^`]*`" +
		`|[\pL_][\pL\pN_]*`)
})

// keywords are common to many languages.
var keywords = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(`and as async await begin break case catch class const continue def defer default
		delete do done elif else end enum except export extends fi finally fn for from func function go if impl import in
		interface is lambda let map match mod module mut new not null nil or package pass private protected pub public
		raise range return select self static struct super switch then this throw trait true false try type use var void
		while with yield True False None SELECT FROM WHERE INSERT UPDATE DELETE CREATE TABLE JOIN ORDER BY GROUP`) {
		set[word] = true
	}
	return set
})

// withoutCode are the languages of blocks that are not code.
var withoutCode = map[string]bool{"": true, "text": true, "txt": true, "console": true, "output": true, "log": true}

// code draws a block of code. Long lines are broken at the width.
func (d document) code(n ast.Node, width int) (lines []string) {
	fenced, ok := n.(*ast.FencedCodeBlock)
	coloured := ok && !withoutCode[strings.ToLower(string(fenced.Language(d.source)))]
	for _, line := range d.raw(n) {
		for part := range strings.SplitSeq(xansi.Hardwrap(line, max(width-2, 1), true), "\n") {
			if coloured {
				part = d.codeLine(part)
			} else {
				part = d.tool.Render(part)
			}
			lines = append(lines, "  "+part)
		}
	}
	return lines
}

// codeLine colours comments, texts in quotes and keywords of a line.
func (d document) codeLine(line string) string {
	var b strings.Builder
	from := 0
	for _, at := range codeParts().FindAllStringIndex(line, -1) {
		part := line[at[0]:at[1]]
		style := d.good
		switch {
		case keywords()[part]:
			style = d.agent
		case strings.ContainsAny(part[:1], "\"'`"):
		case strings.Contains(part, "//") || strings.Contains(part, "#") || strings.Contains(part, "--"):
			style = d.dim
		default:
			continue
		}
		b.WriteString(d.tool.Render(line[from:at[0]]))
		b.WriteString(style.Render(part))
		from = at[1]
	}
	b.WriteString(d.tool.Render(line[from:]))
	return b.String()
}
