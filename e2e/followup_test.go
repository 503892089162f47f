package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley"
	"parley/checker"
)

// autonomous is a server on which agents come back unasked.
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
	return options{workspace: workspace, env: append([]string{"AUTONOMY_ENABLED=true", "AUTONOMY_COOLDOWN_MS=1000"}, env...)}
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
	exactly(t, a.frames[0], "chat.started", map[string]any{"requestId": a.request, "threadId": thread, "agentId": "helpful-assistant"})
	exactly(t, a.frames[1], "content", map[string]any{"requestId": a.request, "content": a.frames[1].Content})
	exactly(t, a.frames[len(a.frames)-1], "chat.completed", map[string]any{"requestId": a.request, "threadId": thread, "agentId": "helpful-assistant"})
	s.logged("msg=event_published ", 2)
	s.logged("type=timer_fired", 1)
	s.logged("msg=effect_delivered", 2)

	// Who is not there when it comes is shown it on coming back, also by
	// another process.
	c.ask("remind me in 1 second to breathe")
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
	if out, _, code := run(t, "effects", "--data", s.o.data, "--status", "pending"); code != 0 || !strings.Contains(out, "timer_autonomous_") {
		t.Errorf("parley effects, exit code %d:\n%s", code, out)
	}
	if out, _, code := run(t, "timers", "--data", s.o.data, "--status", "all"); code != 0 || strings.Count(out, "promoted") != 2 {
		t.Errorf("parley timers, exit code %d:\n%s", code, out)
	}
	s.kill()
	s = s.again()
	back := n.dial(s, thread)
	if b := back.completed(); b.text != "Reminder: breathe" || !unasked.MatchString(b.request) || b.request == a.request {
		t.Errorf("who came back was shown %+v", b)
	}
	silent(t, back)
}

// A message of the user cancels what was to come: the next thing that comes
// unasked is what was promised after it.
func TestAMessageCancelsReminders(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, autonomous(t)), startNode(t)
	c := n.dial(s, newThread())
	c.ask("remind me in 2 seconds to be cancelled")
	c.completed()
	c.ask("remind me in 3 seconds to win")
	c.completed()
	if a := c.completed(); a.text != "Reminder: win" {
		t.Errorf("%+v", a)
	}
	status, body := s.get("/api/v1/timers?session="+c.thread+"&status=cancelled", nil)
	if status != 200 || strings.Count(body, `"why":"user_message"`) != 1 || !strings.Contains(body, "say Reminder: be cancelled") {
		t.Errorf("%d %s", status, body)
	}
}

// Clients of the original code know such messages by another name.
func TestAnAutonomousMessageInTheOriginalShape(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, autonomous(t)), startNode(t)
	c := n.dial(s, newThread())
	c.send(map[string]any{"type": "message", "threadId": c.thread, "requestId": "mine", "content": "remind me in 1 second to stretch"})
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
	if a := c.completed(); !strings.Contains(a.text, "this agent does not offer it to me") {
		t.Errorf("%+v", a)
	}
}

// TestKilledBetweenPromiseAndDelivery kills the server, at every step from the
// promise of a message to its delivery. Each message is delivered, whole, once;
// or, where the kill fell between its last frame and the note of that, again,
// with the same frames under the same name. The log has its run once.
func TestKilledBetweenPromiseAndDelivery(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, autonomous(t)), startNode(t)
	const words = "one two three four five six seven eight nine ten eleven twelve"
	for _, step := range []struct {
		name  string
		event string
		which int
	}{
		{"set", "TimerSet", 1}, {"promised", "RunFinished", 1}, {"fired", "TimerFired", 1}, {"running", "RunStarted", 2}, {"enqueued", "EffectEnqueued", 2},
		{"speaking", "OutputStarted", 3}, {"ended", "RunFinished", 2}, {"shown", "", 0},
	} {
		thread := newThread()
		c := n.dial(s, thread)
		c.ask("remind me in 1 second to " + words)
		if step.event == "" { // its end was written to a socket, and perhaps not yet noted
			c.completed()
			c.completed()
		} else {
			count := step.which
			s.awaitEvent(thread, func(e event) bool {
				if e.Type == step.event {
					count--
				}
				return count == 0
			})
		}
		s.kill()
		c.gone()
		seen := byRequest(c.events.all())
		s = s.again()
		effects := s.effects(thread)
		back := n.dial(s, thread)
		back.past = nil
		reminder := ""
		for id, frames := range seen {
			if unasked.MatchString(id) && strings.Contains(frames[len(frames)-1], "chat.completed") {
				reminder = id
			}
		}
		if delivered := effects[reminder] == "completed"; !delivered {
			for {
				a := back.completed()
				if whole := seen[a.request]; len(whole) > 0 && strings.Contains(whole[len(whole)-1], "chat.completed") && strings.TrimSpace(raws(a.frames)) != strings.Join(whole, "\n") {
					t.Errorf("%s: shown again otherwise:\n%s\nand before\n%s", step.name, raws(a.frames), strings.Join(whole, "\n"))
				}
				if unasked.MatchString(a.request) {
					if a.text != "Reminder: "+words || reminder != "" && a.request != reminder {
						t.Errorf("%s: %+v", step.name, a)
					}
					reminder = a.request
					break
				}
			}
		}
		silent(t, back)
		s.logOf(thread, reminder)
	}
}

// byRequest sorts the frames that a socket was shown.
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

// effects says how far the delivery of each request of a thread got.
func (s *server) effects(thread string) map[string]string {
	s.t.Helper()
	_, body := s.get("/api/v1/effects?session="+thread, nil)
	var list struct {
		Effects []parley.EffectInfo
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

// logOf checks a thread's log, which must have one message that came unasked.
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
