package screen

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// A canary is a token that is in an agent's instructions and nowhere else. If
// it appears in a model's output, the model is leaking its instructions.

var canaryCoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Canary returns the token of a session: 160 bits that cannot be guessed
// without the key, and that need not be stored.
func Canary(key []byte, tenant, session string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(tenant + "\x00" + session))
	return canaryCoding.EncodeToString(mac.Sum(nil)[:20])
}

// Contains reports whether text contains the token, in one of the encodings
// that a Filter knows.
func Contains(token, text string) bool {
	_, leaked := NewFilter(token).Write(text)
	return leaked
}

// letterForms returns the encodings of a token that are matched without regard
// to case.
func letterForms(token string) []string {
	token = strings.ToLower(token)
	return []string{token, backwards(token), hex.EncodeToString([]byte(token)),
		hex.EncodeToString([]byte(strings.ToUpper(token)))}
}

// base64Forms returns what all base64 texts with the token in them have in
// common. For each of the three alignments to the groups, that is the
// characters that depend only on the token.
func base64Forms(token string) (forms []string) {
	for _, t := range []string{strings.ToLower(token), strings.ToUpper(token)} {
		for _, coding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				whole := coding.EncodeToString(append(make([]byte, before), t...))
				if form := whole[(before*8+5)/6 : (before+len(t))*8/6]; !slices.Contains(forms, form) {
					forms = append(forms, form)
				}
			}
		}
	}
	return forms
}

// A trie is an Aho-Corasick automaton: after each character it knows the
// longest suffix of the text that is a prefix of a form.
type trie struct {
	nodes []trieNode
	root  [256]int32 // the next node for each character at the root
	chars [256]bool  // characters of the forms, and letters and digits; all others separate
	most  int        // length of the longest form
}

type trieNode struct {
	child, sibling int32
	fail           int32
	depth          int32
	match          int32 // length of the longest form that ends here
	char           byte
}

func newTrie(forms []string) *trie {
	room := 1
	for _, form := range forms {
		room += len(form)
	}
	t := &trie{nodes: make([]trieNode, 1, room)}
	for c := range 256 {
		t.chars[c] = isAlnum(byte(c))
	}
	for _, form := range forms {
		at := int32(0)
		for _, c := range []byte(form) {
			t.chars[c] = true
			next := t.follow(at, c)
			if next == 0 {
				next = int32(len(t.nodes))
				t.nodes = append(t.nodes, trieNode{char: c, depth: t.nodes[at].depth + 1, sibling: t.nodes[at].child})
				t.nodes[at].child = next
			}
			at = next
		}
		t.nodes[at].match = t.nodes[at].depth
		t.most = max(t.most, len(form))
	}
	for child := t.nodes[0].child; child != 0; child = t.nodes[child].sibling {
		t.root[t.nodes[child].char] = child
	}
	queue := make([]int32, 1, len(t.nodes))
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for child := t.nodes[at].child; child != 0; child = t.nodes[child].sibling {
			if at != 0 {
				t.nodes[child].fail = t.step(t.nodes[at].fail, t.nodes[child].char)
			}
			t.nodes[child].match = max(t.nodes[child].match, t.nodes[t.nodes[child].fail].match)
			queue = append(queue, child)
		}
	}
	return t
}

// follow returns the child of a node for a character, or 0.
func (t *trie) follow(at int32, c byte) int32 {
	for child := t.nodes[at].child; child != 0; child = t.nodes[child].sibling {
		if t.nodes[child].char == c {
			return child
		}
	}
	return 0
}

func (t *trie) step(at int32, c byte) int32 {
	for at != 0 {
		if next := t.follow(at, c); next != 0 {
			return next
		}
		at = t.nodes[at].fail
	}
	return t.root[c]
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
