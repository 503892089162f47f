package tui

import (
	"fmt"
	"strings"
	"testing"

	"parley"
)

// BenchmarkChunk measures one chunk of an answer at the end of a long conversation: folding, drawing the changed item,
// and the screen.
func BenchmarkChunk(b *testing.B) {
	var s script
	for i := range 500 {
		s.ask(fmt.Sprint("question ", i))
		s.say(parley.Text, strings.Repeat("Some **text** of an answer. ", 20))
		s.add(parley.RunFinished{Outcome: parley.Completed})
	}
	s.ask("last")
	out := parley.OutputID(s.add(parley.OutputStarted{Kind: parley.Text}))
	m, _ := tell(sized(newTestModel(), 120, 40), s.events...)
	known, offset := len(s.events), 0
	for b.Loop() {
		text := "word and `code`, "
		if offset%2000 > 1980 {
			text = "the end.\n\nA new paragraph "
		}
		if offset > 20_000 { // start a new long answer
			m.talk.Items[len(m.talk.Items)-1] = &Item{Kind: Answered, Seq: parley.Seq(out), Open: true}
			offset = 0
		}
		s.add(parley.OutputAppended{Output: out, Kind: parley.Text, Offset: offset, Text: text})
		offset += len(text)
		m, _ = tell(m, s.events[known:]...)
		s.events = s.events[:known]
		m.talk.Last = 0 // the script counts from zero again
		_ = m.view()
	}
}
