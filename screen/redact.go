package screen

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// A Redactor removes secrets from text: the server's own, in any position, and
// any text that looks like a secret. It is safe for concurrent use.
type Redactor struct {
	rules *secretGrammar
	own   *trie
	lines int // length of the longest own secret that contains a line end
}

// Found describes the place and kind of a secret in a text. It does not contain
// the secret.
type Found struct {
	Kind string
	At   int // byte offset in the original text
}

// Shorter own secrets are not searched for: they would match too much ordinary
// text.
const minOwn = 8

// NewRedactor returns a redactor that also knows the server's own secrets:
// provider keys, tokens, passwords.
func NewRedactor(own ...string) *Redactor {
	var forms []string
	lines := 0
	for _, secret := range own {
		if secret = strings.TrimSpace(secret); len(secret) < minOwn {
			continue
		}
		if strings.Contains(secret, "\n") {
			lines = max(lines, len(secret))
		}
		forms = append(forms, secret)
		if escaped := url.QueryEscape(secret); escaped != secret {
			forms = append(forms, escaped, url.PathEscape(secret))
		}
		for _, coding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				whole := coding.EncodeToString(append(make([]byte, before), secret...))
				forms = append(forms, whole[(before*8+5)/6:(before+len(secret))*8/6])
			}
		}
	}
	return &Redactor{rules: theSecretGrammar(), own: newTrie(forms), lines: lines}
}

// HasOwn reports whether text contains one of the server's own secrets, as it
// is, in base64 or URL-encoded.
func (r *Redactor) HasOwn(text string) bool {
	at := int32(0)
	for i := range len(text) {
		at = r.own.step(at, text[i])
		if r.own.nodes[at].match > 0 {
			return true
		}
	}
	return false
}

// Redact returns text with [redacted:<kind>] in place of each secret. It
// returns a text without secrets unchanged.
func (r *Redactor) Redact(text string) (string, []Found) {
	spans := r.find(text)
	if len(spans) == 0 {
		return text, nil
	}
	return replace(text, spans)
}

func replace(text string, spans []span) (string, []Found) {
	found := make([]Found, len(spans))
	var out strings.Builder
	out.Grow(len(text))
	from := 0
	for i, s := range spans {
		found[i] = Found{s.kind, s.from}
		out.WriteString(text[from:s.from])
		out.WriteString("[redacted:" + s.kind + "]")
		from = s.to
	}
	out.WriteString(text[from:])
	return out.String(), found
}

// A span is the place of a secret.
type span struct {
	from, to int
	kind     string
}

// find returns the places of secrets, in order and without overlaps.
func (r *Redactor) find(text string) []span {
	s := scanner{rules: r.rules, text: text}
	s.ownSecrets(r.own)
	s.prefixes()
	s.infixes()
	s.privateKeys()
	s.urls()
	s.authorizations()
	s.assignments()
	if len(s.spans) < 2 {
		return s.spans
	}
	// Of two overlapping spans, the one that begins first stays and covers
	// both. If both begin at the same place, the one found first has the more
	// certain kind.
	slices.SortStableFunc(s.spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	kept := s.spans[:1]
	for _, next := range s.spans[1:] {
		if last := &kept[len(kept)-1]; next.from < last.to {
			last.to = max(last.to, next.to)
		} else {
			kept = append(kept, next)
		}
	}
	return kept
}
