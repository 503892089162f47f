package aisdk

import (
	"context"
	"log/slog"
	"net/http"

	"parley"
	"parley/dialect"
	"parley/transport"
)

// A Guard lets requests in.
type Guard interface {
	dialect.Guard
	// Ask lets in a request about an agent. Its visit ends with the answer.
	Ask(r *http.Request, agent string) (parley.Visit, error)
}

// Handler serves the AI SDK under /api/aisdk.
type Handler struct {
	Door  parley.Door
	Guard Guard
	Log   *slog.Logger
}

// maxBody has room for a long conversation, which clients send whole.
const maxBody = 16 << 20

// Routes lists what is served.
func (h *Handler) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /api/aisdk/{id}":               h.chat, // of an agent
		"GET /api/aisdk/{agent}/{id}/stream": h.resume,
		"GET /api/aisdk/chats/{id}/stream":   h.resume,
		"POST /api/aisdk/chats/{id}/stop":    h.stop,
	}
}

// refuse answers with a sentence: it becomes the message of the client's error.
func (h *Handler) refuse(w http.ResponseWriter, err error) {
	dialect.LogFailure(h.Log, err)
	dialect.RefuseInWords(w, err)
}

// chat has a message answered, or an answer lead to the rest of a message.
func (h *Handler) chat(w http.ResponseWriter, r *http.Request) {
	agent := r.PathValue("id")
	visit, err := h.Guard.Ask(r, agent)
	if err != nil {
		h.refuse(w, err)
		return
	}
	ctx, leave := dialect.Attend(r.Context(), visit)
	defer leave()
	x := exchange{h: h, who: visit.Who}
	if err = x.submit(ctx, w, r, agent); err != nil {
		h.refuse(w, err)
		return
	}
	x.stream(ctx, w, r)
}

// resume shows the answer that is being given, from its beginning.
func (h *Handler) resume(w http.ResponseWriter, r *http.Request) {
	visit, err := h.Guard.Enter(r, "")
	if err != nil {
		h.refuse(w, err)
		return
	}
	ctx, leave := dialect.Attend(r.Context(), visit)
	defer leave()
	var m parley.Summary
	id, _, err := dialect.SessionNamed(visit.Who, r.PathValue("id"))
	if err == nil {
		m, err = h.Door.Session(ctx, visit.Who, id)
	}
	switch {
	case err != nil:
		h.refuse(w, err)
	case m.Run == 0:
		w.WriteHeader(http.StatusNoContent)
	default:
		x := exchange{h: h, who: visit.Who, session: id, from: parley.Seq(m.Run), until: place{id, m.Head}}
		x.stream(ctx, w, r)
	}
}

// stop cancels the run that goes on.
func (h *Handler) stop(w http.ResponseWriter, r *http.Request) {
	who, err := h.Guard.Who(r)
	var id parley.SessionID
	if err == nil {
		id, _, err = dialect.SessionNamed(who, r.PathValue("id"))
	}
	stopped := false
	if err == nil {
		_, err = h.Door.Submit(r.Context(), who, parley.Command{Session: id, Via: parley.ViaHTTP, Do: parley.CancelRun{}})
		stopped = err == nil
	}
	if err != nil && parley.CodeOf(err) == parley.CodeNotFound { // the session, or a run
		_, err = h.Door.Session(r.Context(), who, id)
	}
	if err != nil {
		h.refuse(w, err)
		return
	}
	dialect.WriteJSON(w, http.StatusOK, map[string]bool{"stopped": stopped})
}

// A place is one in the logs of a session and of those below it.
type place struct {
	session parley.SessionID
	seq     parley.Seq
}

// An exchange is a request and the run that it is about.
type exchange struct {
	h       *Handler
	who     parley.Principal
	session parley.SessionID
	from    parley.Seq // of the first event that is read
	asks    bool       // the first input from there on is the client's; else the run that starts there is shown
	// answered are the cards that the client has answered: it has read the message
	// up to where the stream ended because of them.
	answered map[string]bool
	until    place // where the log ended: a run that waited before did not stay so
}

var errWaits = parley.Errorf(parley.CodeConflict, "A tool call of this chat waits for an answer. Answer it, or stop "+
	"the chat, before you send a message.")

// submit submits what is new in a request.
func (x *exchange) submit(ctx context.Context, w http.ResponseWriter, r *http.Request, agent string) error {
	body, err := dialect.ReadObject(w, r, maxBody)
	if err != nil {
		return err
	}
	a, err := decode(body)
	if err != nil {
		return err
	}
	door, _, err := dialect.InProjectOf(x.h.Door, x.who.Tenant, r, body)
	if err != nil {
		return err
	}
	id, label, err := dialect.SessionNamed(x.who, a.chat)
	if err != nil {
		return err
	}
	x.session = id
	own := parley.Resource{Kind: parley.OwnSessions, Tenant: x.who.Tenant}
	if err := door.May(ctx, x.who, parley.ActMessage, own); err != nil {
		return err
	}
	commands, err := x.answers(ctx, a)
	if err != nil {
		return err
	}
	for _, c := range commands {
		c.Via = parley.ViaHTTP
		receipt, err := door.Submit(ctx, x.who, c)
		if err != nil {
			return err
		}
		x.until = place{receipt.Session, receipt.First}
	}
	for n, in := range a.inputs {
		in.do.Agent.Name, in.do.Name = agent, label
		receipt, err := door.Submit(ctx, x.who, parley.Command{ID: in.id, Session: id, Via: parley.ViaHTTP, Do: in.do})
		if last := n == len(a.inputs)-1; err != nil && (last || !isBad(err)) {
			return err
		}
		x.from, x.asks, x.answered = receipt.First, true, nil
		x.until = place{id, receipt.Last}
	}
	return x.atHead(ctx)
}

