package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"parley"
)

// A carrier is a client in which a person continues a conversation. say sends a message to the session and returns the
// answer as the person sees it.
type carrier struct {
	name string
	say  func(c *conversation, runs int, text string) (seen string)
}

// inConsole sends and follows with the native protocol, as the console does.
var inConsole = carrier{"console", func(c *conversation, runs int, text string) (seen string) {
	c.say(text)
	return answerOf(c, runs)
}}

// answerOf returns the answer of a run.
func answerOf(c *conversation, runs int) string {
	c.until("RunFinished", runs)
	b, ok := c.until("OutputFinished", runs).Body.(parley.OutputFinished)
	if !ok {
		c.t.Fatal("no answer")
	}
	return b.Text
}

// inRun uses parley run, as a script does.
var inRun = carrier{"run", func(c *conversation, _ int, text string) string {
	return inProcess(c.t, "", "run", "--server", c.addr, "--session", c.session, text)
}}

// inChat uses the line mode of parley chat.
var inChat = carrier{"chat", func(c *conversation, _ int, text string) string {
	return inProcess(c.t, text+"\n", "chat", "--server", c.addr, "--thread", c.session)
}}

// inScreen uses the full screen of parley chat, which stays open while other clients continue the conversation. It
// returns nil if tmux is missing or the tests are short.
func inScreen(t *testing.T, addr, session string) *carrier {
	if _, err := exec.LookPath("tmux"); err != nil || testing.Short() { // most of the work happens in another process
		return nil
	}
	u := newScreen(t, 90, 60, nil, "--server", addr, "--thread", session)
	u.see("✓ ready")
	return &carrier{"screen", func(c *conversation, runs int, text string) string {
		u.enter(text)
		answer := answerOf(c, runs)
		lines := strings.Split(strings.TrimSpace(answer), "\n")
		return strings.Join(strings.Fields(u.see("› "+text, lines[len(lines)-1], "✓ ready")), " ")
	}}
}

// inProcess runs a command in this process and returns its standard output.
func inProcess(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	var out, progress strings.Builder
	p := &program{ctx: t.Context(), stdin: strings.NewReader(stdin), stdout: &out, stderr: &progress}
	if err := p.run(args, noEnv); err != nil {
		t.Fatalf("parley %s: %s\n%s", args[0], describe(err), progress.String())
	}
	return out.String()
}

// TestConversationMovesBetweenClients: a person begins in the console, continues with the full screen, parley run and
// the line mode of parley chat, and returns to the console. Every client shows the whole conversation, and the console
// has received all of it.
func TestConversationMovesBetweenClients(t *testing.T) {
	t.Parallel()
	served(t, kinds["sqlite"](t), func(addr, _ string) {
		c := open(t, addr)
		carriers := []carrier{inConsole, inRun, inChat, inConsole, inChat, inRun}
		if screen := inScreen(t, addr, c.session); screen != nil {
			carriers = slices.Concat(carriers[:1], []carrier{*screen}, carriers[1:], []carrier{*screen, inConsole})
		}
		var said []string
		for i, by := range carriers {
			text := "what did I say " + by.name
			seen := by.say(c, i+1, text)
			for n, earlier := range said {
				if want := fmt.Sprintf("%d. %s", n+1, earlier); !strings.Contains(seen, want) {
					t.Errorf("%s, the client %d of the conversation, is shown %q, without %q", by.name, i+1, seen, want)
				}
			}
			said = append(said, text)
			if in, ok := c.until("InputReceived", i+1).Body.(parley.InputReceived); !ok || in.Content != text {
				t.Errorf("the console has seen %q, and %s said %q", in.Content, by.name, text)
			}
		}
	})
}
