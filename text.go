package parley

import (
	"strings"
	"unicode"
)

// CleanText drops NUL and the C0 controls other than tab, newline and return.
// Everything else is kept byte for byte.
func CleanText(s string) string {
	if strings.IndexFunc(s, dropped) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x80 || !dropped(rune(c)) {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func dropped(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' && r != '\r'
}

// IsBlank reports whether a person would see nothing in s.
func IsBlank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) && r != '\u2800' && r != '\u3164' && r != '\u115f' &&
			r != '\u1160'
	}) < 0
}
