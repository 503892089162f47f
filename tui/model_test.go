package tui

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	xansi "github.com/charmbracelet/x/ansi"

	"parley"
	"parley/port"
)

// A clock for tests stands still until the test moves it.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newTestModel() model { return newTimedModel(&clock{at: testTime}) }

func newTimedModel(c *clock) model { return newModel(testSession, wishes{}, c.now) }

func sized(m model, width, height int) model {
	m, _ = m.step(tea.WindowSizeMsg{Width: width, Height: height})
	return m
}

// press presses keys by name. A name that is not a key is typed letter by letter.
func press(m model, keys ...string) (model, []effect) {
	var all []effect
	for _, name := range keys {
		for _, k := range keyPresses(name) {
			var effects []effect
			m, effects = m.step(k)
			all = append(all, effects...)
		}
	}
	return m, all
}

var namedKeys = map[string]tea.Key{"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown},
	"tab": {Code: tea.KeyTab}, "backspace": {Code: tea.KeyBackspace}, "space": {Code: ' ', Text: " "},
	"alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}}

func keyPresses(name string) (keys []tea.Msg) {
	if k, ok := namedKeys[name]; ok {
		return []tea.Msg{tea.KeyPressMsg(k)}
	}
	if letter, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return []tea.Msg{tea.KeyPressMsg{Code: []rune(letter)[0], Mod: tea.ModCtrl}}
	}
	for _, r := range name {
		keys = append(keys, tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	return keys
}

// shown returns the screen as text.
func shown(m model) string { return xansi.Strip(m.view().Content) }

// tell sends events to the model.
func tell(m model, events ...parley.Event) (model, []effect) {
	return m.step(updatesMsg{session: m.talk.Session, events: events})
}

func mustShow(t *testing.T, m model, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if s := shown(m); !strings.Contains(s, text) {
			t.Errorf("the screen does not show %q:\n%s", text, s)
		}
	}
}

// TestConversation checks that a message is sent once and shown while it waits, and that its answer is shown while it
// arrives.
func TestConversation(t *testing.T) {
	t.Parallel()
	m, effects := press(sized(newTestModel(), 80, 16), "hello", "alt+enter", "you", "enter")
	if len(effects) != 1 {
		t.Fatalf("effects: %#v", effects)
	}
	sent := effects[0].(submit)
	if sent.input.Content != "hello\nyou" || !sent.open || sent.input.Busy != parley.Steer ||
		sent.input.Key != sent.input.Request {
		t.Errorf("sent %#v", sent)
	}
	mustShow(t, m, "… hello you", "● sending")
	m, effects = m.step(openedMsg{testSession})
	if !reflect.DeepEqual(effects, []effect{follow{testSession}}) {
		t.Errorf("effects of opening: %#v", effects)
	}
	var s script
	s.add(parley.SessionOpened{Owner: "local", Agent: "coder"})
	in := s.add(parley.InputReceived{Content: "hello\nyou", Request: sent.input.Request})
	s.add(parley.RunStarted{Input: parley.InputID(in), Agent: parley.AgentRef{Name: "coder"}})
	s.add(parley.InputAdopted{Input: parley.InputID(in)})
	s.add(parley.TurnStarted{Number: 1, Model: "gpt-4.1"})
	out := parley.OutputID(s.add(parley.OutputStarted{Kind: parley.Text}))
	s.add(parley.OutputAppended{Output: out, Kind: parley.Text, Text: "# Title\n\nSome **bold"})
	m, effects = tell(m, s.events...)
	if len(m.sending) != 0 || !reflect.DeepEqual(effects, []effect{listen{testSession}, tick{}}) {
		t.Errorf("after the events: %v waits, effects %#v", m.sending, effects)
	}
	mustShow(t, m, "› hello\n  you", "Title", "Some **bold", "● writing", "coder", "gpt-4.1")
	known := len(s.events)
	s.add(parley.OutputFinished{Output: out, Kind: parley.Text, Text: "# Title\n\nSome **bold** text"})
	s.add(parley.ContextMeasured{Tokens: 50, Limit: 200})
	s.add(parley.RunFinished{Outcome: parley.Completed, Usage: parley.Usage{Input: 1200, CostMicros: 1500}})
	m, _ = tell(m, s.events[known:]...)
	mustShow(t, m, "Some bold text", "✓ ready", "context 25%", "1.2k tokens", "$0.0015")
}

// TestCtrlC checks that Ctrl-C stops the answer, and that a second one in a row leaves.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	var s script
	s.ask("count")
	m, _ := tell(sized(newTestModel(), 60, 16), s.events...)
	m, effects := press(m, "ctrl+c")
	if !reflect.DeepEqual(effects, []effect{cancelRun{testSession, ""}}) {
		t.Errorf("the first: %#v", effects)
	}
	mustShow(t, m, "Ctrl-C again leaves")
	if again, effects := press(m, "ctrl+c"); !reflect.DeepEqual(effects, []effect{quit{}}) || !again.leaving {
		t.Errorf("the second: %#v", effects)
	}
	if _, effects := press(m, "x", "ctrl+c"); !reflect.DeepEqual(effects, []effect{cancelRun{testSession, ""}}) {
		t.Errorf("after another key: %#v", effects)
	}
}

