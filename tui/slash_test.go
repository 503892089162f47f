package tui

import (
	"image/color"
	"reflect"
	"strings"
	"testing"

	"parley"

	tea "charm.land/bubbletea/v2"
)

// inTalk returns a screen with a conversation.
func inTalk() model {
	var s script
	s.add(parley.SessionOpened{Owner: "local", Agent: "coder", Project: "/src/app"})
	s.ask("hello")
	s.say(parley.Text, "Hello.")
	s.add(parley.RunFinished{Outcome: parley.Completed})
	m, _ := tell(sized(newTestModel(), 80, 40), s.events...)
	m.started = true
	return m
}

func TestCommandsHaveTheirEffects(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string][]effect{
		"/compact":          {compact{testSession}},
		"/fork":             {fork{testSession}},
		"/quit":             {quit{}},
		"/agent":            {list{pickAgent, "", "/src/app"}},
		"/model":            {list{pickModel, "", "/src/app"}},
		"/project":          {list{pickProject, "", "/src/app"}},
		"/sessions":         {list{pickSession, "", "/src/app"}},
		"/sessions old one": {list{pickSession, "old one", "/src/app"}},
		"/help":             nil,
		"/queue":            nil,
		"/theme light":      nil,
		"/plan":             nil,
		"/halp":             nil, // almost a command: shows a suggestion
		"/new":              {unfollow{}},
	} {
		if _, effects := press(inTalk(), typed, "enter"); !reflect.DeepEqual(effects, want) {
			t.Errorf("%s: %#v, want %#v", typed, effects, want)
		}
	}
	m, _ := press(inTalk(), "/halp", "enter")
	mustShow(t, m, "Did you mean /help?", "› /halp")
	m, _ = press(inTalk(), "/help", "enter")
	for _, s := range slashes() {
		mustShow(t, m, "/"+s.name, s.about)
	}
	_, effects := press(inTalk(), "/export", "enter")
	if x, ok := effects[0].(export); !ok || x.path != "parley-3f0c1a52.md" || !strings.Contains(x.text, "\nHello.\n") {
		t.Errorf("/export: %#v", effects)
	}
	_, effects = press(inTalk(), "/plan a house", "enter")
	if s, ok := effects[0].(submit); !ok || s.input.Mode != parley.ModePlan || s.input.Content != "a house" {
		t.Errorf("/plan with a message: %#v", effects)
	}
	_, effects = press(inTalk(), "/tour", "enter") // a command of the server, or a skill
	if s, ok := effects[0].(submit); !ok || s.input.Content != "/tour" {
		t.Errorf("/tour: %#v", effects)
	}
}

func TestThemeAndPlanMode(t *testing.T) {
	t.Parallel()
	m := inTalk()
	for _, grey := range []uint8{0xff, 0x10, 0xff, 0x10} { // grey value of the terminal's background
		m, _ = m.step(tea.BackgroundColorMsg{Color: color.Gray{grey}})
		if m.painter.light != (grey == 0xff) {
			t.Errorf("on a background of %x the screen is light: %v", grey, m.painter.light)
		}
	}
	m, _ = press(m, "/theme light", "enter")
	if !m.painter.light {
		t.Error("the theme is not light")
	}
	if m, _ = m.step(tea.BackgroundColorMsg{Color: color.Black}); !m.painter.light {
		t.Error("the terminal overrides the theme")
	}
	if m, _ = press(m, "/theme auto", "enter"); m.painter.light {
		t.Error("the theme does not follow the terminal")
	}
	m, _ = press(m, "/theme blue", "enter")
	mustShow(t, m, "no theme")
	m, _ = press(m, "/plan", "enter")
	mustShow(t, m, "plan mode")
	_, effects := press(m, "x", "enter")
	if s := effects[0].(submit); s.input.Mode != parley.ModePlan {
		t.Errorf("in plan mode: %#v", s)
	}
}

