package rules

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/port"
)

// A Term is a part of a query: words that must follow each other.
type Term struct {
	Words  []string
	Prefix bool // the last word may be the beginning of a longer one
}

// maxTerms and maxTermWords bound a query. Terms and words beyond them are ignored.
const (
	maxTerms     = 16
	maxTermWords = 32
)

// Terms reads a query: words, and phrases in double quotes. Every text is a query; one without any word has no terms
// and finds nothing. A quote that is not closed, as while a person types, is a phrase whose last word may go on.
func Terms(query string) (terms []Term) {
	add := func(text string, prefix bool) {
		t := Term{Prefix: prefix}
		for w := range Words(text) {
			if len(t.Words) < maxTermWords {
				t.Words = append(t.Words, w.Text)
			}
		}
		if len(t.Words) > 0 && len(terms) < maxTerms {
			terms = append(terms, t)
		}
	}
	for quoted, rest, more := false, query, true; more; quoted = !quoted {
		var part string
		part, rest, more = cutQuote(rest)
		if quoted {
			add(part, !more)
			continue
		}
		for _, word := range strings.FieldsFunc(part, unicode.IsSpace) {
			add(word, true)
		}
	}
	return terms
}

func cutQuote(text string) (before, after string, found bool) {
	i := strings.IndexAny(text, "\"“”„«»")
	if i < 0 {
		return text, "", false
	}
	_, size := utf8.DecodeRuneInString(text[i:])
	return text[:i], text[i+size:], true
}

// passageRunes is the approximate length of a passage. passageBefore is how much of it comes before the first match.
const (
	passageRunes  = 200
	passageBefore = 60
)

// PassageOf returns the part of a text around the first match of a query, and its marks; false: a term is not in the
// text.
func PassageOf(text string, terms []Term) (passage string, marks []port.Mark, ok bool) {
	var words []Word
	for w := range Words(text) {
		words = append(words, w)
	}
	var spans [][2]int // of words, in bytes of text
	first := len(text)
	for _, t := range terms {
		found := false
		for i := range words {
			if t.matches(words[i:]) {
				span := [2]int{words[i].Start, words[i+len(t.Words)-1].End}
				spans, found = append(spans, span), true
				first = min(first, span[0])
			}
		}
		if !found {
			return "", nil, false
		}
	}
	if len(spans) == 0 {
		return "", nil, false
	}
	from := backRunes(text, first, passageBefore)
	marked := make([]bool, len(text)+1)
	for _, s := range spans {
		for i := s[0]; i < s[1]; i++ {
			marked[i] = true
		}
	}
	return windowOf(text, from, marked)
}

func (t Term) matches(words []Word) bool {
	if len(words) < len(t.Words) {
		return false
	}
	last := len(t.Words) - 1
	for i, want := range t.Words {
		if got := words[i].Text; got != want && !(i == last && t.Prefix && strings.HasPrefix(got, want)) {
			return false
		}
	}
	return true
}

// backRunes returns a place at most n characters before another, at the beginning of a word.
func backRunes(text string, at, n int) int {
	from := at
	for ; n > 0 && from > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	if from > 0 {
		if i := strings.IndexFunc(text[from:at], unicode.IsSpace); i >= 0 {
			from += i
		}
	}
	return from
}

// windowOf returns the passage: white space becomes one space, and an ellipsis stands for text that is left out.
func windowOf(text string, from int, marked []bool) (string, []port.Mark, bool) {
	var b strings.Builder
	var marks []port.Mark
	n, space := 0, false
	if from > 0 {
		b.WriteString("…")
		n++
	}
	for i, r := range text[from:] {
		at := from + i
		if unicode.IsSpace(r) {
			space = n > 0
			continue
		}
		if n >= passageRunes && !marked[at] {
			b.WriteString("…")
			break
		}
		if space {
			b.WriteByte(' ')
			n++
			if marked[at] && len(marks) > 0 && marks[len(marks)-1].End == n-1 && marked[at-1] {
				marks[len(marks)-1].End = n // the space inside a phrase
			}
			space = false
		}
		b.WriteRune(r)
		switch last := len(marks) - 1; {
		case !marked[at]:
		case last >= 0 && marks[last].End == n:
			marks[last].End = n + 1
		default:
			marks = append(marks, port.Mark{Start: n, End: n + 1})
		}
		n++
	}
	return b.String(), marks, true
}

// IndexText returns the text that SQLite indexes: the words of a message, with spaces between them.
func IndexText(text string) string {
	var b strings.Builder
	for w := range Words(text) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.Text)
	}
	return b.String()
}

// vectorBytes bounds the vector of a message. PostgreSQL takes no more than a megabyte.
const vectorBytes = 768 << 10

// IndexVector returns the tsvector that PostgreSQL keeps of a message, as text. It notes the places of the first 256
// occurrences of a word, up to the 16,383rd word: phrases behind those are not found. If a message has very many
// different words, only the first ones are found.
func IndexVector(text string) string {
	const maxPlaces, maxPlace = 256, 16_383
	places, order, size, n := map[string][]int{}, []string(nil), 0, 0
	for w := range Words(text) {
		n++
		have, known := places[w.Text]
		if !known {
			if size += len(w.Text) + 16; size > vectorBytes {
				break
			}
			order = append(order, w.Text)
		}
		if len(have) < maxPlaces && n < maxPlace {
			have = append(have, n)
			size += 2
		}
		places[w.Text] = have
	}
	var b strings.Builder
	for _, word := range order {
		fmt.Fprintf(&b, "'%s'", word)
		for i, place := range places[word] {
			b.WriteByte(":,"[min(i, 1)])
			fmt.Fprint(&b, place)
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// MatchQuery returns a query in the syntax of SQLite's FTS5. Words have no characters with a meaning there.
func MatchQuery(terms []Term) string { return joinTerms(terms, `"`, ` `, `"`, ` *`, ` AND `) }

// VectorQuery returns a query as a tsquery of PostgreSQL.
func VectorQuery(terms []Term) string { return joinTerms(terms, `'`, `' <-> '`, `'`, `:*`, ` & `) }

func joinTerms(terms []Term, open, next, end, prefix, and string) string {
	list := make([]string, len(terms))
	for i, t := range terms {
		list[i] = open + strings.Join(t.Words, next) + end
		if t.Prefix {
			list[i] += prefix
		}
	}
	return strings.Join(list, and)
}
