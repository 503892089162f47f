package tool

import (
	"fmt"
	"strings"
	"testing"

	"unicode/utf8"

	"pgregory.net/rapid"

	"parley"
)

func gather(parts ...string) string {
	var o output
	for _, p := range parts {
		o.Write([]byte(p))
	}
	return o.String()
}

func TestOutputUpToTheLimitIsWhole(t *testing.T) {
	for _, n := range []int{0, 1, half, half + 1, outputLimit} {
		text := strings.Repeat("x", n)
		if got := gather(text); got != text {
			t.Errorf("%d bytes became %d", n, len(got))
		}
	}
}

func TestOutputBeyondTheLimitKeepsHeadAndTail(t *testing.T) {
	for _, n := range []int{outputLimit + 1, 3 * outputLimit, 10*outputLimit + 7} {
		var text strings.Builder
		for i := 0; text.Len() < n; i++ {
			fmt.Fprintf(&text, "ä%d\n", i)
		}
		whole := text.String()
		var parts []string
		for rest := whole; rest != ""; rest = rest[min(777, len(rest)):] { // also cuts within characters
			parts = append(parts, rest[:min(777, len(rest))])
		}
		got := gather(parts...)
		head, rest, ok := strings.Cut(got, "\n[… ")
		note, tail, ok2 := strings.Cut(rest, " …]\n")
		if !ok || !ok2 || !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) {
			t.Fatalf("%d bytes: the ends are not kept", n)
		}
		if want := fmt.Sprintf("%d bytes left out, lines %d to %d", len(whole)-len(head)-len(tail),
			strings.Count(head, "\n")+1, strings.Count(whole[:len(whole)-len(tail)], "\n")+1); note != want {
			t.Errorf("noted %q, want %q", note, want)
		}
		if gather(whole) != got {
			t.Errorf("%d bytes are capped in two ways", n)
		}
		if len(got) > outputLimit || len(head) < half-noteRoom || len(tail) < half-noteRoom || !utf8.ValidString(got) {
			t.Errorf("%d bytes became %d + %d", n, len(head), len(tail))
		}
	}
}

func TestOutputIsBoundedInMemory(t *testing.T) {
	var o output
	chunk := []byte(strings.Repeat("x", 1<<16))
	for range 100 {
		o.Write(chunk)
		if kept := cap(o.head) + cap(o.tail); kept > 8*outputLimit {
			t.Fatalf("%d bytes are kept", kept)
		}
	}
}

func TestOutputEscapesControlCharacters(t *testing.T) {
	for in, want := range map[string]string{
		"a\xffb":                 "a\\xffb",
		"\xe2\x82":               "\\xe2\\x82",
		"\x00\x1b[0m\x7f":        `\x00\x1b[0m\x7f`,
		"tab\tline\r\nä日🎉\ufffd": "tab\tline\r\nä日🎉\ufffd",
	} {
		if got := gather(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestHowOutputIsCutIntoWritesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := string(rapid.SliceOfN(rapid.SampledFrom([]byte("a\n\x00\xff\xe2\x82\xac\xf0\x9f\x8e\x89")), 0, 40).Draw(
			t, "bytes"))
		var parts []string
		for rest := raw; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			parts, rest = append(parts, rest[:n]), rest[n:]
		}
		if got, want := gather(parts...), visible(raw); got != want {
			t.Fatalf("%q became %q, want %q", parts, got, want)
		}
	})
}

// TestLiveOutputIsBounded covers long output, and frequent changes between the
// streams: each change is an event of the log.
func TestLiveOutputIsBounded(t *testing.T) {
	events := 0
	o := &output{live: func(parley.Stream, string) { events++ }}
	for range liveLimit {
		o.Write([]byte("a"))
		o.errors().Write([]byte("b"))
	}
	if most := liveLimit/switchCost + 1; events > most {
		t.Errorf("%d events; at most %d", events, most)
	}
}
