package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/checker"
	"parley/port"
	"parley/store/postgres/pgtest"
)

var mortalBinary struct {
	sync.Once
	path string
	err  error
}

// mortalServer builds the program with failpoints. A test chooses the write to
// the store at which it is killed, and the pace of its demo model.
func mortalServer(t *testing.T) string {
	t.Helper()
	mortalBinary.Do(func() {
		mortalBinary.path = filepath.Join(filepath.Dir(binary(t)), "parley-failpoint")
		if out, err := exec.Command("go", "build", "-tags", "failpoint", "-o", mortalBinary.path,
			"parley/cmd/parley").CombinedOutput(); err != nil {
			mortalBinary.err = fmt.Errorf("go build -tags failpoint: %w\n%s", err, out)
		}
	})
	if mortalBinary.err != nil {
		t.Fatal(mortalBinary.err)
	}
	return mortalBinary.path
}

// dies waits for the end of a server that is killed at a write.
func (s *server) dies() {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.t.Fatal("nobody killed the server")
	}
}

// paced returns the settings of a server whose demo model waits so long between two chunks of an answer. So a test on a
// busy machine can kill the server in the middle of an answer.
func paced(t *testing.T, pace time.Duration) options {
	t.Helper()
	return options{binary: mortalServer(t), env: []string{"PARLEY_DEMO_PACE=" + pace.String()}}
}

// pacedAgain is again, with another pace.
func (s *server) pacedAgain(pace time.Duration) *server {
	s.t.Helper()
	s.o.env = paced(s.t, pace).env
	return s.again()
}

const (
	slowPace  = 500 * time.Millisecond
	usualPace = 20 * time.Millisecond
)

// A promise is a follow-up from the setting of its timer to its delivery, to a
// client that stays or to one that leaves and returns.
type promise struct {
	t      *testing.T
	n      *node
	s      *server
	thread string
	leaves bool
	shown  []*socket
}

// TestKilledBetweenPromiseAndDelivery kills the server before and after every
// write, from the one that sets a timer to the one that records the delivery of
// its message. Then it starts another server. Each message is delivered once.
// If the kill came after the last frame and before the record, the same frames
// come again under the same name. The log has the run once.
//
// On PostgreSQL there are no kills before a write: the database is then as
// after the previous write, and the process is as with SQLite.
func TestKilledBetweenPromiseAndDelivery(t *testing.T) {
	t.Parallel()
	for store, env := range map[string]func(*testing.T) []string{
		"sqlite":   func(*testing.T) []string { return nil },
		"postgres": func(t *testing.T) []string { return []string{"PARLEY_DATABASE_URL=" + pgtest.Database(t)} },
	} {
		for who, leaves := range map[string]bool{"who stays": false, "who comes back": true} {
			t.Run(store+", "+who, func(t *testing.T) {
				t.Parallel()
				times := []string{"after"}
				if store == "sqlite" {
					times = append(times, "before")
				}
				killedBetween(t, leaves, times, env)
			})
		}
	}
}

// promiseSteps lists the writes, each with the number of the run that ends next. Run 1 sets the timer.
var promiseSteps = []string{"TimerSet 1", "OutputAppended 1", "RunFinished 1", "Delivered 2", "TimerFired 2",
	"OutputAppended 2", "RunFinished 2", "Delivered 3"}

func killedBetween(t *testing.T, leaves bool, times []string, env func(*testing.T) []string) {
	at := promiseSteps
	if leaves { // the session is unloaded until the timer is due
		at = append(at[:len(at):len(at)], "Due 2", "Attempted 3")
	}
	for _, step := range at {
		for _, when := range times {
			t.Run(step+" "+when, func(t *testing.T) {
				t.Parallel()
				var p *promise
				for delay := 1; ; delay *= 4 { // on a busy machine a timer is due before its session is unloaded
					o := autonomous(t, append(env(t), "PARLEY_FAILPOINT="+step+" "+when)...)
					if o.binary = mortalServer(t); leaves {
						o.env = append(o.env, "PARLEY_IDLE=50ms")
					}
					p = &promise{t: t, n: startNode(t), s: startServer(t, o), thread: newThread(), leaves: leaves}
					if !p.made(delay) {
						break
					}
					if step != "Due 2" || delay > 16 {
						t.Fatal("nobody killed the server")
					}
				}
				p.keep(step == "Delivered 3")
			})
		}
	}
}

// made sets a follow-up that is due after so many seconds, and reports whether
// the server survived its delivery.
func (p *promise) made(delay int) bool {
	p.t.Helper()
	c := p.n.dial(p.s, p.thread)
	p.shown = append(p.shown, c)
	c.ask(fmt.Sprintf("remind me in %d seconds to stretch", delay))
	if p.leaves {
		if !p.logged("msg=effect_delivered", 1) {
			return false
		}
		c.terminate()
		if !p.logged("msg=chat_response_completed", 2) {
			return false
		}
		p.comeBack()
	}
	return p.logged("msg=effect_delivered", 2)
}