func TestHistoryAndRefusal(t *testing.T) {
	t.Parallel()
	var s script
	for _, text := range []string{"first", "second"} {
		s.ask(text)
		s.add(parley.RunFinished{Outcome: parley.Completed})
	}
	m, _ := tell(sized(newTestModel(), 60, 20), s.events...)
	m, _ = press(m, "draft", "up")
	for _, step := range []struct{ key, want string }{{"", "second"}, {"up", "first"}, {"up", "first"},
		{"down", "second"}, {"down", "draft"}} {
		if m, _ = press(m, step.key); m.draft.Value() != step.want {
			t.Errorf("%s: the draft is %q, not %q", step.key, m.draft.Value(), step.want)
		}
	}
	m, effects := press(m, "enter")
	m, _ = m.step(refusedMsg{effects[0], errors.New("The queue is full.")})
	if m.draft.Value() != "draft" || len(m.sending) != 0 {
		t.Errorf("after a refusal the draft is %q, and %v are being sent", m.draft.Value(), m.sending)
	}
	mustShow(t, m, "The queue is full.")
}

// TestScrolling checks that new text does not move the view of a user who reads earlier text, until the user scrolls to
// the end.
func TestScrolling(t *testing.T) {
	t.Parallel()
	var s script
	s.ask("count")
	var numbers strings.Builder
	for i := range 100 {
		fmt.Fprintf(&numbers, "- number %d\n", i)
	}
	s.say(parley.Text, numbers.String())
	m, _ := tell(sized(newTestModel(), 40, 12), s.events...)
	mustShow(t, m, "number 99")
	m, _ = press(m, "pgup")
	before := strings.Split(shown(m), "\n")[0]
	if strings.Contains(shown(m), "number 99") {
		t.Errorf("PgUp did not scroll:\n%s", shown(m))
	}
	known := len(s.events)
	s.say(parley.Text, "the end")
	m, _ = tell(m, s.events[known:]...)
	if after := strings.Split(shown(m), "\n")[0]; after != before {
		t.Errorf("new text moved the page from %q to %q", before, after)
	}
	for range 3 {
		m, _ = m.step(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	}
	m, _ = press(m, "pgdown", "pgdown")
	mustShow(t, m, "the end")
	if m.scrolled {
		t.Error("the screen does not follow new text at the end")
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	var s script
	s.ask("hello")
	s.say(parley.Text, strings.Repeat("word ", 50)+"\n\n| a | b |\n|---|---|\n| "+strings.Repeat("x", 90)+" | y |\n")
	m, _ := tell(sized(newTestModel(), 80, 24), s.events...)
	for _, size := range [][2]int{{80, 24}, {40, 10}, {24, 8}, {200, 60}} {
		m = sized(m, size[0], size[1])
		lines := strings.Split(m.view().Content, "\n")
		if len(lines) != size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if w := xansi.StringWidth(l); w > size[0] {
				t.Errorf("%v: a line is %d wide: %q", size, w, l)
			}
		}
	}
	m = sized(m, 20, 5)
	if s := strings.Join(strings.Fields(shown(m)), " "); !strings.Contains(s, "too small") {
		t.Errorf("the screen of 20×5 is %q", s)
	}
	mustShow(t, sized(m, 80, 24), "word word")
}

// TestConnection checks that a lost connection is shown until the server is back, and that a log that begins again
// replaces the old one.
func TestConnection(t *testing.T) {
	t.Parallel()
	var s script
	s.ask("hello")
	m, _ := tell(sized(newTestModel(), 60, 12), s.events...)
	m, effects := m.step(updatesMsg{session: testSession, lost: errors.New("gone")})
	if !reflect.DeepEqual(effects, []effect{listen{testSession}, askMe{}}) {
		t.Errorf("effects: %#v", effects)
	}
	mustShow(t, m, "no connection", "› hello")
	m, _ = m.step(meMsg{})
	if strings.Contains(shown(m), "no connection") {
		t.Errorf("the server is back, and the screen says:\n%s", shown(m))
	}
	m, _ = m.step(updatesMsg{session: testSession, resync: true})
	var other script
	other.ask("goodbye")
	m, _ = tell(m, other.events...)
	if strings.Contains(shown(m), "hello") {
		t.Errorf("the old log is still there:\n%s", shown(m))
	}
	m, effects = m.step(updatesMsg{session: testSession, ended: errors.New("The session was deleted.")})
	if len(effects) > 1 || !strings.Contains(shown(m), "was deleted") {
		t.Errorf("effects %#v, screen:\n%s", effects, shown(m))
	}
}

// TestStreamingDrawsOnlyTheEnd checks that complete paragraphs of an answer are not drawn again for each chunk, and
// that the result is the same as drawing the whole text at once.
func TestStreamingDrawsOnlyTheEnd(t *testing.T) {
	t.Parallel()
	text := "# One\n\nA paragraph\nof two lines.\n\n```go\nx := 1\n\ny := 2\n```\n\n- a\n\n- b\n\nNext *one*.\n\nLast one.\n"
	p := newPainter(look{width: 60})
	var b block
	for n := range text {
		b = p.draw(&Item{Kind: Answered, Seq: 7, Open: true, Text: text[:n]}, b)
	}
	if b.settled != strings.Index(text, "Next") {
		t.Errorf("%d of %d bytes are settled: %q", b.settled, len(text), text[:b.settled])
	}
	whole := p.draw(&Item{Kind: Answered, Seq: 7, Text: text}, b)
	squeeze := func(lines []string) string {
		return strings.Join(strings.Fields(xansi.Strip(strings.Join(lines, " "))), " ")
	}
	if parts, whole := squeeze(b.lines), squeeze(whole.lines); !strings.HasPrefix(whole, parts) {
		t.Errorf("in parts\n%s\nat once\n%s", parts, whole)
	}
}

// TestProjectOfTheStatus checks that the status names the project if the server has several.
func TestProjectOfTheStatus(t *testing.T) {
	t.Parallel()
	projects := []port.Project{{ID: "1", Root: "/src/shop", Name: "shop"}, {ID: "2", Root: "/src/app", Name: "app"}}
	m, _ := inTalk().step(meMsg{projects: projects[1:]})
	if strings.Contains(shown(m), "app ·") {
		t.Errorf("of one project:\n%s", shown(m))
	}
	m, _ = m.step(meMsg{projects: projects})
	mustShow(t, m, "app · coder")
	m.talk.Project = ""
	mustShow(t, m, "shop · coder")
}

// TestModelFailureIsShownOnce checks that the reason for the end of the run replaces the problem before it. A
// problem that another model solves stays.
func TestModelFailureIsShownOnce(t *testing.T) {
	t.Parallel()
	gaveUp := parley.ProblemReported{Message: "Network error.", Retry: &parley.Retry{Turn: 1, Problem: "network",
		Attempt: 3, Of: 3, GaveUp: true}}
	failed := parley.RunFinished{Outcome: parley.Failed, Message: "The server is down."}
	var s script
	s.ask("hello")
	s.add(gaveUp)
	s.add(failed)
	m, _ := tell(sized(newTestModel(), 80, 24), s.events...)
	mustShow(t, m, "The server is down.")
	if strings.Contains(shown(m), "Network error.") {
		t.Errorf("both are shown:\n%s", shown(m))
	}
	s = script{}
	s.ask("hello")
	s.add(gaveUp)
	s.add(parley.ModelFellBack{Preferred: "a", Actual: "b"})
	s.say(parley.Text, "Hello.")
	s.add(failed)
	m, _ = tell(sized(newTestModel(), 80, 24), s.events...)
	mustShow(t, m, "Network error.", "The server is down.")
}
