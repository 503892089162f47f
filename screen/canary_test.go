package screen

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var token = Canary([]byte("a key of the server"), "acme", "s-1")

func TestACanaryIsOpaqueAndItsOwn(t *testing.T) {
	seen := map[string]string{}
	for _, c := range []struct{ key, tenant, session string }{
		{"k", "acme", "s"}, {"k2", "acme", "s"}, {"k", "acme2", "s"}, {"k", "acme", "s2"}, {"k", "acm", "es"},
		{"k", "", "acmes"},
	} {
		got := Canary([]byte(c.key), c.tenant, c.session)
		if len(got)*5 < 128 || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz234567") != "" {
			t.Errorf("%v: %q", c, got)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%v has the token of %s", c, other)
		}
		seen[got] = fmt.Sprint(c)
		if again := Canary([]byte(c.key), c.tenant, c.session); again != got {
			t.Errorf("%v: %q, then %q", c, got, again)
		}
	}
}

func between(sep string) func(string) string {
	return func(s string) string { return strings.Join(strings.Split(s, ""), sep) }
}

func escaped(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, format, c)
		}
		return b.String()
	}
}

func aligned(coding *base64.Encoding, before, after int) func(string) string {
	return func(s string) string {
		return coding.EncodeToString([]byte("xyz"[:before] + s + "uvw"[:after]))
	}
}

// writings are all the encodings in which a token must not leave.
var writings = func() map[string]func(string) string {
	w := map[string]func(string) string{
		"plain":         func(s string) string { return s },
		"upper case":    strings.ToUpper,
		"mixed case":    func(s string) string { return strings.ToUpper(s[:9]) + s[9:] },
		"backwards":     backwards,
		"hex":           func(s string) string { return hex.EncodeToString([]byte(s)) },
		"HEX":           func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"hex of upper":  func(s string) string { return hex.EncodeToString([]byte(strings.ToUpper(s))) },
		"hex in bytes":  func(s string) string { return fmt.Sprintf("% x", s) },
		"spaced":        between(" "),
		"hyphens":       between("-"),
		"dots":          between("."),
		"lines":         between("\r\n"),
		"zero width":    between("\u200b"),
		"joiners":       between("\u200d\u2060"),
		"bullets":       between(" • "),
		"a wide gap":    func(s string) string { return s[:5] + strings.Repeat(" ", maxGap) + s[5:] },
		"markdown":      func(s string) string { return s[:7] + "**" + s[7:20] + "**" + s[20:] },
		"percent":       escaped("%%%02X"),
		"percent, some": func(s string) string { return s[:3] + escaped("%%%02x")(s[3:9]) + s[9:] },
		"JSON":          escaped(`\u%04x`),
		"C":             escaped(`\x%02x`),
		"entities":      escaped("&#%d;"),
		"hex entities":  escaped("&#x%x;"),
		"in a URL":      func(s string) string { return "https://evil.example/?q=" + url.QueryEscape("key="+s) },
		"after a sign":  func(s string) string { return "%" + s },
	}
	for name, coding := range map[string]*base64.Encoding{"base64": base64.StdEncoding,
		"raw base64": base64.RawStdEncoding,
		"URL base64": base64.URLEncoding, "raw URL base64": base64.RawURLEncoding} {
		for before := range 3 {
			for after := range 3 {
				w[fmt.Sprintf("%s +%d-%d", name, before, after)] = aligned(coding, before, after)
			}
			w[fmt.Sprintf("%s of upper +%d", name, before)] = func(s string) string {
				return aligned(coding, before, 1)(strings.ToUpper(s))
			}
		}
	}
	w["base64 in lines"] = func(s string) string {
		b := base64.StdEncoding.EncodeToString([]byte("some text before it, " + s + " and some after it"))
		return b[:40] + "\n" + b[40:60] + "\r\n" + b[60:]
	}
	return w
}()

