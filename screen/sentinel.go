package screen

import (
	_ "embed"
	"sync"
)

// A Verdict says what should become of a text.
type Verdict string

const (
	Allow Verdict = "allow"
	Flag  Verdict = "flag"  // let it through, and tell people
	Block Verdict = "block" // do not let it through
)

// A Finding is what the sentinel thinks of a text, and why.
type Finding struct {
	Verdict Verdict
	Score   float64  // the weights of the rules that matched, added up, at most 1
	Reason  string   // the rule that says most, as pattern:<name>; empty if none matched
	Rules   []string // all rules that matched, in the order of the rules file
}

// A Sentinel finds attempts to talk a model out of its instructions. It can be
// used by any number of goroutines at once.
type Sentinel struct{ g *grammar }

//go:embed sentinel.yaml
var sentinelRules []byte

// Default is the sentinel with the rules in sentinel.yaml.
var Default = sync.OnceValue(func() *Sentinel {
	s, err := NewSentinel(sentinelRules)
	if err != nil {
		panic(err) // the file is part of the program; a test reads it
	}
	return s
})

// NewSentinel is a sentinel with the rules of a file like sentinel.yaml, whose
// head describes the form.
func NewSentinel(rules []byte) (*Sentinel, error) {
	g, err := compile(rules)
	if err != nil {
		return nil, err
	}
	return &Sentinel{g}, nil
}

const (
	// A long text is not more suspect than a short one because it has more room
	// for weak reasons: only what lies this many words apart is added up.
	reach = 800
	// How much of the earlier texts is looked at, from the end: enough to hold
	// an attack that was cut into pieces, too little to make a scan slow.
	windowBytes = 8 << 10
	windowTexts = 8
	// What an earlier text said by itself was judged when it came. It counts by
	// half, never more than a part of what is needed to block, and only when the
	// new text says something itself.
	earlierCounts = 0.5
	earlierMost   = 0.35
	earlierFrom   = 0.3
)

// Scan judges text, which comes after the texts in window: what was let through
// of the conversation, the oldest first; only the last 8 texts and 8 KiB count. An
// attack that is spread over them is found when its last piece comes. It
// serves for what users say, for what tools return and for the instructions of
// agents alike; what differs is what the caller does about the verdict.
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
