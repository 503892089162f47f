package screen

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxHeld limits how much of a text without line ends, or of a key that
	// does not end, is held back.
	maxHeld = 16 << 10
	// keptBack is the part of it that stays held, so that a secret that begins
	// there is found whole.
	keptBack = 4 << 10
)

// A RedactStream redacts text that arrives in pieces. Its outputs, put
// together, are the result of Redact for the whole text. It holds back the last
// line and a private key until they end. Of a line that does not end, it holds
// back at most 16 KiB.
type RedactStream struct {
	r    *Redactor
	held string
	at   int // offset of held in the whole text

	// If a secret was too long to hold, it has left as one placeholder. The
	// rest of the secret is dropped.
	dropping dropping
	tail     string // the last line of a key that is being dropped
}

type dropping int

const (
	dropNothing dropping = iota
	dropToken
	dropKey
)

// Stream returns a new stream for one text.
func (r *Redactor) Stream() *RedactStream { return &RedactStream{r: r} }

// Write takes the next piece. It returns the text that may leave now, and the
// secrets found in it.
func (s *RedactStream) Write(piece string) (string, []Found) {
	if piece = s.drop(piece); piece == "" {
		return "", nil
	}
	text := s.held + piece
	cut := s.complete(text)
	if len(text)-cut > maxHeld {
		return s.force(text)
	}
	return s.let(text, cut)
}

// Close returns the rest.
func (s *RedactStream) Close() (string, []Found) { return s.let(s.held, len(s.held)) }

// let redacts and returns the first n bytes of text, and holds back the rest.
func (s *RedactStream) let(text string, n int) (string, []Found) {
	out, found := s.r.Redact(text[:n])
	return out, s.keep(text, n, found)
}

func (s *RedactStream) keep(text string, n int, found []Found) []Found {
	for i := range found {
		found[i].At += s.at
	}
	s.held = strings.Clone(text[n:])
	s.at += n
	return found
}

// drop returns piece without the part that belongs to a secret that has left.
func (s *RedactStream) drop(piece string) string {
	rest := piece
	switch s.dropping {
	case dropToken:
		for rest != "" && isTokenByte(rest[0]) {
			rest = rest[1:]
		}
	case dropKey:
		text := s.tail + piece
		end, open := newKeys(text).end(0)
		if open {
			s.tail = text[max(strings.LastIndexByte(text, '\n')+1, len(text)-keptBack):]
			end = len(text)
		}
		rest = text[max(end, len(s.tail)):]
		if open {
			rest = ""
		}
	}
	if rest != "" {
		s.dropping, s.tail = dropNothing, ""
	}
	s.at += len(piece) - len(rest)
	return rest
}

// complete returns how much of a text can be judged by itself: whole lines that
// do not contain part of a longer secret.
func (s *RedactStream) complete(text string) int {
	n := strings.LastIndexByte(text, '\n') + 1
	if s.r.lines > 0 {
		n = lineStart(text, max(0, min(n, len(text)-s.r.lines)))
	}
	for {
		before := n
		k := newKeys(text)
		for from := 0; from < n; {
			begin, end, open := k.next(from)
			if begin < 0 {
				break
			}
			if begin < n && (open || end > n) {
				n = lineStart(text, begin)
			}
			from = end
		}
		if s.r.lines > 0 {
			for _, sp := range s.r.find(text) {
				if sp.from < n && sp.to > n {
					n = lineStart(text, sp.from)
				}
			}
		}
		if n == before {
			return n
		}
	}
}

func lineStart(text string, i int) int { return strings.LastIndexByte(text[:i], '\n') + 1 }

// force returns most of a text that has grown too long, but no part of a secret
// that may continue.
func (s *RedactStream) force(text string) (string, []Found) {
	spans := s.r.find(text)
	cut := len(text) - keptBack
	for i, sp := range spans {
		if sp.to <= cut {
			continue
		}
		spans = spans[:i]
		if sp.from >= cut {
			break
		}
		if cut = sp.from; cut < keptBack && len(text)-sp.from > maxHeld-keptBack {
			// There is nothing but this secret: it leaves as one placeholder.
			s.dropping = dropToken
			if sp.kind == "private_key" {
				s.dropping, s.tail = dropKey, ""
			}
			out, found := replace(text[:sp.to], append(spans, sp))
			return out, s.keep(text, sp.to, found)
		}
		break
	}
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	out, found := text[:cut], []Found(nil)
	if len(spans) > 0 {
		out, found = replace(text[:cut], spans)
	}
	return out, s.keep(text, cut, found)
}
