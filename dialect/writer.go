package dialect

import (
	"cmp"
	"context"
	"sync"

	"parley"
	"parley/port"
	"parley/transport"
)

// writer sends a connection the items of its follower, and closes it at the end. While there is something to write, it
// has a turn on a shared goroutine, or a goroutine of its own if that may have to wait.
type writer struct {
	conn      *Conn
	ctx, wire context.Context // see Conn.Run
	follower  port.Follower
	recent    port.RecentTaker // the follower, if the connection shares goroutines; else nil
	speaker   Speaker
	over      chan struct{} // closed after the socket was closed
	woken     func()        // wake

	mu      sync.Mutex // guards the fields below; before Writers.mu
	tooMany error      // set if the client has sent too many messages
	running bool       // stays true after the socket was closed
	again   bool       // woken while running
}

func newWriter(c *Conn, ctx, wire context.Context, f port.Follower, s Speaker) *writer {
	w := &writer{conn: c, ctx: ctx, wire: wire, follower: f, speaker: s, over: make(chan struct{})}
	w.woken = w.wake
	if c.Writers != nil {
		w.recent, _ = f.(port.RecentTaker)
	}
	return w
}

// wake makes the writer check its follower and its context. It does not wait.
func (w *writer) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.again = w.running; w.running {
		return
	}
	w.running = true
	if w.recent != nil {
		w.conn.Writers.add(w)
	} else {
		w.conn.wg.Go(func() { w.run(nil) })
	}
}

// end sets the reason for the end of the connection, if it is not the end of its context.
func (w *writer) end(tooMany error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tooMany = tooMany
}

// turn sends all recent items, and does not wait: what takes longer goes on on a goroutine of its own.
func (w *writer) turn() {
	for {
		var p *part
		if w.ctx.Err() == nil {
			items, ok := w.recent.TakeRecent(w.woken)
			if len(items) > 0 {
				sent := false
				if p, sent = w.try(items); sent {
					continue
				}
			} else if ok {
				if w.rested() {
					return
				}
				continue
			}
		}
		w.conn.wg.Go(func() { w.run(p) })
		return
	}
}

// rested ends the work of the writer, unless it was woken meanwhile.
func (w *writer) rested() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running, w.again = w.again, false
	return !w.running
}

// run finishes a part, if it is not nil, and sends everything else.
func (w *writer) run(p *part) {
	for {
		bye := w.finish(p)
		if p = nil; bye == nil {
			bye = w.write()
		}
		if bye != nil {
			w.conn.Socket.Close(bye.Code, bye.Reason)
			close(w.over)
			return
		}
		if w.rested() {
			return
		}
	}
}

// A part is some items of the follower, as they are sent together.
type part struct {
	items []*port.Item
	out   [][]byte
	bye   *Goodbye // the connection ends behind them
}

// show makes a part of items.
func (w *writer) show(items []*port.Item) *part {
	p := &part{items: items}
	for n, i := range items {
		var frames [][]byte
		frames, p.bye = w.speaker.Show(w.ctx, i)
		p.out = append(p.out, frames...)
		if p.bye != nil {
			p.items = items[:n+1]
			break
		}
	}
	return p
}

// try sends items if that needs no waiting. Otherwise it returns what is left for finish.
func (w *writer) try(items []*port.Item) (p *part, sent bool) {
	p = w.show(items)
	if p.out, sent = w.conn.Socket.TryWrite(p.out...); !sent || p.bye != nil {
		return p, false
	}
	w.shown(p)
	return nil, true
}

// finish sends a part.
func (w *writer) finish(p *part) *Goodbye {
	if p == nil {
		return nil
	}
	if err := w.conn.Socket.Write(w.wire, p.out...); err != nil {
		return &Goodbye{transport.GoingAway, "the connection ended"}
	}
	w.shown(p)
	return p.bye
}

func (w *writer) shown(p *part) {
	for _, i := range p.items {
		w.speaker.Shown(w.ctx, i)
	}
}

// write sends all available items. It returns nil when the follower has no more and will wake the writer.
func (w *writer) write() *Goodbye {
	for {
		items, err := w.take()
		switch {
		case w.ctx.Err() != nil:
			w.mu.Lock()
			bye := goodbyeFor(cmp.Or(w.tooMany, context.Cause(w.ctx)))
			w.mu.Unlock()
			return &bye
		case parley.CodeOf(err) == parley.CodeUnavailable && err != nil:
			return &Goodbye{transport.GoingAway, parley.MessageOf(err)}
		case err != nil:
			w.conn.Log.Error("following failed", "error", err)
			return &Goodbye{transport.Internal, parley.MessageOf(err)}
		case len(items) == 0:
			return nil
		}
		if bye := w.finish(w.show(items)); bye != nil {
			return bye
		}
	}
}

// take returns the items of the follower, or none if the follower will wake the
// writer. It waits for a follower that cannot wake it.
func (w *writer) take() ([]*port.Item, error) {
	if f, ok := w.follower.(port.Waker); ok {
		return f.Take(w.ctx, w.woken)
	}
	return w.follower.Next(w.ctx)
}
