package openai

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

// maxBody has room for a conversation: clients without a session send it whole with every request.
const maxBody = 16 << 20

// sessionHeader names the session, in answers and in requests for a certain session.
const sessionHeader = "X-Session-Id"

// complete serves POST /v1/chat/completions.
func (h *Handler) complete(w http.ResponseWriter, r *http.Request) {
	x, ctx, a, leave, err := h.begin(w, r, Chat, decodeChat)
	if err != nil {
		h.fail(w, err)
		return
	}
	defer leave()
	if x.own {
		defer x.abandon(r.Context())
	}
	w.Header().Set(sessionHeader, string(x.view.Session))
	if a.stream {
		x.stream(ctx, w, r, 0)
		return
	}
	x.view.Usage = true
	var all whole
	err = x.follow(ctx, func(body any) (last bool) {
		all.add(body)
		return all.ended
	})
	switch {
	case err != nil:
		x.lost(ctx, w, err)
	case all.failed != nil:
		answerOnce(w, all.failed.status, all.failed.refusal)
	default:
		dialect.WriteJSON(w, http.StatusOK, all.answer())
	}
}

// begin reads a request and submits it.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request, shape Shape,
	decode func(dialect.Object, string) (ask, error)) (x *exchange, ctx context.Context, a ask, leave func(),
	err error) {
	q, err := h.enter(r)
	if err != nil {
		return nil, nil, a, nil, err
	}
	body, err := dialect.ReadObject(w, r, maxBody)
	if err != nil {
		return nil, nil, a, nil, err
	}
	if a, err = decode(body, r.Header.Get(sessionHeader)); err != nil {
		return nil, nil, a, nil, err
	}
	visit, err := q.stay()
	if err != nil {
		return nil, nil, a, nil, err
	}
	ctx, leave = dialect.Attend(r.Context(), visit)
	if x, err = h.accept(ctx, q, a, shape); err != nil {
		leave()
		return nil, nil, a, nil, err
	}
	return x, ctx, a, leave, nil
}

// follow calls show with the frames of the response until show returns true.
func (x *exchange) follow(ctx context.Context, show func(body any) (last bool)) error {
	f, err := x.open(ctx)
	if err != nil {
		return err
	}
	defer f.Close()
	return dialect.ReadUntil(ctx, f, func(i *port.Item) bool {
		var frames []dialect.Frame
		x.view, frames = Project(x.view, i.Event)
		x.done = slices.ContainsFunc(frames, func(f dialect.Frame) bool { return show(f.Body) })
		return x.done
	})
}

// open follows the session from the input that the response answers.
func (x *exchange) open(ctx context.Context) (port.Follower, error) {
	return x.h.Door.Follow(ctx, x.who, port.Scope{Session: x.view.Session, Below: true},
		port.Cursor{After: int64(x.view.Only.input) - 1})
}

// stream streams the response. after is the number of the client's last event, plus one.
func (x *exchange) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, after int64) {
	s, err := transport.NewStream(w, r, transport.StreamOptions{})
	if err != nil {
		return
	}
	f, err := x.open(ctx)
	if err == nil {
		defer f.Close()
		err = dialect.Stream(ctx, s, f, func(i *port.Item) (out []transport.Message, last bool) {
			var frames []dialect.Frame
			x.view, frames = Project(x.view, i.Event)
			for _, f := range frames {
				if m, ok := messageOf(f.Body, after); ok {
					out = append(out, m)
				}
				last = last || x.isLast(f.Body)
			}
			x.done = last
			return out, last
		})
	}
	switch {
	case err != nil:
		if cause, ok := errors.AsType[*parley.Error](context.Cause(ctx)); ok {
			err = cause
		}
		_ = s.Send(x.broken(err)) // fails if the client has gone
	case x.view.Shape == Chat:
		_ = s.Send(transport.Message{Data: []byte("[DONE]")}) // then the stream ends
	}
}

// isLast reports whether a frame ends the stream.
func (x *exchange) isLast(body any) bool {
	switch b := body.(type) {
	case failedRun:
		return true
	case chunk:
		return b.Usage != nil || !x.view.Usage && len(b.Choices) > 0 && b.Choices[0].Finish != nil
	case lifecycle:
		return b.Response.Usage != nil
	}
	return false
}

// broken returns the last message of a stream that fails.
func (x *exchange) broken(err error) transport.Message {
	answer := refusalOf(parley.CodeOf(err), parley.MessageOf(err))
	if x.view.Shape == Chat {
		return transport.Message{Data: dialect.Encode(answer)}
	}
	return transport.Message{Event: "error", Data: dialect.Encode(answer)}
}

// lost answers a request whose response could not be followed to its end.
func (x *exchange) lost(ctx context.Context, w http.ResponseWriter, err error) {
	if cause, ok := errors.AsType[*parley.Error](context.Cause(ctx)); ok {
		err = cause
	} else if ctx.Err() != nil {
		return // the client has gone
	}
	dialect.LogFailure(x.h.Log, err)
	code := parley.CodeOf(err)
	answerOnce(w, statusOfCode(code), refusalOf(code, parley.MessageOf(err))) // no retry: the message was accepted
}

// abandon cancels the run if the client has gone and cannot return to it.
func (x *exchange) abandon(client context.Context) {
	if x.done || client.Err() == nil {
		return // the response has ended or the client is still there
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(client), 10*time.Second)
	defer cancel()
	err := x.submit(ctx, parley.CancelRun{Input: x.view.Only.input})
	if err != nil && parley.CodeOf(err) != parley.CodeNotFound {
		x.h.Log.Warn("a run whose client is gone cannot be cancelled", "session", x.view.Session, "error", err)
	}
}

// messageOf returns a frame as a server-sent event, without the part that the client already has.
func messageOf(body any, after int64) (transport.Message, bool) {
	switch b := body.(type) {
	case chunk, failedRun:
		return transport.Message{Data: dialect.Encode(b)}, true
	case event:
		body, ok := cut(b, after)
		return transport.Message{Event: b.about().Type, Data: dialect.Encode(body)}, ok
	}
	panic("no such frame") // Project returns no other frames
}
