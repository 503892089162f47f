package tui

import (
	"fmt"
	"html"
	"strings"
	"sync"

	"charm.land/lipgloss/v2"
	xansi "github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"parley/port"
)

// narrow is the width below which quotes and lists are not indented further, so that deep ones cost no more than
// others.
const narrow = 8

// markdownParser returns the parser of all painters. Making it is slow.
var markdownParser = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
})

// markdown draws untrusted Markdown.
func (p *painter) markdown(words string) []string {
	words = visibleMarkdown(strings.Trim(words, "\n"))
	if words == "" {
		return nil
	}
	if port.HasHugeTable(words) {
		return p.wrap(words)
	}
	source := []byte(words)
	d := document{p.palette, source, p.width}
	lines := d.blocks(markdownParser().Parse(text.NewReader(source)), p.width, true)
	if len(lines) == 0 { // for example only definitions of links
		return p.wrap(words)
	}
	for i, l := range lines {
		lines[i] = xansi.Truncate(strings.TrimRight(onlyStyles(l), " "), p.width, "…") // tables do not wrap
	}
	return lines
}

// A document is Markdown that is being drawn.
type document struct {
	palette
	source []byte
	most   int // width behind which lines are cut
}

// blocks draws the blocks of a node. If they are loose, an empty line is between them.
func (d document) blocks(n ast.Node, width int, loose bool) (lines []string) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if loose && len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, d.block(c, max(width, 1))...)
	}
	return lines
}

func (d document) block(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		style := d.title
		if n.Level == 1 {
			style = style.Underline(true)
		}
		return d.wrapped(n, style, width)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		return d.code(n, width)
	case *ast.HTMLBlock:
		lines := d.raw(n)
		if n.HasClosure() {
			lines = append(lines, strings.TrimRight(string(n.ClosureLine.Value(d.source)), "\n"))
		}
		return lines
	case *ast.ThematicBreak:
		return []string{d.dim.Render(strings.Repeat("─", width))}
	case *ast.Blockquote:
		if width < narrow {
			return d.blocks(n, width, true)
		}
		return indentAll(d.dim.Render("│ "), d.blocks(n, width-2, true))
	case *ast.List:
		return d.list(n, width)
	case *extast.Table:
		return d.table(n)
	}
	if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeBlock {
		return d.blocks(n, width, true)
	}
	return d.wrapped(n, lipgloss.NewStyle(), width)
}

// raw returns the lines of a block as they were written.
func (d document) raw(n ast.Node) []string {
	lines := make([]string, n.Lines().Len())
	for i := range lines {
		at := n.Lines().At(i)
		lines[i] = strings.ReplaceAll(strings.TrimRight(string(at.Value(d.source)), "\n"), "\t", "    ")
	}
	return lines
}

func (d document) list(n *ast.List, width int) (lines []string) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		if !n.IsTight && len(lines) > 0 {
			lines = append(lines, "")
		}
		drawn := d.blocks(item, width-len([]rune(mark)), !n.IsTight)
		if len(drawn) == 0 {
			drawn = []string{""}
		}
		if width >= narrow {
			drawn = indent(mark, drawn)
		}
		lines = append(lines, drawn...)
	}
	return lines
}

// table draws columns that are as wide as their widest cell, but not wider than what is shown: otherwise one long cell
// would cost as much for each row.
func (d document) table(n *extast.Table) (lines []string) {
	var rows [][]string
	var widths []int
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		style := lipgloss.NewStyle()
		if row.Kind() == extast.KindTableHeader {
			style = d.strong
		}
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			words := strings.ReplaceAll(d.inline(cell, style), "\n", " ")
			if cells = append(cells, words); len(cells) > len(widths) {
				widths = append(widths, 0)
			}
			widths[len(cells)-1] = min(max(widths[len(cells)-1], lipgloss.Width(words)), d.most)
		}
		rows = append(rows, cells)
	}
	for i, cells := range rows {
		for c, words := range cells {
			room := strings.Repeat(" ", max(widths[c]-lipgloss.Width(words), 0))
			if c < len(n.Alignments) && n.Alignments[c] == extast.AlignRight {
				cells[c] = room + words
			} else {
				cells[c] = words + room
			}
		}
		lines = append(lines, strings.Join(cells, d.dim.Render(" │ ")))
		if i == 0 {
			rules := make([]string, len(widths))
			for c, w := range widths {
				rules[c] = strings.Repeat("─", w)
			}
			lines = append(lines, d.dim.Render(strings.Join(rules, "─┼─")))
		}
	}
	return lines
}

// wrapped draws the words of a block.
func (d document) wrapped(n ast.Node, style lipgloss.Style, width int) []string {
	words := d.inline(n, style)
	if words == "" {
		return nil
	}
	return strings.Split(lipgloss.Wrap(words, width, " "), "\n")
}

// inline draws what is inside a block, in one style.
func (d document) inline(n ast.Node, style lipgloss.Style) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.WriteString(d.words(c.Segment.Value(d.source), style))
			switch {
			case c.HardLineBreak():
				b.WriteByte('\n')
			case c.SoftLineBreak():
				b.WriteByte(' ')
			}
		case *ast.String:
			b.WriteString(d.words(c.Value, style))
		case *ast.CodeSpan:
			b.WriteString(d.tool.Render(d.codeSpan(c)))
		case *ast.Emphasis:
			if c.Level == 1 {
				b.WriteString(d.inline(c, style.Italic(true)))
			} else {
				b.WriteString(d.inline(c, style.Bold(true)))
			}
		case *extast.Strikethrough:
			b.WriteString(d.inline(c, style.Strikethrough(true)))
		case *extast.TaskCheckBox:
			if c.IsChecked {
				b.WriteString("[x] ")
			} else {
				b.WriteString("[ ] ")
			}
		case *ast.AutoLink:
			b.WriteString(style.Underline(true).Render(string(c.URL(d.source))))
		case *ast.Link:
			b.WriteString(d.linked(d.inline(c, style.Underline(true)), c.Destination))
		case *ast.Image:
			b.WriteString(d.linked(d.inline(c, style.Underline(true)), c.Destination))
		case *ast.RawHTML:
			for i := range c.Segments.Len() {
				at := c.Segments.At(i)
				b.WriteString(strings.ReplaceAll(string(at.Value(d.source)), "\n", " "))
			}
		default:
			b.WriteString(d.inline(c, style))
		}
	}
	return b.String()
}

// linked shows the address of a link behind its words, because the words may show another one.
func (d document) linked(words string, to []byte) string {
	address := html.UnescapeString(string(util.UnescapePunctuations(to)))
	if xansi.Strip(words) == address {
		return words
	}
	return strings.TrimLeft(words+" "+d.dim.Render("("+address+")"), " ")
}

// words draws text with character references and escapes.
func (d document) words(raw []byte, style lipgloss.Style) string {
	words := html.UnescapeString(string(util.UnescapePunctuations(raw)))
	if words == "" {
		return ""
	}
	return style.Render(words)
}

func (d document) codeSpan(n *ast.CodeSpan) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(d.source))
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}
