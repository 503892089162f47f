package dialect

import (
	"cmp"
	"context"
	"sync"

	"parley"
	"parley/port"
	"parley/transport"
)

// writer sends a connection the items of its follower, and closes it at the end. It has a goroutine only while there is
// something to write.
type writer struct {
	conn      *Conn
	ctx, wire context.Context // see Conn.Run
	follower  port.Follower
	speaker   Speaker
	over      chan struct{} // closed after the socket was closed

	mu      sync.Mutex // guards the fields below; leaf
	tooMany error      // set if the client has sent too many messages
	running bool       // stays true after the socket was closed
	again   bool       // woken while running
}

// wake makes the writer check its follower and its context. It does not wait.
func (w *writer) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.again = w.running; !w.running {
		w.running = true
		w.conn.wg.Go(w.run)
	}
}

// end sets the reason for the end of the connection, if it is not the end of its context.
func (w *writer) end(tooMany error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tooMany = tooMany
}

func (w *writer) run() {
	for {
		if bye := w.write(); bye != nil {
			w.conn.Socket.Close(bye.Code, bye.Reason)
			close(w.over)
			return
		}
		w.mu.Lock()
		w.running, w.again = w.again, false
		goOn := w.running
		w.mu.Unlock()
		if !goOn {
			return
		}
	}
}

// write sends all available items. It returns nil when the follower has no more and will wake the writer.
func (w *writer) write() *Goodbye {
	c, s := w.conn, w.speaker
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
			c.Log.Error("following failed", "error", err)
			return &Goodbye{transport.Internal, parley.MessageOf(err)}
		case len(items) == 0:
			return nil
		}
		var out [][]byte
		var bye *Goodbye
		for n, i := range items {
			var frames [][]byte
			frames, bye = s.Show(w.ctx, i)
			out = append(out, frames...)
			if bye != nil {
				items = items[:n+1]
				break
			}
		}
		if len(out) > 0 {
			if err := c.Socket.Write(w.wire, out...); err != nil {
				return &Goodbye{transport.GoingAway, "the connection ended"}
			}
		}
		for _, i := range items {
			s.Shown(w.ctx, i)
		}
		if bye != nil {
			return bye
		}
	}
}

// take returns the items of the follower, or none if the follower will wake the
// writer. It waits for a follower that cannot wake it.
func (w *writer) take() ([]*port.Item, error) {
	if f, ok := w.follower.(port.Waker); ok {
		return f.Take(w.ctx, w.wake)
	}
	return w.follower.Next(w.ctx)
}
