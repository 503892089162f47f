package dialecttest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
)

// A LogDoor is a door to the log of a transcript, of which only the first Happened events have happened. Any command
// makes the rest happen. Followers fail at the end of the log, as they do when a server stops.
type LogDoor struct {
	port.Door
	Log      []parley.Event
	Happened int
	Commands []parley.Command
}

func (d *LogDoor) top() parley.SessionID { return d.Log[0].Session }

func (d *LogDoor) Epoch() string { return "epoch" }

func (d *LogDoor) May(context.Context, port.Principal, parley.Action, port.Resource) error {
	return nil
}

func (d *LogDoor) Head(context.Context, port.Principal) (port.Cursor, error) {
	return port.Cursor{After: int64(d.Log[d.Happened-1].Position)}, nil
}

func (d *LogDoor) Session(_ context.Context, _ port.Principal, id parley.SessionID) (m port.Summary, err error) {
	m = port.Summary{ID: id, Root: d.top()}
	for _, e := range d.Log[:d.Happened] {
		if e.Session != id {
			continue
		}
		switch m.Head = e.Seq; e.Body.(type) {
		case parley.RunStarted:
			m.Run = e.Run
		case parley.RunFinished:
			m.Run = 0
		}
	}
	if m.Head == 0 {
		err = parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	return m, err
}

// Cards returns the open cards.
func (d *LogDoor) Cards(context.Context, port.Principal, port.CardQuery) (list []port.CardInfo, err error) {
	without := func(closed func(port.CardInfo) bool) {
		var kept []port.CardInfo
		for _, c := range list {
			if !closed(c) {
				kept = append(kept, c)
			}
		}
		list = kept
	}
	for _, e := range d.Log[:d.Happened] {
		if c, ok := dialect.Opens(e); ok {
			info := port.CardInfo{Kind: c.Kind, Session: c.Session, Seq: c.Seq, Run: e.Run}
			switch b := e.Body.(type) {
			case parley.ApprovalRequested:
				info.Call = b.Call
			case parley.QuestionAsked:
				info.Call = b.Call
			case parley.ToolCallFinished:
				info.Call = b.Call
			}
			info.Read(e.Body, nil)
			list = append(list, info)
		}
		if c, ok := dialect.Closes(e); ok {
			without(func(i port.CardInfo) bool { return i.Session == c.Session && i.Seq == c.Seq })
		}
		if _, ends := e.Body.(parley.RunFinished); ends {
			without(func(i port.CardInfo) bool { return i.Session == e.Session })
		}
	}
	return list, nil
}

func (d *LogDoor) Submit(_ context.Context, _ port.Principal, c parley.Command) (r port.Receipt, err error) {
	d.Commands = append(d.Commands, c)
	r.Session = c.Session
	_, closes := c.Do.(parley.SubmitInput)
	for _, e := range d.Log[d.Happened:] {
		_, ok := dialect.Closes(e)
		if e.Session == c.Session && (r.First == 0 || ok && !closes) { // an answer closes the card
			r.First, closes = e.Seq, closes || ok
		}
	}
	d.Happened = len(d.Log)
	m, err := d.Session(context.Background(), port.Principal{}, c.Session)
	r.Last = m.Head
	return r, err
}

func (d *LogDoor) Follow(_ context.Context, _ port.Principal, s port.Scope, from port.Cursor) (port.Follower,
	error) {
	f := &logFollower{}
	begun := false
	for _, e := range d.Log[:d.Happened] {
		own := e.Session == s.Session
		if begun = begun || own && int64(e.Seq) > from.After; begun && (own || s.Below) {
			f.items = append(f.items, &port.Item{Event: e})
		}
	}
	return f, nil
}

type logFollower struct{ items []*port.Item }

func (f *logFollower) Next(context.Context) (items []*port.Item, err error) {
	if len(f.items) == 0 {
		return nil, parley.Errorf(parley.CodeUnavailable, "The server is stopping.")
	}
	items, f.items = f.items, nil
	return items, nil
}

// Take implements port.Waker.
func (f *logFollower) Take(context.Context, func()) (items []*port.Item, err error) {
	items, f.items = f.items, nil
	return items, nil
}

func (f *logFollower) Close() {}

// Agents has the names of the agents of every project.
type Agents []string

func (a Agents) Of(string) port.Agents { return a }

func (a Agents) Agent(_ parley.TenantID, name string) (parley.Agent, error) {
	if !slices.Contains(a, name) {
		return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There is no agent %q.", name)
	}
	return parley.Agent{Name: name}, nil
}

func (a Agents) List(parley.TenantID) (list []parley.Agent) {
	for _, name := range a {
		list = append(list, parley.Agent{Name: name})
	}
	return list
}

// A Guard admits all requests as one principal, except those with the header X-Nobody.
type Guard struct{ Principal port.Principal }

func (g Guard) Who(r *http.Request) (port.Principal, error) {
	if r.Header.Get("X-Nobody") != "" {
		return port.Principal{}, parley.Errorf(parley.CodeUnauthenticated, "Who are you?")
	}
	return g.Principal, nil
}

func (g Guard) Enter(r *http.Request, _ string) (v port.Visit, err error) {
	v.Who, err = g.Who(r)
	v.Watch, v.Leave = context.WithCancel, func() {}
	return v, err
}

func (g Guard) Ask(r *http.Request, agent string) (port.Visit, error) { return g.Enter(r, agent) }

// An Answer is the answer to a request. If it is not a stream, its body is all of Data.
type Answer struct {
	Status    int
	IDs, Data []string
	Whole     bool // it was not cut off
}

// Ask sends a request with a JSON body to the routes.
func Ask(routes map[string]http.HandlerFunc, method, path, body string) (a Answer) {
	mux := http.NewServeMux()
	for pattern, h := range routes {
		mux.Handle(pattern, h)
	}
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := recorder{httptest.NewRecorder()}
	func() {
		defer func() {
			if cut := recover(); cut != nil && cut != http.ErrAbortHandler {
				panic(cut)
			}
		}()
		mux.ServeHTTP(w, r)
		a.Whole = true
	}()
	a.Status = w.Code
	raw := w.Body.String()
	for line := range strings.Lines(raw) {
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			a.IDs = append(a.IDs, strings.TrimSpace(id))
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			a.Data = append(a.Data, strings.TrimSpace(data))
		}
	}
	if a.Data == nil && raw != "" {
		a.Data = []string{strings.TrimSpace(raw)}
	}
	return a
}

// recorder accepts deadlines, as connections do.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetWriteDeadline(time.Time) error { return nil }
