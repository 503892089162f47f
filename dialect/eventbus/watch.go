package eventbus

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"

	"parley"
	"parley/dialect"
	"parley/port"
)

// watcher makes messages for one follower of many sessions.
type watcher struct {
	door port.Door
	who  port.Principal
	log  *slog.Logger
	root string // root of the tenant's first project
	// project is the root of the only project that is shown; empty: all projects. Facts of the whole tenant are shown
	// in every project.
	project string
	after   int64 // seq of the client's last message

	// only selects the events that are shown; nil: all.
	only func(parley.Event) bool
	// name is the client's name for the sessions that named selects; empty: the client uses ids.
	name  string
	named func(parley.SessionID) bool
	kinds []string                  // kinds of messages to show; none: all
	views map[parley.SessionID]View // sessions with recent events
	look  parley.Seq                // number of events to search back for a run
}

// maxViews is how many sessions are remembered.
const maxViews = 4096

// sent is an encoded message.
type sent struct {
	seq  int64
	data []byte
}

// show returns the messages that show an event to the client.
func (w *watcher) show(ctx context.Context, i *port.Item) (out []sent) {
	if w.only != nil && !w.only(i.Event) {
		return nil
	}
	v, frames := Project(w.viewBefore(ctx, i.Event), i.Event)
	w.keep(i.Session, v)
	for n, f := range frames {
		m := f.Body.(message)
		if seq := m.Seq; seq > w.after && w.wants(m.Kind) {
			switch {
			case w.isNamed(m):
				out = append(out, sent{seq, dialect.Encode(m.under(w.name))})
				continue
			case w.project != "" && m.SessionID == "" && m.ProjectRoot != w.project:
				m.ProjectRoot = w.project
				out = append(out, sent{seq, dialect.Encode(m)})
				continue
			}
			out = append(out, sent{seq, dialect.EncodeShared(i, "eventbus", n, f)})
		}
	}
	return out
}

// isNamed reports whether the client knows the message's session by a name.
func (w *watcher) isNamed(m message) bool { return w.name != "" && w.named(m.SessionID) }

func (w *watcher) wants(kind string) bool {
	return len(w.kinds) == 0 || slices.Contains(w.kinds, kind)
}

func (w *watcher) keep(id parley.SessionID, v View) {
	if _, known := w.views[id]; !known && len(w.views) >= maxViews {
		clear(w.views) // they are read again at their next event
	}
	w.views[id] = v
}

// viewBefore returns the view of an event's session before the event.
func (w *watcher) viewBefore(ctx context.Context, e parley.Event) View {
	v, known := w.views[e.Session]
	switch {
	case known:
		return v
	case e.Seq == 1, e.Session == parley.TenantSession: // the tenant's session has no runs
		v = NewView(w.root)
		v.parent = w.parentOf(ctx, e)
		return v
	}
	v, err := w.view(ctx, e.Session, e.Root, e.Run, e.Seq-1, math.MaxInt64)
	if err != nil {
		// The session was deleted or cannot be read. The other sessions can.
		w.log.Warn("a session cannot be read back", "session", e.Session, "seq", e.Seq, "error", err)
		v = View{root: w.root, run: e.Run, partial: true}
	}
	return v
}

// lookBack is usually enough to find a run and its input.
const lookBack = 64

// view reads back the view of a session after the event with seq last, or after the last event up to position upto if
// that is earlier. run is the run of that place if it is known, or 0.
//
// It avoids reading the whole log. A run starts with the input that has waited longest, so all inputs that wait later
// came with that input or after it. The view needs only the log since that input, and the agent of the last run. Only
// if no run is found near the end, the whole log is read.
func (w *watcher) view(ctx context.Context, id, root parley.SessionID, run parley.RunID, last parley.Seq,
	upto parley.Position) (View, error) {
	from := last - w.look
	if run != 0 && parley.Seq(run) <= last {
		from = parley.Seq(run) - w.look/4
	}
	at := w.root
	if m, err := w.door.Session(ctx, w.who, id); err == nil { // otherwise ReadLog fails with the reason
		at = cmp.Or(m.Project, at)
	}
	for {
		from = max(from, 1)
		v, sound := NewView(at), from == 1
		var run parley.RunID // the last run that was seen
		next := parley.Seq(1)
		err := dialect.ReadLog(ctx, w.door, w.who, id, from, last, func(e parley.Event) {
			if e.Position > upto {
				return
			}
			if e.Run != 0 && e.Run != run {
				run, next, sound = e.Run, parley.Seq(e.Run)-w.look/4, from == 1
			}
			if b, ok := e.Body.(parley.RunStarted); ok {
				next, sound = parley.Seq(b.Input), from == 1 || parley.Seq(b.Input) >= from
			}
			v, _ = Project(v, e)
		})
		if err != nil {
			return View{}, err
		}
		if !sound {
			from = next
			continue
		}
		if root != id || from > 1 {
			err = w.opening(ctx, id, func(e parley.Event, b parley.SessionOpened) {
				v.name, v.parent = b.Name, w.parentOf(ctx, e)
			})
		}
		return v, err
	}
}

