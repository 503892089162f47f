package engine

import (
	"context"
	"slices"
	"time"

	"parley"
	"parley/port"
)

// Submit implements port.Door.
func (e *Engine) Submit(ctx context.Context, who port.Principal, c parley.Command) (port.Receipt, error) {
	c.Tenant, c.By, c.At = who.Tenant, who.ID, e.Now()
	if err := c.Check(); err != nil {
		return port.Receipt{}, err
	}
	leave, err := e.large.enter(ctx, c.Do)
	if err != nil {
		return port.Receipt{}, err
	}
	defer leave()
	if c.Do, err = e.withDocuments(ctx, who, c); err != nil {
		return port.Receipt{}, err
	}
	return e.route(ctx, key{c.Tenant, c.Session}, &request{who: who, command: c})
}

// Follow implements port.Door.
func (e *Engine) Follow(ctx context.Context, who port.Principal, scope port.Scope, from port.Cursor) (
	port.Follower, error) {
	if from.Epoch != "" && from.Epoch != e.Store.Epoch() {
		return nil, parley.Errorf(parley.CodeResync, "This cursor is of another history of the log; start again from "+
			"the beginning.")
	}
	logs := e.Store.Tenant(who.Tenant)
	if scope.Session != "" {
		m, err := e.Session(ctx, who, scope.Session)
		if err != nil {
			return nil, err
		}
		if err := e.auditReading(ctx, who, m); err != nil {
			return nil, err
		}
		after, err := place(from, int64(m.Head))
		if err != nil {
			return nil, err
		}
		if scope.Below && m.Root == m.ID {
			quiet := m.Run == 0 && after == int64(m.Head)
			return e.Feed.Below(who.Tenant, scope.Session, parley.Seq(after), quiet), nil
		}
		return e.Feed.Session(who.Tenant, scope.Session, parley.Seq(after)), nil
	}
	everybody := true
	var err error
	switch {
	case scope.Root != "":
		var m port.Summary
		if m, err = e.Session(ctx, who, scope.Root); err == nil {
			err = e.auditReading(ctx, who, m)
		}
	case scope.Readable:
		everybody, err = e.mayReadAll(ctx, who)
	default:
		err = e.permit(ctx, who, "", parley.ActRead, port.Resource{Kind: port.EverySession, Tenant: who.Tenant})
	}
	if err != nil {
		return nil, err
	}
	head, err := logs.Position(ctx)
	if err != nil {
		return nil, err
	}
	after, err := place(from, int64(head))
	if err != nil {
		return nil, err
	}
	f := e.Feed.Tree(who.Tenant, scope.Root, parley.Position(after))
	if !everybody || scope.Project.Root != "" {
		f = &readableFollower{Follower: f, engine: e, who: who, project: scope.Project, mayRead: map[parley.SessionID]bool{}}
	}
	return f, nil
}

// Head returns the cursor at which followers of several sessions begin. See
// port.Door.
func (e *Engine) Head(ctx context.Context, who port.Principal) (port.Cursor, error) {
	if _, err := e.mayReadAll(ctx, who); err != nil {
		return port.Cursor{}, err
	}
	head, err := e.Store.Tenant(who.Tenant).Position(ctx)
	return port.Cursor{Epoch: e.Store.Epoch(), After: int64(head)}, err
}

// mayReadAll reports whether a principal may read the sessions of all users. It
// fails if the principal may not even read its own.
func (e *Engine) mayReadAll(ctx context.Context, who port.Principal) (bool, error) {
	if e.Access.Permit(who, parley.ActRead, port.Resource{Kind: port.EverySession, Tenant: who.Tenant}) == nil {
		return true, nil
	}
	return false, e.permit(ctx, who, "", parley.ActRead, port.Resource{Kind: port.OwnSessions, Tenant: who.Tenant})
}

// auditReading records in the audit that a principal reads a session of another
// user.
func (e *Engine) auditReading(ctx context.Context, who port.Principal, m port.Summary) error {
	if m.Owner == who.ID || m.ID == parley.TenantSession {
		return nil
	}
	_, err := e.Store.Append(ctx,
		port.Batch{Tenant: who.Tenant,
			Audit: []parley.Audit{{At: e.Now(), By: who.ID, Action: port.AuditSessionRead,
				Resource: "session", ID: string(m.ID), Source: parley.ViaHTTP,
				Metadata: parley.Metadata(map[string]any{"owner": m.Owner})}}})
	return err
}

// place returns the place of a cursor in a log that ends at head.
func place(from port.Cursor, head int64) (int64, error) {
	switch {
	case from.After == port.Live.After:
		return head, nil
	case from.After < 0 || from.After > head:
		return 0, parley.Errorf(parley.CodeResync, "This cursor is beyond the end of the log; start again from the "+
			"beginning.")
	}
	return from.After, nil
}

