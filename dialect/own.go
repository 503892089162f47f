package dialect

import (
	"context"

	"parley"
	"parley/port"
)

// An OwnSession is the session of one connection. The first accepted command for it opens it. Until then it does not
// exist: it cannot be followed, and other principals cannot learn of it. An OwnSession is both the follower of the
// connection and the door through which the connection submits.
type OwnSession struct {
	port.Door
	port.Follower
	id     parley.SessionID
	who    port.Principal
	opened context.Context // ends when the session opens
	open   context.CancelFunc
	waking func() bool // cancels the wake-up of Take's caller by the opening
	own    bool        // Follower follows the session
}

// NewOwnSession follows meanwhile until the session opens, to notice that the
// server stops. It drops the items of meanwhile.
func NewOwnSession(door port.Door, who port.Principal, id parley.SessionID, meanwhile port.Follower) *OwnSession {
	o := &OwnSession{Door: door, Follower: meanwhile, id: id, who: who}
	o.opened, o.open = context.WithCancel(context.Background())
	return o
}

func (o *OwnSession) Submit(ctx context.Context, who port.Principal, c parley.Command) (port.Receipt, error) {
	receipt, err := o.Door.Submit(ctx, who, c)
	if err == nil && c.Session == o.id {
		o.open()
	}
	return receipt, err
}

// Opened reports whether the session exists.
func (o *OwnSession) Opened() bool { return o.opened.Err() != nil }

// Next waits until the session is open, and then for items of it and of sessions below it.
func (o *OwnSession) Next(ctx context.Context) ([]*port.Item, error) {
	if !o.own {
		if err := o.wait(ctx); err != nil {
			return nil, err
		}
		if err := o.follow(ctx); err != nil {
			return nil, err
		}
	}
	return o.Follower.Next(ctx)
}

// Take implements port.Waker.
func (o *OwnSession) Take(ctx context.Context, wake func()) ([]*port.Item, error) {
	meanwhile, ok := o.Follower.(port.Waker)
	if !ok {
		return o.Next(ctx)
	}
	if !o.own && o.waking == nil {
		o.waking = context.AfterFunc(o.opened, wake)
	}
	for !o.own && !o.Opened() {
		if items, err := meanwhile.Take(ctx, wake); err != nil || len(items) == 0 {
			return nil, err
		}
	}
	if !o.own {
		if err := o.follow(ctx); err != nil {
			return nil, err
		}
	}
	return o.Follower.(port.Waker).Take(ctx, wake)
}

// Close implements port.Follower.
func (o *OwnSession) Close() {
	if o.waking != nil {
		o.waking()
	}
	o.Follower.Close()
}

// follow starts to follow the session, which must exist.
func (o *OwnSession) follow(ctx context.Context) error {
	own, err := o.Door.Follow(ctx, o.who, port.Scope{Session: o.id, Below: true}, port.Beginning)
	if err != nil {
		return err
	}
	o.Follower.Close()
	o.Follower, o.own = own, true
	return nil
}

func (o *OwnSession) wait(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(o.opened, stop)()
	for o.opened.Err() == nil {
		if _, err := o.Follower.Next(ctx); err != nil && o.opened.Err() == nil {
			return err
		}
	}
	return nil
}
