package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestEverySocketOfAThreadSeesItsRunsAndNoOther(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	a, b := newThread(), newThread()
	threads := map[string][]*socket{
		a: {n.dial(s, a), n.dial(s, a), n.dial(s, a)},
		b: {n.dial(s, b), n.dial(s, b)},
	}
	const rounds = 3
	for i := range rounds { // all sockets ask at the same time
		for thread, sockets := range threads {
			sockets[i%len(sockets)].ask(fmt.Sprintf("repeat round %d of thread %s", i, thread))
		}
	}
	for thread, sockets := range threads {
		var first []string
		var texts []string
		for i, c := range sockets {
			var frames []string
			for range rounds {
				answer := c.completed()
				if i == 0 {
					texts = append(texts, answer.text)
				}
				for _, f := range answer.frames {
					frames = append(frames, f.raw)
					if f.ThreadID != "" && f.ThreadID != thread {
						t.Errorf("a socket of %s was shown %s", thread, f.raw)
					}
				}
			}
			if i == 0 {
				first = frames
			} else if !slices.Equal(frames, first) {
				t.Errorf("two sockets of one thread were shown\n%s\n\nand\n%s", strings.Join(first, "\n"),
					strings.Join(frames, "\n"))
			}
		}
		// They were asked through different sockets, so their order is not
		// fixed.
		slices.Sort(texts)
		for i, text := range texts {
			if want := fmt.Sprintf("round %d of thread %s", i, thread); text != want {
				t.Errorf("want %q, got %q", want, text)
			}
		}
		silent(t, sockets...)
	}
}

func TestReconnectingInTheMiddleShowsTheRunFromItsStart(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	to := n.tempo(s).count(10, 100)
	steady, shaky := n.dial(s, thread), n.dial(s, thread)
	shaky.ask(fmt.Sprint("count to ", to))
	lost := shaky.pieces(5)
	shaky.terminate()
	back := n.dial(s, thread)

	whole, replayed := steady.completed(), back.completed()
	if want := counted(to); whole.text != want {
		t.Errorf("who stayed was shown %q", whole.text)
	}
	if raws(replayed.frames) != raws(whole.frames) {
		t.Errorf("who came back was shown\n%s\n\nand who stayed\n%s", raws(replayed.frames), raws(whole.frames))
	}
	if !strings.HasPrefix(raws(whole.frames), raws(lost)) {
		t.Errorf("who left had been shown\n%s", raws(lost))
	}
	silent(t, steady, back)
}

// The most usual client gets its answer and leaves. When it returns, it does
// not get the answer again.
func TestAnAnswerThatWasShownIsNotShownAgain(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	for i := range 10 {
		c := n.dial(s, thread)
		c.ask(fmt.Sprintf("repeat %d", i))
		if a := c.rest(c.expect("chat.started")); a.text != fmt.Sprint(i) {
			t.Fatalf("want %d, got %q again, the answer to %s", i, a.text, a.request)
		}
		c.close()
	}
}

// A run that ended while no client was connected is shown to the next client.
func TestUnseenAnswersAreShownToTheNextClient(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	to := n.tempo(s).count(10, 30)
	c := n.dial(s, thread)
	c.ask(fmt.Sprint("count to ", to))
	seen := c.pieces(1)
	c.terminate()
	s.awaitEvent(thread, func(e event) bool { return e.Type == "RunFinished" })
	for _, way := range ways { // the time in between and other events do not matter
		way.end(s)
		s = s.again()
	}
	back := n.dial(s, thread)
	if a := back.completed(); a.request != seen[0].RequestID || a.text != counted(to) {
		t.Errorf("who came back was shown %+v", a)
	}
	silent(t, back)
}

// The original deleted undelivered answers when the next message came.
func TestANewMessageDeletesNothingThatIsOwed(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	asks := func(request, content string) {
		t.Helper()
		c := n.dial(s, thread)
		c.askAs(request, content)
		s.awaitEvent(thread, func(e event) bool { return e.Type == "InputReceived" && e.Body.Request == request })
		c.terminate()
	}
	asks("first", "write one to one.txt") // this waits for a person
	asks("second", "repeat two")
	asks("third", "repeat three")
	card := s.awaitEvent(thread, func(e event) bool { return e.Type == "ApprovalRequested" })
	settles(s, n, "approvals", fmt.Sprintf("%s.%d", thread, card.Seq))
	ends := 0
	s.awaitEvent(thread, func(e event) bool {
		if e.Type == "RunFinished" {
			ends++
		}
		return ends == 3
	})
	c := n.dial(s, thread)
	c.pieces(1)
	c.skipTo("approval_request")
	for _, want := range []struct{ request, text string }{{"first", "It is written."}, {"second", "two"},
		{"third", "three"}} {
		kind := "chat.started"
		if want.request == "first" {
			kind = "approval_closed"
		}
		if a := c.rest(c.expect(kind)); a.request != want.request || !strings.Contains(a.text, want.text) ||
			a.ending != "chat.completed" {
			t.Errorf("want %v, got %+v", want, a)
		}
	}
	c.close()
	silent(t, n.dial(s, thread))
}

func raws(frames []frame) string {
	var b strings.Builder
	for _, f := range frames {
		b.WriteString(f.raw + "\n")
	}
	return b.String()
}

// counted is the text of the demo model when it counts.
func counted(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(words, " ")
}
