package dialect

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"parley"
	"parley/port"
)

// markdown writes the document. A heading names each speaker.
func (x *Export) markdown() []byte {
	out := fmt.Appendf(nil, "# %s\n\n%s\n\n", noMarkup.Replace(x.Title()), x.origin())
	speaker, marked := "", 0
	for _, p := range x.parts {
		if p.speaker != "" && p.speaker != speaker {
			out = fmt.Appendf(out, "## %s\n\n", noMarkup.Replace(p.speaker))
			speaker = p.speaker
		}
		switch marked += len(p.text); {
		case p.text == "":
		case p.own:
			out = fmt.Appendf(out, "%s\n\n", p.text)
		case len(p.text) > maxMarked || marked > maxAllMarked || port.HasHugeTable(p.text):
			out = fmt.Appendf(out, "%s\n\n", fenced("", p.text))
		default:
			out = fmt.Appendf(out, "%s\n\n", contained(p.text))
		}
		for _, i := range p.images {
			out = fmt.Appendf(out, "> Image (%s, %d bytes)\n\n", i.Type, len(i.Data))
		}
	}
	return out
}

// contained returns Markdown that cannot affect the text after it: no code block or HTML stays open, and no comment
// hides a part of it. Text that cannot be fixed becomes a code block.
func contained(markdown string) string {
	for range 4 { // one comment may hide another
		hiding, ends := readMarkdown(markdown)
		if len(hiding) == 0 && ends {
			return markdown
		}
		for i := len(hiding) - 1; i >= 0; i-- {
			markdown = markdown[:hiding[i]] + `\` + markdown[hiding[i]:]
		}
		if len(hiding) == 0 {
			markdown = closed(markdown)
		}
	}
	if hiding, ends := readMarkdown(markdown); len(hiding) == 0 && ends {
		return markdown
	}
	return fenced("", markdown)
}

var commonMark = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// afterward is a test paragraph after a text. If the parser sees it as a paragraph at the top level, the text leaves
// nothing open.
const afterward = "\n\nafterward"

// readMarkdown returns the positions of HTML that hides text, and whether the text leaves nothing open at its end.
func readMarkdown(markdown string) (hiding []int, ends bool) {
	source := []byte(markdown + afterward)
	root := commonMark.Parse(text.NewReader(source))
	if last, ok := root.LastChild().(*ast.Paragraph); ok {
		ends = "\n\n"+string(last.Lines().Value(source)) == afterward
	}
	hide := func(segments *text.Segments) {
		if segments.Len() == 0 {
			return
		}
		if from := segments.At(0).Start; hides.Match(source[from:]) {
			hiding = append(hiding, from+strings.IndexByte(string(source[from:]), '<'))
		}
	}
	_ = ast.Walk(root, func(n ast.Node, enter bool) (ast.WalkStatus, error) {
		if enter {
			switch n := n.(type) {
			case *ast.HTMLBlock:
				hide(n.Lines())
			case *ast.RawHTML:
				hide(n.Segments)
			}
		}
		return ast.WalkContinue, nil
	})
	return hiding, ends
}

// hides matches HTML whose content is not shown as text: comments, processing instructions, declarations, and elements
// whose content is not Markdown.
var hides = regexp.MustCompile(`^\s*<([!?]|(?i:script|style|pre|textarea)\b)`)

var fence = regexp.MustCompile("^ {0,3}(```+|~~~+)(.*)$")

// closed closes a code block that a text leaves open.
func closed(markdown string) string {
	open := ""
	for line := range strings.Lines(markdown) {
		m := fence.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		switch {
		case m == nil:
		case open == "":
			if m[1][0] == '~' || !strings.Contains(m[2], "`") {
				open = m[1]
			}
		case strings.HasPrefix(m[1], open) && parley.IsBlank(m[2]):
			open = ""
		}
	}
	if open != "" {
		markdown += "\n" + open
	}
	return markdown
}
