package feed

import (
	"cmp"
	"context"

	"parley"
	"parley/port"
)

// Below follows a session that is the root of a tree after a seq, and all
// sessions below it. quiet says that no session below it is at work at that
// point.
//
// While none is, Below follows the session's own window alone, at the cost of
// Session. While one is, as the session's log tells, it follows the tree. Both
// are in order of position, and every event has a seq and a position. So no
// event is lost or seen twice when one takes over from the other.
func (f *Feed) Below(tenant parley.TenantID, root parley.SessionID, after parley.Seq, quiet bool) port.Follower {
	return &treeFollower{feed: f, tenant: tenant, root: root, seq: after, known: quiet}
}

type treeFollower struct {
	feed   *Feed
	tenant parley.TenantID
	root   parley.SessionID

	seq      parley.Seq      // of the root's last event that was handed out
	position parley.Position // of the last event that was handed out; 0: not known
	known    bool            // out is known
	working  int

	current *follower // nil: Next makes it
	tree    bool      // now follows the tree
}

func (f *treeFollower) Close() {
	if f.current != nil {
		f.current.Close()
		f.current = nil
	}
}

func (f *treeFollower) Next(ctx context.Context) ([]*port.Item, error) {
	return f.next(ctx, func() ([]*port.Item, error) { return f.current.Next(ctx) })
}

// Take implements port.Waker.
func (f *treeFollower) Take(ctx context.Context, wake func()) ([]*port.Item, error) {
	return f.next(ctx, func() ([]*port.Item, error) { return f.current.Take(ctx, wake) })
}

// TakeRecent implements port.RecentTaker.
func (f *treeFollower) TakeRecent(wake func()) ([]*port.Item, bool) {
	if f.current == nil || f.tree != f.wantsTree() {
		return nil, false
	}
	items, ok := f.current.TakeRecent(wake)
	return f.handOut(items), ok
}

func (f *treeFollower) next(ctx context.Context, more func() ([]*port.Item, error)) ([]*port.Item, error) {
	for {
		if f.tree != f.wantsTree() {
			f.Close()
		}
		if f.current == nil {
			if err := f.open(ctx); err != nil {
				return nil, err
			}
		}
		items, err := more()
		if err != nil || len(items) == 0 {
			return nil, err
		}
		if items = f.handOut(items); len(items) > 0 {
			return items, nil
		}
	}
}

func (f *treeFollower) wantsTree() bool { return !f.known || f.working > 0 }

// handOut counts the children at work and returns the items that can be handed
// out. In the log of the root alone, items after the start of a child cannot:
// events of the child may come before them.
func (f *treeFollower) handOut(items []*port.Item) []*port.Item {
	for n, i := range items {
		f.position = i.Position
		if i.Session != f.root {
			continue
		}
		f.seq = i.Seq
		switch i.Body.(type) {
		case parley.RunStarted: // a run starts only when all children have ended
			f.known, f.working = true, 0
		case parley.ChildReturned:
			f.working = max(f.working-1, 0)
		case parley.ChildSpawned:
			if f.working++; !f.tree {
				return items[:n+1]
			}
		}
	}
	return items
}

func (f *treeFollower) open(ctx context.Context) error {
	if f.tree = f.wantsTree(); !f.tree {
		f.current = f.feed.Session(f.tenant, f.root, f.seq).(*follower)
		return nil
	}
	if f.position == 0 && f.seq > 0 {
		position, err := f.positionOf(ctx)
		if err != nil {
			return err
		}
		f.position = position
	}
	f.current = f.feed.Tree(f.tenant, f.root, f.position).(*follower)
	return nil
}

// positionOf returns the position behind which the events after f.seq come.
func (f *treeFollower) positionOf(ctx context.Context) (parley.Position, error) {
	for {
		events, err := f.feed.store.Tenant(f.tenant).Events(ctx, f.root, f.seq-1, 1)
		switch {
		case err != nil && parley.CodeOf(err) == parley.CodeUnavailable && f.feed.pause(ctx):
			continue
		case err != nil:
			return 0, cmp.Or(ctx.Err(), err)
		case len(events) == 0:
			return 0, parley.Errorf(parley.CodeResync, "This cursor is beyond the end of the log; start again from "+
				"the beginning.")
		case events[0].Seq > f.seq: // the event was a chunk, and retention deleted it
			return events[0].Position - 1, nil
		}
		return events[0].Position, nil
	}
}
