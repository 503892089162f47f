package screen

import (
	"unicode"
	"unicode/utf8"
)

// A flag describes the position of a word in its text.
type flag uint8

const (
	starts   flag = 1 << iota // it begins a sentence or a line
	squared                   // it is in [ ]
	angled                    // it is in < > or | |
	labelled                  // a colon follows
	ends                      // it ends a sentence or a line
	joined                    // it was joined from single letters
)

const (
	longWord   = 24   // longer words are searched for words without spaces
	longestRun = 4096 // of single letters that are joined
)

// A reader splits plain text into words. It calls each for every word, in lower
// case, without apostrophes, with its flags.
type reader struct {
	text string
	each func(word []byte, flags flag)
	word []byte

	spaced []byte // a row of single letters: "i g n o r e"
	breaks []int  // offsets in spaced of wider gaps
	flags  flag   // of the first letter in spaced
	count  int
}

func (r *reader) read() {
	text := r.text
	start := starts
	var before byte // the last mark that was not a space
	gap := 0        // characters since the last word
	for i := 0; i < len(text); {
		c := text[i]
		kind := kinds[c]
		if kind != inWord && !(kind == inLeet && joins(text, i)) {
			i++
			gap++
			switch {
			case kind == isSpace:
				if c == '\n' {
					start = starts
				}
			case kind == endsSentence:
				start, before = starts, c
			default:
				before = c
			}
			continue
		}
		from := i
		r.word = r.word[:0]
		ascii := true
		for i < len(text) {
			c = text[i]
			if k := kinds[c]; k == inLeet && !joins(text, i) || k != inWord && k != inLeet && c != '\'' {
				break
			}
			if c == '\'' {
				i++
				continue
			}
			if c >= utf8.RuneSelf {
				ru, size := utf8.DecodeRuneInString(text[i:])
				if !unicode.IsLetter(ru) && !unicode.IsDigit(ru) && !unicode.IsMark(ru) {
					if i == from {
						i += size
					}
					break
				}
				ascii = false
				r.word = utf8.AppendRune(r.word, unicode.ToLower(ru))
				i += size
				continue
			}
			r.word = append(r.word, lower[c])
			i++
		}
		if len(r.word) == 0 {
			gap++
			start = starts
			continue
		}
		flags := start | standing(before, text, i)
		if ascii && len(r.word) == 1 {
			r.alone(r.word[0], gap, flags)
		} else {
			r.together()
			r.each(r.word, flags)
		}
		start, before, gap = 0, 0, 0
	}
	r.together()
}

// alone stores a single letter.
func (r *reader) alone(c byte, gap int, flags flag) {
	if r.count >= longestRun {
		r.together()
	}
	if r.count == 0 {
		r.flags = flags
	} else if gap > 1 {
		r.breaks = append(r.breaks, len(r.spaced))
	}
	r.spaced = append(r.spaced, c)
	r.count++
}

// together reports the stored single letters: joined to words if there are
// enough of them, otherwise one by one.
func (r *reader) together() {
	if r.count == 0 {
		return
	}
	if r.count < 4 || len(r.breaks) >= r.count-1 {
		for i := range r.spaced {
			r.each(r.spaced[i:i+1], r.flags)
			r.flags = 0
		}
	} else {
		from := 0
		for _, to := range append(r.breaks, len(r.spaced)) {
			r.each(r.spaced[from:to], r.flags|joined)
			from, r.flags = to, 0
		}
	}
	r.spaced, r.breaks, r.count = r.spaced[:0], r.breaks[:0], 0
}

// joins reports whether the mark at i, which may stand for a letter, is inside
// a word.
func joins(text string, i int) bool {
	next := i+1 < len(text) && kinds[text[i+1]] == inWord
	if text[i] == '@' || text[i] == '$' {
		return next
	}
	return next && i > 0 && kinds[text[i-1]] == inWord
}

// standing returns the flags that a word gets from the marks around it.
func standing(before byte, text string, end int) flag {
	for end < len(text) && text[end] == ' ' {
		end++
	}
	if end == len(text) {
		return ends
	}
	switch c := text[end]; {
	case c == ']' && before == '[':
		return squared
	case (c == '>' || c == '|') && (before == '<' || before == '|' || before == '/'):
		return angled
	case c == ':':
		return labelled
	case c == '.' || c == '?' || c == '!' || c == '\n':
		return ends
	}
	return 0
}

type kind uint8

const (
	isMark kind = iota
	isSpace
	endsSentence
	inWord
	inLeet // may replace a letter
)

var kinds = func() (t [256]kind) {
	for c := range t {
		switch {
		case c >= utf8.RuneSelf, c >= '0' && c <= '9', c|0x20 >= 'a' && c|0x20 <= 'z':
			t[c] = inWord
		case c == ' ', c == '\t', c == '\n', c == '\r':
			t[c] = isSpace
		}
	}
	for _, c := range []byte(".!?:;([{<|\"*#-") {
		t[c] = endsSentence
	}
	for _, c := range []byte("@$!|") {
		t[c] = inLeet
	}
	return t
}()

var lower = func() (t [256]byte) {
	for c := range t {
		t[c] = byte(unicode.ToLower(rune(c)))
	}
	return t
}()