// TestLists checks that typing filters the rows, that Enter chooses one, and that rows of an older search do not
// replace newer ones.
func TestLists(t *testing.T) {
	t.Parallel()
	m, _ := press(inTalk(), "/agent", "enter")
	m, _ = m.step(
		listedMsg{list{pickAgent, "", "/src/app"}, []pickRow{{"coder", "coder", "writes code"},
			{"explorer", "explorer", "looks"}}})
	mustShow(t, m, "coder", "writes code", "explorer")
	m, _ = press(m, "looks", "enter")
	if m.wish.Agent != "explorer" || m.picker != nil {
		t.Errorf("chosen %q", m.wish.Agent)
	}
	m, _ = press(m, "/agent coder", "enter")
	if m, _ = m.step(listedMsg{list{pickAgent, "", "/src/app"},
		[]pickRow{{"coder", "coder", ""}}}); m.wish.Agent != "coder" {
		t.Errorf("/agent coder chose %q", m.wish.Agent)
	}
	m, _ = press(m, "/agent nobody", "enter")
	m, _ = m.step(listedMsg{list{pickAgent, "", "/src/app"}, []pickRow{{"coder", "coder", ""}}})
	mustShow(t, m, `There is no "nobody" in this list.`)
	m, _ = press(m, "esc")
	other := "7d4d6d0e-63f8-4f0b-9a53-0f1d8f2f7a11"
	m, effects := press(m, "/sessions", "enter", "ol", "d")
	if want := (list{pickSession, "old", "/src/app"}); effects[len(effects)-1] != want {
		t.Errorf("searching: %#v", effects)
	}
	m, _ = m.step(listedMsg{list{pickSession, "old", "/src/app"}, []pickRow{{other, "an old one", "coder"}}})
	m, _ = m.step(listedMsg{list{pickSession, "ol", "/src/app"}, []pickRow{{"x", "stale", ""}}})
	mustShow(t, m, "an old one")
	m, effects = press(m, "enter")
	if !reflect.DeepEqual(effects, []effect{open{session: parley.SessionID(other)}}) ||
		m.talk.Session != parley.SessionID(other) {
		t.Errorf("choosing a session: %#v", effects)
	}
	// Events of the session that the user has left are not shown.
	var s script
	s.ask("too late")
	m, _ = m.step(updatesMsg{session: testSession, events: s.events})
	if strings.Contains(shown(m), "too late") {
		t.Errorf("the screen shows another session:\n%s", shown(m))
	}
}

func TestQueueIsWithdrawn(t *testing.T) {
	t.Parallel()
	var s script
	s.ask("count")
	in := s.add(parley.InputReceived{Content: "and then", Request: "r2", Busy: parley.Steer})
	m, _ := tell(sized(newTestModel(), 80, 24), s.events...)
	mustShow(t, m, "⏳ and then")
	m, effects := press(m, "/queue", "enter", "enter")
	if want := []effect{withdraw{testSession, parley.InputID(in)}}; !reflect.DeepEqual(effects, want) {
		t.Errorf("%#v", effects)
	}
	known := len(s.events)
	s.add(parley.InputWithdrawn{Input: parley.InputID(in)})
	if m, _ = tell(m, s.events[known:]...); strings.Contains(shown(m), "⏳") {
		t.Errorf("it still waits:\n%s", shown(m))
	}
}

