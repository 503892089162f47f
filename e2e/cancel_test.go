package e2e

import (
	"fmt"
	"strings"
	"testing"
)

func TestAfterCancelledNothingOfTheRequestComes(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	c, other := n.dial(s, thread), n.dial(s, thread)

	c.ask("count slowly to 1000")
	under := c.pieces(2)
	c.cancel(under[0].RequestID)
	for _, a := range []answer{c.rest(under...), other.answer()} {
		if a.ending != "cancelled" || a.request != under[0].RequestID {
			t.Fatalf("want cancelled, got %+v", a)
		}
	}

	events := s.events(thread)
	if last := events[len(events)-1]; last.Type != "RunFinished" || last.Body.Outcome != "cancelled" {
		t.Errorf("the log ends with %v", last)
	}
	// The model would have gone on for minutes. The next answer can only begin
	// when the cancelled call has ended, and comes right after it.
	silent(t, c, other)
	over := false
	for _, e := range s.events(thread) {
		if over && e.Run == events[len(events)-1].Run {
			t.Errorf("after the run was cancelled the log has of it: %v", e)
		}
		over = over || e.Type == "RunFinished"
	}
}

func TestCancellingNothingIsSilent(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	c, other := n.dial(s, thread), n.dial(s, thread)
	before := len(s.events(thread))

	c.cancel("req-never-was")
	c.settle()
	if after := len(s.events(thread)); after != before {
		t.Errorf("cancelling nothing appended %d events", after-before)
	}
	silent(t, c, other)

	// The same in the middle of another answer, which goes on.
	c.ask("repeat one two three four five six")
	started := c.expect("chat.started")
	c.cancel("req-never-was")
	if a := c.rest(started); a.ending != "chat.completed" || a.text != "one two three four five six" {
		t.Errorf("the answer that was going on: %+v", a)
	}
	other.completed()
	// And a cancel of an answer that is over.
	c.cancel(started.RequestID)
	silent(t, c, other)
}

func TestCancellingAWaitingRequestWithdrawsIt(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := n.dial(s, newThread())

	c.ask("count slowly to 1000")
	running := c.pieces(1)
	c.askAs("waiting", "repeat never")
	c.askAs("behind-it", "repeat behind")
	s.awaitEvent(c.thread, func(e event) bool { return e.Type == "InputReceived" && e.Body.Request == "behind-it" })

	c.cancel("waiting")
	if f := c.skipTo("cancelled"); f.RequestID != "waiting" {
		t.Fatalf("want the waiting one cancelled, got %s", f.raw)
	}
	c.cancel(running[0].RequestID)
	if f := c.skipTo("cancelled"); f.RequestID != running[0].RequestID {
		t.Fatalf("want the running one cancelled, got %s", f.raw)
	}
	if a := c.completed(); a.request != "behind-it" || a.text != "behind" {
		t.Fatalf("want the one behind it, got %+v", a)
	}
	for _, e := range of("RunStarted", s.events(c.thread)) {
		if e.Body.Request == "waiting" {
			t.Errorf("the withdrawn request was started: %v", e)
		}
	}
}

// Cancels overtake other requests, but not the request that they cancel.
func TestACancelRightBehindItsRequestIsNotLost(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	for i := range 20 { // this is a race, so repeat it
		c := n.dial(s, newThread())
		request := fmt.Sprintf("changed-my-mind-%d", i)
		c.askAs(request, "count slowly to 1000")
		c.cancel(request)
		ending := c.frame() // the run may be cancelled before it has started
		if ending.Type == "chat.started" {
			a := c.rest(ending)
			ending = a.frames[len(a.frames)-1]
		}
		if ending.Type != "cancelled" || ending.RequestID != request {
			t.Fatalf("want %s cancelled, got %s", request, ending.raw)
		}
		silent(t, c)
	}
}

func TestRequestsAreAnsweredOneAfterTheOtherInOrder(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	c, other := n.dial(s, thread), n.dial(s, thread)
	for i := range 5 {
		c.ask(fmt.Sprintf("repeat answer number %d", i))
	}
	seen := map[string]bool{}
	for i := range 5 {
		// completed allows no frame of another request in between.
		a, b := c.completed(), other.completed()
		if want := fmt.Sprintf("answer number %d", i); a.text != want || b.text != want || a.request != b.request ||
			seen[a.request] {
			t.Fatalf("want %q once and for all, got %+v and %+v", want, a, b)
		}
		seen[a.request] = true
	}
	silent(t, c, other)
}

func TestMoreThan32WaitingRequestsAreRefusedAndTheRestCompletes(t *testing.T) {
	t.Parallel()
	const limit, surplus = 32, 5
	s, n := startServer(t, options{}), startNode(t)
	c := n.dial(s, newThread())
	c.ask("count slowly to 1000")
	holding := c.pieces(1)
	for i := range limit + surplus {
		c.askAs(fmt.Sprintf("r-%d", i), fmt.Sprintf("repeat %d", i))
	}
	for i := range surplus {
		f := c.skipTo("error")
		if want := fmt.Sprintf("r-%d", limit+i); f.RequestID != want || !strings.Contains(f.Error, fmt.Sprint(limit)) {
			t.Fatalf("want an error for %s that names the limit, got %s", want, f.raw)
		}
	}
	c.cancel(holding[0].RequestID)
	c.skipTo("cancelled")
	for i := range limit {
		if a := c.completed(); a.request != fmt.Sprintf("r-%d", i) || a.text != fmt.Sprint(i) {
			t.Fatalf("want the answer to r-%d, got %+v", i, a)
		}
	}
	silent(t, c)
}
