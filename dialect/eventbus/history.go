package eventbus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
)

const (
	usualRuns  = 30     // runs on a page of history
	mostRuns   = 200    // maximum for limit
	mostEvents = 20_000 // events on a page, unless its last run alone has more
	mostBelow  = 256    // sub-agents' sessions on a page
)

// page has the messages of some runs.
type page struct {
	Messages []json.RawMessage `json:"messages"` // oldest first
	// Cursor is the last_event_id to follow with after the newest page.
	Cursor  string  `json:"cursor"`
	Earlier *string `json:"earlier"`       // the value of before for the previous page; null: this is the first
	Cut     bool    `json:"cut,omitempty"` // sub-agents were left out because there is too much of them
}

// history returns the past messages of a session and its sub-agents: the
// messages of the bus, but of a finished output only the end. Pages start where
// no run is open, so that each can be read by itself.
func (h *Handler) history(r request) (any, error) {
	ids, err := h.named(r)
	if err != nil {
		return nil, err
	}
	limit, before, upto, err := pageAsked(r)
	if err != nil {
		return nil, err
	}
	// Runs that start during this request are on no page: pages end where following starts. So read the session first,
	// then the head, and then the session up to the head.
	was, err := h.find(r.Context(), r.who, ids)
	if err != nil {
		return nil, err
	}
	head, err := h.Door.Head(r.Context(), r.who)
	if err != nil {
		return nil, err
	}
	m, err := h.Door.Session(r.Context(), r.who, was.ID)
	if err != nil {
		return nil, err
	}
	w := &watcher{door: h.Door, who: r.who, log: h.Log, root: h.firstRoot(r.who.Tenant),
		views: map[parley.SessionID]View{}, look: cmp.Or(h.look, lookBack), after: -1}
	name, err := r.field("session_id")
	if err != nil {
		return nil, err
	}
	w.name, w.named = labelOf(name), func(id parley.SessionID) bool { return id == m.ID }
	first, last, earlier, err := w.bounds(r.Context(), m, was.Head, limit, before)
	if err != nil {
		return nil, err
	}
	if before == 0 {
		upto = parley.Position(head.After)
	}
	past := past{watcher: w, upto: upto}
	if err := past.read(r.Context(), m.ID, first, last, m.Root == m.ID); err != nil {
		return nil, err
	}
	p := page{Messages: past.messages(r.Context()), Cut: past.cut,
		Cursor: head.Epoch + "-" + strconv.FormatInt(head.After*perEvent+perEvent-1, 10)}
	if earlier != 0 {
		name := fmt.Sprintf("%d.%d", earlier, upto)
		p.Earlier = &name
	}
	return p, nil
}

// errBefore refuses an invalid before. Its value has the first run of the page after it. It also has the position where
// following started for the newest page, because a sub-agent may have continued since.
var errBefore = dialect.Invalid("before must be the value of earlier in a previous answer")

func pageAsked(r request) (limit int, before parley.RunID, upto parley.Position, err error) {
	q := r.URL.Query()
	if limit, err = strconv.Atoi(cmp.Or(q.Get("limit"), strconv.Itoa(usualRuns))); err != nil || limit < 1 ||
		limit > mostRuns {
		return 0, 0, 0, dialect.Invalid("limit must be a number of runs from 1 to %d", mostRuns)
	}
	if earlier := q.Get("before"); earlier != "" {
		run, position, _ := strings.Cut(earlier, ".")
		r, err := strconv.ParseInt(run, 10, 64)
		p, unplaced := strconv.ParseInt(position, 10, 64)
		if err != nil || unplaced != nil || r < 1 || p < 1 {
			return 0, 0, 0, errBefore
		}
		before, upto = parley.RunID(r), parley.Position(p)
	}
	return limit, before, upto, nil
}

