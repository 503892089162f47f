package agui

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

// Handler serves AG-UI under /api/agui.
type Handler struct {
	Door   port.Door
	Agents port.ProjectAgents
	Guard  dialect.AgentGuard
	Log    *slog.Logger
}

// Routes returns the routes to serve.
func (h *Handler) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /api/agui/{id}":               h.run, // id is the name of an agent
		"GET /api/agui/threads/{id}/stream": h.thread,
		"POST /api/agui/threads/{id}/stop":  h.stop,
	}
}

func errorOf(err error) runError {
	return runError{Type: "RUN_ERROR", Message: dialect.Words(err), Code: string(parley.CodeOf(err))}
}

// refuse answers a request with an HTTP status, and a RUN_ERROR as the payload
// of the client's error.
func (h *Handler) refuse(w http.ResponseWriter, err error) {
	dialect.LogFailure(h.Log, err)
	dialect.WriteJSON(w, dialect.Status(err, w.Header()), errorOf(err))
}

// breach is an error about interrupts. The protocol reports it in a stream.
type breach struct{ error }

func (b breach) Unwrap() error { return b.error }

// run serves POST /api/agui/{agent}.
func (h *Handler) run(w http.ResponseWriter, r *http.Request) {
	agent := r.PathValue("id")
	visit, err := h.Guard.Ask(r, agent)
	if err != nil {
		h.refuse(w, err)
		return
	}
	ctx, leave := dialect.Attend(r.Context(), visit)
	defer leave()
	x, a, err := h.submit(ctx, w, r, visit.Who, agent)
	if b, ok := err.(breach); ok {
		if s, err := transport.NewStream(w, r, transport.StreamOptions{}); err == nil {
			_ = s.Send(transport.Message{Data: dialect.Encode(errorOf(b.error))}) // fails if the client has gone
		}
		return
	}
	if err != nil {
		h.refuse(w, err)
		return
	}
	h.stream(ctx, w, r, x, a)
}

// submit submits the new messages and answers of a request.
func (h *Handler) submit(ctx context.Context, w http.ResponseWriter, r *http.Request, who port.Principal,
	agent string) (x *dialect.Exchange, a ask, err error) {
	body, err := dialect.ReadObject(w, r, dialect.MaxConversation)
	if err != nil {
		return nil, a, err
	}
	if a, err = decode(body); err != nil {
		return nil, a, err
	}
	x = &dialect.Exchange{Door: h.Door, Who: who, Agents: h.Agents, Agent: agent}
	open, err := x.Enter(ctx, r, body, a.thread, a.said)
	if err != nil {
		return nil, a, err
	}
	answers, left, err := a.match(open)
	if err != nil {
		return nil, a, err
	}
	if repeated, err := a.repeats(ctx, x, open); err != nil || repeated {
		return x, a, err
	}
	switch {
	case left > 0 && (len(a.said) > 0 || len(a.resume) > 0) &&
		!(len(a.said) > 0 && x.Answering(ctx, a.said[len(a.said)-1])):
		return nil, a,
			breach{parley.Errorf(parley.CodeConflict, "This thread is interrupted: resume must answer every "+
				"open interrupt, and messages every pending tool call, before there is anything new.")}
	case len(a.said) == 0 && len(answers) == 0:
		return nil, a,
			breach{parley.Errorf(parley.CodeClosed, "Nothing in this input is new, and nothing that it answers "+
				"waits for an answer.")}
	}
	err = x.Submit(ctx, answers, a.said)
	if parley.CodeOf(err) == parley.CodeClosed && err != nil && len(a.said) == 0 { // another client answered first
		if repeated, again := a.repeats(ctx, x, nil); repeated || again != nil {
			return x, a, again
		}
	}
	return x, a, err
}

// knows lists the interrupts that the client knows: a client answers all of them at once.
func (a ask) knows() (list []string) {
	for _, e := range a.resume {
		list = append(list, e.id)
	}
	return list
}

// match finds the answers to the open cards and calls. left is the number of those without an answer.
func (a ask) match(open []port.CardInfo) (list []dialect.CardAnswer, left int, err error) {
	for _, c := range open {
		id := parley.Ref(c.Session, c.Seq)
		var do parley.CommandBody
		if i := slices.IndexFunc(a.results,
			func(r toolResult) bool { return r.call == id }); c.Kind == dialect.ClientCall {
			if i >= 0 {
				do = parley.ReturnToolResult{Call: c.Call, Result: a.results[i].content, Failed: a.results[i].failed}
			}
		} else if i := slices.IndexFunc(a.resume, func(e entry) bool { return e.id == id }); i >= 0 {
			if do, err = a.resume[i].command(c); err != nil {
				return nil, 0, err
			}
		}
		if do == nil {
			left++
			continue
		}
		list = append(list, dialect.CardAnswer{Card: c, Do: do})
	}
	return list, left, nil
}

