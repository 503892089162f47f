package parley

import (
	"encoding/json"
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
		return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) && r != '\u2800' && r != '\u3164' && r != '\u115f' && r != '\u1160'
	}) < 0
}

// denial is the result the model gets for a call that a person did not allow.
func denial(b ApprovalDecided) string {
	switch {
	case b.Decision == AllowOnce || b.Decision == AllowAlways:
		return ""
	case b.Note != "":
		return "A person did not allow this: " + b.Note
	}
	return "A person did not allow this."
}

// answerText is the result the model gets for a question.
func answerText(b QuestionAnswered) string {
	if b.Ending != Answered {
		return "Nobody answered: the question " + map[CardEnding]string{
			QuestionExpired: "expired", QuestionCancelled: "was cancelled"}[b.Ending] + "."
	}
	raw, _ := json.Marshal(map[string]any{"answers": b.Answers}) // strings only: cannot fail
	return string(raw)
}
