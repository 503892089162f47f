package tui

import (
	"image/color"
	"strings"

	"charm.land/glamour/v2"
	"charm.land/glamour/v2/ansi"
	"charm.land/glamour/v2/styles"
	"charm.land/lipgloss/v2"
	xansi "github.com/charmbracelet/x/ansi"
)

// A look has all parameters of drawing besides the item itself.
type look struct {
	width    int
	light    bool // the terminal has a light background
	unfolded bool // shows thinking, and the output of tools that have ended
}

// A palette has the colours of a look. All but greys are from the terminal's own sixteen colours, because its theme
// makes them readable.
type palette struct {
	dim, strong, you, agent, tool, good, bad, warn, head lipgloss.Style
}

func (l look) palette() palette {
	grey := color.Color(lipgloss.Color("245"))
	if l.light {
		grey = lipgloss.Color("242")
	}
	plain := lipgloss.NewStyle()
	in := func(c string) lipgloss.Style { return plain.Foreground(lipgloss.Color(c)) }
	return palette{dim: plain.Foreground(grey), strong: plain.Bold(true), you: in("4").Bold(true),
		agent: in("5").Bold(true), tool: in("6"), good: in("2"), bad: in("1"), warn: in("3").Bold(true),
		head: plain.Reverse(true)}
}

// newRenderer returns a new Markdown renderer. Each look has one.
func (l look) newRenderer() *glamour.TermRenderer {
	config := styles.DarkStyleConfig
	if l.light {
		config = styles.LightStyleConfig
	}
	var none uint
	config.Document = ansi.StyleBlock{Margin: &none} // text has the default colour of the terminal
	config.CodeBlock.Margin = &none
	config.H1 = ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Bold: config.Heading.Bold,
		Underline: config.Heading.Bold}}
	r, err := glamour.NewTermRenderer(glamour.WithStyles(config), glamour.WithWordWrap(l.width))
	if err != nil {
		return nil // then the text is shown without rendering
	}
	return r
}

// A painter draws items with one look. It keeps the Markdown renderer, because creating one is slow.
type painter struct {
	look
	palette
	renderer *glamour.TermRenderer
}

func newPainter(l look) *painter {
	return &painter{look: l, palette: l.palette(), renderer: l.newRenderer()}
}

// markdown draws untrusted Markdown.
func (p *painter) markdown(text string) []string {
	text = visibleMarkdown(strings.Trim(text, "\n"))
	if text == "" {
		return nil
	}
	if p.renderer == nil {
		return p.wrap(text)
	}
	drawn, err := p.renderer.Render(text)
	if err != nil {
		return p.wrap(text)
	}
	lines := strings.Split(strings.Trim(onlyStyles(drawn), "\n"), "\n")
	for i, l := range lines {
		lines[i] = xansi.Truncate(strings.TrimRight(l, " "), p.width, "…") // tables and code do not wrap
	}
	return lines
}

// wrap breaks an untrusted text into lines of the painter's width.
func (p *painter) wrap(text string) []string { return wrapAt(text, p.width) }

func wrapAt(text string, width int) []string {
	text = strings.ReplaceAll(Visible(strings.TrimRight(text, "\n")), "\t", "    ")
	return strings.Split(xansi.Wrap(text, max(width, 1), " "), "\n")
}

// oneLine returns an untrusted text on one line of at most width columns.
func oneLine(text string, width int) string {
	return xansi.Truncate(Visible(strings.Join(strings.Fields(text), " ")), max(width, 0), "…")
}

// indent puts first before the first line, and the same number of spaces before the others.
func indent(first string, lines []string) []string {
	room := strings.Repeat(" ", lipgloss.Width(first))
	out := make([]string, len(lines))
	for i, l := range lines {
		if out[i] = room + l; i == 0 {
			out[i] = first + l
		}
	}
	return out
}
