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
	outputLimit = 64 << 10 // of one result, in bytes
	noteRoom    = 256      // the part of it that the note about omitted text may use
)

// An output collects the result of a call in bounded memory. Beyond the limit
// it keeps the head and the tail, and a note tells how much is missing in
// between. It writes invalid UTF-8, and control characters other than tab,
// newline and return, as \xNN, so that they are visible in the result.
type output struct {
	head, tail []byte
	size       int                       // of everything written, in bytes
	lines      int                       // newlines in everything written
	broken     map[parley.Stream][]byte  // the beginning of a character whose other bytes may follow
	rest       func(from, to int) string // describes how to read the omitted lines; may be nil

	live   port.Progress // gets all output as it comes, up to liveLimit; may be nil
	shown  int           // bytes passed to live, plus switchCost for each change of the stream
	stream parley.Stream // the stream last passed to live
	whole  *spool        // keeps the complete output if it is too long; may be nil
}

const (
	liveLimit  = 64 << 10 // in bytes, as live output becomes events of the log
	switchCost = 64       // in bytes: each change of the stream is an event of its own
)

const half = outputLimit / 2

// Write adds output of stdout.
func (o *output) Write(p []byte) (int, error) { return o.write(parley.Stdout, p) }

// errors returns a writer for stderr. It and o must not be used concurrently.
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

// String returns the result. There must be no write after it.
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
	// Lines that are cut in part count as omitted.
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
	rest := 0 // start of the text that is not copied yet
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
