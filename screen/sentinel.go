package screen

import (
	_ "embed"
	"sync"
)

// A Verdict is the sentinel's decision about a text.
type Verdict string

const (
	Allow Verdict = "allow"
	Flag  Verdict = "flag"  // let it pass, and tell people
	Block Verdict = "block" // do not let it pass
)

// A Finding is the sentinel's result for a text.
type Finding struct {
	Verdict Verdict
	Score   float64  // sum of the weights of the rules that matched, at most 1
	Reason  string   // the rule with the greatest weight, as pattern:<name>; empty if none matched
	Rules   []string // all rules that matched, in the order of the rules file
}

// A Sentinel finds prompt-injection attempts. It is safe for concurrent use.
type Sentinel struct{ g *grammar }

//go:embed sentinel.yaml
var sentinelRules []byte

// Default returns the sentinel with the rules in sentinel.yaml.
var Default = sync.OnceValue(func() *Sentinel {
	s, err := NewSentinel(sentinelRules)
	if err != nil {
		panic(err) // the file is part of the program; a test reads it
	}
	return s
})

// NewSentinel returns a sentinel with the rules of a file like sentinel.yaml,
// whose header describes the format.
func NewSentinel(rules []byte) (*Sentinel, error) {
	g, err := compile(rules)
	if err != nil {
		return nil, err
	}
	return &Sentinel{g}, nil
}

const (
	// A long text has more room for weak reasons than a short one. That alone
	// does not make it suspect: only reasons within this many words are added
	// up.
	reach = 800
	// Limits on the earlier texts, from the end: enough to contain an attack
	// that was split, too little to slow down a scan.
	windowBytes = 8 << 10
	windowTexts = 8
	// An earlier text was judged when it came. Its reasons count half, up to a
	// limit below the threshold for blocking, and only if the new text has
	// reasons of its own.
	earlierCounts = 0.5
	earlierMost   = 0.35
	earlierFrom   = 0.3
)

// Scan judges text in the light of window: the earlier texts of the
// conversation that were let through, oldest first. Only the last 8 texts and 8
// KiB count. If an attack is spread over several texts, Scan finds it when the
// last part comes. It judges messages of users, results of tools and
// instructions of agents in the same way; the caller decides how to treat each.
func (s *Sentinel) Scan(window []string, text string) Finding {
	m := newMatcher(s.g)
	window = window[max(0, len(window)-windowTexts):]
	room := windowBytes
	from := len(window)
	for from > 0 && room > 0 {
		from--
		room -= len(window[from])
	}
	for i, w := range window[from:] {
		if i == 0 && room < 0 {
			w = w[-room:]
		}
		m.read(w)
	}
	m.begin()
	m.read(text)
	m.disguises()
	return s.judge(m)
}

func (s *Sentinel) judge(m *matcher) Finding {
	f := Finding{Verdict: Allow, Score: min(m.best, 1)}
	top := 0.0
	for i, r := range s.g.rules {
		if m.matched[i] {
			f.Rules = append(f.Rules, r.name)
			if r.weight > top {
				top, f.Reason = r.weight, "pattern:"+r.name
			}
		}
	}
	switch {
	case m.best >= s.g.block:
		f.Verdict = Block
	case m.best >= s.g.flag:
		f.Verdict = Flag
	}
	return f
}
