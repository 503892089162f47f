package tui

import (
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"parley"
	"parley/client"
	"parley/port"
)

// A model is the state of the screen. step computes the next state, and View draws it.
type model struct {
	now  func() time.Time
	wish wishes

	at       time.Time // time of the message that step handles
	me       client.Me
	projects []port.Project // of the server
	talk     Talk
	started  bool  // the session exists on the server
	lost     error // error of the lost connection; nil: connected
	ended    error // error of the follower, which has ended for good

	width, height int
	light         bool
	theme         string // light, dark, or empty: as the background of the terminal
	unfolded      bool
	painter       *painter
	blocks        []block
	lines         int // number of lines of all blocks
	top           int // first visible line, unless the screen follows the end
	scrolled      bool

	card     cardView
	draft    textarea.Model
	recalled int    // position of the draft in the history; 0: a new message
	unsent   string // the new draft, while an earlier message is recalled
	sending  []sentInput
	stopping bool     // the last key was Ctrl-C
	picker   *picker  // nil: the conversation is shown
	agents   []string // names of the agents of project agentsOf
	agentsOf string   // project of the last request for agents
	unlisted bool     // the session on the screen is in a project that is not known yet
	hint     string   // shown to the user until the next key
	leaving  bool
	ticking  bool
}

// wishes are the user's choices for the next message.
type wishes struct {
	Agent, Model, Project string
	Plan                  bool
}

// sentInput is an input that the log does not have yet.
type sentInput struct {
	request, text string
}

// Messages that step handles, besides Bubble Tea's own.
type (
	// updatesMsg has events, followed by a change of the follower, if there is one.
	updatesMsg struct {
		session parley.SessionID
		events  []parley.Event
		lost    error // lost connection; the follower tries again by itself
		resync  bool  // the log begins again
		ended   error // the follower has ended for good
	}
	meMsg struct {
		me       client.Me
		projects []port.Project
	}
	openedMsg  struct{ session parley.SessionID }
	refusedMsg struct { // an effect failed
		effect effect
		err    error
	}
	tickMsg struct{}
)

// An effect is an action outside the model. perform executes it.
type effect any

type (
	askMe struct{}
	// follow begins to follow a session; listen waits for its next events.
	follow struct{ session parley.SessionID }
	listen struct{ session parley.SessionID }
	// open opens a session, or finds an existing one; then its log is followed.
	open struct {
		session parley.SessionID
		agent   string // for a new session
	}
	submit struct {
		session parley.SessionID
		open    bool // open the session first
		wish    wishes
		folder  string // folder of the project, for the names of images
		input   client.Input
	}
	cancelRun struct {
		session parley.SessionID
		request string // empty: cancel the open run
	}
	tick    struct{}
	quit    struct{}
	suspend struct{}
	redraw  struct{}
)

const (
	leastWidth, leastHeight = 24, 8
	mostDraft               = 8 // maximum number of visible lines of the draft
)

func newModel(session parley.SessionID, w wishes, now func() time.Time) model {
	m := model{now: now, wish: w, talk: Talk{Session: session}, draft: newDraft()}
	m.at = now()
	return m
}

func newDraft() textarea.Model {
	t := textarea.New()
	t.ShowLineNumbers = false
	t.SetVirtualCursor(false)
	t.CharLimit, t.MaxContentHeight = 0, 10000
	t.DynamicHeight, t.MinHeight, t.MaxHeight = true, 1, mostDraft
	t.SetPromptFunc(2, func(i textarea.PromptInfo) string {
		if i.LineNumber == 0 {
			return "› "
		}
		return "  "
	})
	plain := textarea.Styles{}
	plain.Cursor.Blink = false
	t.SetStyles(plain)
	t.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j"))
	for _, unused := range []*key.Binding{&t.KeyMap.Paste, &t.KeyMap.SelectAll, &t.KeyMap.PageUp, &t.KeyMap.PageDown,
		&t.KeyMap.CopySelection, &t.KeyMap.TransposeCharacterBackward} {
		unused.SetEnabled(false)
	}
	t.Focus()
	return t
}

// begin returns the effects before the first message.
func (m model) begin(existing bool) (model, []effect) {
	m.agentsOf = m.project()
	effects := []effect{askMe{}, list{pickAgent, "", m.agentsOf}}
	if existing {
		effects = append(effects, open{m.talk.Session, m.wish.Agent})
	}
	return m, effects
}

