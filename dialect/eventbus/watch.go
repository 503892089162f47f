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

// A watcher makes messages of what one follower of many sessions sees.
type watcher struct {
	door port.Door
	who  port.Principal
	log  *slog.Logger
	root string // of the tenant's first project
	// project is the root of the only project that is shown; empty: all are. Facts of the whole tenant are shown in each.
	project string
	after   int64 // the seq of the last message the client has

	// only says which events are shown; nil: all.
	only func(parley.Event) bool
	// name is what the client calls the sessions of which named reports true; empty: it gives ids.
	name  string
	named func(parley.SessionID) bool
	kinds []string                  // of messages that are shown; none: all
	views map[parley.SessionID]View // of sessions in which something happened
	look  parley.Seq                // events in which to look back for a run
}

// maxViews is how many sessions are remembered.
const maxViews = 4096

// A sent message is ready for the wire.
type sent struct {
	seq  int64
	data []byte
}

// show is what the client is shown of an event.
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

// isNamed reports whether the client knows the session of a message by a name.
func (w *watcher) isNamed(m message) bool { return w.name != "" && w.named(m.SessionID) }

func (w *watcher) wants(kind string) bool {
	return len(w.kinds) == 0 || slices.Contains(w.kinds, kind)
}

func (w *watcher) keep(id parley.SessionID, v View) {
	if _, known := w.views[id]; !known && len(w.views) >= maxViews {
		clear(w.views) // they are read again when something happens in them
	}
	w.views[id] = v
}

// viewBefore is the view of a session that something happens in.
func (w *watcher) viewBefore(ctx context.Context, e parley.Event) View {
	v, known := w.views[e.Session]
	switch {
	case known:
		return v
	case e.Seq == 1, e.Session == parley.TenantSession: // which has no runs
		v = NewView(w.root)
		v.parent = w.parentOf(ctx, e)
		return v
	}
	v, err := w.view(ctx, e.Session, e.Root, e.Run, e.Seq-1, math.MaxInt64)
	if err != nil {
		// It was deleted, or cannot be read. The others can.
		w.log.Warn("a session cannot be read back", "session", e.Session, "seq", e.Seq, "error", err)
		v = View{root: w.root, run: e.Run, partial: true}
	}
	return v
}

// lookBack is usually enough to find a run and the input that started it.
const lookBack = 64

// view reads back the view of a session after the event with this seq, or earlier
// after this position. run is what may be known of the run at that place.
//
// It is found without reading the whole log. A run starts with the input that has
// waited longest, so whatever waits after its start came with that input or
// later: what was said since, and who performs the last run, is all there is.
// Only if no run is found near the end, everything is read.
func (w *watcher) view(ctx context.Context, id, root parley.SessionID, run parley.RunID, last parley.Seq,
	upto parley.Position) (View, error) {
	from := last - w.look
	if run != 0 && parley.Seq(run) <= last {
		from = parley.Seq(run) - w.look/4
	}
	at := w.root
	if m, err := w.door.Session(ctx, w.who, id); err == nil { // else reading fails, and says why
		at = cmp.Or(m.Project, at)
	}
	for {
		from = max(from, 1)
		v, sound := NewView(at), from == 1
		var run parley.RunID // the last that was seen
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

// parentOf is who asked for the session that an event opens. The log of the session
// names the run; which agent that is of is in the row of the run.
func (w *watcher) parentOf(ctx context.Context, e parley.Event) (p parent) {
	opened, ok := e.Body.(parley.SessionOpened)
	if !ok || opened.Parent == nil {
		return p
	}
	q := port.RunQuery{Session: opened.Parent.Session, Run: opened.Parent.Run, Limit: 1}
	p.run = runName(q.Session, q.Run)
	runs, err := w.door.Runs(ctx, w.who, q)
	if err != nil {
		w.log.Warn("who delegates to a sub-agent cannot be read", "session", e.Session, "parent", p.run, "error", err)
	} else if len(runs) > 0 {
		p.agent = runs[0].Agent
	}
	return p
}

// mostCards are shown when somebody connects.
const mostCards = 200

// catchUp is the cards that were open at a position, of the tree or the project that is followed,
// oldest first. They are found by their rows, so that connecting costs one look
// however long the runs are that wait; one that was closed since is missing, and
// that it was is among what comes.
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

// cardOf is the message that showed a card, made of its row, which does not have
// the name of the session.
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

// lostCall is the message about a call of unknown fate. Its row names the call,
// and not the place where it was lost: that is in the log.
func (w *watcher) lostCall(ctx context.Context, c port.CardInfo, upto parley.Position) (m message, ok bool) {
	session, err := w.door.Session(ctx, w.who, c.Session)
	if err == nil {
		var v View
		if v, err = w.view(ctx, c.Session, c.Root, c.Run, session.Head, upto); err == nil {
			id := parley.Ref(c.Session, c.Seq)
			if i := slices.IndexFunc(v.cards, func(o card) bool { return o.id == id }); i >= 0 {
				return v.cards[i].m, true
			}
			return m, false // not lost yet, or not any more
		}
	}
	w.log.Warn("an open run cannot be read", "session", c.Session, "run", c.Run, "error", err)
	return m, false
}
