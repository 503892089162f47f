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

// defaultLeft is how long a run waits for a person after its socket is gone.
const defaultLeft = time.Minute

// left looks after a session whose socket is gone, until its runs end. No later
// socket can return to the session, so a run that waits there for a person would
// wait for a day, in the inbox of every user. It is cancelled when nothing has happened
// for a while. If a client says something in the session, by another protocol,
// the session is theirs from then on.
func (h *Handler) left(ctx context.Context, who port.Principal, id parley.SessionID, log *slog.Logger) {
	m, err := h.Door.Session(ctx, who, id)
	if err != nil || m.Run == 0 {
		return // it was deleted, or has nothing to do
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
			return // the server stops, or the principal may not read this any more
		}
		for _, i := range items {
			if w.sees(i.Event); w.taken {
				return
			}
		}
		if w.run == 0 { // a message that waited may have started another
			if m, err = h.Door.Session(ctx, who, id); err != nil || m.Run == 0 {
				return
			}
			w.run = m.Run
		}
	}
}

var errNothing = errors.New("nothing happens")

// next waits for items. While a person is needed it fails with errNothing when
// there are none for too long.
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

// waiting is what a session whose socket is gone waits for.
type waiting struct {
	session parley.SessionID
	head    parley.Seq      // of the session when the socket was gone
	run     parley.RunID    // that is open; 0: none
	cards   map[string]bool // that are open, also of sub-agents
	taken   bool            // another client goes on with the session
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
