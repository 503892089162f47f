package tool

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/port"
)

const (
	outputLimit = 64 << 10 // bytes of one result
	noteRoom    = 256      // of them for the note about what was left out
)

// An output gathers the result of a call in bounded memory. Beyond the limit it
// keeps the head and the tail and says how much is missing in between. What is
// not valid UTF-8, and controls other than tab, newline and return, are written
// out as \xNN, so that whoever reads the result sees what is there.
type output struct {
	head, tail []byte
	size       int                       // of everything written
	lines      int                       // newlines in it
	broken     map[parley.Stream][]byte  // the beginning of a character whose rest may follow
	rest       func(from, to int) string // how to get lines that were left out; may be nil

	live   port.Progress // is told all of it as it comes, up to liveLimit; may be nil
	shown  int           // what live was told, with switchCost for each change of the stream
	stream parley.Stream // that live was last told of
	whole  *spool        // keeps all of it, if it is too long; may be nil
}

const (
	liveLimit  = 64 << 10 // bytes, which are events of the log
	switchCost = 64       // bytes: each change of the stream is an event of its own
)

const half = outputLimit / 2

// Write adds what was printed to stdout.
func (o *output) Write(p []byte) (int, error) { return o.write(parley.Stdout, p) }

// errors is a writer for stderr. It and o must not be written to at the same time.
func (o *output) errors() io.Writer { return stderrOf{o} }

type stderrOf struct{ *output }

func (o stderrOf) Write(p []byte) (int, error) { return o.write(parley.Stderr, p) }

func (o *output) write(stream parley.Stream, p []byte) (int, error) {
	text := append(o.broken[stream], p...)
	cut := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if from := len(text) - i; utf8.RuneStart(text[from]) {
			if !utf8.FullRune(text[from:]) {
				cut = from
			}
			break
		}
	}
	o.add(stream, visible(string(text[:cut])))
	if o.broken == nil {
		o.broken = map[parley.Stream][]byte{}
	}
	o.broken[stream] = append([]byte(nil), text[cut:]...)
	return len(p), nil
}

func (o *output) add(stream parley.Stream, s string) {
	if s == "" {
		return
	}
	if o.live != nil && o.shown < liveLimit {
		if stream != o.stream {
			o.stream, o.shown = stream, o.shown+switchCost
		}
		o.live(stream, s)
		if o.shown += len(s); o.shown >= liveLimit {
			o.live(stream, "\n[… more is not shown live …]\n")
		}
	}
	o.whole.add(s)
	o.size += len(s)
	o.lines += strings.Count(s, "\n")
	n := min(half-len(o.head), len(s))
	o.head = append(o.head, s[:n]...)
	o.tail = append(o.tail, s[n:]...)
	if len(o.tail) > 2*half {
		o.tail = append([]byte(nil), o.tail[len(o.tail)-half:]...)
	}
}

// String is the result. Nothing may be written after it.
func (o *output) String() string {
	for _, stream := range []parley.Stream{parley.Stdout, parley.Stderr} {
		o.add(stream, visible(string(o.broken[stream])))
	}
	o.broken = nil
	kept := o.whole.close()
	if o.size <= outputLimit {
		return string(o.head) + string(o.tail)
	}
	head := o.head[:half-noteRoom/2]
	for !utf8.Valid(head) {
		head = head[:len(head)-1]
	}
	tail := o.tail[len(o.tail)-(half-noteRoom/2):]
	for !utf8.Valid(tail) {
		tail = tail[1:]
	}
	// The lines that are cut count as left out.
	from, to := 1+bytes.Count(head, []byte("\n")), 1+o.lines-bytes.Count(tail, []byte("\n"))
	note := fmt.Sprintf("%d bytes left out, lines %d to %d", o.size-len(head)-len(tail), from, to)
	switch {
	case kept != "":
		note += "; read_file has all of it as " + kept
	case o.rest != nil:
		note += "; " + o.rest(from, to)
	}
	return fmt.Sprintf("%s\n[… %s …]\n%s", head, note, tail)
}

func visible(s string) string {
	var b strings.Builder
	rest := 0 // what is not copied yet starts here
	for i, r := range s {
		if isText(r) && (r != utf8.RuneError || strings.HasPrefix(s[i:], "\ufffd")) {
			continue
		}
		fmt.Fprintf(&b, `%s\x%02x`, s[rest:i], s[i])
		rest = i + 1
	}
	return b.String() + s[rest:]
}

func isText(r rune) bool {
	return r >= 0x20 && r != 0x7f || r == '\t' || r == '\n' || r == '\r'
}
