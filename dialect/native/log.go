package native

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

// writeWithin is how long a client may take to receive some lines.
const writeWithin = 10 * time.Second

// sessionLog serves a session's log after a cursor. It ends at the head, unless
// the client asks for ?follow=1 or server-sent events. ?scope=tree adds the
// sessions below it, and always follows.
func (h *Handler) sessionLog(w http.ResponseWriter, r *http.Request) {
	id := parley.SessionID(r.PathValue("id"))
	if r.URL.Query().Get("scope") == "tree" {
		h.log(w, r, port.Scope{Root: id})
		return
	}
	h.log(w, r, port.Scope{Session: id})
}

// tenantLog serves all events of the principal's tenant, or with ?project= of one project.
func (h *Handler) tenantLog(w http.ResponseWriter, r *http.Request) {
	h.log(w, r, port.Scope{})
}

// letIn admits a request. If lasts is true, it admits a connection, whose context ends when the identity expires or is
// revoked.
func (h *Handler) letIn(r *http.Request, lasts bool) (_ *http.Request, who port.Principal, leave func(), err error) {
	if !lasts {
		who, err = h.Guard.Who(r)
		return r, who, func() {}, err
	}
	visit, err := h.Guard.Enter(r, "")
	if err != nil {
		return r, who, nil, err
	}
	ctx, leave := dialect.Attend(r.Context(), visit)
	return r.WithContext(ctx), visit.Who, leave, nil
}

