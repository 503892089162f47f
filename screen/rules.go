package screen

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"parley"
)

// rulesFile is the format of a rules file.
type rulesFile struct {
	Flag  float64             `yaml:"flag"`
	Block float64             `yaml:"block"`
	Words map[string][]string `yaml:"words"`
	Rules []struct {
		Name   string   `yaml:"name"`
		Weight float64  `yaml:"weight"`
		Any    []string `yaml:"any"`
	} `yaml:"rules"`
}

// A rule is a reason to suspect a text, with its weight.
type rule struct {
	name   string
	weight float64
}

// A step is one element of a pattern: a class of words that must come at most
// gap words after the previous step.
type step struct {
	index int32 // in matcher.at; the previous step is index-1
	rule  int16
	gap   int8
	flags flag // required flags of the word
	first bool
	last  bool
}

// A phrase is a member of classes that consists of several words.
type phrase struct {
	classes []int
	words   int
}

type phraseStep struct {
	phrase int
	index  int // in matcher.phraseAt
	first  bool
	last   bool
}

// An entry lists the words that a string of letters may be: as it is, in rot13,
// or backwards. Zero means none.
type entry struct{ plain, rot13, backwards int }

// lengths records, for pairs of bytes, which lengths words have. Most words of
// a text are in no rule, and this check is faster than a map.
type lengths [1 << 16]uint32

func (l *lengths) add(a, b byte, n int)      { l[int(a)<<8|int(b)] |= 1 << min(n, 31) }
func (l *lengths) has(a, b byte, n int) bool { return l[int(a)<<8|int(b)]>>min(n, 31)&1 != 0 }

// grammar is a compiled rules file.
type grammar struct {
	flag, block float64
	rules       []rule

	words    map[string]entry
	leet     map[string]int       // by leetKey
	typos    map[string]int       // by typoKey
	prefixes map[[3]byte][]string // words by their first bytes, longest first
	known    lengths              // of words, by their first two bytes
	shuffled lengths              // of words that may have typos, by their first and last bytes
	classes  [][]int              // of each word
	inPhrase [][]phraseStep       // of each word
	phrases  []phrase
	steps    [][]step // of each class, later steps of a pattern first
	nSteps   int
	nPhrase  int
}

func compile(raw []byte) (*grammar, error) {
	var file rulesFile
	if err := yaml.NewDecoder(bytes.NewReader(raw), yaml.DisallowUnknownField()).Decode(&file); err != nil {
		return nil, &parley.Error{Code: parley.CodeInvalid, Message: "The sentinel's rules cannot be read.",
			Hint: err.Error(), Err: err}
	}
	if file.Flag <= 0 || file.Block < file.Flag || len(file.Rules) == 0 {
		return nil, parley.Errorf(parley.CodeInvalid, "The sentinel's rules need a threshold flag, a threshold block "+
			"not below it, and at least one rule.")
	}
	g := &grammar{flag: file.Flag, block: file.Block, words: map[string]entry{}, leet: map[string]int{},
		typos:    map[string]int{},
		prefixes: map[[3]byte][]string{}, classes: make([][]int, 1), inPhrase: make([][]phraseStep, 1)}
	for name := range file.Words {
		if name != strings.ToUpper(name) {
			return nil, parley.Errorf(parley.CodeInvalid, "The class of words %q must have a name in capitals.", name)
		}
	}
	named := map[string]int{}
	for _, r := range file.Rules {
		if r.Name == "" || r.Weight <= 0 || len(r.Any) == 0 {
			return nil,
				parley.Errorf(parley.CodeInvalid, "The rule %q needs a name, a weight above zero and a pattern.",
					r.Name)
		}
		g.rules = append(g.rules, rule{r.Name, r.Weight})
		for _, pattern := range r.Any {
			if err := g.pattern(len(g.rules)-1, pattern, file.Words, named); err != nil {
				return nil, parley.Errorf(parley.CodeInvalid, "The rule %s has a pattern that cannot be read, %q: %v.",
					r.Name, pattern, err)
			}
		}
	}
	for w := range g.words {
		if len(w) > 1 {
			g.known.add(w[0], w[1], len(w))
		}
	}
	for _, list := range g.steps {
		slices.SortStableFunc(list, func(a, b step) int { return int(b.index - a.index) })
	}
	for _, list := range g.prefixes {
		slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	}
	return g, nil
}

