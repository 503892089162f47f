package screen

import "strings"

// maxJudged is how many bytes of a value are judged.
const maxJudged = 256

// assignments finds values by their names: NAME=value, "name": "value", name =>
// value, and similar forms.
func (s *scanner) assignments() {
	runEnd := 0 // end of the run of value characters measured last
	for i := 0; i < len(s.text); i++ {
		c := s.text[i]
		if c != '=' && c != ':' && c != ',' && c != '>' && c != '|' && c != '%' {
			continue
		}
		name := s.nameBefore(i)
		if name == "" || c == '%' && !isNumber(name) {
			continue
		}
		kind := s.rules.nameKindOf(name)
		if isNumber(name) && (len(name) == 15 || len(name) == 16) { // an ID, which a key follows
			kind = serviceName
		}
		if kind == harmlessName {
			continue
		}
		begin, quote := s.valueAfter(i)
		end := begin
		if quote != 0 && kind >= secretName {
			end = s.quoted(begin, quote)
		}
		if end == begin || strings.Contains(s.text[begin:end], " ") {
			if runEnd < begin {
				runEnd = begin
			}
			for runEnd < len(s.text) && isValueByte(s.text[runEnd]) {
				runEnd++
			}
			end = runEnd
		}
		value := strings.TrimRight(s.text[begin:end], ".,:=&")
		if strings.HasSuffix(s.text[begin:end], "=") { // padding
			value = s.text[begin:end]
		}
		if kind == unknownName && len(value) >= 12 && !isWords(value[:min(len(value), 64)]) &&
			s.rules.nameKindOf(s.phraseBefore(i)) == serviceName {
			kind = serviceName
		}
		code := begin+len(value) < len(s.text) && strings.IndexByte("([{", s.text[begin+len(value)]) >= 0
		if what := s.judgeValue(kind, value[:min(len(value), maxJudged)], quote, c, i); what != "" && !code &&
			!isPlaceholder(value) {
			s.add(begin, begin+len(value), what)
			i = max(i, begin+len(value)-1)
		}
	}
}

// judgeValue returns the kind of secret that a value is, or "".
func (s *scanner) judgeValue(kind nameKind, value string, quote, op byte, at int) string {
	switch kind {
	case passwordName:
		tight := op == '=' && at+1 < len(s.text) && s.text[at+1] > ' ' // as in an environment file
		if (quote != 0 && (op == '=' || op == ':') || tight) && len(value) >= 6 && !strings.Contains(value, " ") ||
			looksSecret(value, 8) {
			return "password"
		}
	case secretName:
		if looksSecret(value, 10) {
			return "secret"
		}
	case serviceName:
		if looksSecret(value, 12) || len(value) >= 14 && !isWords(value) || isUUID(value) || isNumber(value) &&
			len(value) >= 15 {
			return "secret"
		}
	default:
		if (op == '=' || op == ':') && looksRandom(value, 20) && !isUUID(value) && looksRandom(longestPart(value),
			20) && !isPath(value) {
			return "secret"
		}
	}
	return ""
}

// looksSecret is looksRandom for a value whose name suggests a secret. A few
// digits among letters are enough, or letters whose case changes as in no
// ordinary name.
func looksSecret(v string, n int) bool {
	if len(v) < n || isPath(v) {
		return false
	}
	v = v[:min(len(v), 128)]
	digits, lowers, uppers, changes, turns, pairs := 0, 0, 0, 0, 0, 0
	for i := range len(v) {
		switch c := v[i]; {
		case c >= '0' && c <= '9':
			digits++
			if i > 0 && (v[i-1] < '0' || v[i-1] > '9') {
				changes++
			}
		case c >= 'a' && c <= 'z':
			lowers++
		case isUpper(c):
			uppers++
		}
		if i > 0 && isUpper(v[i]) != isUpper(v[i-1]) {
			turns++
		}
		if i > 0 && isUpper(v[i]) && isUpper(v[i-1]) {
			pairs++
		}
	}
	if len(v) >= 16 && pairs >= 2 && lowers >= 4 && turns*3 >= len(v) {
		return true
	}
	return digits >= 2 && (lowers+uppers >= 2 || len(v) >= 20) && (changes >= 2 || digits*4 >= len(v) || changes == 1 &&
		lowers > 1 && uppers > 1)
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// nameBefore returns the name of an assignment at i: the letters, digits and -
// _ . before it, ignoring spaces and quotes.
func (s *scanner) nameBefore(i int) string {
	for n := 0; n < 8 && i > 0 && strings.IndexByte(" \t\"'`:=?|]", s.text[i-1]) >= 0; n++ {
		i--
	}
	end := i
	for i > 0 && end-i < 64 && (isAlnum(s.text[i-1]) || s.text[i-1] == '_' || s.text[i-1] == '-' ||
		s.text[i-1] == '.') {
		i--
	}
	name := strings.Trim(s.text[i:end], "-._")
	if strings.EqualFold(name, "value") {
		// <add key="Password" value="…">
		before := s.text[max(0, i-60):i]
		before = before[lineStart(before, len(before)):]
		for k := len(before) - 4; k >= 0; k-- {
			if strings.EqualFold(before[k:k+4], "key=") {
				return strings.Trim(before[k+4:], " \"'")
			}
		}
	}
	return name
}

// phraseBefore returns the name together with the words before it.
func (s *scanner) phraseBefore(i int) string {
	from := i
	for from > 0 && i-from < 32 &&
		(isAlnum(s.text[from-1]) || strings.IndexByte(" \t_-.'\"`?:=|", s.text[from-1]) >= 0) {
		from--
	}
	return s.text[from:i]
}

// valueAfter returns where the value of an assignment at i begins, and its
// quote.
func (s *scanner) valueAfter(i int) (begin int, quote byte) {
	i++
	for n := 0; n < 8 && i < len(s.text); n++ {
		switch c := s.text[i]; c {
		case '"', '\'', '`':
			quote = c
		case ' ', '\t', '=', '>', ':', '|', '\\':
		default:
			for _, scheme := range []string{"Bearer ", "Basic ", "Token "} {
				if len(s.text)-i > len(scheme) && strings.EqualFold(s.text[i:i+len(scheme)], scheme) {
					return i + len(scheme), quote
				}
			}
			return i, quote
		}
		i++
	}
	return min(i, len(s.text)), quote
}

// quoted returns the end of a quoted value: its quote, or the end of the line.
func (s *scanner) quoted(begin int, quote byte) int {
	for end := begin; end < len(s.text) && end < begin+300; end++ {
		if s.text[end] == quote || s.text[end] == '\n' {
			return end
		}
	}
	return begin
}

func isValueByte(c byte) bool {
	return isAlnum(c) || strings.IndexByte("_-.+/=~%:@|!#^*", c) >= 0
}

func isUUID(v string) bool {
	if len(v) != 36 {
		return false
	}
	for i := range len(v) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if v[i] != '-' {
				return false
			}
		} else if hexDigit(v[i]) > 15 {
			return false
		}
	}
	return true
}

func isNumber(v string) bool { return strings.Trim(v, "0123456789") == "" }

// isPath reports whether v is a path or a URL. Their parts may look like
// secrets.
func isPath(v string) bool {
	return strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "~/") ||
		strings.Contains(v, "//") ||
		strings.Count(v, "/") > 1 && strings.Contains(v, ".")
}

// longestPart returns the longest part of v between slashes, dots and colons.
func longestPart(v string) string {
	longest := ""
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool {
		return r == '/' || r == '.' || r == ':' ||
			r == '@' || r == '|'
	}) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
