package screen

// maxGap is how many bytes may separate two characters of a token. A longer gap
// counts as other text: without a limit, the first letter of a token could hold
// back all following text.
const maxGap = 64

// A Filter passes text on piece by piece until a token would leave with it. It
// finds the token in any case, and with any characters between its characters
// except letters and digits: spaces, dots, line ends, invisible characters. It
// also finds the token backwards, in hexadecimal, in base64 at any alignment,
// and with characters written as %61, \x61, \u0061 or &#97;. It holds back only
// the end of the text that can still become one of these.
type Filter struct {
	letters cursor // in lower case
	decoded cursor // the same, after decoding escapes
	base64  cursor

	escape   [8]byte // the current, incomplete escape
	escaping int
	escapeAt int

	pos    int    // bytes taken
	held   []byte // the last of them, held back so far
	leaked bool
}

// A cursor is a position in a trie, with the positions of the characters that
// led there.
type cursor struct {
	trie *trie
	at   int32
	last int   // position of the last character
	from []int // a ring: the beginnings of the last characters
	n    int
}

// NewFilter returns a filter for a token made by Canary.
func NewFilter(token string) *Filter {
	if token == "" {
		return &Filter{letters: newCursor(newTrie(nil)), decoded: newCursor(newTrie(nil)),
			base64: newCursor(newTrie(nil))}
	}
	letters := newTrie(letterForms(token))
	return &Filter{letters: newCursor(letters), decoded: newCursor(letters),
		base64: newCursor(newTrie(base64Forms(token)))}
}

func newCursor(t *trie) cursor { return cursor{trie: t, from: make([]int, t.most+1)} }

// Write takes the next piece and returns the text that may leave now. Once
// leaked is true, no text leaves any more; the text returned with it ends
// before the token.
func (f *Filter) Write(piece string) (safe string, leaked bool) {
	if f.leaked {
		return "", true
	}
	start := f.pos - len(f.held) // of the text that has not left
	for i := range len(piece) {
		begin := f.take(piece[i], f.pos)
		f.pos++
		if begin >= 0 {
			f.leaked = true
			safe = f.cut(piece, max(begin, start)-start)
			f.held = nil
			return safe, true
		}
	}
	hold := max(f.hold(), start)
	safe = f.cut(piece, hold-start)
	if kept := hold - start - len(f.held); kept >= 0 {
		f.held = append(f.held[:0], piece[kept:]...)
	} else {
		f.held = append(f.held[:copy(f.held, f.held[hold-start:])], piece...)
	}
	return safe, false
}

// Close returns the text held back, because the text has ended or is
// interrupted. Text written afterwards still counts as its continuation.
func (f *Filter) Close() (rest string) {
	rest = string(f.held)
	f.held = nil
	return rest
}

// cut returns the first n bytes of the held text and the piece after it.
func (f *Filter) cut(piece string, n int) string {
	switch {
	case len(f.held) == 0:
		return piece[:n]
	case n <= len(f.held):
		return string(f.held[:n])
	}
	return string(f.held) + piece[:n-len(f.held)]
}

// take takes one byte. If it completes a token, take returns where the token
// began, otherwise -1.
func (f *Filter) take(c byte, pos int) int {
	begin := -1
	if f.letters.trie.chars[c] {
		begin = f.letters.next(toLower(c), pos, pos)
	}
	if b := f.unescape(c, pos); b >= 0 {
		begin = b
	}
	if f.base64.trie.chars[c] {
		if b := f.base64.next(c, pos, pos); b >= 0 {
			begin = b
		}
	}
	return begin
}

// hold returns where the text begins that must not leave yet.
func (f *Filter) hold() int {
	hold := min(f.letters.begins(f.pos), f.decoded.begins(f.pos), f.base64.begins(f.pos))
	if f.escaping > 0 {
		hold = min(hold, f.escapeAt)
	}
	return hold
}

// unescape feeds the cursor that decodes escapes.
func (f *Filter) unescape(c byte, pos int) int {
	if f.escaping == 0 {
		if c == '%' || c == '\\' || c == '&' {
			f.escape[0], f.escaping, f.escapeAt = c, 1, pos
			return -1
		}
		return f.decoded.letter(c, pos, pos)
	}
	f.escape[f.escaping] = c
	f.escaping++
	char, state := readEscape(f.escape[:f.escaping])
	switch state {
	case escapeOpen:
		return -1
	case escapeDone:
		f.escaping = 0
		return f.decoded.letter(char, f.escapeAt, pos)
	}
	// It was no escape: its first byte is a separator, and the others are taken
	// again.
	rest, from := f.escape, f.escapeAt
	n := f.escaping
	f.escaping = 0
	begin := -1
	for i := 1; i < n; i++ {
		if b := f.unescape(rest[i], from+i); b >= 0 {
			begin = b
		}
	}
	return begin
}

type escapeState int

const (
	escapeOpen escapeState = iota // incomplete
	escapeDone
	escapeNone
)

// readEscape decodes %61, \x61, \u0061, &#97; and &#x61;. Only ASCII matters.
func readEscape(s []byte) (char byte, state escapeState) {
	digits, from, base := 2, 1, 16
	end := false
	switch {
	case s[0] == '\\':
		from = 2
		if len(s) > 1 && s[1] == 'u' {
			digits = 4
		} else if len(s) > 1 && s[1] != 'x' {
			return 0, escapeNone
		}
	case s[0] == '&':
		from, digits, base = 2, 3, 10
		if len(s) > 1 && s[1] != '#' {
			return 0, escapeNone
		}
		if len(s) > 2 && s[2]|0x20 == 'x' {
			from, digits, base = 3, 4, 16
		}
		if end = len(s) > from && s[len(s)-1] == ';'; end {
			s = s[:len(s)-1]
		}
	}
	value := 0
	for i := from; i < len(s); i++ {
		d := hexDigit(s[i])
		if d >= base {
			return 0, escapeNone
		}
		value = value*base + d
	}
	switch got := len(s) - from; {
	case end && got > 0 || s[0] != '&' && got == digits:
		if value > 0x7f {
			value = 0
		}
		return byte(value), escapeDone
	case got >= digits+1 || end:
		return 0, escapeNone
	}
	return 0, escapeOpen
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return 99
}

func toLower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// letter takes a character, unless it is one that separates.
func (c *cursor) letter(char byte, begin, end int) int {
	if !c.trie.chars[char] {
		return -1
	}
	return c.next(toLower(char), begin, end)
}

// next takes a character that extends from begin to end. If it completes a
// form, next returns where the form began, otherwise -1.
func (c *cursor) next(char byte, begin, end int) int {
	if c.at != 0 && begin-c.last > maxGap+1 {
		c.at = 0
	}
	c.at = c.trie.step(c.at, char)
	c.last = end
	if c.at == 0 {
		return -1
	}
	c.from[c.n%len(c.from)] = begin
	c.n++
	if match := int(c.trie.nodes[c.at].match); match > 0 {
		return c.from[(c.n-match)%len(c.from)]
	}
	return -1
}

// begins returns where the characters begin that can still become a form. If
// there are none, it returns pos.
func (c *cursor) begins(pos int) int {
	if c.at == 0 || pos-1-c.last > maxGap {
		return pos
	}
	return c.from[(c.n-int(c.trie.nodes[c.at].depth))%len(c.from)]
}
