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

// maxBehind is how many events a client may have missed. A client that missed
// more must fetch the current state instead.
const maxBehind = 10_000

// events serves GET /api/events, as server-sent events or, after an upgrade, over a socket.
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
		like := wishOf(r, only) // so that the socket does not keep the whole request in memory
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

// wish is what a client wants to follow.
type wish struct {
	session string       // empty: all sessions
	project port.Project // zero: all projects
	kinds   []string     // none: all kinds
	last    string       // id of the client's last message
}

func wishOf(r *http.Request, project port.Project) wish {
	q := r.URL.Query()
	w := wish{session: q.Get("session_id"), project: project, last: transport.LastEventID(r)}
	if kinds := q.Get("kinds"); kinds != "" {
		w.kinds = strings.Split(kinds, ",")
	}
	return w
}

// beginning is a client's start in the log, with the messages to show first.
type beginning struct {
	*watcher
	follower port.Follower
	first    []sent
	at       int64 // seq to resume after until the next message
}

// begin starts a client after its last message, or else at the head.
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

// scope returns what a client follows: everything it may read, or the tree of a
// session, or a single sub-agent's session. A session that the client cannot
// see may be opened later; until then nothing is shown.
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

// place is where a client continues.
type place struct {
	from    int64 // position to follow after
	seq     int64 // seq of the client's last message
	resumes bool
	trouble *resync // reason why the client cannot resume where it wants
}

// placeOf finds the place of a client's last message in a log that ends at head. The id is epoch-seq. Clients that do
// not know the epoch, for example on a socket, send only the seq.
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
		// Read the event again: it may have more messages.
		return place{from: max(position-1, 0), seq: seq, resumes: true}
	}
	return live
}

func (b *beginning) cursor(seq int64) string {
	return b.door.Epoch() + "-" + strconv.FormatInt(seq, 10)
}

// first sends the open cards. Their messages are older, but they get the id of
// the client's place, so that the client resumes there.
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

// stream sends messages until the client leaves or the server stops.
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

// socket sends the same messages over a socket. Messages of the client are ignored.
func (h *Handler) socket(ctx context.Context, socket *transport.Socket, visit port.Visit, like wish) {
	var b *beginning
	var err error
	dialect.OnTemporaryStack(func() { b, err = h.begin(ctx, visit.Who, like) })
	if err != nil {
		h.Log.Debug("the event bus cannot begin", "error", err)
		bye := dialect.CannotBegin(err)
		socket.Close(bye.Code, bye.Reason)
		return
	}
	for _, m := range b.first {
		if socket.Write(ctx, m.data) != nil {
			break // the reading goroutine will see the error too
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