func (h *Handler) log(w http.ResponseWriter, r *http.Request, scope port.Scope) {
	sse := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	lasts := sse || scope.Session == "" || r.URL.Query().Get("follow") == "1"
	r, who, leave, err := h.letIn(r, lasts)
	if err != nil {
		h.fail(w, err)
		return
	}
	defer leave()
	if scope == (port.Scope{}) {
		if _, scope.Project, err = h.project(request{Request: r, who: who}); err != nil {
			h.fail(w, err)
			return
		}
	}
	given := r.URL.Query().Get("after")
	if sse {
		given = cmp.Or(transport.LastEventID(r), given)
	}
	cursor, err := h.cursor(r.Context(), who, scope, given)
	if err != nil && (!sse || parley.CodeOf(err) != parley.CodeResync) {
		h.fail(w, err)
		return
	}
	var follower port.Follower
	if err == nil {
		follower, err = h.Door.Follow(r.Context(), who, scope, cursor)
	}
	if parley.CodeOf(err) == parley.CodeResync && err != nil && sse {
		h.resync(w, r, who, scope, err)
		return
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	defer follower.Close()
	switch {
	case sse:
		s, err := transport.NewStream(w, r, transport.StreamOptions{})
		if err == nil && given == atHead { // so that a client that is cut off before the first event can resume
			err = s.Mark(cursor.Epoch + "-" + strconv.FormatInt(cursor.After, 10))
		}
		if err == nil {
			h.stream(r.Context(), s, follower, scope)
		}
	case !lasts:
		m, err := h.Door.Session(r.Context(), who, scope.Session)
		if err != nil {
			h.fail(w, err)
			return
		}
		h.lines(w, r, follower, parley.Seq(cursor.After), m.Head)
	default:
		h.lines(w, r, follower, 0, -1)
	}
}

// resync tells a client that its cursor is invalid, and starts from the beginning.
func (h *Handler) resync(w http.ResponseWriter, r *http.Request, who port.Principal, scope port.Scope, why error) {
	follower, err := h.Door.Follow(r.Context(), who, scope, port.Beginning)
	if err != nil {
		h.fail(w, err)
		return
	}
	defer follower.Close()
	s, err := transport.NewStream(w, r, transport.StreamOptions{})
	if err != nil {
		return
	}
	if s.Send(transport.Message{ID: h.Door.Epoch() + "-0", Event: "resync",
		Data: dialect.Encode(refusalOf(why))}) == nil {
		h.stream(r.Context(), s, follower, scope)
	}
}

// atHead is a cursor at the current head of the log.
const atHead = "head"

func (h *Handler) cursor(ctx context.Context, who port.Principal, scope port.Scope, given string) (port.Cursor,
	error) {
	switch {
	case given != atHead:
		return parseCursor(given)
	case scope.Session == "":
		return h.Door.Head(ctx, who)
	}
	m, err := h.Door.Session(ctx, who, scope.Session)
	return port.Cursor{Epoch: h.Door.Epoch(), After: int64(m.Head)}, err
}

// parseCursor parses epoch-number, which is the id of an event, or a number alone.
func parseCursor(s string) (port.Cursor, error) {
	if s == "" {
		return port.Beginning, nil
	}
	epoch, number, ok := strings.Cut(s, "-")
	if !ok {
		epoch, number = "", s
	}
	after, err := strconv.ParseInt(number, 10, 64)
	if err != nil || after < 0 || ok && epoch == "" {
		return port.Cursor{}, parley.Errorf(parley.CodeResync, "%q is no cursor; use the id of an event, or leave "+
			"it out to start from the beginning.", s)
	}
	return port.Cursor{Epoch: epoch, After: after}, nil
}

// stream sends events until the client leaves or the server stops.
func (h *Handler) stream(ctx context.Context, s *transport.Stream, f port.Follower, scope port.Scope) {
	err := dialect.Stream(ctx, s, f, func(i *port.Item) ([]transport.Message, bool) {
		n := int64(i.Seq)
		if scope.Session == "" {
			n = int64(i.Position)
		}
		id := h.Door.Epoch() + "-" + strconv.FormatInt(n, 10)
		return []transport.Message{{ID: id, Data: bytes.TrimSuffix(shared(i), []byte("\n"))}}, false
	})
	if ctx.Err() == nil && parley.CodeOf(err) == parley.CodeCorrupt {
		h.Log.Error("log cannot be read", "error", err)
		_ = s.Send(transport.Message{Event: "error", Data: dialect.Encode(refusalOf(err))}) // then the stream ends
	}
}

// shared returns the line of an event with its line end, encoded once for all followers.
func shared(i *port.Item) []byte {
	return i.Made("native", func() []byte { return append(line(i.Event), '\n') })
}

// lines writes one event per line, up to seq until, or without end if until is negative.
func (h *Handler) lines(w http.ResponseWriter, r *http.Request, f port.Follower, at, until parley.Seq) {
	rc := http.NewResponseController(w)
	begun := false
	begin := func() {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "application/jsonl")
			w.Header().Set("Parley-Epoch", h.Door.Epoch())
			w.WriteHeader(http.StatusOK)
		}
	}
	for until < 0 || at < until {
		if until < 0 {
			begin()
			_ = rc.Flush()                       // send everything before waiting
			_ = rc.SetWriteDeadline(time.Time{}) // the deadline is for writes only
		}
		items, err := f.Next(r.Context())
		if err != nil {
			h.cutShort(w, r, err, begun, until)
			return
		}
		if err := rc.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
			h.cutShort(w, r, err, begun, until)
			return
		}
		begin()
		for _, i := range items {
			if until >= 0 && i.Seq > until {
				break
			}
			if _, err := w.Write(shared(i)); err != nil {
				return
			}
			at = i.Seq
		}
	}
	begin()
}

// cutShort ends the lines after an error. A client that follows expects an end
// at any time. For any other client the connection is aborted, so that a part
// of the log does not look like the whole log.
func (h *Handler) cutShort(w http.ResponseWriter, r *http.Request, err error, begun bool, until parley.Seq) {
	switch {
	case !begun:
		h.fail(w, err)
	case until < 0 || r.Context().Err() != nil:
	default:
		h.Log.Error("log cannot be read", "error", err)
		panic(http.ErrAbortHandler)
	}
}
