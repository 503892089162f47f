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

// A look is everything besides an item that decides how the item is drawn.
type look struct {
	width    int
	light    bool // the background of the terminal
	unfolded bool // thinking, and the output of tools that have ended
}

// A palette has the colours of a look. They are those of the terminal's own sixteen, which its theme makes readable,
// except for greys.
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

// newRenderer is a renderer of Markdown. One is made for each look.
func (l look) newRenderer() *glamour.TermRenderer {
	config := styles.DarkStyleConfig
	if l.light {
		config = styles.LightStyleConfig
	}
	var none uint
	config.Document = ansi.StyleBlock{Margin: &none} // text has the colour of the terminal
	config.CodeBlock.Margin = &none
	config.H1 = ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Bold: config.Heading.Bold,
		Underline: config.Heading.Bold}}
	r, err := glamour.NewTermRenderer(glamour.WithStyles(config), glamour.WithWordWrap(l.width))
	if err != nil {
		return nil // the text is shown as it is
	}
	return r
}

// A painter draws items of one look. It keeps the renderer of Markdown, which is costly to make.
type painter struct {
	look
	palette
	renderer *glamour.TermRenderer
}

func newPainter(l look) *painter {
	return &painter{look: l, palette: l.palette(), renderer: l.newRenderer()}
}

// markdown draws Markdown that may come from anywhere.
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

// wrap breaks a text that may come from anywhere into lines of the width.
func (p *painter) wrap(text string) []string { return wrapAt(text, p.width) }

func wrapAt(text string, width int) []string {
	text = strings.ReplaceAll(Visible(strings.TrimRight(text, "\n")), "\t", "    ")
	return strings.Split(xansi.Wrap(text, max(width, 1), " "), "\n")
}

// oneLine is a text that may come from anywhere on one line of at most a width.
func oneLine(text string, width int) string {
	return xansi.Truncate(Visible(strings.Join(strings.Fields(text), " ")), max(width, 0), "…")
}

// indent puts something in front of the first line, and as much room in front of the others.
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