// repeats reports whether all interrupts of resume were answered before in the same way; the client then gets the rest
// of that run again. It fails for any other interrupt that is not open.
func (a ask) repeats(ctx context.Context, x *dialect.Exchange, open []port.CardInfo) (repeated bool, err error) {
	var first string
	var in parley.RunID
	for _, e := range a.resume {
		if slices.ContainsFunc(open, func(c port.CardInfo) bool { return parley.Ref(c.Session, c.Seq) == e.id }) {
			continue
		}
		run, same, err := e.closed(ctx, x)
		if err != nil {
			return false, err
		}
		if !same {
			return false, breach{parley.Errorf(parley.CodeClosed,
				"The interrupt %.80q does not wait for an answer: it was answered, has expired or never was.", e.id)}
		}
		if first == "" {
			first, in = e.id, run
		}
	}
	if first == "" || len(a.said) > 0 || len(open) > 0 {
		return false, nil
	}
	return true, x.Again(ctx, in, first)
}

// closed reports whether an interrupt was answered in the same way as by the entry, and in which run.
func (e entry) closed(ctx context.Context, x *dialect.Exchange) (run parley.RunID, same bool, err error) {
	session, seq, ok := parley.ParseRef(e.id)
	if !ok || session != x.Session {
		return 0, false, nil
	}
	m, err := x.Door.Session(ctx, x.Who, session)
	if err != nil || seq > m.Head {
		return 0, false, err
	}
	var asked port.CardInfo
	err = dialect.ReadLog(ctx, x.Door, x.Who, session, seq, m.Head, func(event parley.Event) {
		if c, ok := dialect.Opens(event); ok && c.ID == e.id {
			run, asked = event.Run, port.CardInfo{Kind: c.Kind, Session: session, Seq: seq}
			asked.Read(event.Body, nil)
		}
		if c, ok := dialect.Closes(event); ok && c.ID == e.id && run != 0 {
			same = e.says(asked, c.How)
		}
	})
	return run, same, err
}

// says reports whether the entry is the same answer as how.
func (e entry) says(c port.CardInfo, how string) bool {
	do, err := e.command(c)
	if err != nil {
		return false
	}
	switch do := do.(type) {
	case parley.DecideApproval:
		allowed := how == string(parley.AllowOnce) || how == string(parley.AllowAlways)
		return do.Decision == parley.AllowOnce && allowed || do.Decision == parley.Deny && how == string(parley.Deny)
	case parley.AnswerQuestion:
		return how == "answered"
	case parley.ResolveToolCall:
		return how == string(do.Resolution)
	}
	return false
}

// stop cancels the run of a thread.
func (h *Handler) stop(w http.ResponseWriter, r *http.Request) {
	if err := dialect.ServeStop(w, r, h.Guard, h.Door); err != nil {
		h.refuse(w, err)
	}
}

