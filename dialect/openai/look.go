package openai

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
)

// read reads a session and those below it, from after a seq to the current head, or until use returns true.
func (h *Handler) read(ctx context.Context, who port.Principal, id parley.SessionID, after parley.Seq,
	use func(parley.Event) (enough bool)) error {
	f, err := h.Door.Follow(ctx, who, port.Scope{Session: id, Below: true}, port.Cursor{After: int64(after)})
	if err != nil {
		return err
	}
	defer f.Close()
	now, ok := f.(port.Waker)
	if !ok {
		return fmt.Errorf("a %T cannot be read without waiting", f)
	}
	for {
		items, err := now.Take(ctx, func() {})
		if err != nil || len(items) == 0 {
			return err
		}
		for _, i := range items {
			if use(i.Event) {
				return nil
			}
		}
	}
}

// stateOf returns the view of the open run of a session.
func (h *Handler) stateOf(ctx context.Context, who port.Principal, m port.Summary) (View, error) {
	v := View{Notices: h.notices(), Shape: Responses, Session: m.ID}
	err := h.read(ctx, who, m.ID, parley.Seq(m.Run)-1, func(e parley.Event) bool {
		v, _ = Project(v, e)
		return false
	})
	return v, err
}

func noResponse(param, id string) error {
	return ofParam(param, parley.Errorf(parley.CodeNotFound, "There is no response %.100q.", id))
}

// look returns the response in its current state. It leaves x.view at the end of the response, or at the head of the
// log.
func (x *exchange) look(ctx context.Context) (r response, err error) {
	id := x.view.Only
	found, status, agent := false, "", ""
	err = x.h.read(ctx, x.who, id.session, parley.Seq(id.input)-1, func(e parley.Event) bool {
		if !found {
			b, ok := e.Body.(parley.InputReceived)
			if !ok || e.Session != id.session || e.Seq != parley.Seq(id.input) {
				return true
			}
			// The run may not have started.
			found, agent = true, b.Agent.Name
			x.view.out = answer{id: id, at: e.At, agent: agent, number: -1}
			r = x.view.response("queued")
		}
		var frames []dialect.Frame
		x.view, frames = Project(x.view, e)
		for _, f := range frames {
			if l, ok := f.Body.(lifecycle); ok && l.Response.Usage != nil {
				r, status, x.last = l.Response, l.Response.Status, l.Number
				r.Model = agent // also if no run has started
			}
		}
		return status != ""
	})
	switch {
	case err != nil:
		return r, err
	case !found:
		return r, noResponse("", id.String())
	case status != "":
	case x.view.out.live && x.view.out.id == id:
		r, x.last = x.view.sofar(), x.view.out.number
	case id.part > 0 && !(x.view.run.input == id.input && x.view.run.part == id.part):
		return r, noResponse("", id.String())
	}
	return r, nil
}

// sofar returns an unfinished response with the texts so far.
func (v View) sofar() response {
	r := v.response("in_progress")
	for _, o := range v.out.open {
		switch i := r.Output[o.index].(type) {
		case messageItem:
			i.Content = []outputText{textPart(o.text)}
			r.Output[o.index] = i
		case reasoningItem:
			i.Summary = []summaryText{{"summary_text", o.text}}
			r.Output[o.index] = i
		}
	}
	return r
}

// lookBack is how many events unknown searches first.
const lookBack = 1000

// unknown returns the entries of a conversation that are new to the session: those after the last assistant message
// that the session has. Instructions are new unless the session has received the same before.
func (h *Handler) unknown(ctx context.Context, who port.Principal, m port.Summary, entries []entry) ([]entry,
	error) {
	if !slices.ContainsFunc(entries, func(e entry) bool { return e.byAssistant() || e.kind == system }) {
		return entries, nil
	}
	from := max(m.Head-lookBack, 0)
	for {
		s, err := h.memoryOf(ctx, who, m.ID, from)
		if err != nil {
			return nil, err
		}
		n := s.known(entries)
		if n > 0 || from == 0 {
			var list []entry
			for i, e := range entries {
				if e.kind == system && !s.told[e.text] || e.kind != system && i >= n {
					list = append(list, e)
				}
			}
			return list, nil
		}
		from = 0
	}
}

// memory has the messages of a session, as clients have seen them.
type memory struct {
	session parley.SessionID
	said    []string        // texts of the assistant
	told    map[string]bool // instructions that clients have sent
}

func (h *Handler) memoryOf(ctx context.Context, who port.Principal, id parley.SessionID, after parley.Seq) (memory,
	error) {
	s := memory{session: id, told: map[string]bool{}}
	v := View{Notices: h.notices(), Shape: Chat, Session: id}
	var text strings.Builder
	err := h.read(ctx, who, id, after, func(e parley.Event) bool {
		switch b := e.Body.(type) {
		case parley.InputReceived:
			for _, m := range b.Earlier {
				if m.Role == parley.EarlierSystem {
					s.told[m.Text] = true
				}
			}
		case parley.OutputFinished:
			if b.Kind == parley.Text && e.Session == id {
				s.said = append(s.said, strings.TrimSpace(b.Text))
			}
		}
		var frames []dialect.Frame
		v, frames = Project(v, e)
		for _, f := range frames {
			c, ok := f.Body.(chunk)
			if ok && c.Choices[0].Delta.Content != nil {
				text.WriteString(*c.Choices[0].Delta.Content)
			}
			if !ok || c.Choices[0].Finish != nil {
				s.said = append(s.said, strings.TrimSpace(text.String()))
				text.Reset()
			}
		}
		return false
	})
	return s, err
}

// known returns the index after the last entry that the session knows. A client that left during an answer may have
// only its beginning.
func (s memory) known(entries []entry) int {
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		text := strings.TrimSpace(e.text)
		switch {
		case e.kind == called:
			if session, _, ok := parseID("call", e.id); ok && session == s.session {
				return i + 1
			}
		case e.kind == assistant && text != "":
			if slices.ContainsFunc(s.said, func(said string) bool { return strings.HasPrefix(said, text) }) {
				return i + 1
			}
		}
	}
	return 0
}
