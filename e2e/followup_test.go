package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// autonomous starts a server with autonomy enabled.
func autonomous(t *testing.T, env ...string) options {
	t.Helper()
	workspace := t.TempDir()
	file := filepath.Join(workspace, "agents", "helpful-assistant.md")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("---\nautonomy: {enabled: true}\n---\nYou help.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return options{workspace: workspace, env: append([]string{"AUTONOMY_ENABLED=true", "AUTONOMY_COOLDOWN_MS=1000"},
		env...)}
}

var unasked = regexp.MustCompile(`^timer_autonomous_\d{10,}$`)

// Document 002: an autonomous message has a requestId of its own kind, no
// chat.request before it, and otherwise the frames of any answer.
func TestAnAutonomousMessageIsAsTheDocumentHasIt(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, autonomous(t)), startNode(t)
	thread := newThread()
	c, watching := n.dial(s, thread), n.dial(s, thread)
	c.ask("remind me in 1 second to stretch")
	c.completed()
	watching.completed()
	a, same := c.completed(), watching.completed()
	if !unasked.MatchString(a.request) || a.text != "Reminder: stretch" || raws(a.frames) != raws(same.frames) {
		t.Fatalf("%+v, and to another socket\n%s", a, raws(same.frames))
	}
	exactly(t, a.frames[0], "chat.started", map[string]any{"requestId": a.request, "threadId": thread,
		"agentId": "helpful-assistant"})
	exactly(t, a.frames[1], "content", map[string]any{"requestId": a.request, "content": a.frames[1].Content})
	exactly(t, a.frames[len(a.frames)-1], "chat.completed", map[string]any{"requestId": a.request, "threadId": thread,
		"agentId": "helpful-assistant"})
	s.logged("msg=event_published ", 2)
	s.logged("type=timer_fired", 1)
	s.logged("msg=effect_created ", 2)
	s.logged("msg=effect_delivered", 2)

	// A client that was not connected gets it on its return, also from another
	// process.
	c.ask(fmt.Sprintf("remind me in %d seconds to breathe", n.tempo(s).seconds(3)))
	c.completed()
	c.terminate()
	watching.terminate()
	ends := 0
	s.awaitEvent(thread, func(e event) bool {
		if e.Type == "RunFinished" {
			ends++
		}
		return ends == 4
	})
	if out, _, code := run(t, "effects", "--data", s.o.data, "--status", "pending"); code != 0 ||
		!strings.Contains(out, "timer_autonomous_") {
		t.Errorf("parley effects, exit code %d:\n%s", code, out)
	}
	if out, _, code := run(t, "timers", "--data", s.o.data, "--status", "all"); code != 0 ||
		strings.Count(out, "promoted") != 2 {
		t.Errorf("parley timers, exit code %d:\n%s", code, out)
	}
	s.kill()
	s = s.again()
	back := n.dial(s, thread)
	if b := back.completed(); b.text != "Reminder: breathe" || !unasked.MatchString(b.request) ||
		b.request == a.request {
		t.Errorf("who came back was shown %+v", b)
	}
	silent(t, back)
}

// A message of the user cancels the pending follow-up: the next autonomous
// message is the follow-up that was set after it.
func TestAMessageCancelsReminders(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, autonomous(t)), startNode(t)
	delay := n.tempo(s).seconds(2)
	c := n.dial(s, newThread())
	c.ask(fmt.Sprintf("remind me in %d seconds to be cancelled", delay))
	c.completed()
	c.ask(fmt.Sprintf("remind me in %d seconds to win", delay+1))
	c.completed()
	if a := c.completed(); a.text != "Reminder: win" {
		t.Errorf("%+v", a)
	}
	status, body := s.get("/api/v1/timers?session="+c.thread+"&status=cancelled", nil)
	if status != 200 || strings.Count(body, `"why":"user_message"`) != 1 ||
		!strings.Contains(body, "say Reminder: be cancelled") {
		t.Errorf("%d %s", status, body)
	}
}

// Clients of the original code use another name for autonomous messages.
func TestAnAutonomousMessageInTheOriginalShape(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, autonomous(t)), startNode(t)
	c := n.dial(s, newThread())
	c.send(map[string]any{"type": "message", "threadId": c.thread, "requestId": "mine",
		"content": "remind me in 1 second to stretch"})
	c.skipTo("final")
	text := ""
	for {
		f := c.frame()
		if !regexp.MustCompile(`^followup_\d{13,}$`).MatchString(f.RequestID) {
			t.Fatalf("%s", f.raw)
		}
		if text += f.Value; f.Type == "final" {
			if f.Message != text || text != "Reminder: stretch" {
				t.Errorf("%q, finally %s", text, f.raw)
			}
			return
		}
	}
}

// Off by default, whatever the agent's file says.
func TestAutonomyIsOffByDefault(t *testing.T) {
	t.Parallel()
	o := autonomous(t)
	o.env = nil
	s, n := startServer(t, o), startNode(t)
	c := n.dial(s, newThread())
	c.ask("remind me in 1 second to stretch")
	if a := c.completed(); !strings.Contains(a.text, "follow-ups are off for this agent") {
		t.Errorf("%+v", a)
	}
}