// TestCompletion covers commands, agents, files, and a message to another agent.
func TestCompletion(t *testing.T) {
	t.Parallel()
	m, _ := press(inTalk(), "/ex", "tab")
	if m.draft.Value() != "/export " {
		t.Errorf("/ex becomes %q", m.draft.Value())
	}
	if m, _ = press(inTalk(), "/re", "tab"); m.draft.Value() != "/re" {
		t.Errorf("/re becomes %q before the server has named its skills", m.draft.Value())
	}
	if m, _ = m.step(completedMsg{"/re", []string{"/review"}}); m.draft.Value() != "/review " {
		t.Errorf("/re becomes %q", m.draft.Value())
	}
	m = inTalk()
	m, _ = m.step(listedMsg{list{pickAgent, "", "/src/app"}, []pickRow{{"coder", "", ""}, {"explorer", "", ""}}})
	m, effects := press(m, "@exp", "tab")
	if !reflect.DeepEqual(effects, []effect{complete{"@exp", "/src/app"}}) {
		t.Errorf("@exp: %#v", effects)
	}
	m, _ = m.step(completedMsg{"@exp", nil})
	if m.draft.Value() != "@explorer " {
		t.Errorf("@exp becomes %q", m.draft.Value())
	}
	m, effects = press(m, "look at @src/ma", "tab")
	m, _ = m.step(completedMsg{"@src/ma", []string{"@src/main.go", "@src/main_test.go"}})
	if m.draft.Value() != "@explorer look at @src/main" || effects[0] != (complete{"@src/ma", "/src/app"}) {
		t.Errorf("the draft is %q", m.draft.Value())
	}
	mustShow(t, m, "@src/main_test.go")
	_, effects = press(m, "enter")
	if s := effects[0].(submit); s.input.Agent != "explorer" || s.input.Content != "look at @src/main" {
		t.Errorf("sent %#v", s.input)
	}
}

func TestEditor(t *testing.T) {
	t.Parallel()
	m, effects := press(inTalk(), "draft", "ctrl+g")
	if !reflect.DeepEqual(effects, []effect{editor{"draft"}}) {
		t.Errorf("%#v", effects)
	}
	if m, _ = m.step(editedMsg{"one\ntwo\n"}); m.draft.Value() != "one\ntwo" {
		t.Errorf("the draft is %q", m.draft.Value())
	}
}

// TestAgentsOfAnotherProject checks that after a change of the project only its own agents are completed and addressed,
// even if the answer for the earlier project arrives late.
func TestAgentsOfAnotherProject(t *testing.T) {
	t.Parallel()
	agents := func(project string, names ...string) listedMsg {
		msg := listedMsg{list: list{pickAgent, "", project}}
		for _, n := range names {
			msg.rows = append(msg.rows, pickRow{id: n})
		}
		return msg
	}
	m, _ := inTalk().step(agents("/src/app", "coder"))
	m, _ = press(m, "/project other", "enter")
	m, effects := m.step(listedMsg{list{pickProject, "", "/src/app"}, []pickRow{{"/src/other", "other", ""}}})
	if !reflect.DeepEqual(effects, []effect{unfollow{}, list{pickAgent, "", "/src/other"}}) {
		t.Fatalf("a change of the project: %#v", effects)
	}
	if m, _ = m.step(agents("/src/app", "coder")); m.agents != nil {
		t.Errorf("in the new project there are the agents %v of the earlier one", m.agents)
	}
	m, _ = m.step(agents("/src/other", "gardener"))
	_, effects = press(m, "@gardener grow", "enter")
	if s := effects[0].(submit); s.input.Agent != "gardener" || s.wish.Project != "/src/other" {
		t.Errorf("sent %#v", s)
	}
	// The user chooses a session of the first project: its agents are requested when its log has shown its project.
	m, _ = m.visit(testSession, true)
	if m.agents != nil {
		t.Errorf("in a session that has not been read there are the agents %v", m.agents)
	}
	var s script
	s.add(parley.SessionOpened{Owner: "local", Agent: "coder", Project: "/src/app"})
	m, effects = tell(m, s.events...)
	if !reflect.DeepEqual(effects, []effect{listen{testSession}, list{pickAgent, "", "/src/app"}}) {
		t.Errorf("a session of another project: %#v", effects)
	}
	if m, _ = press(m, "/new", "enter"); m.project() != "/src/app" {
		t.Errorf("a new session is in %q", m.project())
	}
}
