package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// asksToWrite has the demo model ask for a write and expects the card.
func asksToWrite(t *testing.T, c *socket, content, file string) frame {
	t.Helper()
	c.ask("write " + content + " to " + file)
	request := c.expect("chat.started").RequestID
	card := c.skipTo("approval_request")
	if card.RequestID != request || card.Tool != "write_file" || card.ID == "" {
		t.Fatalf("the card is %s", card.raw)
	}
	if !strings.Contains(card.Command, file) || !strings.HasSuffix(card.Command, "\n\n"+content) {
		t.Errorf("the card does not show exactly what would be written: %q", card.Command)
	}
	if expires, err := time.Parse(time.RFC3339, card.ExpiresAt); err != nil || !expires.After(time.Now()) {
		t.Errorf("the card expires at %q (%v)", card.ExpiresAt, err)
	}
	return card
}

func decide(c *socket, card frame, decision, note string) {
	c.t.Helper()
	c.send(map[string]any{"type": "approval_response", "id": card.ID, "decision": decision, "note": note})
}

// finishes expects the card to be closed, then the rest of the run.
func finishes(t *testing.T, c *socket, kind string, card frame, decision string) answer {
	t.Helper()
	f := c.expect(kind)
	if f.ID != card.ID || f.Decision != decision || f.RequestID != card.RequestID {
		t.Fatalf("want the card %s closed by %s, got %s", card.ID, decision, f.raw)
	}
	return c.rest(f)
}

func wantFile(t *testing.T, s *server, name, content string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(s.o.workspace, name))
	if err != nil || string(got) != content {
		t.Errorf("%s holds %q (%v), want %q", name, got, err, content)
	}
}

func wantNoFile(t *testing.T, s *server, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(s.o.workspace, name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s should not be there (%v)", name, err)
	}
}

func TestNothingIsWrittenBeforeItIsApproved(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	c, other := n.dial(s, thread), n.dial(s, thread)
	const content = "“two\n lines” <&>\t🙂"
	card := asksToWrite(t, c, content, "note.txt")
	other.expect("chat.started")
	if shown := other.skipTo("approval_request"); shown.raw != card.raw {
		t.Errorf("the other socket was shown %s, not %s", shown.raw, card.raw)
	}
	late := n.dial(s, thread) // connects while the card waits
	late.expect("chat.started")
	if shown := late.skipTo("approval_request"); shown.raw != card.raw {
		t.Errorf("who came later was shown %s, not %s", shown.raw, card.raw)
	}
	wantNoFile(t, s, "note.txt")

	decide(late, card, "allow", "")
	for _, c := range []*socket{c, other, late} {
		if a := finishes(t, c, "approval_closed", card, "allow"); a.ending != "chat.completed" ||
			!strings.HasPrefix(a.text, "\n\nIt is written.") {
			t.Errorf("after the approval: %+v", a)
		}
	}
	wantFile(t, s, "note.txt", content)

	// A card can be answered once.
	decide(other, card, "allow", "")
	other.expect("error")
	silent(t, c, other, late)
}

// TestAllFiveAnswers: a card takes the same five answers in every protocol. TestAgentLoopTakesAllFiveAnswers shows
// those of the agent loop.
func TestAllFiveAnswers(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"debug console", "agent chat", "thread chat", "event bus", "native"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			g := &gathering{t: t, s: s, n: n, session: newThread(), opener: dialect}
			p := g.join(dialect)
			asks := func(file string) string {
				t.Helper()
				p.say("write it to " + file)
				return p.until(card).id
			}
			ends := func(ending, says string) {
				t.Helper()
				if r := p.over(); r.ending != ending || !strings.Contains(r.text, says) {
					t.Errorf("it ended as %s, want %s, and with %q", r.ending, ending, r.text)
				}
			}
			id := asks("explained.txt")
			p.decide(id, explain)
			p.until(explained)
			wantNoFile(t, s, "explained.txt")
			p.decide(id, allow)
			ends("completed", "It is written.")
			wantFile(t, s, "explained.txt", "it")

			p.decide(asks("denied.txt"), deny)
			ends("completed", "A person did not allow this")
			wantNoFile(t, s, "denied.txt")

			p.decide(asks("always.txt"), always)
			ends("completed", "It is written.")
			if err := os.Remove(filepath.Join(s.o.workspace, "always.txt")); err != nil {
				t.Fatal(err)
			}
			p.say("write it to always.txt") // does not ask again
			ends("completed", "It is written.")
			wantFile(t, s, "always.txt", "it")

			p.decide(asks("stopped.txt"), stop)
			ends("failed", "")
			wantNoFile(t, s, "stopped.txt")
			p.say("say still here")
			ends("completed", "still here")
		})
	}
}

func TestADeniedWriteLeavesNoFile(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := n.dial(s, newThread())
	card := asksToWrite(t, c, "secrets", "note.txt")
	decide(c, card, "deny", "not today")
	if a := finishes(t, c, "approval_closed", card, "deny"); a.ending != "chat.completed" ||
		!strings.Contains(a.text, "not today") {
		t.Errorf("after the denial: %+v", a)
	}
	wantNoFile(t, s, "note.txt")

	card = asksToWrite(t, c, "secrets", "note.txt")
	c.cancel(card.RequestID)
	if a := finishes(t, c, "approval_closed", card, "cancelled"); a.ending != "cancelled" {
		t.Errorf("after cancelling: %+v", a)
	}
	wantNoFile(t, s, "note.txt")
	silent(t, c)
}

func TestAnApprovalWaitsThroughARestart(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			thread := newThread()
			card := asksToWrite(t, n.dial(s, thread), "patience", "note.txt")
			way.end(s)
			wantNoFile(t, s, "note.txt")

			s = s.again()
			c := n.dial(s, thread)
			c.expect("chat.started")
			if again := c.skipTo("approval_request"); again.raw != card.raw {
				t.Errorf("the card was %s and is %s now", card.raw, again.raw)
			}
			wantNoFile(t, s, "note.txt")
			decide(c, card, "allow", "")
			if a := finishes(t, c, "approval_closed", card, "allow"); a.ending != "chat.completed" {
				t.Errorf("after the approval: %+v", a)
			}
			wantFile(t, s, "note.txt", "patience")
			silent(t, c)
		})
	}
}

func TestQuestionsOutliveClientsAndRestarts(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			thread := newThread()
			c := n.dial(s, thread)
			c.ask("ask me")
			c.expect("chat.started")
			card := c.skipTo("question")
			if len(card.Questions) != 1 || !slices.ContainsFunc(card.Questions[0].Options,
				func(o struct{ Label string }) bool { return o.Label == "Coffee" }) {
				t.Fatalf("the question is %s", card.raw)
			}
			way.end(s)

			s = s.again()
			c, other := n.dial(s, thread), n.dial(s, thread)
			for _, c := range []*socket{c, other} {
				c.expect("chat.started")
				if again := c.skipTo("question"); again.raw != card.raw {
					t.Errorf("the question was %s and is %s now", card.raw, again.raw)
				}
			}
			c.send(map[string]any{"type": "question_response", "id": card.ID, "answers": [][]string{{"Coffee"}}})
			for _, c := range []*socket{c, other} {
				if a := finishes(t, c, "question_closed", card, "answered"); a.ending != "chat.completed" ||
					!strings.Contains(a.text, "Coffee") {
					t.Errorf("after the answer: %+v", a)
				}
			}
			silent(t, c, other)
		})
	}
}