// stream shows the run, up to its end or until it waits. If the stream breaks off, it aborts the connection, so that
// the client knows that the run is not complete.
func (h *Handler) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, x *dialect.Exchange, a ask) {
	start := View{Thread: a.thread, Session: x.Session}
	follower, err := x.Follow(ctx)
	if err == nil {
		defer follower.Close()
		err = x.Locate(ctx, &shown{View: start}, a.knows())
	}
	if err != nil {
		h.refuse(w, err)
		return
	}
	s, err := transport.NewStream(w, r, transport.StreamOptions{})
	if err != nil {
		return
	}
	view := &shown{View: start}
	err = x.Stream(ctx, s, follower, view, func(i *port.Item, shown dialect.Shown) (out []transport.Message) {
		if shown.Begin {
			out = append(out, transport.Message{Data: dialect.Encode(runStarted{Type: "RUN_STARTED", ThreadID: a.thread,
				RunID: view.name})})
		}
		if shown.Withdrawn != "" {
			out = append(out,
				transport.Message{Data: dialect.Encode(runError{Type: "RUN_ERROR", Message: shown.Withdrawn,
					Code: string(parley.Cancelled)})})
		}
		return append(out, h.messages(i, view.at, shown.Frames)...)
	})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// shown is the view of one stream.
type shown struct {
	View
	at parley.RunID // the run of the last event
}

func (s *shown) Project(e parley.Event) (frames []dialect.Frame) {
	before := s.run
	s.View, frames = Project(s.View, e)
	if s.at = s.run; s.run == 0 {
		s.at = before
	}
	return frames
}

func (s *shown) State() (ended, waits, paused bool) { return s.run == 0, s.waits.Waiting(), s.paused }

// messages gives each frame an id, from which a client can resume.
func (h *Handler) messages(i *port.Item, run parley.RunID, frames []dialect.Frame) (out []transport.Message) {
	for n, f := range frames {
		id := fmt.Sprintf("%s-%d.%d.%d", h.Door.Epoch(), run, i.Position, n)
		out = append(out, transport.Message{ID: id, Data: dialect.EncodeShared(i, "agui", n, f)})
	}
	return out
}

// cursor is the position behind a frame of a run.
type cursor struct {
	run      parley.RunID
	position parley.Position
	frame    int
}

func errGone(given string) error {
	return parley.Errorf(parley.CodeResync, "%.80q is not the id of an event of this thread. Leave it out to start "+
		"at the "+
		"open run.", given)
}

// parseCursor parses the id of an event.
func (h *Handler) parseCursor(ctx context.Context, who port.Principal, given string) (c cursor, err error) {
	epoch, rest, ok := strings.Cut(given, "-")
	numbers := strings.Split(rest, ".")
	if !ok || epoch != h.Door.Epoch() || len(numbers) != 3 {
		return c, errGone(given)
	}
	var n [3]int64
	for i, text := range numbers {
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil || n[i] < 0 {
			return c, errGone(given)
		}
	}
	head, err := h.Door.Head(ctx, who)
	if err == nil && n[1] > head.After {
		err = errGone(given)
	}
	return cursor{parley.RunID(n[0]), parley.Position(n[1]), int(n[2])}, err
}

// thread serves GET /api/agui/threads/{threadId}/stream: the events after the
// client's last one or else the open run from its start, and then new events.
func (h *Handler) thread(w http.ResponseWriter, r *http.Request) {
	visit, err := h.Guard.Enter(r, "")
	if err != nil {
		h.refuse(w, err)
		return
	}
	ctx, leave := dialect.Attend(r.Context(), visit)
	defer leave()
	name := r.PathValue("id")
	id, _, err := dialect.SessionNamed(visit.Who, name)
	var c cursor
	var follower port.Follower
	if err == nil {
		follower, c, err = h.follow(ctx, visit.Who, id, transport.LastEventID(r))
	}
	if err != nil {
		h.refuse(w, err)
		return
	}
	defer follower.Close()
	s, err := transport.NewStream(w, r, transport.StreamOptions{})
	if err != nil {
		return
	}
	view := &shown{View: View{Thread: name, Session: id}}
	_ = dialect.Stream(ctx, s, follower, func(i *port.Item) (out []transport.Message, last bool) {
		frames := view.Project(i.Event)
		out = h.messages(i, view.at, frames)
		switch {
		case view.at < c.run || i.Position < c.position:
			out = nil
		case i.Position == c.position:
			out = out[min(c.frame+1, len(out)):]
		}
		return out, false
	}) // the error says only that the client has left or the server stops
}

// follow follows a thread from the input of a run: the run of the client's last event or else the open run. Without
// either, it starts at the head.
func (h *Handler) follow(ctx context.Context, who port.Principal, id parley.SessionID, last string) (
	f port.Follower, c cursor, err error) {
	m, err := h.Door.Session(ctx, who, id)
	if err != nil {
		return nil, c, err
	}
	if c.run = m.Run; last != "" {
		if c, err = h.parseCursor(ctx, who, last); err != nil {
			return nil, c, err
		}
	}
	after := int64(m.Head)
	if c.run != 0 {
		after = -1
		if parley.Seq(c.run) <= m.Head {
			err = dialect.ReadLog(ctx, h.Door, who, id, parley.Seq(c.run), parley.Seq(c.run), func(e parley.Event) {
				if b, ok := e.Body.(parley.RunStarted); ok {
					after = int64(b.Input) - 1
				}
			})
		}
		if err == nil && after < 0 {
			err = errGone(last)
		}
	}
	if err == nil && c.position != 0 {
		err = h.has(ctx, who, id, after, c.position, last)
	}
	if err != nil {
		return nil, c, err
	}
	f, err = h.Door.Follow(ctx, who, port.Scope{Session: id, Below: true}, port.Cursor{After: after})
	return f, c, err
}

// has fails if the event of a cursor is not in a thread: it is another thread's, or a chunk that was deleted. After a
// deleted chunk, the client would get its text again with the whole output.
func (h *Handler) has(ctx context.Context, who port.Principal, id parley.SessionID, after int64, at parley.Position,
	given string) error {
	f, err := h.Door.Follow(ctx, who, port.Scope{Session: id, Below: true}, port.Cursor{After: after})
	if err != nil {
		return err
	}
	defer f.Close()
	passed := false
	err = dialect.CatchUp(ctx, f, func(i *port.Item) bool {
		passed = i.Position > at
		return i.Position < at
	})
	if err == nil && passed {
		err = errGone(given)
	}
	return err
}
