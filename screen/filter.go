package screen

// maxGap is how many bytes may stand between two characters of a token that is
// written with something in between. More is taken for other text: without an
// end, a token's first letter could hold back all that follows.
const maxGap = 64

// A Filter lets text through piece by piece until a token would leave with it. It
// finds the token in any case, with anything but letters and digits between its
// characters (spaces, dots, line ends, invisible characters), backwards, in
// hexadecimal, in base64 however it lies there, and with characters written as
// %61, \x61, \u0061 or &#97;. It holds back no more than an end of the text that
// can still become one of these.
type Filter struct {
	letters cursor // case does not matter
	decoded cursor // the same, after escapes
	base64  cursor

	escape   [8]byte // an escape that has begun
	escaping int
	escapeAt int

	pos    int    // bytes taken
	held   []byte // the last of them, not let through yet
	leaked bool
}

// A cursor is a place in a trie, and where the characters that led there stand.
type cursor struct {
	trie *trie
	at   int32
	last int   // where the last character stood
	from []int // a ring: where each of the last characters began
	n    int
}

// NewFilter is a filter for a token made by Canary.
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

// Write takes the next piece and returns what may leave now. Once leaked is true
// nothing leaves any more; what is returned with it ends before the token.
func (f *Filter) Write(piece string) (safe string, leaked bool) {
	if f.leaked {
		return "", true
	}
	start := f.pos - len(f.held) // of what has not left
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

// Close returns what was held back: the text has ended, or something else comes
// in between. What is written afterwards is still taken for its continuation.
func (f *Filter) Close() (rest string) {
	rest = string(f.held)
	f.held = nil
	return rest
}

// cut is the first n bytes of what was held and the piece after it.
func (f *Filter) cut(piece string, n int) string {
	switch {
	case len(f.held) == 0:
		return piece[:n]
	case n <= len(f.held):
		return string(f.held[:n])
	}
	return string(f.held) + piece[:n-len(f.held)]
}

// take takes one byte and returns where a token began that ends with it, or -1.
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

// hold is where the text begins that must not leave yet.
func (f *Filter) hold() int {
	hold := min(f.letters.begins(f.pos), f.decoded.begins(f.pos), f.base64.begins(f.pos))
	if f.escaping > 0 {
		hold = min(hold, f.escapeAt)
	}
	return hold
}

// unescape feeds the cursor that reads escapes.
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
	// It was none: its first byte separates, the others are taken again.
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
	escapeOpen escapeState = iota // more is to come
	escapeDone
	escapeNone
)

// readEscape reads %61, \x61, \u0061, &#97; and &#x61;. Only ASCII matters.
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

// letter takes a character, if it is one that can be in a form.
func (c *cursor) letter(char byte, begin, end int) int {
	if !c.trie.chars[char] {
		return -1
	}
	return c.next(toLower(char), begin, end)
}

// next takes a character that stands from begin to end, and returns where a form
// began that ends with it, or -1.
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

// begins is where the characters begin that can still become a form: pos, if
// there are none.
func (c *cursor) begins(pos int) int {
	if c.at == 0 || pos-1-c.last > maxGap {
		return pos
	}
	return c.from[(c.n-int(c.trie.nodes[c.at].depth))%len(c.from)]
}
