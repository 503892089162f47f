package tool

import (
	"bufio"
	"context"
	"errors"
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
	if !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "\nlast\n") || !strings.Contains(got, "bytes left out") || len(got) > outputLimit {
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

// endless ends the context after some reading and never ends itself.
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
