package eventbus

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/dialect"
	"parley/port"
)

// door is a door to some logs up to the position head. Followers get the events
// up to head and no more.
type door struct {
	port.Door
	events  []parley.Event // of all sessions, by position
	head    parley.Position
	refusal error // error for reading a session by itself
	waits   bool  // followers wait when they have read everything
	runs    []port.RunInfo
	root    string // root of the first project; empty: /p

	files    port.Files // of acme
	missions []port.MissionInfo
	choice   parley.IdleChoice // override of coder

	mu       sync.Mutex // guards the fields below
	open     int        // open followers
	follows  int        // number of followers ever opened
	commands []parley.Command
	answers  map[parley.SessionID]error // errors for commands; absent: the command is accepted
}

const epoch = "k3v1"

func (d *door) Epoch() string { return epoch }

func (d *door) Head(context.Context, port.Principal) (port.Cursor, error) {
	return port.Cursor{Epoch: epoch, After: int64(d.head)}, nil
}

func (d *door) state(id parley.SessionID) parley.State {
	s := parley.NewState(ann.Tenant, id)
	for _, e := range d.events {
		if e.Session == id && e.Position <= d.head {
			s = parley.Fold(s, e)
		}
	}
	return s
}

func (d *door) Session(_ context.Context, _ port.Principal, id parley.SessionID) (port.Summary, error) {
	s := d.state(id)
	if s.Owner == "" || s.Deleted {
		return port.Summary{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	return port.SummaryOf(s), nil
}

// Cards finds cards as a store does: by the rows of events.
func (d *door) Cards(_ context.Context, _ port.Principal, q port.CardQuery) (list []port.CardInfo, _ error) {
	drop := func(of parley.SessionID, which func(port.CardInfo) bool) {
		list = slices.DeleteFunc(list, func(c port.CardInfo) bool { return c.Session == of && which(c) })
	}
	agents := map[string]string{}
	for _, e := range d.events {
		if e.Position > d.head || q.Root != "" && e.Root != q.Root {
			continue
		}
		switch row := e.Row().(type) {
		case parley.RunOpened:
			agents[runName(e.Session, row.Run)] = row.Agent
		case parley.CardOpened:
			named, call := d.at(e.Session, row.Seq), d.at(e.Session, parley.Seq(row.Call))
			c := port.CardInfo{Kind: row.Kind, Session: e.Session, Root: e.Root, Run: row.Run, Seq: row.Seq,
				Call:  row.Call,
				Agent: agents[runName(e.Session, row.Run)], AskedAt: e.At, Position: named.Position}
			c.Read(named.Body, call.Body)
			list = append(list, c)
		case parley.CardClosed:
			drop(e.Session, func(c port.CardInfo) bool { return c.Seq == row.Seq })
		case parley.RunClosed:
			drop(e.Session, func(c port.CardInfo) bool { return c.Run == row.Run })
		case parley.RowsGone:
			drop(e.Session, func(port.CardInfo) bool { return true })
		}
	}
	return list, nil
}

func (d *door) at(id parley.SessionID, seq parley.Seq) parley.Event {
	i := slices.IndexFunc(d.events, func(e parley.Event) bool { return e.Session == id && e.Seq == seq })
	return d.events[i]
}

func (d *door) Follow(_ context.Context, _ port.Principal, scope port.Scope, from port.Cursor) (port.Follower,
	error) {
	f := &follower{door: d}
	for _, e := range d.events {
		at := int64(e.Position)
		switch {
		case scope.Session != "" && e.Session != scope.Session, scope.Root != "" && e.Root != scope.Root:
			continue
		case scope.Session != "":
			at = int64(e.Seq)
			if e.Position > d.head {
				continue
			}
		}
		if at > from.After {
			f.items = append(f.items, &port.Item{Event: e})
		}
	}
	if scope.Session != "" && d.refusal != nil {
		return nil, d.refusal
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open++
	d.follows++
	return f, nil
}

type follower struct {
	door  *door
	items []*port.Item
}

// Next returns the events in several parts, as they may arrive, and then fails.
func (f *follower) Next(ctx context.Context) ([]*port.Item, error) {
	if len(f.items) == 0 && f.door.waits {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if len(f.items) == 0 {
		return nil, parley.Errorf(parley.CodeUnavailable, "The server is stopping; come back in a moment.")
	}
	n := min(len(f.items), 3)
	items := f.items[:n]
	f.items = f.items[n:]
	return items, nil
}

func (f *follower) Close() {
	f.door.mu.Lock()
	defer f.door.mu.Unlock()
	f.door.open--
}

func (d *door) Runs(_ context.Context, _ port.Principal, q port.RunQuery) (list []port.RunInfo, _ error) {
	for _, i := range d.runs {
		if (q.Session == "" || q.Session == i.Session) && (q.Run == 0 || q.Run == i.Run) &&
			(!q.Open || i.Outcome == "") &&
			(q.Parent == nil || i.Parent != nil && i.Parent.Session == q.Parent.Session &&
				i.Parent.Run == q.Parent.Run) {
			list = append(list, i)
		}
	}
	return list, nil
}

// May permits everything except to the user clumsy.
func (d *door) May(_ context.Context, who port.Principal, action parley.Action, _ port.Resource) error {
	if who.ID == "clumsy" {
		return parley.Errorf(parley.CodeForbidden, "You may not do this: it needs %s.", action)
	}
	return nil
}

func (d *door) Submit(_ context.Context, _ port.Principal, c parley.Command) (port.Receipt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commands = append(d.commands, c)
	return port.Receipt{Session: c.Session, First: 2, Last: 5}, d.answers[c.Session]
}

// guard admits every request except those of the user nobody.
type guard struct{}

func (guard) Who(r *http.Request) (port.Principal, error) {
	if r.Header.Get("X-User") == "nobody" {
		return port.Principal{}, parley.Errorf(parley.CodeUnauthenticated, "Who are you?")
	}
	return port.Principal{ID: parley.PrincipalID(cmp.Or(r.Header.Get("X-User"), "ann")),
		Tenant: parley.TenantID(cmp.Or(r.Header.Get("X-Tenant"), "acme"))}, nil
}

func (g guard) Begin(r *http.Request, agent string) (port.Principal, func() (port.Visit, error), error) {
	who, err := g.Who(r)
	return who, func() (port.Visit, error) { return g.Enter(r, agent) }, err
}

func (g guard) Enter(r *http.Request, _ string) (port.Visit, error) {
	who, err := g.Who(r)
	return port.Visit{Who: who, Watch: context.WithCancel, Message: func() error { return nil }, Leave: func() {}},
		err
}

// agents has two agents.
type agents struct{}

func (agents) Agent(_ parley.TenantID, name string) (parley.Agent, error) {
	if name != "" && name != "coder" && name != "explorer" {
		return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There is no agent %q.", name)
	}
	return parley.Agent{Name: cmp.Or(name, "coder")}, nil
}

func (a agents) Of(string) port.Agents { return a }

func (agents) List(parley.TenantID) []parley.Agent { return nil }

func handler(d *door) *Handler {
	return &Handler{Door: d, Agents: agents{}, Guard: guard{}, Conns: dialect.NewConns(),
		Log: slog.New(slog.DiscardHandler)}
}

// serve starts a server. At the end of the test, it checks that all followers
// were closed.
func serve(t *testing.T, h *Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(mux(h))
	t.Cleanup(func() {
		srv.Close() // waits for the handlers
		h.Conns.Close(t.Context())
		if d, ok := h.Door.(*door); ok && d.open != 0 {
			t.Errorf("%d followers were not closed", d.open)
		}
	})
	return srv
}

func mux(h *Handler) *http.ServeMux {
	m := http.NewServeMux()
	for pattern, f := range h.Routes() {
		m.Handle(pattern, f)
	}
	return m
}

// ask sends a request without a network. Headers are given as "Name: value".
func ask(h *Handler, method, path, body string, headers ...string) (status int, answer string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	mux(h).ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

func (d *door) Settings(_ context.Context, who port.Principal) (parley.Settings, error) {
	if who.ID == "clumsy" {
		return parley.Settings{}, parley.Errorf(parley.CodeForbidden, "You may not do this: it needs agents:read.")
	}
	return parley.State{}.Facts.Effective(), nil
}

func (d *door) Missions(_ context.Context, who port.Principal, project string, limit int) ([]port.MissionInfo,
	error) {
	if err := d.reads(who, project); err != nil {
		return nil, err
	}
	return d.missions[:min(len(d.missions), limit)], nil
}

func (d *door) Override(_ context.Context, who port.Principal, project, agent string) (parley.Override, error) {
	if err := d.reads(who, project); err != nil {
		return parley.Override{}, err
	}
	if agent != "coder" {
		return parley.Override{}, parley.Errorf(parley.CodeNotFound, "There is no agent %q.", agent)
	}
	return parley.Override{Project: project, Agent: agent, IdleChoice: d.choice}, nil
}

func (d *door) reads(who port.Principal, project string) error {
	if who.ID == "clumsy" {
		return parley.Errorf(parley.CodeForbidden, "You may not do this: it needs agents:read.")
	}
	if project != "/p" {
		return parley.Errorf(parley.CodeInternal, "project %q", project)
	}
	return nil
}

func (d *door) ShowFile(ctx context.Context, who port.Principal, _, path string) (string, error) {
	if err := d.shows(who); err != nil {
		return "", err
	}
	return d.files.ShowFile(ctx, path)
}

func (d *door) ShowFolder(ctx context.Context, who port.Principal, _, path string) ([]port.FileEntry, error) {
	if err := d.shows(who); err != nil {
		return nil, err
	}
	return d.files.ShowFolder(ctx, path)
}

func (d *door) ShowTree(ctx context.Context, who port.Principal, _ string) (port.FileTree, error) {
	if err := d.shows(who); err != nil {
		return port.FileTree{}, err
	}
	return d.files.ShowTree(ctx)
}

func (d *door) shows(who port.Principal) error {
	if err := d.May(context.Background(), who, parley.ActRead, port.Resource{}); err != nil {
		return err
	}
	if who.Tenant != ann.Tenant {
		return parley.Errorf(parley.CodeNotFound, "There is no project.")
	}
	return nil
}

// Project finds two projects.
func (d *door) Project(tenant parley.TenantID, name string) (port.Project, error) {
	if tenant != ann.Tenant && name == "" {
		return port.Project{}, nil
	}
	first := cmp.Or(d.root, "/p")
	for _, p := range []port.Project{port.NewProject(first, "first"), port.NewProject("/r", "second")} {
		if p.First = p.Root == first; tenant == ann.Tenant && (name == "" || p.Is(name)) {
			return p, nil
		}
	}
	return port.Project{}, parley.Errorf(parley.CodeInvalid, "There is no project %q; there are: /p, /r.", name)
}