// step returns the next state, and the effects to perform.
func (m model) step(msg tea.Msg) (model, []effect) {
	m.at = m.now()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.draft.SetWidth(max(m.width, leastWidth))
		return m.layout(), nil
	case tea.BackgroundColorMsg:
		m.light = !msg.IsDark()
		return m.layout(), nil
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.paste(msg)
	case tea.MouseWheelMsg:
		return m.wheel(msg), nil
	case tickMsg:
		m.ticking = false
		return m.keepTicking(nil)
	}
	return m.stepOutside(msg)
}

// stepOutside handles messages from the server.
func (m model) stepOutside(msg tea.Msg) (model, []effect) {
	switch msg := msg.(type) {
	case meMsg:
		m.me, m.projects, m.lost = msg.me, msg.projects, nil
		if m.me.Demo && m.me.Hint != "" && m.hint == "" {
			m.hint = m.me.Hint
		}
	case openedMsg:
		if msg.session == m.talk.Session && !m.started {
			m.started = true
			return m, []effect{follow{m.talk.Session}}
		}
	case updatesMsg:
		if msg.session == m.talk.Session {
			return m.updates(msg)
		}
	case listedMsg:
		return m.listed(msg)
	case completedMsg:
		return m.completed(msg), nil
	case editedMsg:
		m.draft.SetValue(strings.TrimRight(msg.text, "\n"))
		return m.layout(), nil
	case exportedMsg:
		m.hint = "The conversation is in " + msg.path + "."
	case forkedMsg:
		m, effects := m.visit(msg.session, true)
		m.hint = "This is a copy of the session."
		return m, effects
	case refusedMsg:
		return m.refused(msg), nil
	}
	return m, nil
}

// updates handles events from the log, and changes of the follower.
func (m model) updates(msg updatesMsg) (model, []effect) {
	effects := []effect{listen{m.talk.Session}}
	if len(msg.events) > 0 {
		m.lost = nil
		m.talk = Fold(m.talk, msg.events...)
		m = m.received(msg.events)
		var asked []effect
		m, asked = m.listAgents()
		effects = append(effects, asked...)
	}
	switch {
	case msg.lost != nil:
		m.lost = msg.lost
		effects = append(effects, askMe{}) // the answer comes when the server is back
	case msg.resync:
		m.talk = Talk{Session: m.talk.Session}
		m.blocks, m.scrolled = nil, false
	case msg.ended != nil:
		m.ended, effects = msg.ended, nil
	}
	return m.present().layout().keepTicking(effects)
}

// keepTicking keeps the time on the status line current while a run is open, and updates a card when keys begin to
// answer it.
func (m model) keepTicking(effects []effect) (model, []effect) {
	if (m.talk.Run != 0 || !m.armed()) && !m.ticking {
		m.ticking = true
		effects = append(effects, tick{})
	}
	return m, effects
}

// received removes inputs from sending that the log now has.
func (m model) received(events []parley.Event) model {
	for _, e := range events {
		b, ok := e.Body.(parley.InputReceived)
		if !ok || e.Session != m.talk.Session {
			continue
		}
		var left []sentInput
		for _, s := range m.sending {
			if s.request != b.Request {
				left = append(left, s)
			}
		}
		m.sending = left
	}
	return m
}

// refused shows why an effect failed. A message that was not sent becomes the draft again.
func (m model) refused(msg refusedMsg) model {
	m.hint, m.card.sent = msg.err.Error(), false
	s, ok := msg.effect.(submit)
	if !ok {
		return m
	}
	var left []sentInput
	for _, known := range m.sending {
		if known.request != s.input.Request {
			left = append(left, known)
		} else if m.draft.Value() == "" {
			m.draft.SetValue(known.text)
		}
	}
	m.sending = left
	return m.layout()
}

// layout draws the changed items, and keeps the scroll position.
func (m model) layout() model {
	if m.width < leastWidth {
		return m
	}
	l := look{width: m.width, light: m.light, unfolded: m.unfolded}
	if m.theme != "" {
		l.light = m.theme == "light"
	}
	if m.painter == nil || m.painter.look != l {
		m.painter = newPainter(l)
	}
	if c, ok := m.waitingCard(); ok {
		m.card.body = m.painter.cardBody(c, m.card)
	}
	blocks := make([]block, len(m.talk.Items))
	m.lines = 0
	for n, i := range m.talk.Items {
		var old block
		if n < len(m.blocks) {
			old = m.blocks[n]
		}
		blocks[n] = m.painter.draw(i, old)
		m.lines += len(blocks[n].lines)
	}
	m.blocks = blocks
	return m
}
