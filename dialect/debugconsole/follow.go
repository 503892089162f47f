package debugconsole

import (
	"context"
	"sync"

	"parley"
)

// A watch follows the tenant's session until the agent is stopped.
type watch struct {
	facts parley.Follower
	agent string
	over  chan struct{} // closed when nothing more is heard of it
	why   error         // and why; set before that
}

// around makes a visit end when the agent is stopped.
func (w *watch) around(visit func(context.Context) (context.Context, context.CancelFunc)) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, done := visit(ctx)
		ctx, stop := context.WithCancelCause(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { w.run(ctx, stop) })
		return ctx, func() {
			stop(nil)
			wg.Wait()
			done()
		}
	}
}

func (w *watch) run(ctx context.Context, stop context.CancelCauseFunc) {
	defer close(w.over)
	for {
		items, err := w.facts.Next(ctx)
		if err != nil {
			w.why = err
			return
		}
		for _, i := range items {
			if b, ok := i.Body.(parley.AgentStopped); ok && b.Agent == w.agent {
				stop(parley.Errorf(parley.CodeStopped, "agent is not running"))
				return
			}
		}
	}
}

// ownSession is the session of a connection. It opens with the first message that
// is accepted; until then there is nothing to follow. It is the connection's
// follower, and the door by which it submits.
type ownSession struct {
	parley.Door
	who    parley.Principal
	id     parley.SessionID
	watch  *watch
	opened chan struct{}
	once   sync.Once

	f parley.Follower // nil: not opened yet
}

func (o *ownSession) Submit(ctx context.Context, who parley.Principal, c parley.Command) (parley.Receipt, error) {
	receipt, err := o.Door.Submit(ctx, who, c)
	if err == nil && c.Session == o.id {
		o.once.Do(func() { close(o.opened) })
	}
	return receipt, err
}

// Next waits for the session, and then for what happens in it and below it. A
// server that stops is noticed by who follows something, and before there is a
// session that is the watch.
func (o *ownSession) Next(ctx context.Context) ([]*parley.Item, error) {
	if o.f == nil {
		select {
		case <-o.opened:
		case <-o.watch.over:
			if ctx.Err() == nil {
				return nil, o.watch.why
			}
			return nil, ctx.Err()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		f, err := o.Door.Follow(ctx, o.who, parley.Scope{Session: o.id, Below: true}, parley.Beginning)
		if err != nil {
			return nil, err
		}
		o.f = f
	}
	return o.f.Next(ctx)
}

func (o *ownSession) Close() {
	if o.f != nil {
		o.f.Close()
	}
}
