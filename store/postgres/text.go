package postgres

import (
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// A text is a string for a column of type text. Such a column holds only valid
// UTF-8 without NUL, but a Go string may hold any bytes: a strange id from a
// client must not prevent a batch from being stored. Other bytes are escaped
// one to one, so two different ids never become equal.
//
// Bodies need no escaping: in JSON, NUL is written \u0000.
type text string

// escape begins an escaped byte, followed by two hex digits. It is an unused
// control character, and is escaped itself.
const escape = 0x1a

func (t text) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: toColumn(string(t)), Valid: true}, nil
}

func (t *text) ScanText(v pgtype.Text) error {
	*t = text(fromColumn(v.String))
	return nil
}

const hex = "0123456789abcdef"

func toColumn(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, escape) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if c := s[0]; c == 0 || c == escape || r == utf8.RuneError && size == 1 {
			b.Write([]byte{escape, hex[c>>4], hex[c&15]})
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

func fromColumn(s string) string {
	before, rest, found := strings.Cut(s, string(rune(escape)))
	if !found {
		return s
	}
	var b strings.Builder
	for ; found && len(rest) >= 2; before, rest, found = strings.Cut(rest[2:], string(rune(escape))) {
		b.WriteString(before)
		b.WriteByte(byte(strings.IndexByte(hex, rest[0])<<4 | strings.IndexByte(hex, rest[1])))
	}
	b.WriteString(before)
	return b.String()
}
