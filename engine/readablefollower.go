package engine

import (
	"context"
	"time"

	"parley"
	"parley/port"
)

// A readableFollower follows a tenant, and passes on the events that one principal may read, of one project or of all.
type readableFollower struct {
	port.Follower
	engine  *Engine
	who     port.Principal
	project port.Project              // zero: all projects
	mayRead map[parley.SessionID]bool // cached answers; owners and projects do not change
	pending []*port.Item              // from the follower, not yet checked
}

const (
	maxReadable = 4096 // cached sessions
	readAgain   = 500 * time.Millisecond
)

func (n *readableFollower) Next(ctx context.Context) ([]*port.Item, error) {
	return n.next(ctx, n.Follower.Next)
}

// Take implements port.Waker.
func (n *readableFollower) Take(ctx context.Context, wake func()) ([]*port.Item, error) {
	return n.next(ctx, func(ctx context.Context) ([]*port.Item, error) {
		return n.Follower.(port.Waker).Take(ctx, wake)
	})
}

func (n *readableFollower) next(ctx context.Context, more func(context.Context) ([]*port.Item, error)) ([]*port.Item,
	error) {
	for {
		var list []*port.Item
		for len(n.pending) > 0 {
			mine, err := n.isReadable(ctx, n.pending[0].Event)
			switch {
			case err != nil && len(list) > 0:
				return list, nil // the rest stays in pending
			case err != nil && parley.CodeOf(err) == parley.CodeUnavailable && n.pause(ctx):
				continue
			case err != nil:
				return nil, err
			case mine:
				list = append(list, n.pending[0])
			}
			n.pending = n.pending[1:]
		}
		if len(list) > 0 {
			return list, nil
		}
		var err error
		if n.pending, err = more(ctx); err != nil || len(n.pending) == 0 {
			return nil, err
		}
	}
}

// isReadable checks the same rules as Session. It refuses no request, so it leaves
// no audit record.
func (n *readableFollower) isReadable(ctx context.Context, e parley.Event) (bool, error) {
	if e.Session == parley.TenantSession {
		return n.inProject(e, "") && n.engine.Access.Permit(n.who, parley.ActRead, ofTenant(n.who.Tenant)) == nil, nil
	}
	if mine, asked := n.mayRead[e.Session]; asked {
		return mine, nil
	}
	owner, project := parley.PrincipalID(""), ""
	if opened, ok := e.Body.(parley.SessionOpened); ok {
		owner, project = opened.Owner, opened.Project
	} else {
		st, err := n.engine.Store.Tenant(n.who.Tenant).Session(ctx, e.Session)
		if err != nil {
			return false, err
		}
		owner, project = st.Summary.Owner, st.Summary.Project
	}
	if len(n.mayRead) >= maxReadable {
		clear(n.mayRead)
	}
	n.mayRead[e.Session] = n.inProject(e, project) && n.engine.Access.Permit(n.who, parley.ActRead,
		port.Resource{Kind: port.OneSession, Tenant: n.who.Tenant, Session: e.Session, Owner: owner}) == nil
	return n.mayRead[e.Session], nil
}

func (n *readableFollower) inProject(e parley.Event, project string) bool {
	return n.project.Root == "" || n.project.Concerns(e, project)
}

// pause waits for readAgain. It returns false if ctx or the engine ends first.
func (n *readableFollower) pause(ctx context.Context) bool {
	timer := time.NewTimer(readAgain)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-n.engine.ctx.Done():
	}
	return false
}
