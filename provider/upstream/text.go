package upstream

import (
	"strings"
	"unicode/utf8"
)

// AppendText appends a text as a JSON string. A request repeats the whole conversation, so this decides how the cost
// of a turn grows with the conversation. Bytes that are not UTF-8 are replaced.
func AppendText(b []byte, text string) []byte {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	b = append(b, '"')
	from := 0 // the text before it is appended
	for i := 0; i < len(text); {
		if i+8 <= len(text) && plain(text[i:i+8]) {
			i += 8
			continue
		}
		c := text[i]
		i++
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(append(b, text[from:i-1]...), '\\')
		from = i
		switch c {
		case '"', '\\':
			b = append(b, c)
		case '\n':
			b = append(b, 'n')
		case '\r':
			b = append(b, 'r')
		case '\t':
			b = append(b, 't')
		default:
			const hex = "0123456789abcdef"
			b = append(b, 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, text[from:]...), '"')
}

// plain reports whether eight bytes stand for themselves in a JSON string. It tests all of them at once: subtracting n
// from each byte sets the highest bit of those below n.
func plain(s string) bool {
	const each, highest = 0x0101010101010101, 0x8080808080808080
	x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	quote, backslash := x^each*'"', x^each*'\\'
	return ((x-each*' ')&^x|(quote-each)&^quote|(backslash-each)&^backslash)&highest == 0
}