// isBad reports whether an input would be refused at any time. Clients keep it in
// their list, and it must not keep others from being answered.
func isBad(err error) bool {
	switch parley.CodeOf(err) {
	case parley.CodeBlocked, parley.CodeEmpty, parley.CodeTooLarge, parley.CodeInvalid:
		return true
	}
	return false
}

// atHead has a message that was sent again shown up to where its run is now.
func (x *exchange) atHead(ctx context.Context) error {
	if !x.asks {
		return nil
	}
	m, err := x.h.Door.Session(ctx, x.who, x.session)
	x.until.seq = max(x.until.seq, m.Head)
	return err
}

// answers are the commands that answer what waits in the chat.
func (x *exchange) answers(ctx context.Context, a ask) ([]parley.Command, error) {
	m, err := x.h.Door.Session(ctx, x.who, x.session)
	if parley.CodeOf(err) == parley.CodeNotFound && err != nil && len(a.inputs) > 0 {
		return nil, nil // the message opens it, or is refused
	}
	if err != nil {
		return nil, err
	}
	cards, err := x.h.Door.Cards(ctx, x.who, parley.CardQuery{Root: x.session})
	if err != nil {
		return nil, err
	}
	commands, left, err := a.match(cards)
	switch {
	case err != nil:
		return nil, err
	case len(a.inputs) == 0 && len(commands) == 0:
		return nil, parley.Errorf(parley.CodeConflict, "Nothing in these messages is new, and nothing that they "+
			"answer waits for an answer.")
	case len(a.inputs) > 0 && len(left) > 0 && m.Run != 0 && !x.answering(ctx, m.Run, a.inputs[len(a.inputs)-1]):
		return nil, errWaits
	}
	x.from, x.answered = parley.Seq(m.Run), map[string]bool{}
	for _, c := range cards {
		x.answered[parley.Ref(c.Session, c.Seq)] = true
	}
	for _, c := range left {
		delete(x.answered, parley.Ref(c.Session, c.Seq))
	}
	return commands, nil
}

// answering reports whether the open run answers an input: the client sends it
// again.
func (x *exchange) answering(ctx context.Context, run parley.RunID, in input) (is bool) {
	read := func(seq parley.Seq, each func(parley.Event)) {
		if err := dialect.ReadLog(ctx, x.h.Door, x.who, x.session, seq, seq, each); err != nil {
			is = false
		}
	}
	read(parley.Seq(run), func(e parley.Event) {
		if b, ok := e.Body.(parley.RunStarted); ok {
			read(parley.Seq(b.Input), func(e parley.Event) {
				b, ok := e.Body.(parley.InputReceived)
				is = ok && in.id != "" && b.Command == in.id
			})
		}
	})
	return is
}

// stream shows the run, up to its end or to where it waits. A stream that breaks
// off is not ended properly: the client has to know that there is more.
func (x *exchange) stream(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	follower, err := x.h.Door.Follow(ctx, x.who, parley.Scope{Session: x.session, Below: true},
		parley.Cursor{After: int64(x.from) - 1})
	if err != nil {
		x.h.refuse(w, err)
		return
	}
	defer follower.Close()
	w.Header().Set("x-vercel-ai-ui-message-stream", "v1")
	s, err := transport.NewStream(w, r, transport.StreamOptions{})
	if err != nil {
		return
	}
	show := shower{exchange: x, view: View{session: x.session}}
	if err := dialect.Stream(ctx, s, follower, show.next); err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = s.Send(transport.Message{Data: []byte(done)}) // if it fails, the client has gone
}

// A shower makes the chunks of an exchange from the log.
type shower struct {
	*exchange
	view    View
	input   parley.InputID // the client's
	mine    bool           // the run of the view is the one that is shown
	asked   bool           // a card that the client has answered was seen
	showing bool           // the client is shown what comes
	reached bool           // the log is read up to until
}

func (s *shower) next(i *parley.Item) (out []transport.Message, last bool) {
	own := i.Session == s.session
	if i.Session == s.until.session && i.Seq >= s.until.seq {
		s.reached = true
	}
	if c, ok := dialect.Opens(i.Event); ok && s.answered[c.ID] {
		s.asked = true
	}
	switch b := i.Body.(type) {
	case parley.InputReceived:
		if own && s.asks && s.input == 0 {
			s.input = parley.InputID(i.Seq)
		}
	case parley.InputWithdrawn:
		if own && s.input != 0 && b.Input == s.input {
			return []transport.Message{{Data: dialect.Encode(abort{"abort", "The message was withdrawn: " +
				string(b.Reason) + "."})}}, true
		}
	case parley.RunStarted:
		if own {
			s.mine = !s.asks || b.Input == s.input
			s.showing = s.mine && s.answered == nil
		}
	}
	var frames []dialect.Frame
	s.view, frames = Project(s.view, i.Event)
	switch {
	case !s.mine:
		return nil, false
	case s.showing:
	case s.reached: // the run never paused: others watch it, too
		s.showing = true
		out = append(out, transport.Message{Data: dialect.Encode(s.view.begin())})
	default:
		s.showing = s.asked && s.view.paused
		return nil, false
	}
	for n, f := range frames {
		out = append(out, transport.Message{Data: dialect.EncodeShared(i, "aisdk", n, f)})
	}
	return out, s.view.run == 0 || s.reached && s.view.waits.Waiting()
}
