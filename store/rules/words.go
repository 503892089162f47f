package rules

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Both stores index the words that Words finds, so that a query finds the same messages in both.
//
// A word is a run of letters and digits. Chinese, Japanese, Thai, Lao, Khmer and Burmese do not put spaces between
// words: each character is a word, and several of them in a query are a phrase. Case, diacritics, and differences such
// as the width of letters do not count.

// maxWord is the length of the longest word, in bytes; longer ones are cut, in texts and in queries alike.
const maxWord = 64

// A Word is a word of a text, and where it is, in bytes.
type Word struct {
	Text       string // as it is indexed
	Start, End int
}

// Words lists the words of a text in order.
func Words(text string) iter.Seq[Word] {
	return func(yield func(Word) bool) {
		start, plain, apart := -1, true, false // of the word under way
		end := func(at int) bool {
			if start < 0 {
				return true
			}
			w := Word{foldWord(text[start:at], plain), start, at}
			start, plain, apart = -1, true, false
			return w.Text == "" || yield(w)
		}
		for i, r := range text {
			switch {
			case r < utf8.RuneSelf:
				if !asciiWord(byte(r)) || apart {
					if !end(i) {
						return
					}
				}
				if asciiWord(byte(r)) && start < 0 {
					start = i
				}
			case unicode.IsMark(r):
				plain = false // of the word before it
			case unicode.Is(spaceless, r):
				if !end(i) {
					return
				}
				start, plain, apart = i, false, true
			case unicode.IsLetter(r) || unicode.IsNumber(r):
				if apart && !end(i) {
					return
				}
				if start < 0 {
					start = i
				}
				plain = false
			default:
				if !end(i) {
					return
				}
			}
		}
		end(len(text))
	}
}

func asciiWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// spaceless has the characters of scripts without spaces between words.
var spaceless = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0e00, 0x0eff, 1}, // Thai, Lao
		{0x1000, 0x109f, 1}, // Burmese
		{0x1780, 0x17ff, 1}, // Khmer
		{0x3005, 0x3007, 1},
		{0x3040, 0x30ff, 1}, // Hiragana, Katakana
		{0x31f0, 0x31ff, 1},
		{0x3400, 0x4dbf, 1}, // Han
		{0x4e00, 0x9fff, 1},
		{0xf900, 0xfaff, 1},
		{0xff66, 0xff9f, 1},
	},
	R32: []unicode.Range32{{0x1b000, 0x1b16f, 1}, {0x20000, 0x3ffff, 1}},
}

// foldWord returns a word as it is indexed. plain says that it has only ASCII characters. The result has no ASCII
// characters but letters and digits, so it has no meaning in a query language.
func foldWord(word string, plain bool) string {
	if plain {
		return cutWord(strings.ToLower(word))
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(word) {
		if !unicode.Is(diacritics, r) {
			b.WriteRune(r)
		}
	}
	folded := norm.NFKC.String(cases.Fold().String(b.String()))
	return cutWord(strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && !asciiWord(byte(r)) || unicode.IsSpace(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, folded))
}

func cutWord(word string) string {
	if len(word) <= maxWord {
		return word
	}
	n := maxWord
	for n > 0 && !utf8.RuneStart(word[n]) {
		n--
	}
	return word[:n]
}

// diacritics are marks that readers of a language may leave out: accents, and the points of Hebrew and Arabic.
var diacritics = &unicode.RangeTable{R16: []unicode.Range16{
	{0x0300, 0x036f, 1}, {0x0591, 0x05c7, 1}, {0x064b, 0x065f, 1}, {0x0670, 0x0670, 1}, {0x1ab0, 0x1aff, 1},
	{0x1dc0, 0x1dff, 1}, {0x20d0, 0x20ff, 1},
}}
