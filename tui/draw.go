package tui

import (
	"fmt"
	"strings"
	"time"

	"parley"
)

// A block is the last drawing of an item, so that only changed items are drawn again.
type block struct {
	item  *Item
	look  look
	lines []string
	// For an unfinished answer: the beginning that cannot change any more.
	settled      int // length of its text, in bytes
	settledLines []string
}

// draw draws an item. old is the previous block at this place; draw reuses what has not changed.
func (p *painter) draw(i *Item, old block) block {
	if old.item == i && old.look == p.look {
		return old
	}
	b := block{item: i, look: p.look}
	switch i.Kind {
	case Said:
		b.lines = p.said(i)
	case Answered:
		return p.answer(i, old)
	case Thought:
		b.lines = p.thought(i)
	case Worked:
		b.lines = p.calls(i)
	case Planned:
		b.lines = p.plan(i.Plan)
	case Changed:
		b.lines = p.changes(i)
	case Noted:
		b.lines = p.each(p.dim.Render, p.wrap(i.Text))
	case Troubled:
		b.lines = indent(p.bad.Render("! "), p.each(p.bad.Render, wrapAt(i.Text, p.width-2)))
	}
	b.lines = append(b.lines, "")
	return b
}

func (p *painter) each(render func(...string) string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = render(l)
	}
	return out
}

func (p *painter) said(i *Item) []string {
	mark := p.you.Render("› ")
	if i.Synthetic {
		mark = p.dim.Render("⏱ ")
	}
	lines := indent(mark, p.each(p.strong.Render, wrapAt(i.Text, p.width-2)))
	if i.Images > 0 {
		lines = append(lines, p.dim.Render("  ("+count(i.Images, "image")+")"))
	}
	return lines
}

// answer draws Markdown. While the text is streamed, each complete paragraph is drawn once.
func (p *painter) answer(i *Item, old block) block {
	b := block{item: i, look: p.look}
	if !i.Open {
		b.lines = p.markdown(i.Text)
		if i.Cut {
			b.lines = append(b.lines, p.dim.Render("(the answer breaks off here)"))
		}
		b.lines = append(b.lines, "")
		return b
	}
	if old.item != nil && old.item.Seq == i.Seq && old.look == p.look && old.settled <= len(i.Text) &&
		strings.HasPrefix(i.Text, old.item.Text[:old.settled]) {
		b.settled, b.settledLines = old.settled, old.settledLines
	}
	if at := b.settled + settledPart(i.Text[b.settled:]); at > b.settled {
		if drawn := p.markdown(i.Text[b.settled:at]); len(drawn) > 0 {
			b.settledLines = append(append(b.settledLines[:len(b.settledLines):len(b.settledLines)], drawn...), "")
		}
		b.settled = at
	}
	b.lines = append(b.settledLines[:len(b.settledLines):len(b.settledLines)], p.markdown(i.Text[b.settled:])...)
	b.lines = append(b.lines, "")
	return b
}

// settledPart returns the length of the beginning of a Markdown text that later text cannot change. It ends at the last
// empty line outside of code, unless a list or an indented line follows.
func settledPart(text string) int {
	at, settled, fence, empty := 0, 0, "", false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if trimmed == fence {
				fence = ""
			}
			empty = false
		case trimmed == "":
			empty = true
		default:
			if empty && strings.HasSuffix(line, "\n") && !continues(line) {
				settled = at
			}
			empty = false
			if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
				fence = trimmed[:3]
			}
		}
		at += len(line)
	}
	return settled
}

// continues reports whether a line after an empty line may belong to the text before it.
func continues(line string) bool {
	return strings.ContainsAny(line[:1], " \t-*+>|0123456789")
}

func (p *painter) thought(i *Item) []string {
	title := "Thinking…"
	if !i.Open {
		title = "Thought for " + span(i.Ended.Sub(i.Began))
	}
	lines := []string{p.dim.Render("∴ " + title)}
	if i.Open || p.unfolded {
		lines = append(lines, indent(p.dim.Render("│ "), p.each(p.dim.Italic(true).Render,
			wrapAt(i.Text, p.width-2)))...)
	}
	return lines
}

// span formats a duration for users.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", max(d, 0).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

var itemMarks = map[parley.ItemStatus]string{parley.ItemPending: "☐", parley.ItemInProgress: "◐",
	parley.ItemDone: "☑", parley.ItemSkipped: "⊘"}

func (p *painter) plan(plan parley.Plan) []string {
	lines := indent(p.agent.Render("Plan "), wrapAt("("+string(plan.Status)+") "+plan.Summary, p.width-5))
	if plan.Text != "" {
		return append(lines, p.markdown(plan.Text)...)
	}
	for _, item := range plan.Items {
		render := p.strong.Render
		switch item.Status {
		case parley.ItemDone, parley.ItemSkipped:
			render = p.dim.Render
		case parley.ItemPending:
			render = func(s ...string) string { return strings.Join(s, "") }
		}
		lines = append(lines, indent("  "+itemMarks[item.Status]+" ", p.each(render, wrapAt(item.Title, p.width-4)))...)
	}
	return lines
}