// comeBack opens a socket to a server that may be about to die.
func (p *promise) comeBack() {
	p.t.Helper()
	p.shown = append(p.shown, p.n.open("ws://"+p.s.address+"/api/chat/ws?threadId="+p.thread+"&cards=1", nil))
}

// logged waits until the server has logged something so often; false: it died.
func (p *promise) logged(words string, times int) bool {
	p.t.Helper()
	_, err := p.s.log.find(within(p.t, patience), func(line string) bool {
		if strings.Contains(line, words) {
			times--
		}
		return times == 0
	})
	if err != nil && err != errEnded {
		p.t.Fatalf("waiting for %q: %v", words, err)
	}
	return err == nil
}

// keep starts another server, to which the client returns. Only the record of a
// delivery may be missing, and only if it was the killed write.
func (p *promise) keep(unnoted bool) {
	t := p.t
	t.Helper()
	if <-p.s.exited; !slices.ContainsFunc(p.s.log.all(),
		func(line string) bool { return strings.HasPrefix(line, "killed at ") }) {
		t.Fatalf("the server ended by itself: %v", p.s.err)
	}
	seen := map[string][]string{}
	for _, c := range p.shown {
		c.gone()
		for id, frames := range byRequest(c.events.all()) {
			seen[id] = longer(t, seen[id], frames)
		}
	}
	had := "" // the follow-up's frames, if the client had all of them
	for id, frames := range seen {
		if unasked.MatchString(id) && whole(frames) {
			had = id
		}
	}
	p.s.o.env = slices.DeleteFunc(p.s.o.env, func(v string) bool { return strings.HasPrefix(v, "PARLEY_FAILPOINT=") })
	s := p.s.again()
	noted := ""
	for id, status := range s.effects(p.thread) {
		if unasked.MatchString(id) && status == string(port.EffectCompleted) {
			noted = id
		}
	}
	if noted != "" && noted != had {
		t.Errorf("%s is said to be delivered, and the client has\n%v", noted, seen)
	}
	back := p.n.dial(s, p.thread)
	back.past = nil
	reminder := noted
	for reminder == "" {
		a := back.completed()
		again := strings.Split(strings.TrimSpace(raws(a.frames)), "\n")
		if before := seen[a.request]; whole(before) && !slices.Equal(before, again) {
			t.Errorf("shown again otherwise:\n%s\nand before\n%s", strings.Join(again, "\n"),
				strings.Join(before, "\n"))
		}
		longer(t, seen[a.request], again)
		if unasked.MatchString(a.request) {
			if reminder = a.request; !strings.HasSuffix(a.text, "Reminder: stretch") || had != "" && had != reminder {
				t.Errorf("%+v, and before %q", a, had)
			}
		}
	}
	silent(t, back)
	s.logOf(p.thread, reminder)
	if had != "" && noted == "" && !unnoted {
		t.Error("the client had it all without a note of that")
	}
}

func whole(frames []string) bool {
	return len(frames) > 0 && strings.Contains(frames[len(frames)-1], `"chat.completed"`)
}

// longer returns the longer of two records of one request. Their common part
// must be equal.
func longer(t *testing.T, a, b []string) []string {
	t.Helper()
	if len(a) > len(b) {
		a, b = b, a
	}
	if !slices.Equal(a, b[:len(a)]) {
		t.Errorf("shown were\n%s\nand\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	return b
}

// byRequest groups the frames of a socket by request.
func byRequest(events []happened) map[string][]string {
	frames := map[string][]string{}
	for _, h := range events {
		var f frame
		if h.Event == "message" && json.Unmarshal([]byte(h.Data), &f) == nil && f.RequestID != "" && !isFence(h) {
			frames[f.RequestID] = append(frames[f.RequestID], h.Data)
		}
	}
	return frames
}

// effects returns the delivery status of each request of a thread.
func (s *server) effects(thread string) map[string]string {
	s.t.Helper()
	_, body := s.get("/api/v1/effects?session="+thread, nil)
	var list struct {
		Effects []port.EffectInfo
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		s.t.Fatalf("%v in %s", err, body)
	}
	got := map[string]string{}
	for _, e := range list.Effects {
		got[e.Request] = string(e.Status)
	}
	return got
}

// logOf checks a thread's log, which must have one autonomous message.
func (s *server) logOf(thread, request string) {
	s.t.Helper()
	_, body := s.get("/api/v1/sessions/"+thread+"/log", nil)
	var log []parley.Event
	said, runs := 0, 0
	for line := range strings.Lines(body) {
		var e parley.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatal(err)
		}
		log = append(log, e)
		switch b := e.Body.(type) {
		case parley.InputReceived:
			if b.Synthetic {
				said++
			}
		case parley.RunStarted:
			if b.Request == request {
				runs++
			}
		}
	}
	for _, err := range append(checker.Check(log), checker.Settled(log)...) {
		s.t.Error(err)
	}
	if said != 1 || runs != 1 {
		s.t.Errorf("the log has %d messages that came unasked, and %d runs of %s:\n%s", said, runs, request, body)
	}
}
