package debugconsole

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
)

// defaultLeft is how long a run waits for a person after its socket has closed.
const defaultLeft = time.Minute

// left watches a session whose socket has closed, until its runs end. No later socket can return to the session. So a
// run that waits there for a person would wait for a day, in the inbox of every user. left cancels the run when nothing
// has happened for a while. If a client of another protocol sends a message to the session, left returns and the
// session is that client's.
func (h *Handler) left(ctx context.Context, who port.Principal, id parley.SessionID, log *slog.Logger) {
	m, err := h.Door.Session(ctx, who, id)
	if err != nil || m.Run == 0 {
		return // the session was deleted, or no run is open
	}
	f, err := h.Door.Follow(ctx, who, port.Scope{Session: id, Below: true}, port.Cursor{After: int64(m.Run) - 1})
	if err != nil {
		log.Warn("a session whose socket is gone cannot be followed", "error", err)
		return
	}
	defer f.Close()
	w := waiting{session: id, head: m.Head, run: m.Run, cards: map[string]bool{}}
	for {
		items, err := h.next(ctx, f, len(w.cards) > 0)
		switch {
		case errors.Is(err, errNothing):
			_, err = h.Door.Submit(ctx, who, parley.Command{Session: id, Via: parley.ViaWebSocket,
				Do: parley.CancelRun{Run: w.run}})
			if err != nil {
				log.Warn("a run whose socket is gone cannot be cancelled", "error", err)
				return
			}
			log.Info("a run is cancelled: it waited for a person, and its socket is gone", "run", w.run)
		case err != nil:
			return // the server stops, or the principal may not read the session any more
		}
		for _, i := range items {
			if w.sees(i.Event); w.taken {
				return
			}
		}
		if w.run == 0 { // a queued message may have started another run
			if m, err = h.Door.Session(ctx, who, id); err != nil || m.Run == 0 {
				return
			}
			w.run = m.Run
		}
	}
}

var errNothing = errors.New("nothing happens")

// next waits for items. If needed says that a person must act, it fails with
// errNothing when no items come in time.
func (h *Handler) next(ctx context.Context, f port.Follower, needed bool) ([]*port.Item, error) {
	if !needed {
		return f.Next(ctx)
	}
	within, stop := context.WithTimeoutCause(ctx, cmp.Or(h.Left, defaultLeft), errNothing)
	defer stop()
	items, err := f.Next(within)
	if err != nil && within.Err() != nil {
		err = context.Cause(within)
	}
	return items, err
}

// waiting is the state of a session whose socket has closed.
type waiting struct {
	session parley.SessionID
	head    parley.Seq      // head of the session when the socket closed
	run     parley.RunID    // open run; 0: none
	cards   map[string]bool // open cards, also of sub-agents
	taken   bool            // another client continues the session
}

func (w *waiting) sees(e parley.Event) {
	if c, ok := dialect.Opens(e); ok {
		w.cards[c.ID] = true
	}
	if c, ok := dialect.Closes(e); ok {
		delete(w.cards, c.ID)
	}
	switch b := e.Body.(type) {
	case parley.InputReceived:
		w.taken = w.taken || e.Session == w.session && e.Seq > w.head && !b.Synthetic
	case parley.RunStarted:
		if e.Session == w.session {
			w.run = e.Run
		}
	case parley.RunFinished:
		for id := range w.cards {
			if e.Session == w.session || strings.HasPrefix(id, string(e.Session)) {
				delete(w.cards, id)
			}
		}
		if e.Session == w.session {
			w.run = 0
		}
	}
}
