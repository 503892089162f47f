package screen

import "strings"

const (
	keyBegins = "-----BEGIN"
	keyEnds   = "-----END"
)

// keys finds private keys in a text. It remembers the positions of the next
// line break and of the next end marker, so that it never searches for them
// repeatedly.
type keys struct {
	text        string
	line, close int // positions of a line break and an end marker, from earlier searches
}

func newKeys(text string) *keys { return &keys{text: text, line: -1, close: -1} }

func (s *scanner) privateKeys() {
	if !strings.Contains(s.text, keyBegins) {
		return
	}
	k := newKeys(s.text)
	for from := 0; ; {
		begin, end, _ := k.next(from)
		if begin < 0 {
			return
		}
		s.add(begin, end, "private_key")
		from = end
	}
}

// next returns where the next private key begins and ends, and whether it may
// continue after the text; begin is -1 if there is none.
func (k *keys) next(from int) (begin, end int, open bool) {
	for {
		i := strings.Index(k.text[from:], keyBegins)
		if i < 0 {
			return -1, 0, false
		}
		begin = from + i
		from = begin + len(keyBegins)
		head := k.text[from:min(len(k.text), from+110)]
		if i = strings.Index(head, "PRIVATE KEY"); i >= 0 && !strings.ContainsAny(head[:i], "\n\\") &&
			!strings.Contains(head[:i], "-----") {
			end, open = k.end(from + i + len("PRIVATE KEY"))
			return begin, end, open
		}
	}
}

// end returns where a key ends whose body continues at from: after its end
// marker, or before the first line that cannot be part of a key.
func (k *keys) end(from int) (end int, open bool) {
	for end = from; ; {
		i := from
		for i < len(k.text) && (isAlnum(k.text[i]) || strings.IndexByte("+/=-\r", k.text[i]) >= 0) {
			i++
		}
		if j := strings.Index(k.text[from:i], keyEnds); j >= 0 {
			return k.closed(from + j)
		}
		switch {
		case i == len(k.text) && i == from:
			return end, true // the line break before it may not belong to the key
		case i == len(k.text):
			return i, true
		case k.text[i] == '\n':
			end, from = i, i+1
			continue
		case strings.HasPrefix(k.text[i:], `\n`):
			end, from = i, i+2
			continue
		}
		// Not base64. The line may still contain the end marker, or be a header.
		k.line = k.find(k.line, i, "\n")
		if k.close = k.find(k.close, i, keyEnds); k.close < k.line {
			return k.closed(k.close)
		}
		if k.text[i] == ':' && i > from || strings.TrimSpace(k.text[from:k.line]) == "" ||
			strings.HasPrefix(k.text[from:], " BLOCK-----") {
			if k.line == len(k.text) {
				return k.line, true
			}
			end, from = k.line, k.line+1
			continue
		}
		return end, k.line == len(k.text)
	}
}

// closed returns the end of an end marker that begins at i: -----END NAME-----.
func (k *keys) closed(i int) (int, bool) {
	i += len(keyEnds)
	for i < len(k.text) && (isAlnum(k.text[i]) || k.text[i] == ' ') {
		i++
	}
	for i < len(k.text) && k.text[i] == '-' {
		i++
	}
	return i, i == len(k.text)
}

// find returns the next position of what at or after from; known is an earlier result.
func (k *keys) find(known, from int, what string) int {
	if known >= from {
		return known
	}
	if i := strings.Index(k.text[from:], what); i >= 0 {
		return from + i
	}
	return len(k.text)
}
