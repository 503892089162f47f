package tui

import (
	"fmt"
	"strings"
)

var callMarks = map[CallState]string{CallWaits: "○", CallRuns: "●", CallDone: "✓", CallFailed: "✗", CallRefused: "⊘",
	CallStopped: "■", CallLost: "?"}

// calls draws a group of calls. The calls of a sub-agent are below the call that started it.
func (p *painter) calls(i *Item) []string {
	var lines []string
	for _, c := range i.Calls {
		render := p.callStyle(c.State)
		room := strings.Repeat("  ", c.Depth)
		line := callMarks[c.State] + " " + c.Line
		lines = append(lines, room+render(oneLine(line, p.width-len(room))))
		lines = append(lines, p.below(c, room+"  ")...)
	}
	return lines
}

func (p *painter) callStyle(s CallState) func(...string) string {
	switch s {
	case CallFailed, CallLost:
		return p.bad.Render
	case CallDone, CallStopped:
		return p.dim.Render
	case CallRefused:
		return p.warn.Render
	}
	return p.tool.Render
}

const liveLines = 5 // lines of the output of a running call

// below draws the lines under a call: the end of its output while it runs, then its short result.
func (p *painter) below(c Call, room string) []string {
	width := p.width - len(room) - 2
	last := func(text string, most int) []string {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		lines := wrapAt(text, width)
		if len(lines) > most {
			hidden := fmt.Sprintf("… %d lines", len(lines)-most)
			lines = append([]string{hidden}, lines[len(lines)-most:]...)
		}
		return indentAll(room+p.dim.Render("│ "), p.each(p.dim.Render, lines))
	}
	switch {
	case c.State == CallRuns:
		return last(c.Output, liveLines)
	case p.unfolded && c.State != CallWaits:
		text := c.Output
		if text == "" {
			text = c.Result
		}
		return last(text, 200)
	case c.State == CallFailed || c.State == CallRefused || c.State == CallLost:
		return last(c.Result, liveLines)
	}
	return nil
}

func indentAll(first string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = first + l
	}
	return out
}

const diffLines = 20 // lines of a changed file, unless the view is unfolded

// changes draws the files that a run changed, with coloured diffs.
func (p *painter) changes(i *Item) []string {
	lines := []string{p.strong.Render(fmt.Sprintf("Changed %s", count(len(i.Files)+i.Omitted, "file")))}
	for _, f := range i.Files {
		lines = append(lines, "  "+p.tool.Render(oneLine(f.Summary+" "+f.Path, p.width-2)))
		diff := p.diff(f.Diff, p.width-4)
		if !p.unfolded && len(diff) > diffLines {
			diff = append(diff[:diffLines:diffLines], p.dim.Render(fmt.Sprintf("… %d lines (Ctrl-T unfolds)",
				len(diff)-diffLines)))
		}
		lines = append(lines, indentAll("    ", diff)...)
	}
	if i.Omitted > 0 {
		lines = append(lines, p.dim.Render(fmt.Sprintf("  … %s", count(i.Omitted, "more file"))))
	}
	return lines
}

// diff draws a diff: added and removed lines have colours.
func (p *painter) diff(text string, width int) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		render := func(s ...string) string { return strings.Join(s, "") }
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "),
			strings.HasPrefix(line, "index "):
			render = p.dim.Render
		case strings.HasPrefix(line, "+"):
			render = p.good.Render
		case strings.HasPrefix(line, "-"):
			render = p.bad.Render
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "*** "):
			render = p.tool.Render
		}
		lines = append(lines, p.each(render, wrapAt(line, width))...)
	}
	return lines
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
