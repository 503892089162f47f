package aisdk

import (
	"context"
	"log/slog"
	"net/http"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

// Handler serves the AI SDK under /api/aisdk.
type Handler struct {
	Door   port.Door
	Agents port.ProjectAgents
	Guard  dialect.AgentGuard
	Log    *slog.Logger
}

// Routes returns the routes to serve.
func (h *Handler) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /api/aisdk/{id}":               h.chat, // id is the name of an agent
		"GET /api/aisdk/{agent}/{id}/stream": h.resume,
		"GET /api/aisdk/chats/{id}/stream":   h.resume,
		"POST /api/aisdk/chats/{id}/stop":    h.stop,
	}
}

// refuse answers with a sentence, which becomes the message of the client's error.
func (h *Handler) refuse(w http.ResponseWriter, err error) {
	dialect.LogFailure(h.Log, err)
	dialect.RefuseInWords(w, err)
}

// chat submits a message or an answer, and streams the run's answer or the rest of it.
func (h *Handler) chat(w http.ResponseWriter, r *http.Request) {
	agent := r.PathValue("id")
	visit, err := h.Guard.Ask(r, agent)
	if err != nil {
		h.refuse(w, err)
		return
	}
	ctx, leave := dialect.Attend(r.Context(), visit)
	defer leave()
	x, err := h.submit(ctx, w, r, visit.Who, agent)
	if err != nil {
		h.refuse(w, err)
		return
	}
	h.stream(ctx, w, r, x)
}

// resume streams the answer in progress from its beginning.
func (h *Handler) resume(w http.ResponseWriter, r *http.Request) {
	visit, err := h.Guard.Enter(r, "")
	if err != nil {
		h.refuse(w, err)
		return
	}
	ctx, leave := dialect.Attend(r.Context(), visit)
	defer leave()
	x, running := &dialect.Exchange{Door: h.Door, Who: visit.Who}, false
	if x.Session, _, err = dialect.SessionNamed(x.Who, r.PathValue("id")); err == nil {
		running, err = x.Watch(ctx)
	}
	switch {
	case err != nil:
		h.refuse(w, err)
	case !running:
		w.WriteHeader(http.StatusNoContent)
	default:
		h.stream(ctx, w, r, x)
	}
}

// stop cancels the open run.
func (h *Handler) stop(w http.ResponseWriter, r *http.Request) {
	if err := dialect.ServeStop(w, r, h.Guard, h.Door); err != nil {
		h.refuse(w, err)
	}
}

// submit submits the new messages and answers of a request.
func (h *Handler) submit(ctx context.Context, w http.ResponseWriter, r *http.Request, who port.Principal,
	agent string) (*dialect.Exchange, error) {
	body, err := dialect.ReadObject(w, r, dialect.MaxConversation)
	if err != nil {
		return nil, err
	}
	a, err := decode(body)
	if err != nil {
		return nil, err
	}
	x := &dialect.Exchange{Door: h.Door, Who: who, Agents: h.Agents, Agent: agent}
	open, err := x.Enter(ctx, r, body, a.chat, a.said)
	if err != nil {
		return nil, err
	}
	answers, left, err := a.match(open)
	switch {
	case err != nil:
		return nil, err
	case len(a.said) == 0 && len(answers) == 0:
		return nil, parley.Errorf(parley.CodeConflict, "Nothing in these messages is new, and nothing that they "+
			"answer waits for an answer.")
	case len(a.said) > 0 && left > 0 && !x.Answering(ctx, a.said[len(a.said)-1]):
		return nil, dialect.ErrWaits
	}
	return x, x.Submit(ctx, answers, a.said)
}

// stream shows the run, up to its end or until it waits. If the stream breaks off, it aborts the connection, so that
// the client knows that the answer is not complete.
func (h *Handler) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, x *dialect.Exchange) {
	follower, err := x.Follow(ctx)
	if err == nil {
		defer follower.Close()
		err = x.Locate(ctx, &shown{View{session: x.Session}}, nil) // a client may get parts again: they are the same
	}
	if err != nil {
		h.refuse(w, err)
		return
	}
	w.Header().Set("x-vercel-ai-ui-message-stream", "v1")
	s, err := transport.NewStream(w, r, transport.StreamOptions{})
	if err != nil {
		return
	}
	view := &shown{View{session: x.Session}}
	err = x.Stream(ctx, s, follower, view, func(i *port.Item, shown dialect.Shown) (out []transport.Message) {
		if shown.Begin {
			out = append(out, transport.Message{Data: dialect.Encode(view.begin())})
		}
		if shown.Withdrawn != "" {
			out = append(out, transport.Message{Data: dialect.Encode(abort{"abort", shown.Withdrawn})})
		}
		for n, f := range shown.Frames {
			out = append(out, transport.Message{Data: dialect.EncodeShared(i, "aisdk", n, f)})
		}
		return out
	})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = s.Send(transport.Message{Data: []byte(done)}) // an error means that the client has gone
}

// shown is the view of one stream.
type shown struct{ View }

func (s *shown) Project(e parley.Event) (frames []dialect.Frame) {
	s.View, frames = Project(s.View, e)
	return frames
}

func (s *shown) State() (ended, waits, paused bool) { return s.run == 0, s.waits.Waiting(), s.paused }
