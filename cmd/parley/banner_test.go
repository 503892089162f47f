package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// newTerminal returns a terminal: text that is written to screen is read from
// lines.
func newTerminal(t *testing.T) (screen *os.File, lines *bufio.Reader) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("terminals are made otherwise here")
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	return screen, bufio.NewReader(master)
}

// A logWatch keeps a log, and closes a channel when the log first contains a given
// text.
type logWatch struct {
	bytes.Buffer
	text   string
	logged chan struct{}
}

func watchFor(text string) *logWatch { return &logWatch{text: text, logged: make(chan struct{})} }

func (w *logWatch) Write(line []byte) (int, error) {
	if w.text != "" && bytes.Contains(line, []byte(w.text)) {
		close(w.logged)
		w.text = ""
	}
	return w.Buffer.Write(line)
}

// servedTo runs a server with the given stdout until stop is called. The log may be
// read after stop.
func servedTo(t *testing.T, stdout io.Writer, log *logWatch, args ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--workspace", t.TempDir()}, args...)
	go func() { done <- (&program{ctx: ctx, stdout: stdout, stderr: log}).run(args, noEnv) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// TestABannerOnATerminal checks that the banner shows the first steps, and that the
// log does not change.
func TestABannerOnATerminal(t *testing.T) {
	t.Parallel()
	screen, lines := newTerminal(t)
	data, log := t.TempDir(), watchFor("")
	stop := servedTo(t, screen, log, "--data", data, "--openai-base-url", "http://127.0.0.1:1/v1")
	var seen strings.Builder
	for !strings.Contains(seen.String(), "  Warning ") {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %q", err, seen.String())
		}
		seen.WriteString(line)
	}
	stop()
	ready := address.FindStringSubmatch(log.String())
	if ready == nil {
		t.Fatalf("no address in the log: %s", log)
	}
	for _, want := range []string{"Parley is ready. Open " + ready[1] + " in a browser, or run: parley chat --server " +
		ready[1],
		"  Model   demo (scripted answers)",
		"  Agents  helpful-assistant", "  Data    " + data,
		"  Warning OPENAI_BASE_URL is set and no model is"} {
		if !strings.Contains(seen.String(), want) {
			t.Errorf("no %q in\n%s", want, seen.String())
		}
	}
	if usual := (banner{address: usualServer}).String(); !strings.Contains(usual, "or run: parley chat\n") {
		t.Errorf("at the usual address: %s", usual)
	}
}

// TestNoBannerInAPipe checks that programs that start a server get its log and no
// banner.
func TestNoBannerInAPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	log := watchFor("parley is ready")
	stop := servedTo(t, w, log, "--data", t.TempDir())
	<-log.logged
	stop()
	w.Close()
	if seen, err := io.ReadAll(r); err != nil || len(seen) > 0 {
		t.Errorf("%q, %v", seen, err)
	}
}

// TestOpenOpensABrowser checks that the program for opening addresses gets the
// server's address. If that program fails, the log says so and the server keeps
// running.
func TestOpenOpensABrowser(t *testing.T) { // not in parallel: it changes PATH
	if runtime.GOOS != "linux" {
		t.Skip("the program has another name here")
	}
	bin := t.TempDir()
	told := filepath.Join(bin, "told")
	if err := unix.Mkfifo(told, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	script := "#!/bin/sh\necho \"$1\" > " + told + "\nexit 3\n"
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	log := watchFor("no browser was opened")
	stop := servedTo(t, io.Discard, log, "--open", "--data", t.TempDir())
	opened, err := os.ReadFile(told) // wait for the script
	if err != nil {
		t.Fatal(err)
	}
	<-log.logged
	stop()
	if ready := address.FindStringSubmatch(log.String()); ready == nil || string(opened) != ready[1]+"\n" {
		t.Errorf("%q was opened; the log says %s", opened, log.String())
	}
}
