package eventbus

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

// maxBehind is how many events a client may have missed before it is told to
// fetch what there is instead.
const maxBehind = 10_000

// events serves GET /api/events: server-sent events, or a socket if one is asked
// for.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	visit, ok := dialect.EnterReader(w, r, h.Guard, h.Door)
	if !ok {
		return
	}
	_, only, err := h.project(visit.Who.Tenant, r.URL.Query().Get("project_root"))
	if err != nil {
		visit.Leave()
		dialect.Refuse(w, err)
		return
	}
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		like := wishOf(r, only) // and no more of the request for as long as the socket lasts
		h.Conns.Accept(w, r, visit, h.Log, func(ctx context.Context, socket *transport.Socket) {
			h.socket(ctx, socket, visit, like)
		})
		return
	}
	ctx, leave := dialect.Attend(r.Context(), visit)
	defer leave()
	b, err := h.begin(ctx, visit.Who, wishOf(r, only))
	if err != nil {
		h.fail(w, err)
		return
	}
	defer b.follower.Close()
	s, err := transport.NewStream(w, r.WithContext(ctx), transport.StreamOptions{})
	if err != nil {
		return
	}
	if h.first(s, b) == nil {
		h.stream(ctx, s, b)
	}
}

// A wish is what a client asks to follow.
type wish struct {
	session string       // empty: everything
	project port.Project // zero: of all
	kinds   []string     // none: all
	last    string       // the id of the last message it has
}

func wishOf(r *http.Request, project port.Project) wish {
	q := r.URL.Query()
	w := wish{session: q.Get("session_id"), project: project, last: transport.LastEventID(r)}
	if kinds := q.Get("kinds"); kinds != "" {
		w.kinds = strings.Split(kinds, ",")
	}
	return w
}

// A beginning is where a client begins, and what it is shown before it does.
type beginning struct {
	*watcher
	follower port.Follower
	first    []sent
	at       int64 // the seq it resumes after until it has another
}

// begin places a client behind the last message it has, or else at the end.
func (h *Handler) begin(ctx context.Context, who port.Principal, like wish) (*beginning, error) {
	w := &watcher{door: h.Door, who: who, log: h.Log, root: h.firstRoot(who.Tenant), views: map[parley.SessionID]View{},
		look: cmp.Or(h.look, lookBack), kinds: like.kinds, project: like.project.Root}
	scope, err := h.scope(ctx, w, like)
	if err != nil {
		return nil, err
	}
	head, err := h.Door.Head(ctx, who)
	if err != nil {
		return nil, err
	}
	b := &beginning{watcher: w}
	p := placeOf(like.last, head)
	if b.follower, err = h.Door.Follow(ctx, who, scope, port.Cursor{After: p.from}); err != nil {
		return nil, err
	}
	if w.after, b.at = p.seq, p.seq; p.resumes {
		return b, nil
	}
	if b.first, err = w.catchUp(ctx, scope, parley.Position(head.After)); err != nil {
		b.follower.Close()
		return nil, err
	}
	if p.trouble != nil {
		b.first = append(b.first,
			sent{p.seq, dialect.Encode(message{ID: "run-resync-" + strconv.FormatInt(p.seq, 10), Seq: p.seq, Rev: p.seq,
				TsMs: time.Now().UnixMilli(), Kind: "run", Phase: "resync", Text: text("Resync required"),
				Data: p.trouble})})
	}
	return b, nil
}

// scope is what a client follows: everything it may read or, narrowed, the tree
// of a session, or a sub-agent's alone. One that is not there for it may be
// opened later; until then it is shown nothing.
func (h *Handler) scope(ctx context.Context, w *watcher, like wish) (port.Scope, error) {
	whole := port.Scope{Readable: true, Project: like.project}
	if like.session == "" {
		return whole, nil
	}
	ids, err := sessionsOf(w.who, like.session)
	if err != nil {
		return port.Scope{}, err
	}
	w.name, w.named = labelOf(like.session), func(id parley.SessionID) bool { return slices.Contains(ids, id) }
	m, err := h.find(ctx, w.who, ids)
	switch {
	case err != nil && parley.CodeOf(err) != parley.CodeNotFound:
		return port.Scope{}, err
	case err != nil:
		w.only = func(e parley.Event) bool { return slices.Contains(ids, e.Root) }
		return whole, nil
	case like.project.Root != "" && !slices.Contains(like.project.Keys(), m.Project):
		return port.Scope{}, dialect.Invalid("session_id: this session belongs to the project %s",
			cmp.Or(m.Project, w.root))
	case m.Root != m.ID:
		w.only = func(e parley.Event) bool { return e.Session == m.ID }
	default:
		w.only = func(e parley.Event) bool { return e.Root == m.ID }
	}
	return port.Scope{Root: m.Root}, nil
}

