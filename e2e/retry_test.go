package e2e

import (
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/provider/providertest"
)

// Models that do not answer, and how clients of each protocol see the retries
// of the server.

const (
	secondAttempt = "The model's server is busy; retrying (attempt 2 of 3)…"
	noNetwork     = "Network error while contacting the model's server"
	cannotReach   = "The model's server cannot be reached at http://127.0.0.1:1. Start it, or correct OPENAI_BASE_URL."
)

// unreachable starts a server whose model address has no listener.
func unreachable(t *testing.T, o options) *server {
	t.Helper()
	o.env = append(o.env, "OPENAI_BASE_URL=http://127.0.0.1:1/v1", "MODEL=gpt-4.1")
	return startServer(t, o)
}

// problems returns the messages of ProblemReported in a log.
func problems(log []parley.Event) (list []string) {
	for _, b := range those[parley.ProblemReported](log) {
		list = append(list, b.Message)
	}
	return list
}

// A vendor that is busy once: every client gets a report without the vendor's
// words (which repeat the key here), and another when the retry succeeded.
func TestARetryIsSeen(t *testing.T) {
	t.Parallel()
	busy := response{Error: map[string]any{"message": "slow down, " + providertest.Key, "type": "rate_limit_error"},
		Status: http.StatusTooManyRequests}
	var turns []fixture
	for _, said := range []string{"over the loop", "over the console", "over the terminal"} {
		turns = append(turns, fixture{Match: match{User: said, Sequence: turn(0)}, Response: busy},
			fixture{Match: match{User: said}, Response: says("Here I am.")})
	}
	s, n := startServer(t, withModel(startModel(t, turns), options{})), startNode(t)
	bus, chat := n.tune(s, ""), n.agentChat(s)

	loop := n.loop(s, "/")
	loop.input("over the loop")
	list := loop.items(slices.Concat([]string{"loading", "system", "assistant"}, answered)...)
	if list[1].text() != "⚠️ "+secondAttempt || list[2].text() != "Here I am." {
		t.Errorf("%s\n%s", list[1].raw, list[2].raw)
	}
	chat.shows(userMessage("over the loop"), `{"type":"agent_thinking","reasoning":`+quoted(secondAttempt)+`}`,
		agentMessage("Here I am."))
	var lines []string // they share one id, so the last one replaces the others
	id := ""
	for _, m := range bus.until("turn_complete", "") {
		if m.Kind == "message" && m.Data.From == "system" {
			if lines = append(lines, m.Text); id != "" && m.ID != id {
				t.Errorf("%s, and not %s: %s", m.ID, id, m.raw)
			}
			id = m.ID
		}
	}
	if want := []string{secondAttempt, "The model's server is busy; a retry succeeded."}; !slices.Equal(lines, want) {
		t.Errorf("the bus said %q", lines)
	}
	log := s.settled(loop.session())
	if told := problems(log); !slices.Equal(told, []string{secondAttempt}) {
		t.Errorf("%q", told)
	}

	c := (&gathering{t: t, s: s, n: n}).consoleSocket()
	c.say("over the console")
	a := c.answered()
	if !slices.Equal(a.kinds, []string{"problem", "chunk"}) || a.all[0].Message != secondAttempt ||
		a.text != "Here I am." {
		t.Errorf("%v %s", a.kinds, a.all[0].raw)
	}

	cmd := exec.CommandContext(within(t, patience), binary(t), "chat", "--server", s.address)
	cmd.Env, cmd.Stdin = []string{}, strings.NewReader("over the terminal\n")
	printed, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(printed), "("+secondAttempt+")\n(a retry succeeded)\nHere I am.\n") {
		t.Errorf("%v\n%s", err, printed)
	}
	for _, list := range []string{loop.history(), chat.history(), bus.history(), c.history(), string(printed)} {
		if strings.Contains(list, providertest.Key) || strings.Contains(list, "slow down") {
			t.Errorf("the vendor's words got out:\n%s", list)
		}
	}
}

// If a vendor cannot be reached, the last message about it is the document's.
func TestAVendorThatCannotBeReached(t *testing.T) {
	t.Parallel()
	s, n := unreachable(t, options{}), startNode(t)
	loop, chat := n.loop(s, "/"), n.agentChat(s)
	loop.input("are you there?")
	list := loop.items("loading", "system", "system", "system", "error", "loaded")
	want := []string{noNetwork + "; retrying (attempt 2 of 3)…", noNetwork + "; retrying (attempt 3 of 3)…",
		noNetwork + ". Please check your connection and try again."}
	for i, text := range want {
		if got := list[i+1].text(); got != "⚠️ "+text {
			t.Errorf("%q, want %q", got, text)
		}
	}
	thought := func(text string) string { return `{"type":"agent_thinking","reasoning":` + quoted(text) + `}` }
	chat.shows(userMessage("are you there?"), thought(want[0]), thought(want[1]), thought(want[2]),
		errorMessage(cannotReach))
	if d := list[4].Payload.Details; d == nil ||
		d.Error != cannotReach {
		t.Errorf("%s", list[4].raw)
	}
	if told := problems(s.settled(loop.session())); !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
}

// A server that is killed between two attempts repeats them, and reports each
// only once.
func TestARetryIsToldOnceAcrossACrash(t *testing.T) {
	t.Parallel()
	s := unreachable(t, options{binary: mortalServer(t), env: []string{"PARLEY_FAILPOINT=ProblemReported 0 after"}})
	c := startNode(t).dial(s, newThread())
	c.ask("are you there?")
	s.dies()
	s.o.env = s.o.env[1:]
	s = s.again()
	log := s.ends(c.thread)
	told := problems(log)
	for i, message := range told {
		if slices.Contains(told[:i], message) {
			t.Errorf("%q was told twice: %q", message, told)
		}
	}
	if len(told) != 3 || !strings.HasSuffix(told[2], "try again.") || len(those[parley.TurnStarted](log)) != 2 {
		t.Errorf("%q", told)
	}
}