// Session checks permission twice. The first check is whether the principal may
// read sessions at all, so that a refusal does not depend on whether this one
// exists.
func (e *Engine) Session(ctx context.Context, who port.Principal, id parley.SessionID) (port.Summary, error) {
	if id == parley.TenantSession {
		return e.tenantSession(ctx, who)
	}
	if err := e.permit(ctx, who, "", parley.ActRead, port.Resource{Kind: port.OwnSessions, Tenant: who.Tenant,
		Session: id}); err != nil {
		return port.Summary{}, err
	}
	st, err := e.Store.Tenant(who.Tenant).Session(ctx, id)
	if err != nil {
		return port.Summary{}, err
	}
	m := st.Summary
	if err := e.permit(ctx, who, "", parley.ActRead, port.Resource{Kind: port.OneSession, Tenant: who.Tenant,
		Session: id, Owner: m.Owner}); err != nil {
		return port.Summary{}, err
	}
	if m.Deleted {
		return port.Summary{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	m.Status, err = e.status(ctx, who.Tenant, m)
	return m, err
}

// Sessions lists the sessions that the principal may see: those of all users,
// or only its own.
func (e *Engine) Sessions(ctx context.Context, who port.Principal, q port.SessionQuery) ([]port.Summary, error) {
	if q.Limit > maxLimit {
		q.Limit = min(q.Limit, maxSessions)
	} else {
		q.Limit = listLimit(q.Limit)
	}
	everybody, err := e.mayReadAll(ctx, who)
	if err != nil {
		return nil, err
	}
	if !everybody {
		q.Owner = who.ID
	}
	if q.Viewer != "" {
		q.Viewer = who.ID
	}
	most := q.Limit
	q.Limit++ // the tenant's session may be among them, and is removed
	list, err := e.Store.Tenant(who.Tenant).Sessions(ctx, q)
	list = slices.DeleteFunc(list, func(m port.Summary) bool { return m.ID == parley.TenantSession })
	list = list[:min(len(list), most)]
	for i := range list {
		if err == nil {
			list[i].Status, err = e.status(ctx, who.Tenant, list[i])
		}
	}
	return list, err
}

// Resume returns the cursor for a client that keeps none. See port.Door.
func (e *Engine) Resume(ctx context.Context, who port.Principal, id parley.SessionID) (port.Cursor, error) {
	m, err := e.Session(ctx, who, id)
	if err != nil {
		return port.Cursor{}, err
	}
	from, err := e.nextBookmark(ctx, who.Tenant, m)
	switch {
	case err != nil:
		return port.Cursor{}, err
	case from == 0 && m.Run != 0:
		from = m.Run
	case from == 0:
		return port.Cursor{After: int64(m.Head)}, nil
	}
	return port.Cursor{After: int64(from) - 1}, nil
}

// Delivered records deliveries to clients that keep no cursor. See port.Door.
func (e *Engine) Delivered(ctx context.Context, who port.Principal, id parley.SessionID, runs ...parley.RunID) error {
	if _, err := e.Session(ctx, who, id); err != nil {
		return err
	}
	logs := e.Store.Tenant(who.Tenant)
	// Every socket of a session reports the delivery; one write is enough.
	owed, err := logs.Undelivered(ctx, id, time.Time{})
	if err != nil {
		return err
	}
	now := e.Now()
	var still []parley.Bookmark
	var which []parley.RunID
	for _, b := range owed {
		if slices.Contains(runs, b.Run) && !slices.Contains(which, b.Run) {
			still, which = append(still, b), append(which, b.Run)
		}
	}
	if len(still) == 0 {
		return nil
	}
	if err := logs.Delivered(ctx, id, now, which...); err != nil {
		return err
	}
	for _, b := range still {
		e.Log.Debug("effect_delivered", "session", id, "type", parley.SendMessage, "run", b.Run)
		if e.EffectDelivered != nil {
			e.EffectDelivered(parley.SendMessage, now.Sub(b.CreatedAt))
		}
	}
	return nil
}

// May checks permission for requests that are neither commands nor about a
// session. See port.Door.
func (e *Engine) May(ctx context.Context, who port.Principal, action parley.Action, on port.Resource) error {
	return e.permit(ctx, who, "", action, on)
}

func (e *Engine) Audited(ctx context.Context, who port.Principal, q port.AuditQuery) ([]port.AuditRow, error) {
	if err := e.permit(ctx, who, "", parley.ActReadAudit,
		port.Resource{Kind: port.WholeTenant, Tenant: who.Tenant}); err != nil {
		return nil, err
	}
	return e.Store.Tenant(who.Tenant).Audited(ctx, q)
}

// Users implements port.Door.
func (e *Engine) Users(ctx context.Context, who port.Principal, after parley.PrincipalID, limit int) (
	[]port.UserInfo, error) {
	if err := e.permit(ctx, who, "", parley.ActReadUsers,
		port.Resource{Kind: port.WholeTenant, Tenant: who.Tenant}); err != nil {
		return nil, err
	}
	return e.Store.Tenant(who.Tenant).Users(ctx, after, listLimit(limit))
}

func (e *Engine) Epoch() string { return e.Store.Epoch() }
