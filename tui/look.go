package tui

import (
	"image/color"
	"strings"

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
	dim, strong, you, agent, tool, good, bad, warn, head, title lipgloss.Style
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
		head: plain.Reverse(true), title: in("4").Bold(true)}
}

// A painter draws items with one look.
type painter struct {
	look
	palette
}

func newPainter(l look) *painter { return &painter{l, l.palette()} }

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
