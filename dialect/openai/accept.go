package openai

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
	"parley/port"
)

// exchange is an accepted request and the state of its response.
type exchange struct {
	h    *Handler
	who  port.Principal
	view View
	own  bool  // the client has no name for the session and cannot return to it
	done bool  // the end of the response was reached
	last int64 // number of the last event
}

// place is the session that a request is for.
type place struct {
	id    parley.SessionID
	label string       // the client's name for it; empty: its id
	open  bool         // the session exists
	m     port.Summary // the session, if it exists
	// before is the view at the end of the previous response; nil: the request names none
	before *View
}

// accept submits the message or the answers of a request, or finds the response to continue.
func (h *Handler) accept(ctx context.Context, q request, a ask, shape Shape) (x *exchange, err error) {
	if err := h.mayMessage(ctx, q.who); err != nil {
		return nil, err
	}
	latest := a.entries[fresh(a.entries):]
	said, err := input(nil, latest)
	if err != nil {
		return nil, err
	}
	p, err := h.place(ctx, q, a, latest)
	if err != nil {
		return nil, err
	}
	root := q.only.Root
	if p.open && root == "" {
		root = p.m.Project
	}
	// Check the agent here, so that a later "not found" is about the session. Requests with answers name an agent, too.
	if _, err := h.agent(q, root, a.model); err != nil {
		return nil, err
	}
	x = &exchange{h: h, who: q.who, own: a.session == "" && a.previous == "",
		view: View{Notices: h.notices(), Shape: shape, Usage: a.usage, Given: a.given}}
	var now View
	if p.open && p.m.Run != 0 {
		if now, err = h.stateOf(ctx, q.who, p.m); err != nil {
			return nil, err
		}
	}
	switch {
	case hasAnswers(latest, now.paused()) && (now.paused() || said.Content == ""),
		now.paused() && said.Content != "" && now.asksOnly():
		x.view.Only, err = h.answer(ctx, q, now, latest, said)
	case said.Content == "" && p.before != nil && p.before.paused():
		x.view.Only = responseID{p.m.ID, p.before.run.input, p.before.run.part}
	case now.paused() && said.Content == "":
		x.view.Only = responseID{p.m.ID, now.run.input, now.run.part}
	case now.paused():
		err = parley.Errorf(parley.CodeConflict, "The session waits. %s", now.says())
	default:
		x.view.Only, err = h.say(ctx, q, a, p)
	}
	x.view.Session = x.view.Only.session
	return x, err
}

func (h *Handler) notices() dialect.Notices { return dialect.Notices{Console: h.Console} }

// says describes what a run waits for.
func (v View) says() string {
	var words []string
	for _, w := range v.run.waiting() {
		if w.call != nil {
			words = append(words, "Waiting for the result of "+idOf("call", v.Session, parley.Seq(w.call.id)))
			continue
		}
		words = append(words, v.Text(*w.card, v.Session))
	}
	return strings.Join(words, "\n")
}

// asksOnly reports whether a run waits only for answers to questions.
func (v View) asksOnly() bool {
	for _, w := range v.run.waiting() {
		if w.card == nil || w.card.Kind != parley.CardQuestion {
			return false
		}
	}
	return true
}

// place finds the session that a request is for.
func (h *Handler) place(ctx context.Context, q request, a ask, latest []entry) (p place, err error) {
	if a.session != "" {
		if p.id, p.label, err = dialect.SessionNamed(q.who, a.session); err != nil {
			return p, ofParam("metadata.session_id", err)
		}
	}
	if a.previous != "" {
		id, ok := parseResponseID(a.previous)
		if !ok {
			return p, noResponse("previous_response_id", a.previous)
		}
		if p.id != "" && p.id != id.session {
			return p, invalid("previous_response_id", "previous_response_id is of another session than the one "+
				"that the "+
				"request names")
		}
		x := &exchange{h: h, who: q.who, view: View{Session: id.session, Only: id, Shape: Responses}}
		if _, err := x.look(ctx); err != nil {
			return p, ofParam("previous_response_id", err)
		}
		p.before, p.id = &x.view, id.session
	}
	if p.id, err = h.waiting(ctx, q, p.id, latest); err != nil {
		return p, err
	}
	if p.id == "" {
		p.id = parley.SessionID(uuid.NewString())
		return p, nil
	}
	p.m, err = h.Door.Session(ctx, q.who, p.id)
	if p.open = err == nil; parley.CodeOf(err) == parley.CodeNotFound {
		err = nil // Submit opens the session, or refuses the command
	}
	return p, err
}

// waiting returns the session that the answers in some entries belong to, according to their ids. Answers before a
// message count only as earlier messages, unless their session waits.
func (h *Handler) waiting(ctx context.Context, q request, named parley.SessionID, latest []entry) (parley.SessionID,
	error) {
	id, message := named, slices.ContainsFunc(latest, func(e entry) bool { return e.kind == user })
	for _, e := range latest {
		session, ok := answered(e)
		if !ok {
			continue
		}
		m, err := h.Door.Session(ctx, q.who, session)
		switch {
		case err == nil && m.Status == parley.StatusWaiting, err == nil && !message:
		case message && (err == nil || parley.CodeOf(err) == parley.CodeNotFound):
			continue
		default:
			return "", ofParam(e.at, err)
		}
		if id != "" && id != m.Root {
			return "", invalid(e.at, "%s is about another session than the rest of the request", e.at)
		}
		id = m.Root
	}
	return id, nil
}

// say submits the new entries as a message.
func (h *Handler) say(ctx context.Context, q request, a ask, p place) (id responseID, err error) {
	entries := a.entries
	if p.open {
		if entries, err = h.unknown(ctx, q.who, p.m, entries); err != nil {
			return id, err
		}
	}
	in, err := a.input(entries)
	if err != nil {
		return id, err
	}
	in.Agent.Name, in.Open, in.Busy = a.model, true, parley.Queue
	in.Transient, in.Name = a.session == "", p.label
	receipt, err := q.door.Submit(ctx, q.who, parley.Command{Session: p.id, Via: parley.ViaHTTP, Do: in})
	if err != nil {
		return id, err
	}
	id.session = receipt.Session
	err = dialect.ReadLog(ctx, h.Door, q.who, receipt.Session, receipt.First, receipt.Last, func(e parley.Event) {
		if _, ok := e.Body.(parley.InputReceived); ok && id.input == 0 {
			id.input = parley.InputID(e.Seq)
		}
	})
	return id, err
}
