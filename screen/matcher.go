package screen

import (
	"math"
	"slices"
)

// A matcher is one scan. It passes through the words once. For each step of
// each pattern it remembers only where the step was last reached: any
// continuation of an earlier place also continues a later one. So a scan takes
// linear time, and no text can make it backtrack.
type matcher struct {
	g  *grammar
	at []int // of each step: number of the word after the last match so far

	phraseAt    []int
	phraseFlags []flag // of the first word of a phrase

	now     int // number of the next word
	textAt  int // number of the first word of the text to judge
	matches []int
	matched []bool
	best    float64
	pending []reached
	scratch []byte

	rot13, backwards []disguised
}

type reached struct {
	index int32
	at    int
}

// A disguised word is a word that was found in rot13 or backwards.
type disguised struct {
	word, at int
	flags    flag
}

const never = -1 << 30

func newMatcher(g *grammar) *matcher {
	m := &matcher{g: g, textAt: math.MaxInt, at: make([]int, g.nSteps), phraseAt: make([]int, g.nPhrase),
		phraseFlags: make([]flag, g.nPhrase),
		matches:     make([]int, len(g.rules)), matched: make([]bool, len(g.rules))}
	m.forget()
	return m
}

// forget prepares the matcher for another pass over the same words.
func (m *matcher) forget() {
	for _, list := range [][]int{m.at, m.phraseAt, m.matches} {
		for i := range list {
			list[i] = never
		}
	}
}

// begin marks the end of the earlier texts.
func (m *matcher) begin() { m.textAt = m.now }

func (m *matcher) read(text string) {
	r := reader{text: plain(text), each: m.each}
	r.read()
}

// each handles the next word.
func (m *matcher) each(word []byte, flags flag) {
	var e entry
	known := false
	if len(word) < 2 || m.g.known.has(word[0], word[1], len(word)) {
		e, known = m.g.words[string(word)]
	}
	if !known {
		e.plain = m.disguise(word, flags)
		if e.plain == segmented {
			return
		}
	}
	if e.plain != 0 {
		m.step(e.plain, flags)
	}
	if e.rot13 != 0 {
		m.rot13 = append(m.rot13, disguised{e.rot13, m.now, flags})
	}
	if e.backwards != 0 {
		m.backwards = append(m.backwards, disguised{e.backwards, m.now, flags})
	}
	m.now++
}

// step advances every pattern that waits for this word.
func (m *matcher) step(word int, flags flag) {
	for _, class := range m.g.classes[word] {
		m.reach(class, m.now, flags)
	}
	for _, p := range m.g.inPhrase[word] {
		switch {
		case p.first:
			m.phraseFlags[p.index] = flags
		case m.phraseAt[p.index-1] != m.now:
			continue
		default:
			m.phraseFlags[p.index] = m.phraseFlags[p.index-1]
		}
		m.phraseAt[p.index] = m.now + 1
		if p.last {
			found := m.g.phrases[p.phrase]
			for _, class := range found.classes {
				m.reach(class, m.now+1-found.words, m.phraseFlags[p.index]|flags&^starts)
			}
		}
	}
	for _, r := range m.pending {
		m.at[r.index] = r.at
	}
	m.pending = m.pending[:0]
}

// reach handles a member of a class that begins with word number start and ends
// with the current word.
func (m *matcher) reach(class, start int, flags flag) {
	for _, s := range m.g.steps[class] {
		if s.flags&^flags != 0 {
			continue
		}
		if !s.first {
			if d := start - m.at[s.index-1]; d < 0 || d > int(s.gap) {
				continue
			}
		}
		if s.last {
			m.match(int(s.rule))
		} else {
			m.pending = append(m.pending, reached{s.index, m.now + 1})
		}
	}
}

func (m *matcher) match(rule int) {
	if m.matches[rule] == m.now {
		return
	}
	m.matches[rule] = m.now
	if m.now < m.textAt {
		return
	}
	m.matched[rule] = true
	fresh, earlier := 0.0, 0.0
	for i, at := range m.matches {
		switch {
		case at < m.now-reach:
		case at >= m.textAt:
			fresh += m.g.rules[i].weight
		default:
			earlier += m.g.rules[i].weight
		}
	}
	if fresh >= earlierFrom {
		fresh += min(earlierCounts*earlier, earlierMost)
	}
	m.best = max(m.best, fresh)
}

// disguises makes further passes over words that may be in rot13 or backwards,
// word by word or as a whole. It stops when the text is blocked.
func (m *matcher) disguises() {
	m.again(m.rot13)
	m.again(m.backwards)
	slices.Reverse(m.backwards)
	for i := range m.backwards {
		w := &m.backwards[i]
		w.at = m.textAt + m.now - 1 - w.at
		w.flags = turned(w.flags)
	}
	m.again(m.backwards)
}

func (m *matcher) again(words []disguised) {
	if len(words) < 3 {
		return
	}
	m.forget()
	end := m.now
	for _, w := range words {
		if m.best >= m.g.block {
			break
		}
		m.now = w.at
		m.step(w.word, w.flags)
	}
	m.now = end
}

// turned returns the flags of a word in a text that is read backwards.
func turned(f flag) (back flag) {
	if f&starts != 0 {
		back |= ends
	}
	if f&ends != 0 {
		back |= starts
	}
	return back
}
