package dialect

import (
	"context"

	"parley"
)

// An OwnSession is the session of one connection. It opens with the first command
// for it that is accepted. Until then it does not exist: it cannot be followed,
// and no other principal may learn of it. An OwnSession is the follower of the
// connection, and the door by which the connection submits.
type OwnSession struct {
	parley.Door
	parley.Follower
	id     parley.SessionID
	who    parley.Principal
	opened context.Context // ends when the session opens
	open   context.CancelFunc
	own    bool // the session is followed
}

// NewOwnSession follows meanwhile until the session opens, to learn that the
// server stops. The items of meanwhile are dropped.
func NewOwnSession(door parley.Door, who parley.Principal, id parley.SessionID, meanwhile parley.Follower) *OwnSession {
	o := &OwnSession{Door: door, Follower: meanwhile, id: id, who: who}
	o.opened, o.open = context.WithCancel(context.Background())
	return o
}

func (o *OwnSession) Submit(ctx context.Context, who parley.Principal, c parley.Command) (parley.Receipt, error) {
	receipt, err := o.Door.Submit(ctx, who, c)
	if err == nil && c.Session == o.id {
		o.open()
	}
	return receipt, err
}

// Opened reports whether the session exists.
func (o *OwnSession) Opened() bool { return o.opened.Err() != nil }

// Next waits for the session, and then for items of it and of sessions below it.
func (o *OwnSession) Next(ctx context.Context) ([]*parley.Item, error) {
	if !o.own {
		if err := o.wait(ctx); err != nil {
			return nil, err
		}
		own, err := o.Door.Follow(ctx, o.who, parley.Scope{Session: o.id, Below: true}, parley.Beginning)
		if err != nil {
			return nil, err
		}
		o.Follower.Close()
		o.Follower, o.own = own, true
	}
	return o.Follower.Next(ctx)
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
