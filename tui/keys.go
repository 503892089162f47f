package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/google/uuid"

	"parley"
	"parley/client"
)

// key handles a key. Keys without a meaning for the screen go to the draft.
func (m model) key(k tea.KeyPressMsg) (model, []effect) {
	stopping := m.stopping
	m.stopping, m.hint = false, ""
	if m.picker != nil {
		return m.pickerKey(k)
	}
	switch k.String() {
	case "ctrl+c":
		return m.interrupt(stopping)
	case "ctrl+d":
		if m.draft.Value() == "" {
			return m.leave()
		}
	case "pgup":
		return m.scroll(-max(m.page()-2, 1)), nil
	case "pgdown":
		return m.scroll(max(m.page()-2, 1)), nil
	case "ctrl+home":
		return m.scroll(-m.lines), nil
	case "ctrl+end":
		return m.scroll(m.lines), nil
	case "ctrl+t":
		m.unfolded = !m.unfolded
		return m.layout(), nil
	case "ctrl+z":
		return m, []effect{suspend{}}
	case "ctrl+l":
		return m, []effect{redraw{}}
	case "ctrl+g":
		return m, []effect{editor{m.draft.Value()}}
	}
	if c, ok := m.asks(); ok {
		return m.cardKey(c, k)
	}
	return m.draftKey(k)
}

// draftKey handles a key for the message that the user writes.
func (m model) draftKey(k tea.KeyPressMsg) (model, []effect) {
	switch k.String() {
	case "tab":
		if m.card.aside {
			m.card.aside, m.card.from = false, m.at.Add(cardGuard)
			return m.keepTicking(nil)
		}
		return m.completeDraft()
	case "enter":
		return m.send()
	case "up":
		if m.draft.Line() == 0 {
			return m.recall(1), nil
		}
	case "down":
		if m.draft.Line() == m.draft.LineCount()-1 {
			return m.recall(-1), nil
		}
	}
	return m.edit(k)
}

// edit changes the draft.
func (m model) edit(msg tea.Msg) (model, []effect) {
	m.draft, _ = m.draft.Update(msg) // ignore its commands: they only make a virtual cursor blink, and there is none
	return m, nil
}

// interrupt stops the answer. If it is called twice in a row, it leaves.
func (m model) interrupt(again bool) (model, []effect) {
	if again {
		return m.leave()
	}
	m.stopping = true
	switch {
	case m.talk.Run != 0:
		m.hint = "Stopping. Ctrl-C again leaves; the session stays."
		return m, []effect{cancelRun{m.talk.Session, ""}}
	case len(m.sending) > 0:
		m.hint = "Stopping. Ctrl-C again leaves; the session stays."
		return m, []effect{cancelRun{m.talk.Session, m.sending[0].request}}
	case m.draft.Value() != "":
		m.draft.Reset()
	}
	m.hint = "Ctrl-C again, or Ctrl-D, leaves."
	return m, nil
}

func (m model) leave() (model, []effect) {
	m.leaving = true
	return m, []effect{quit{}}
}

// send submits the draft.
func (m model) send() (model, []effect) {
	text := strings.TrimRight(m.draft.Value(), " \n")
	if strings.TrimSpace(text) == "" {
		return m, nil
	}
	m.draft.Reset()
	m.recalled, m.unsent, m.scrolled = 0, "", false
	if m, effects, ok := m.command(text); ok {
		return m, effects
	}
	return m.submit(text)
}

func (m model) submit(text string) (model, []effect) {
	request := "chat-" + uuid.NewString()
	m.sending = append(slices.Clip(m.sending), sentInput{request, text})
	agent, content := m.addressed(text)
	in := client.Input{Content: content, Agent: firstOf(agent, m.wish.Agent), Model: m.wish.Model, Request: request,
		Key:  request,
		Busy: parley.Steer}
	if m.wish.Plan {
		in.Mode = parley.ModePlan
	}
	return m, []effect{submit{session: m.talk.Session, open: !m.started, wish: m.wish, folder: m.project(), input: in}}
}

// history returns the messages of users in the session, the newest first.
func (m model) history() (said []string) {
	for _, s := range slices.Backward(m.sending) {
		said = append(said, s.text)
	}
	for _, w := range slices.Backward(m.talk.Queue) {
		if !w.Synthetic {
			said = append(said, w.Text)
		}
	}
	for _, i := range slices.Backward(m.talk.Items) {
		if i.Kind == Said && !i.Synthetic {
			said = append(said, i.Text)
		}
	}
	return slices.Compact(said)
}

// recall replaces the draft by an earlier or a later message.
func (m model) recall(by int) model {
	said := m.history()
	to := m.recalled + by
	if to < 0 || to > len(said) {
		return m
	}
	if m.recalled == 0 {
		m.unsent = m.draft.Value()
	}
	if m.recalled = to; to == 0 {
		m.draft.SetValue(m.unsent)
	} else {
		m.draft.SetValue(said[to-1])
	}
	return m
}

// page returns the height of the conversation on the screen.
func (m model) page() int { return max(m.height-len(m.footer())-m.draft.Height(), 1) }

// scroll moves the conversation by lines. At the end, it follows new text
// again.
func (m model) scroll(by int) model {
	end := max(m.lines-m.page(), 0)
	if !m.scrolled {
		m.top = end
	}
	m.top = min(max(m.top+by, 0), end)
	m.scrolled = m.top < end
	return m
}

const wheelLines = 3

func (m model) wheel(w tea.MouseWheelMsg) model {
	switch w.Button {
	case tea.MouseWheelUp:
		return m.scroll(-wheelLines)
	case tea.MouseWheelDown:
		return m.scroll(wheelLines)
	}
	return m
}