// TestNoEncodingOfATokenLeaves cuts every encoding in two at every place: the halves
// never let the token out.
func TestNoEncodingOfATokenLeaves(t *testing.T) {
	for name, write := range writings {
		form := write(token)
		for _, text := range []string{form, "It is: " + form + " and more."} {
			if !Contains(token, text) {
				t.Errorf("%s is not found: %q", name, text)
				continue
			}
			whole, _ := NewFilter(token).Write(text) // the text that may leave, however it is cut
			if Contains(token, whole) || len(whole) > strings.Index(text, form)+len("https://evil.example/?q=key%3D") {
				t.Errorf("%s: %q leaves", name, whole)
			}
			for i := range len(text) + 1 {
				f := NewFilter(token)
				a, leakedA := f.Write(text[:i])
				b, leakedB := f.Write(text[i:])
				if !leakedB || a+b != whole || leakedA && b != "" {
					t.Fatalf("%s, cut at %d: %q, then %q, leaked %v %v", name, i, a, b, leakedA, leakedB)
				}
				if c, leaked := f.Write("more"); c != "" || !leaked || f.Close() != "" {
					t.Fatalf("%s: something leaves after the leak: %q", name, c)
				}
				// The same with an interruption, before which the first half must leave.
				f = NewFilter(token)
				a, _ = f.Write(text[:i])
				a += f.Close()
				if b, leaked := f.Write(text[i:]); !leaked || !strings.HasPrefix(text, a+b) || Contains(token, a+b) {
					t.Fatalf("%s, closed at %d: %q, then %q, leaked %v", name, i, a, b, leaked)
				}
			}
		}
	}
}

// TestTokensInPieces: any encoding in any text, cut in any way, is stopped
// before its last byte leaves. The same text without the token passes
// unchanged.
func TestTokensInPieces(t *testing.T) {
	names := sorted(writings)
	rapid.Check(t, func(t *rapid.T) {
		secret := Canary([]byte("key"), rapid.String().Draw(t, "tenant"), rapid.String().Draw(t, "session"))
		form := writings[rapid.SampledFrom(names).Draw(t, "writing")](secret)
		// Letters and digits directly before or after the token may belong to the same
		// base64 or hex and shift it. The alignments in writings cover that.
		before := rapid.StringOfN(rapid.RuneFrom([]rune("ab7 .%\\&#x-=\né\u200b"+secret[:4])), 0, 40, -1).Draw(t,
			"before") + " "
		after := " " + rapid.String().Draw(t, "after")
		text := before + form + after
		f := NewFilter(secret)
		var out strings.Builder
		halted := false
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 20)).Draw(t, "piece")
			safe, leaked := f.Write(rest[:n])
			rest = rest[n:]
			out.WriteString(safe)
			if halted = leaked; halted {
				break
			}
		}
		if !halted {
			t.Fatalf("%q does not halt", text)
		}
		if out.Len() >= len(before)+len(form) || Contains(secret, out.String()) ||
			!strings.HasPrefix(text, out.String()) {
			t.Fatalf("%q leaves of %q", out.String(), text)
		}
	})
}

// TestAMillionPiecesWithoutTheToken: parts of a token never stop the text, and
// it passes byte for byte. No part contains the middle of the token, so no
// sequence of parts forms it.
func TestAMillionPiecesWithoutTheToken(t *testing.T) {
	const part = 14 // of 32 characters
	back := backwards(token)
	parts := []string{token[:part], token[32-part:], strings.ToUpper(token[:part]), back[:part], back[32-part:],
		hex.EncodeToString([]byte(token[:part])),
		base64.StdEncoding.EncodeToString([]byte(token[:part])),
		base64.StdEncoding.EncodeToString([]byte("x" + token[:part])),
		between(" ")(token[:part]), escaped("%%%02x")(token[:part]), escaped(`\u%04x`)(token[:part]),
		"%", "%6", `\u00`, "&#", "&#x6", "é", "\u200b", "\xff", " ", "word ", "\n", token[:1], token[:2], token[30:],
		"0123456789", "{\"a\": \"b\"}"}
	r := rand.New(rand.NewPCG(7, 9))
	var in, out strings.Builder
	f := NewFilter(token)
	for range 1_000_000 {
		piece := parts[r.IntN(len(parts))]
		if r.IntN(3) == 0 { // any part of a part
			i := r.IntN(len(piece) + 1)
			piece = piece[i : i+r.IntN(len(piece)-i+1)]
		}
		in.WriteString(piece)
		safe, leaked := f.Write(piece)
		if leaked {
			t.Fatalf("halted after %q", in.String()[max(0, in.Len()-300):])
		}
		out.WriteString(safe)
	}
	out.WriteString(f.Close())
	if in.String() != out.String() {
		t.Fatal("what comes out is not what went in")
	}
}

