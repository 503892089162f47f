package screen

const minTypo = 6

// segmented means that a word was split into words that were already handled.
const segmented = -1

// disguise finds the word behind an unknown one: written with digits and signs,
// with its inner letters shuffled, or several words without spaces.
func (m *matcher) disguise(word []byte, flags flag) int {
	letters, digits, ascii := false, false, true
	for _, c := range word {
		switch {
		case c >= 0x80:
			ascii = false
		case c < 'a' || c > 'z':
			digits = true
		default:
			letters = true
		}
	}
	switch {
	case ascii && !letters:
		return 0
	case digits && ascii && len(word) <= longWord:
		m.scratch = append(m.scratch[:0], word...)
		return m.g.leet[string(leetKey(m.scratch))]
	case !digits && ascii && len(word) >= minTypo && len(word) <= longWord:
		if !m.g.shuffled.has(word[0], word[len(word)-1], len(word)) {
			break
		}
		m.scratch = append(m.scratch[:0], word...)
		if id := m.g.typos[string(typoKey(m.scratch))]; id != 0 {
			return id
		}
	case len(word) < 6 && flags&joined == 0 || digits && len(word) > longWord:
		return 0
	}
	if ascii && len(word) < 12 && flags&joined == 0 {
		return 0
	}
	return m.segment(word, flags)
}

// segment splits letters without spaces into known words, the longest first.
// Letters between them count as one word.
func (m *matcher) segment(word []byte, flags flag) int {
	found, unknown := false, false
	for i := 0; i < len(word); {
		size := m.prefix(word[i:])
		if size == 0 {
			unknown = true
			i++
			continue
		}
		if unknown {
			m.now++
		}
		if i > 0 {
			flags = 0
		}
		m.step(m.g.words[string(word[i:i+size])].plain, flags)
		m.now++
		found, unknown = true, false
		i += size
	}
	if !found {
		return 0
	}
	if unknown {
		m.now++
	}
	return segmented
}

func (m *matcher) prefix(s []byte) int {
	if len(s) < 3 {
		return 0
	}
	for _, w := range m.g.prefixes[[3]byte(s[:3])] {
		if len(s) >= len(w) && string(s[:len(w)]) == w {
			return len(w)
		}
	}
	return 0
}

// leetKey replaces characters that can stand for the same letter by one, in
// place.
func leetKey(word []byte) []byte {
	for i, c := range word {
		switch c {
		case '0':
			c = 'o'
		case '1', '!', '|', 'l':
			c = 'i'
		case '2':
			c = 'z'
		case '3':
			c = 'e'
		case '4', '@':
			c = 'a'
		case '5', '$':
			c = 's'
		case '6', '9':
			c = 'g'
		case '7':
			c = 't'
		case '8':
			c = 'b'
		}
		word[i] = c
	}
	return word
}

// typoKey sorts the letters between the first and the last, in place. It uses
// insertion sort, as words are short.
func typoKey(word []byte) []byte {
	inner := word[1 : len(word)-1]
	for i := range inner {
		for j := i; j > 0 && inner[j] < inner[j-1]; j-- {
			inner[j], inner[j-1] = inner[j-1], inner[j]
		}
	}
	return word
}

func rot13(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c >= 'a' && c <= 'z' {
			out[i] = 'a' + (c-'a'+13)%26
		}
	}
	return string(out)
}

func backwards(s string) string {
	runes := []rune(s)
	for i, j := 0, len(runes)-1; i < j; i, j = i+1, j-1 {
		runes[i], runes[j] = runes[j], runes[i]
	}
	return string(runes)
}
