package engine

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
)

// A logbook holds a server's log and can be read while it is written.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

func (r *rig) timers(id parley.SessionID) (list []string) {
	r.t.Helper()
	rows, err := r.Timers(context.Background(), ann, port.TimerQuery{Session: id})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, row := range rows {
		list = append(list, fmt.Sprintf("%s %s %s", row.Message, row.Status, row.Why))
	}
	return list
}

// TestLimitsAreLoggedAndSeen checks that a timer that is due in the cooldown
// fires exactly at its end, and that at the cap it is cancelled. Both are in
// the server's log and in the list of timers.
func TestLimitsAreLoggedAndSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &logbook{}
		r := newRig(t, forward, func(c *Config) {
			c.Autonomy.MaxConsecutive = 2
			c.Log = slog.New(slog.NewTextHandler(book, nil))
		})
		id := r.open()
		begin := time.Now()
		r.say(id, "call schedule_follow_up 10 say a; call schedule_follow_up 14 say b; call schedule_follow_up 60 say "+
			"c | say go")
		time.Sleep(20 * time.Second)
		if got := fmt.Sprint(r.timers(id)); got != "[say c pending  say b pending cooldown say a promoted ]" ||
			book.count("a follow-up waits") != 1 {
			t.Errorf("%s, logged %d times", got, book.count("a follow-up waits"))
		}
		time.Sleep(time.Minute)
		var when []time.Duration
		for _, f := range all[parley.TimerFired](r.log(id)) {
			when = append(when, f.At.Sub(begin).Truncate(time.Second))
		}
		if fmt.Sprint(when) != "[10s 25s]" {
			t.Errorf("they fired after %v", when)
		}
		if got := fmt.Sprint(r.timers(id)); got != "[say c cancelled hard_cap say b promoted  say a promoted ]" ||
			book.count("a follow-up was not sent") != 1 || book.count("why=hard_cap") != 1 {
			t.Errorf("%s\n%s", got, book.text.String())
		}
		r.check(id)
	})
}

// TestAnOutageOfDays checks that timers that came due during an outage lead to
// one message at once, and that no more follow.
func TestAnOutageOfDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, forward)
		id := r.open()
		var calls []string
		for i := range parley.MaxFollowUps {
			calls = append(calls, fmt.Sprintf("call schedule_follow_up %d say %d", 60*(i+1), i))
		}
		r.do(id, parley.SubmitInput{Content: strings.Join(calls, "; ") + " | say go"})
		r.finished(id, 1)
		r.stop(true)
		time.Sleep(72 * time.Hour)
		r.start()
		r.finished(id, 2)
		time.Sleep(72 * time.Hour)
		log := r.log(id)
		in := unaskedInputs(log)
		if len(in) != 1 || len(all[parley.TimerFired](log)) != parley.MaxFollowUps ||
			len(all[parley.TimerCancelled](log)) != 0 {
			t.Fatalf("%+v\n%s", in, story(log))
		}
		for i := range parley.MaxFollowUps {
			if !strings.Contains(in[0].Content, fmt.Sprintf("%d. say %d", i+1, i)) {
				t.Errorf("message %d is not in %q", i, in[0].Content)
			}
		}
		r.check(id)
	})
}

// TestMessageCancelsFollowUpsAtAnyTime checks that a message of a person cancels waiting
// follow-ups at any time: before they are due, in the cooldown, and between
// firing and delivery.
func TestMessageCancelsFollowUpsAtAnyTime(t *testing.T) {
	for after, want := range map[time.Duration]string{
		5 * time.Second:  "[say b cancelled user_message say a cancelled user_message] 0",
		15 * time.Second: "[say b cancelled user_message say a promoted ] 1",
		20 * time.Second: "[say b cancelled user_message say a promoted ] 1",
		60 * time.Second: "[say b promoted  say a promoted ] 2",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, forward)
			id := r.open()
			r.do(id, parley.SubmitInput{Content: "call schedule_follow_up 10 say a; call schedule_follow_up 18 say b " +
				"| say go", Request: "r1", Deliver: true})
			time.Sleep(after)
			r.do(id, parley.SubmitInput{Content: "say I am here", Request: "r2", Deliver: true})
			time.Sleep(time.Hour)
			log := r.log(id)
			if got := fmt.Sprint(r.timers(id), len(unaskedInputs(log))); got != want {
				t.Errorf("%v: %s, want %s", after, got, want)
			}
			effects, err := r.Effects(context.Background(), ann, port.EffectQuery{Session: id})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range effects {
				if unasked := strings.HasPrefix(e.Request, parley.FollowUpNamed); unasked != (e.Status == port.EffectGone) {
					t.Errorf("%v: %+v", after, e)
				}
			}
			r.check(id)
		})
	}
}

// TestTheCooldownAndAClockThatJumps checks a clock that was wrong when a
// message came, and is then set right. It neither silences the session for as
// long as it was wrong nor leads to a second message.
func TestTheCooldownAndAClockThatJumps(t *testing.T) {
	for _, wrong := range []time.Duration{-48 * time.Hour, -10 * time.Second, 10 * time.Second, 48 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			clock := &wrongClock{}
			clock.set(wrong)
			r := newRig(t, forward, func(c *Config) { c.Now = clock.now })
			id := r.open()
			r.say(id, "call schedule_follow_up 10 say a | say go")
			time.Sleep(12 * time.Second)
			clock.set(0)
			r.say(id, "call schedule_follow_up 5 say b | say go on")
			time.Sleep(time.Minute)
			in := unaskedInputs(r.log(id))
			if len(in) != 2 || in[1].Content != "say b" || in[0].Request == in[1].Request {
				t.Errorf("%v: %+v", wrong, in)
			}
			time.Sleep(72 * time.Hour)
			if n := len(unaskedInputs(r.log(id))); n != 2 {
				t.Errorf("%v: %d came", wrong, n)
			}
			r.check(id)
		})
	}
}

type wrongClock struct {
	mu   sync.Mutex
	wide time.Duration
}

func (c *wrongClock) set(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wide = by
}

func (c *wrongClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.wide)
}