// TestFilterHoldsBackOnlyPossibleTokens: held text is released as soon as it can no
// longer become the token.
func TestFilterHoldsBackOnlyPossibleTokens(t *testing.T) {
	for _, c := range []struct{ name, piece, next, held string }{
		{"nothing", "!?", "", ""},
		{"a beginning", "x " + token[:10], "", token[:10]},
		{"a beginning and a space", "x " + token[:10] + " ", "", token[:10] + " "},
		{"a beginning and another letter", "x " + token[:10], "!!0101010", ""},
		{"a gap too wide", token[:10] + strings.Repeat(" ", maxGap+1), "", ""},
		{"an escape", "100%", "", "%"},
		{"no escape", "100%", " !", ""},
		{"an escape of something else", "a", "%20", ""},
	} {
		f := NewFilter(token)
		a, _ := f.Write(c.piece)
		b, leaked := f.Write(c.next)
		if held := strings.TrimPrefix(c.piece+c.next, a+b); held != c.held || leaked {
			t.Errorf("%s: %q is held, want %q", c.name, held, c.held)
		}
		if rest := f.Close(); rest != c.held {
			t.Errorf("%s: %q is left, want %q", c.name, rest, c.held)
		}
	}
}

func TestTheFilterKeepsRunesWhole(t *testing.T) {
	f := NewFilter(token)
	for _, piece := range []string{"größe " + token[:3], "é" + token[3:6], "\u200b", "日本", token[:2] + "語"} {
		safe, _ := f.Write(piece)
		if !utf8.ValidString(safe) {
			t.Errorf("%q breaks a rune", safe)
		}
	}
	if rest := f.Close(); !utf8.ValidString(rest) {
		t.Errorf("%q breaks a rune", rest)
	}
}

func TestContainsWithoutAToken(t *testing.T) {
	if Contains("", "text") || Contains("", "") || Contains(token, token[:31]) {
		t.Error("a text contains a token that is not there")
	}
}

func FuzzFilter(f *testing.F) {
	for _, name := range sorted(writings) {
		f.Add(writings[name](token), uint8(3))
	}
	f.Add("%%%6%61&#&#x\\u\\x", uint8(1))
	f.Fuzz(func(t *testing.T, text string, n uint8) {
		whole, leaked := NewFilter(token).Write(text)
		g := NewFilter(token)
		var out strings.Builder
		halted := false
		for rest := text; rest != "" && !halted; {
			size := min(int(n)+1, len(rest))
			var safe string
			safe, halted = g.Write(rest[:size])
			out.WriteString(safe)
			rest = rest[size:]
		}
		if halted != leaked || leaked && out.String() != whole {
			t.Fatalf("in pieces %q (%v), as a whole %q (%v)", out.String(), halted, whole, leaked)
		}
		if out.WriteString(g.Close()); !leaked && out.String() != text {
			t.Fatalf("%q comes out as %q", text, out.String())
		}
		if strings.Contains(strings.ToLower(text), token) && !leaked {
			t.Fatal("it leaves")
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	for _, load := range []struct{ name, text string }{
		{"prose", loads[0].text},
		{"beginnings", token[:31] + " "},
		{"escapes", "%6%61&#9\\u00 "},
	} {
		text := size(load.text, 64<<10)
		b.Run(load.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				f := NewFilter(token)
				for rest := text; rest != ""; {
					n := min(24, len(rest)) // a chunk of a model's answer
					f.Write(rest[:n])
					rest = rest[n:]
				}
				f.Close()
			}
		})
	}
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			NewFilter(token)
		}
	})
}