// bounds returns the first and last seq of a page. earlier is the first run of
// the page if there is a previous page. Runs that started after then are
// ignored.
func (w *watcher) bounds(ctx context.Context, m port.Summary, then parley.Seq, limit int, before parley.RunID) (first,
	last parley.Seq, earlier parley.RunID, err error) {
	first, last = 1, m.Head
	q := port.RunQuery{Session: m.ID, Limit: limit + 1}
	if before != 0 {
		found, err := w.door.Runs(ctx, w.who, port.RunQuery{Session: m.ID, Run: before, Limit: 1})
		if err != nil {
			return 0, 0, 0, err
		}
		if len(found) == 0 {
			return 0, 0, 0, errBefore
		}
		q.Before = found[0].StartedAt
		start, err := w.startOf(ctx, m.ID, before)
		if err != nil {
			return 0, 0, 0, err
		}
		last = start - 1
	}
	runs, err := w.door.Runs(ctx, w.who, q)
	if err != nil {
		return 0, 0, 0, err
	}
	runs = slices.DeleteFunc(runs, func(i port.RunInfo) bool { return parley.Seq(i.Run) > then })
	n := 0
	for n < min(limit, len(runs)) && (n == 0 || last-parley.Seq(runs[n].Run) < mostEvents) {
		n++
	}
	if n > 0 && n < len(runs) {
		earlier = runs[n-1].Run
		first, err = w.startOf(ctx, m.ID, earlier)
	}
	return first, last, earlier, err
}

// startOf returns the seq where a run starts on a page: that of its input if no other run was open when the input came.
func (w *watcher) startOf(ctx context.Context, id parley.SessionID, run parley.RunID) (parley.Seq, error) {
	start := parley.Seq(run)
	var input parley.Seq
	err := dialect.ReadLog(ctx, w.door, w.who, id, start, start, func(e parley.Event) {
		if b, ok := e.Body.(parley.RunStarted); ok {
			input = parley.Seq(b.Input)
		}
	})
	if err != nil || input == 0 || start-input > w.look { // too far back: other runs came in between
		return start, err
	}
	alone := true
	err = dialect.ReadLog(ctx, w.door, w.who, id, input, start-1, func(e parley.Event) {
		switch e.Body.(type) {
		case parley.FilesChanged, parley.ChangesUndone: // events of earlier runs
			alone = false
		}
		alone = alone && e.Run == 0
	})
	if alone {
		start = input
	}
	return start, err
}

// past collects the events of a session and of those below it.
type past struct {
	*watcher
	upto   parley.Position
	events []parley.Event
	below  int        // number of sub-agents' sessions
	count  parley.Seq // number of their events
	cut    bool
}

func (p *past) read(ctx context.Context, id parley.SessionID, first, last parley.Seq, deep bool) error {
	var children []parley.SessionID
	pieces := map[parley.OutputID]int{} // index of the first chunk of each open output in events
	err := dialect.ReadLog(ctx, p.door, p.who, id, first, last, func(e parley.Event) {
		if e.Position > p.upto {
			return
		}
		switch b := e.Body.(type) {
		case parley.OutputAppended:
			if _, begun := pieces[b.Output]; !begun {
				pieces[b.Output] = len(p.events)
			}
		case parley.OutputFinished:
			// The end of the output has the whole text.
			if at, begun := pieces[b.Output]; begun {
				rest := slices.DeleteFunc(p.events[at:], func(e parley.Event) bool {
					piece, is := e.Body.(parley.OutputAppended)
					return is && piece.Output == b.Output
				})
				p.events = p.events[:at+len(rest)]
				delete(pieces, b.Output)
			}
		case parley.ChildSpawned:
			children = append(children, b.Child)
		}
		p.events = append(p.events, e)
	})
	for _, child := range children {
		if err != nil || !deep {
			break
		}
		m, missing := p.door.Session(ctx, p.who, child)
		if missing != nil {
			continue // the session was deleted
		}
		if p.below++; p.below > mostBelow || p.count+m.Head > mostEvents {
			p.cut = true
			continue
		}
		p.count += m.Head
		err = p.read(ctx, child, 1, m.Head, true)
	}
	return err
}

// messages returns the messages of the collected events.
func (p *past) messages(ctx context.Context) []json.RawMessage {
	slices.SortStableFunc(p.events, func(a, b parley.Event) int { return cmp.Compare(a.Position, b.Position) })
	out := []json.RawMessage{}
	for _, e := range p.events {
		for _, m := range p.show(ctx, &port.Item{Event: e}) {
			out = append(out, m.data)
		}
	}
	return out
}