// A place is where a client goes on.
type place struct {
	from    int64 // the position to follow after
	seq     int64 // of the last message it has
	resumes bool
	trouble *resync // why it does not resume where it wants to
}

// placeOf finds the message a client has last in a log that ends at head. Its id
// is epoch-seq; who is not told epochs, as over a socket, gives the seq alone.
func placeOf(last string, head port.Cursor) place {
	live := place{from: head.After, seq: head.After*perEvent + perEvent - 1}
	if last == "" {
		return live
	}
	epoch, number, ok := strings.Cut(last, "-")
	if !ok {
		epoch, number = head.Epoch, last
	}
	seq, err := strconv.ParseInt(number, 10, 64)
	switch position := seq / perEvent; {
	case err != nil || seq < 0:
		live.trouble = &resync{Reason: "unknown_id"}
	case epoch != head.Epoch:
		live.trouble = &resync{Reason: "unknown_epoch"}
	case position > head.After:
		live.trouble = &resync{Reason: "beyond_head"}
	case head.After-position > maxBehind:
		behind := head.After - position
		live.trouble = &resync{Reason: "broadcast_lag", Lagged: &behind}
	default:
		// The event is read again: it may have more messages.
		return place{from: max(position-1, 0), seq: seq, resumes: true}
	}
	return live
}

func (b *beginning) cursor(seq int64) string {
	return b.door.Epoch() + "-" + strconv.FormatInt(seq, 10)
}

// first sends what there is to be shown at once. It comes from earlier in the
// log, but a client that has it goes on from where it is now.
func (h *Handler) first(s *transport.Stream, b *beginning) error {
	if len(b.first) == 0 {
		return s.Mark(b.cursor(b.at))
	}
	var out []transport.Message
	for _, m := range b.first {
		out = append(out, transport.Message{ID: b.cursor(b.at), Data: m.data})
	}
	return s.Send(out...)
}

// stream sends messages until the client goes or the server stops.
func (h *Handler) stream(ctx context.Context, s *transport.Stream, b *beginning) {
	err := dialect.Stream(ctx, s, b.follower, func(i *port.Item) (out []transport.Message, _ bool) {
		for _, m := range b.show(ctx, i) {
			out = append(out, transport.Message{ID: b.cursor(m.seq), Data: m.data})
		}
		return out, false
	})
	if ctx.Err() == nil && parley.CodeOf(err) == parley.CodeCorrupt {
		h.Log.Error("log cannot be read", "error", err)
	}
}

// socket serves the same messages over a socket. What a client sends there means
// nothing.
func (h *Handler) socket(ctx context.Context, socket *transport.Socket, visit port.Visit, like wish) {
	var b *beginning
	var err error
	dialect.Apart(func() { b, err = h.begin(ctx, visit.Who, like) })
	if err != nil {
		h.Log.Debug("the event bus cannot begin", "error", err)
		bye := dialect.CannotBegin(err)
		socket.Close(bye.Code, bye.Reason)
		return
	}
	for _, m := range b.first {
		if socket.Write(ctx, m.data) != nil {
			break // reading finds it too
		}
	}
	b.first = nil
	conn := &dialect.Conn{Socket: socket, Door: h.Door, Visit: visit, Log: h.Log}
	conn.Run(ctx, b.follower, speaker{b})
}

type speaker struct{ *beginning }

func (speaker) Receive(context.Context, []byte, error) {}

func (s speaker) Show(ctx context.Context, i *port.Item) (out [][]byte, _ *dialect.Goodbye) {
	for _, m := range s.show(ctx, i) {
		out = append(out, m.data)
	}
	return out, nil
}

func (speaker) Shown(context.Context, *port.Item) {}
