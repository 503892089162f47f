package e2e

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver
)

func TestAThreadGoesOnAfterReconnectingAndRestarting(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	c := n.dial(s, thread)
	c.ask("remember that the key is under the mat")
	c.completed()
	c.close()

	recalls := func(when string) {
		t.Helper()
		c := n.dial(s, thread)
		c.ask("what did I say")
		if a := c.completed(); !strings.Contains(a.text, "1. remember that the key is under the mat") {
			t.Errorf("%s: %q", when, a.text)
		}
		c.close()
	}
	recalls("after reconnecting")
	for _, way := range ways {
		way.end(s)
		s = s.again()
		recalls("after " + way.name)
	}
}

func TestAKilledServerGoesOnWithTheAnswerItWasGiving(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, paced(t, usualPace*5)), startNode(t)
	thread := newThread()
	c := n.dial(s, thread)
	c.ask("count to 150") // about 15 s
	seen := c.pieces(10)
	s.kill()
	if code := c.gone(); code != 1006 {
		t.Errorf("a killed server said goodbye with %d", code)
	}

	s = s.pacedAgain(usualPace)
	goesOn(t, n.dial(s, thread), seen, counted(150))
}

// goesOn expects an answer that was cut after some frames, again from its start
// and complete. No text is lost or repeated.
func goesOn(t *testing.T, c *socket, seen []frame, text string) {
	t.Helper()
	a := c.completed()
	if a.request != seen[0].RequestID {
		t.Errorf("the run was %s and is %s now", seen[0].RequestID, a.request)
	}
	if a.text != text {
		t.Errorf("cut and continued it reads %q", a.text)
	}
	if !strings.HasPrefix(raws(a.frames), raws(seen)) {
		t.Errorf("what was shown before the cut is not what is shown now:\n%s\n\n%s", raws(seen), raws(a.frames))
	}
	silent(t, c)
}

// This test uses the default drain. With it, a server must end within the time
// that supervisors allow.
func TestAServerThatIsToldToStopSaysGoodbyeAndGoesOnLater(t *testing.T) {
	t.Parallel()
	o := paced(t, usualPace*5)
	o.drain = 5 * time.Second
	s, n := startServer(t, o), startNode(t)
	busy, idle := newThread(), newThread()
	c, bystander := n.dial(s, busy), n.dial(s, idle)
	c.ask("count to 350") // about 35 s
	seen := c.pieces(5)

	s.signal(syscall.SIGTERM)
	for ready := http.StatusOK; ready != http.StatusServiceUnavailable; {
		var body string
		if ready, body = s.get("/readyz", nil); ready == http.StatusServiceUnavailable &&
			body != `{"status":"stopping"}`+"\n" {
			t.Errorf("/readyz says %q while the server stops", body)
		}
	}
	// A message that comes now is refused with a retry hint, instead of
	// waiting.
	bystander.ask("repeat too late")
	if f := bystander.expect("error"); !strings.Contains(f.Error, "stopping") {
		t.Errorf("a request to a server that stops: %s", f.raw)
	}
	bystander.closed(1001)
	for {
		h := c.next()
		if h.Event == "close" {
			if h.Code != 1001 || h.Data == "" {
				t.Errorf("closed with %d %q", h.Code, h.Data)
			}
			break
		}
	}
	s.ended()

	s = s.pacedAgain(usualPace / 4)
	goesOn(t, n.dial(s, busy), seen, counted(350))
}

// A row that cannot be read ends one thread, not the server.
func TestACorruptRowHurtsItsOwnThreadOnly(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	damaged, sound := newThread(), newThread()
	for _, thread := range []string{damaged, sound} {
		c := n.dial(s, thread)
		c.ask("remember that rows matter")
		c.completed()
		c.close()
	}
	s.stop()
	damage(t, s.o.data, damaged)
	s = s.again()

	for range 20 { // retries must make it neither better nor worse
		c := n.open("ws://"+s.address+"/api/chat/ws?threadId="+damaged, nil)
		c.opened()
		if f := c.expect("error"); f.RequestID == "" || f.Error == "" {
			t.Errorf("an error without request or words: %s", f.raw)
		}
		c.closed(1011)
	}
	if status, body := s.get("/api/v1/sessions/"+damaged+"/log", nil); status != http.StatusInternalServerError ||
		!strings.Contains(body, `"code":"corrupt"`) {
		t.Errorf("the damaged log: %d %s", status, body)
	}
	c := n.dial(s, sound)
	c.ask("what did I say")
	if a := c.completed(); !strings.Contains(a.text, "rows matter") {
		t.Errorf("the other thread says %q", a.text)
	}
	if !s.running() {
		t.Error("the server is gone")
	}
}

// damage makes one row of a thread unreadable.
func damage(t *testing.T, data, thread string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(data, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	result, err := db.Exec(
		`UPDATE events SET body = '{' WHERE session = (SELECT no FROM sessions WHERE id = ?) AND type = 'InputReceived'`, thread)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d rows were damaged (%v)", n, err)
	}
}