// opening reads the event that opened a session.
func (w *watcher) opening(ctx context.Context, id parley.SessionID,
	use func(parley.Event, parley.SessionOpened)) error {
	return dialect.ReadLog(ctx, w.door, w.who, id, 1, 1, func(e parley.Event) {
		if b, ok := e.Body.(parley.SessionOpened); ok {
			use(e, b)
		}
	})
}

// parentOf returns the parent of the session that an event opens. The event names the parent's run; the row of that run
// has the agent.
func (w *watcher) parentOf(ctx context.Context, e parley.Event) (p parent) {
	opened, ok := e.Body.(parley.SessionOpened)
	if !ok || opened.Parent == nil {
		return p
	}
	q := port.RunQuery{Session: opened.Parent.Session, Run: opened.Parent.Run, Limit: 1}
	p.run = runName(q.Session, q.Run)
	runs, err := w.door.Runs(ctx, w.who, q)
	if err != nil {
		w.log.Warn("the run that delegates to a sub-agent cannot be read", "session", e.Session, "parent", p.run,
			"error", err)
	} else if len(runs) > 0 {
		p.agent = runs[0].Agent
	}
	return p
}

// mostCards is the maximum number of cards that a new client is shown.
const mostCards = 200

// catchUp returns the cards of the scope that were open at position upto, oldest first. It finds them by their rows, so
// that connecting costs one query, however long the waiting runs are. A card that was closed since may be missing; the
// events that follow include its end.
func (w *watcher) catchUp(ctx context.Context, in port.Scope, upto parley.Position) (cards []sent, err error) {
	if !w.wants("ask_user") {
		return nil, nil
	}
	open, err := w.door.Cards(ctx, w.who, port.CardQuery{Root: in.Root, Project: in.Project,
		Limit: mostCards})
	if err != nil {
		return nil, err
	}
	for _, c := range open {
		if c.Position > upto || w.only != nil && !w.only(parley.Event{Session: c.Session, Root: c.Root}) {
			continue
		}
		m, ok := w.cardOf(c)
		if c.Kind == parley.CardCall {
			m, ok = w.lostCall(ctx, c, upto)
		}
		if w.isNamed(m) {
			m = m.under(w.name)
		}
		if ok {
			cards = append(cards, sent{m.Seq, dialect.Encode(m)})
		}
	}
	slices.SortFunc(cards, func(a, b sent) int { return cmp.Compare(a.seq, b.seq) })
	return cards, nil
}

// cardOf rebuilds the message of a card from its row, which does not have the name of the session.
func (w *watcher) cardOf(c port.CardInfo) (m message, ok bool) {
	e := parley.Event{Session: c.Session, Seq: c.Seq, Position: c.Position, Root: c.Root, At: c.AskedAt, Run: c.Run}
	switch c.Kind {
	case parley.CardApproval:
		e.Body = parley.ApprovalRequested{Call: c.Call, Name: c.Tool, Show: c.Show, Digest: c.Digest,
			Expires: c.Expires, Why: c.Why, Similar: parley.SimilarRule{Text: c.Similar}}
	case parley.CardQuestion:
		e.Body = parley.QuestionAsked{Call: c.Call, Questions: c.Questions, Expires: c.Expires}
	default:
		return m, false
	}
	v, _ := Project(View{root: cmp.Or(c.Project, w.root), agent: c.Agent}, e)
	return v.cards[0].m, true
}

// lostCall returns the message about a call of unknown outcome. Its row does
// not say where the outcome was lost, so it reads the log.
func (w *watcher) lostCall(ctx context.Context, c port.CardInfo, upto parley.Position) (m message, ok bool) {
	session, err := w.door.Session(ctx, w.who, c.Session)
	if err == nil {
		var v View
		if v, err = w.view(ctx, c.Session, c.Root, c.Run, session.Head, upto); err == nil {
			id := parley.Ref(c.Session, c.Seq)
			if i := slices.IndexFunc(v.cards, func(o card) bool { return o.id == id }); i >= 0 {
				return v.cards[i].m, true
			}
			return m, false // not lost yet, or already resolved
		}
	}
	w.log.Warn("an open run cannot be read", "session", c.Session, "run", c.Run, "error", err)
	return m, false
}
