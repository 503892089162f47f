package screen

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// A Redactor takes secrets out of text: the server's own, wherever they stand,
// and whatever looks like somebody's. It can be used by any number of goroutines
// at once.
type Redactor struct {
	rules *secretGrammar
	own   *trie
	lines int // length of the longest secret of the server's own that has a line end in it
}

// Found says that a secret was at a place of the text, and what kind of secret.
// It does not say the secret.
type Found struct {
	Kind string
	At   int // in bytes, in the text as it was
}

// Shorter secrets of the server's own are not looked for: too much ordinary text
// would be taken for them.
const minOwn = 8

// NewRedactor is a redactor that also knows the server's own secrets: keys of
// providers, tokens, passwords.
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

// HasOwn reports whether one of the server's own secrets stands in text, as it is
// or in base64 or in its form for URLs.
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

// Redact is text with [redacted:<kind>] in the place of each secret. A text
// without secrets comes back as it is.
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

// A span is where a secret stands.
type span struct {
	from, to int
	kind     string
}

// find is where secrets stand, in order, none inside another.
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
	// Of two that overlap the one that begins first stays and covers both; what
	// was found first is the more certain kind.
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
