package e2e

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// TestACorruptRowInTheMiddleOfARun: the run cannot be resumed. The server says
// so, stops trying, and resumes the other runs.
func TestACorruptRowInTheMiddleOfARun(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, paced(t, slowPace)), startNode(t)
	damaged, sound := n.dial(s, newThread()), n.dial(s, newThread())
	for _, c := range []*socket{damaged, sound} {
		c.ask("count to 100")
		c.pieces(2)
	}
	s.kill()
	damage(t, s.o.data, damaged.thread)
	s = s.pacedAgain(usualPace)
	start := time.Now()
	if a := n.dial(s, sound.thread).completed(); !strings.HasSuffix(a.text, "100") {
		t.Errorf("the other thread went on to %q", a.text)
	}
	bad := n.open("ws://"+s.address+"/api/chat/ws?threadId="+damaged.thread, nil)
	bad.opened()
	if f := bad.expect("error"); !strings.Contains(f.Error, "cannot be read") {
		t.Errorf("the damaged thread says %s", f.raw)
	}
	bad.closed(1011)
	for _, path := range []string{"/readyz", "/api/v1/sessions"} {
		if status, body := s.get(path, nil); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if n := strings.Count(strings.Join(s.log.all(), "\n"), "session stopped"); n == 0 || n > 2 {
		t.Errorf(
			"the damaged session was loaded %d times in %v: once when the server started, once when somebody asked", n,
			time.Since(start))
	}
}

// TestADamagedFileIsReported damages a page of the database file. Either the
// server does not start and says why, or it serves the rest.
func TestADamagedFileIsReported(t *testing.T) {
	t.Parallel()
	prepare := func(t *testing.T) (*server, string) {
		s := startServer(t, options{})
		n := startNode(t)
		c := n.dial(s, newThread())
		c.ask("repeat before")
		c.completed()
		s.stop()
		return s, c.thread
	}
	t.Run("header", func(t *testing.T) {
		t.Parallel()
		s, _ := prepare(t)
		flip(t, s, 0)
		stdout, stderr, code := run(t, "serve", "--listen", "127.0.0.1:0", "--data", s.o.data, "--workspace",
			s.o.workspace)
		if code == 0 || !strings.Contains(stdout+stderr, "Restore the last file that parley backup made") || strings.Contains(stderr, "goroutine") {
			t.Errorf("ended with %d and said\n%s%s", code, stdout, stderr)
		}
	})
	t.Run("events", func(t *testing.T) {
		t.Parallel()
		s, thread := prepare(t)
		db, err := sql.Open("sqlite", filepath.Join(s.o.data, "parley.db"))
		if err != nil {
			t.Fatal(err)
		}
		var page, size int64
		if err := db.QueryRow(
			`SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = 'events'`).Scan(
			&page, &size); err != nil {
			t.Fatal(err)
		}
		db.Close()
		flip(t, s, (page-1)*size)
		s = s.again()
		if status, code, message := s.refusalOf("/api/v1/sessions/" + thread +
			"/log"); status != http.StatusInternalServerError || code != "corrupt" ||
			message != "A part of the database cannot be read." {
			t.Errorf("the log: %d %s %s", status, code, message)
		}
		bad := startNode(t).open("ws://"+s.address+"/api/chat/ws?threadId="+thread, nil)
		bad.opened()
		if f := bad.expect("error"); !strings.Contains(f.Error, "cannot be read") {
			t.Errorf("the thread says %s", f.raw)
		}
		bad.closed(1011)
		if status, body := s.get("/healthz", nil); status != http.StatusOK {
			t.Errorf("/healthz: %d %s", status, body)
		}
		s.logged("integrity_check", 1) // the message says what to do
	})
}

// flip inverts every bit of one byte of the database.
func flip(t *testing.T, s *server, offset int64) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.o.data, "parley.db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, offset); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0xff
	if _, err := f.WriteAt(b, offset); err != nil {
		t.Fatal(err)
	}
}

// TestALogWithoutItsEnd removes the last rows. Every reader gets an error at
// once, instead of waiting for them.
func TestALogWithoutItsEnd(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	c := startNode(t).dial(s, newThread())
	c.ask("repeat before")
	c.completed()
	s.stop()
	db, err := sql.Open("sqlite", filepath.Join(s.o.data, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(
		`DELETE FROM snapshots; DELETE FROM events WHERE seq > (SELECT max(seq) - 3 FROM events)`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	s = s.again()
	for _, path := range []string{"/api/v1/sessions/" + c.thread + "/log", "/api/history?session_id=" + c.thread} {
		start := time.Now()
		status, body := s.get(path, nil)
		took := time.Since(start)
		if status != http.StatusInternalServerError || !strings.Contains(body, "cannot be read") ||
			!s.inTime(took, atOnce) {
			t.Errorf("GET %s: %d %s after %v", path, status, body, took)
		}
	}
	if status, body := s.get("/api/v1/sessions/"+c.thread+"/log?after=2",
		http.Header{"Accept": {"text/event-stream"}}); !strings.Contains(body, `"code":"corrupt"`) {
		t.Errorf("the stream of events: %d %s", status, body)
	}
	bad := startNode(t).open("ws://"+s.address+"/api/chat/ws?threadId="+c.thread, nil)
	bad.opened()
	if f := bad.expect("error"); !strings.Contains(f.Error, "cannot be read") {
		t.Errorf("the thread says %s", f.raw)
	}
	bad.closed(1011)
	if _, stderr, code := run(t, "export", c.thread, "--data", s.o.data); code == 0 ||
		!strings.Contains(stderr, "cannot be read") {
		t.Errorf("export ended with %d and said %s", code, stderr)
	}
}