// class adds a class of words and phrases.
func (g *grammar) class(members []string) int {
	class := len(g.steps)
	g.steps = append(g.steps, nil)
	for _, member := range members {
		var ids []int
		r := reader{text: plain(member), each: func(word []byte, _ flag) { ids = append(ids, g.word(string(word))) }}
		r.read()
		if len(ids) == 1 {
			g.classes[ids[0]] = append(g.classes[ids[0]], class)
			continue
		}
		for i, id := range ids {
			g.inPhrase[id] = append(
				[]phraseStep{{phrase: len(g.phrases), index: g.nPhrase, first: i == 0, last: i == len(ids)-1}},
				g.inPhrase[id]...)
			g.nPhrase++
		}
		g.phrases = append(g.phrases, phrase{classes: []int{class}, words: len(ids)})
	}
	return class
}

// word returns the number of a word. It registers a new word in all its
// disguises.
func (g *grammar) word(w string) int {
	if id := g.words[w].plain; id != 0 {
		return id
	}
	id := len(g.classes)
	g.classes = append(g.classes, nil)
	g.inPhrase = append(g.inPhrase, nil)
	e := g.words[w]
	e.plain = id
	g.words[w] = e
	if len(w) >= 2 {
		e = g.words[rot13(w)]
		e.rot13 = id
		g.words[rot13(w)] = e
		e = g.words[backwards(w)]
		e.backwards = id
		g.words[backwards(w)] = e
	}
	g.leet[string(leetKey([]byte(w)))] = id
	if len(w) >= minTypo {
		g.typos[string(typoKey([]byte(w)))] = id
		g.shuffled.add(w[0], w[len(w)-1], len(w))
	}
	if len(w) >= 3 {
		head := [3]byte([]byte(w[:3]))
		g.prefixes[head] = append(g.prefixes[head], w)
	}
	return id
}

// pattern parses one line. It contains words in lower case and classes in
// capitals. a|b means either one. ~3 between two elements allows three words
// between them. ^x matches at the beginning of a sentence, x. at its end, [x]
// and <x> in brackets, and x: before a colon.
func (g *grammar) pattern(rule int, line string, words map[string][]string, named map[string]int) error {
	gap, first := 0, true
	fields := strings.Fields(line)
	for i, field := range fields {
		if n, ok := strings.CutPrefix(field, "~"); ok {
			var err error
			if gap, err = strconv.Atoi(n); err != nil || gap > 30 || first || i == len(fields)-1 {
				return fmt.Errorf("%q is not a gap of at most 30 between two elements", field)
			}
			continue
		}
		var flags flag
		name, element := field, field
		cut := func(prefix, suffix string, f flag) {
			if s, ok := strings.CutPrefix(element, prefix); ok {
				if s, ok := strings.CutSuffix(s, suffix); ok {
					element, flags = s, flags|f
				}
			}
		}
		cut("^", "", starts)
		cut("", ":", labelled)
		cut("", ".", ends)
		cut("[", "]", squared)
		cut("<", ">", angled)
		if element == "" {
			return fmt.Errorf("%q is empty", name)
		}
		class, ok := named[element]
		if !ok {
			var members []string
			for either := range strings.SplitSeq(element, "|") {
				list, isClass := words[either]
				if !isClass && either == strings.ToUpper(either) && either != strings.ToLower(either) {
					return fmt.Errorf("there is no class of words %s", either)
				}
				if !isClass {
					list = []string{strings.ReplaceAll(either, "_", " ")}
				}
				members = append(members, list...)
			}
			class = g.class(members)
			named[element] = class
		}
		g.steps[class] = append(g.steps[class], step{rule: int16(rule), index: int32(g.nSteps), first: first,
			gap: int8(gap), flags: flags, last: i == len(fields)-1})
		g.nSteps++
		gap, first = 0, false
	}
	return nil
}
