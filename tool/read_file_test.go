package tool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadFile(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("long", 10000)
	b.put("three", "one\ntwo\nthree\n")
	b.put("open", "one\r\ntwo")
	b.put("long", long+"\nshort\n")
	b.put("empty", "")
	b.put("broken", "caf\xe9\n")
	b.put("binary", "\x7fELF\x00\x00")
	b.put("pixel", "\x89PNG\x0d\x0a\x1a\x0atext\n")
	b.put("sub/inner", "inside\n")
	b.link("sub", "inward")
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"path": "three"}, "one\ntwo\nthree\n"},
		{args{"path": "three", "offset": 2}, "two\nthree\n"},
		{args{"path": "three", "offset": 2, "limit": 1}, "two\n[the file goes on after line 2]"},
		{args{"path": "three", "limit": 3}, "one\ntwo\nthree\n"},
		{args{"path": "three", "offset": 3, "limit": 9}, "three\n"},
		{args{"path": "three", "offset": 4}, "[the file has 3 lines]"},
		{args{"path": "open"}, "one\r\ntwo"},
		{args{"path": "open", "offset": 2}, "two"},
		{args{"path": "open", "offset": 3}, "[the file has 2 lines]"},
		{args{"path": "long", "offset": 2}, "short\n"},
		{args{"path": "long", "limit": 1}, long + "\n[the file goes on after line 1]"},
		{args{"path": "empty"}, "[the file is empty]"},
		{args{"path": "broken"}, "caf\\xe9\n"},
		{args{"path": "binary"}, "binary is a binary file of 6 bytes. It is not shown."},
		{args{"path": "pixel"}, "pixel is an image (png) of 13 bytes. It is not shown."},
		{args{"path": "inward/inner"}, "inside\n"},
	} {
		if got := b.result("read_file", c.args); got != c.want {
			t.Errorf("%s: %.100q, want %.100q", c.args, got, c.want)
		}
	}
}

func TestALargeFileIsCapped(t *testing.T) {
	b := newBench(t)
	b.put("large", "first\n"+strings.Repeat("0123456789\n", 100000)+"last\n")
	got := b.result("read_file", args{"path": "large"})
	if !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "\nlast\n") ||
		!strings.Contains(got, "bytes left out") || len(got) > outputLimit {
		t.Errorf("%d bytes", len(got))
	}
}

func TestReadFileStaysInside(t *testing.T) {
	b := newBench(t)
	other := newBench(t)
	other.put("secret", "secret")
	b.put("dir/", "")
	b.link(filepath.Join(other.workspace, "secret"), "absolute")
	b.link("../outside", "relative")
	b.link(other.workspace, "dir/deep")
	b.link("loop", "loop")
	if err := syscall.Mkfifo(filepath.Join(b.workspace, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.fails("read_file", args{"path": "absolute"}, "escapes")
	b.fails("read_file", args{"path": "relative/x"}, "escapes")
	b.fails("read_file", args{"path": "dir/deep/secret"}, "escapes")
	b.fails("read_file", args{"path": "loop"}, "cannot be used")
	b.fails("read_file", args{"path": "dir"}, "is a directory, not a file")
	b.fails("read_file", args{"path": "pipe"}, "is a special file, not a file")
	b.fails("read_file", args{"path": "absent"}, `There is no "absent" in the workspace.`)
}

// TestNotesTellHowToReadOmittedLines: the note about omitted lines describes how to
// read them.
func TestNotesTellHowToReadOmittedLines(t *testing.T) {
	b := newBench(t)
	var whole strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&whole, "line %d\n", i+1)
	}
	b.put("large", whole.String())
	got := b.result("read_file", args{"path": "large", "offset": 11})
	head, rest, _ := strings.Cut(got, "\n[… ")
	note, tail, _ := strings.Cut(rest, " …]\n")
	var bytes, from, to, offset, limit int
	if _, err := fmt.Sscanf(note, "%d bytes left out, lines %d to %d; read_file with offset %d and limit %d has them, "+
		"in parts", &bytes, &from, &to, &offset, &limit); err != nil {
		t.Fatalf("%q: %v", note, err)
	}
	for last := offset + limit; offset < last; offset += 3000 {
		part := b.result("read_file", args{"path": "large", "offset": offset, "limit": min(3000, last-offset)})
		part, _, _ = strings.Cut(part, "[the file goes on")
		if !strings.HasPrefix(part, fmt.Sprintf("line %d\n", offset)) {
			t.Fatalf("%d begins with %.20q", offset, part)
		}
		head = head[:strings.LastIndex(head, "\n")+1] + part // drop the line that was cut, as it is read again
	}
	_, tail, _ = strings.Cut(tail, "\n")
	if want := whole.String(); !strings.HasSuffix(want, head+tail) || !strings.HasPrefix(head, "line 11\n") {
		t.Errorf("put together, it is not the file: %d bytes of %d", len(head+tail), len(want))
	}
	b.put("wide", strings.Repeat("x", 2*outputLimit))
	if got := b.result("read_file", args{"path": "wide"}); !strings.Contains(got, "lines 1 to 1; they are of one "+
		"line, which is not shown in parts") || len(got) > outputLimit {
		t.Errorf("%d bytes", len(got))
	}
}

// endless is a reader that never ends. It ends the context after a while.
type endless struct {
	cancel func()
	left   int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left--; e.left == 0 {
		e.cancel()
	}
	return copy(p, "more\n"), nil
}

func TestReadingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := copyLines(ctx, io.Discard, bufio.NewReader(&endless{cancel, 5}), 1, 0)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
