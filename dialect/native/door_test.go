package native

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/dialect/dialecttest"
	"parley/port"
)

// door is a port.Door to one log. It follows cursors as the real door does; a
// test sets all other results.
type door struct {
	port.Door // for methods that tests do not need

	log     []parley.Event
	head    parley.Seq // head of the session; zero: the end of the log
	refusal error      // error for commands, lookups and lists
	resync  error      // replaces the door's own error
	end     error      // error of followers at the end of the log; nil: they wait for more
	more    chan []*port.Item
	query   port.SessionQuery // of the last list request
	stopped []string

	runQuery    port.RunQuery // of the last request of each kind
	timerQuery  port.TimerQuery
	effectQuery port.EffectQuery
	cardQuery   port.CardQuery
	search      port.SearchQuery
	found       port.Found
	marked      string
	missions    []port.MissionInfo
	choice      parley.IdleChoice

	mu       sync.Mutex // guards the fields below
	commands []parley.Command
	open     int // open followers
}

const epoch = "k3v1"

func (d *door) Epoch() string { return epoch }

func (d *door) Submit(_ context.Context, _ port.Principal, c parley.Command) (port.Receipt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commands = append(d.commands, c)
	return port.Receipt{Session: c.Session, Command: c.ID, First: 4, Last: 5}, d.refusal
}

func (d *door) Session(_ context.Context, _ port.Principal, id parley.SessionID) (port.Summary, error) {
	return port.Summary{ID: id, Root: id, Owner: "ann", Status: parley.StatusIdle,
		Head: cmp.Or(d.head, parley.Seq(len(d.log)))}, d.refusal
}

func (d *door) Sessions(_ context.Context, _ port.Principal, q port.SessionQuery) ([]port.Summary, error) {
	d.query = q
	return nil, d.refusal
}

func (d *door) Runs(_ context.Context, _ port.Principal, q port.RunQuery) ([]port.RunInfo, error) {
	d.runQuery = q
	if q.Run == 404 {
		return nil, d.refusal
	}
	return []port.RunInfo{{Session: dialecttest.Session, Root: dialecttest.Session, Run: 3, Agent: "coder",
		Owner: "ann", Request: "r1", StartedAt: dialecttest.Begin,
		Parent: &parley.Origin{Session: dialecttest.Session, Run: 1, Call: 2, Depth: 1}, Waiting: true}}, d.refusal
}

func (d *door) Plan(context.Context, port.Principal, parley.SessionID) (parley.Plan, error) {
	return parley.Plan{Status: parley.PlanProposed,
		Items: []parley.PlanItem{{Title: "one", Status: parley.ItemPending}}}, d.refusal
}

func (d *door) Grants(context.Context, port.Principal, parley.SessionID) ([]parley.GrantInfo, error) {
	return []parley.GrantInfo{{ID: "7", Scope: parley.ScopeSimilar, Tool: "shell", Text: "mkdir with other arguments",
		By: "ann", At: dialecttest.Begin}}, d.refusal
}

func (d *door) Settings(context.Context, port.Principal) (parley.Settings, error) {
	return parley.State{}.Facts.Effective(), d.refusal
}

func (d *door) Timers(_ context.Context, _ port.Principal, q port.TimerQuery) ([]port.TimerInfo, error) {
	if d.timerQuery = q; q.Timer == 404 {
		return nil, nil
	}
	return []port.TimerInfo{{ID: session + ".9", Session: dialecttest.Session, Timer: 9, Run: 3, Agent: "coder",
		Owner: "ann", By: "tool", Reason: "a reminder",
		Status: parley.TimerPending, Why: "cooldown", FireAt: dialecttest.Begin, CreatedAt: dialecttest.Begin,
		UpdatedAt: dialecttest.Begin}}, d.refusal
}

func (d *door) Effects(_ context.Context, _ port.Principal, q port.EffectQuery) ([]port.EffectInfo, error) {
	if d.effectQuery = q; q.Effect == 404 {
		return nil, nil
	}
	return []port.EffectInfo{{ID: session + ".5", Session: dialecttest.Session, Effect: 5, Run: 3, Owner: "ann",
			Type: parley.SendMessage, Request: "r1", Status: port.EffectCompleted,
			Attempts: 1, LastAttemptAt: dialecttest.Begin, CreatedAt: dialecttest.Begin, UpdatedAt: dialecttest.Begin}},
		d.refusal
}

func (d *door) Missions(_ context.Context, _ port.Principal, project string, limit int) ([]port.MissionInfo,
	error) {
	if project != "/p" || limit <= parley.MaxEndedMissions {
		return nil, parley.Errorf(parley.CodeInternal, "%d of %q", limit, project)
	}
	return d.missions, d.refusal
}

func (d *door) Override(_ context.Context, _ port.Principal, project, agent string) (parley.Override, error) {
	return parley.Override{Project: project, Agent: agent, IdleChoice: d.choice}, d.refusal
}

func (d *door) Cards(_ context.Context, _ port.Principal, q port.CardQuery) ([]port.CardInfo, error) {
	d.cardQuery = q
	return []port.CardInfo{{Kind: q.Kind, Session: dialecttest.Session, Root: dialecttest.Session, Run: 3, Seq: 9,
		Call: 8, Agent: "coder", Owner: "ann",
		Tool: "write_file", Arguments: "{}", Show: "write it", AskedAt: dialecttest.Begin}}, d.refusal
}

func (d *door) Follow(_ context.Context, _ port.Principal, scope port.Scope, from port.Cursor) (port.Follower,
	error) {
	head := int64(len(d.log))
	if d.log != nil && scope.Session == "" {
		head = int64(d.log[head-1].Position)
	}
	if from.Epoch != "" && from.Epoch != epoch || from.After > head {
		if d.resync != nil {
			return nil, d.resync
		}
		return nil, parley.Errorf(parley.CodeResync, "This cursor is not of this log.")
	}
	if d.refusal != nil {
		return nil, d.refusal
	}
	f := &follower{door: d}
	for _, e := range d.log {
		at := int64(e.Seq)
		if scope.Session == "" {
			at = int64(e.Position)
		}
		if at > from.After {
			f.items = append(f.items, &port.Item{Event: e})
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open++
	return f, nil
}

func (d *door) Head(context.Context, port.Principal) (port.Cursor, error) {
	return port.Cursor{Epoch: epoch, After: int64(cmp.Or(d.head, parley.Seq(len(d.log))))}, d.refusal
}

func (d *door) Resume(context.Context, port.Principal, parley.SessionID) (port.Cursor, error) {
	return port.Beginning, d.refusal
}

func (d *door) Delivered(context.Context, port.Principal, parley.SessionID, ...parley.RunID) error {
	return d.refusal
}

func (d *door) Stopped(context.Context, port.Principal, string) ([]string, error) {
	return d.stopped, d.refusal
}

func (d *door) SetContext(context.Context, port.Principal, string, string, string, string) error {
	return d.refusal
}

type follower struct {
	door  *door
	items []*port.Item
}

// Next returns the log in several parts, as it may arrive.
func (f *follower) Next(ctx context.Context) ([]*port.Item, error) {
	if n := min(len(f.items), 7); n > 0 {
		list := f.items[:n]
		f.items = f.items[n:]
		return list, nil
	}
	if f.door.end != nil {
		return nil, f.door.end
	}
	select {
	case list := <-f.door.more:
		return list, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *follower) Close() {
	f.door.mu.Lock()
	defer f.door.mu.Unlock()
	f.door.open--
}

// agents has one agent.
type agents struct{}

var coder = parley.Agent{Name: "coder", Description: "writes code", Model: "demo", Tools: []string{"read_file"},
	Instructions: "Be brief.", IdlePrompt: "Look around."}

func (agents) Agent(_ parley.TenantID, name string) (parley.Agent, error) {
	if name != "" && name != "coder" {
		return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There is no agent %q.", name)
	}
	return coder, nil
}

func (a agents) Of(string) port.Agents { return a }

func (agents) List(parley.TenantID) []parley.Agent { return []parley.Agent{coder} }

func handler(d *door) *Handler {
	return &Handler{Door: d, Agents: agents{}, Log: slog.New(slog.DiscardHandler), Guard: guard{}, Credentials: office{},
		Servers: servers{}, Access: rules{}, Webhooks: hooks{}, Keys: keys{}}
}

// hooks and keys implement the routes that accept an empty body.
type hooks struct{ Webhooks }

func (hooks) TryWebhook(context.Context, port.Principal, parley.SessionID, string) (port.WebhookTrial, error) {
	return port.WebhookTrial{}, nil
}

type keys struct{ ModelKeys }

func (keys) Try(context.Context, port.Principal, string, string, string) (port.ModelKeyTrial, error) {
	return port.ModelKeyTrial{}, nil
}

// rules permit everything, except that reader may only read.
type rules struct{}

func (rules) Permit(who port.Principal, action parley.Action, _ port.Resource) error {
	if who.ID == "reader" && action != parley.ActRead {
		return parley.Errorf(parley.CodeForbidden, "You may not do this: it needs %s.", action)
	}
	return nil
}

// guard admits every request except those with the header X-Nobody.
type guard struct{}

func (guard) Who(r *http.Request) (port.Principal, error) {
	if r.Header.Get("X-Nobody") != "" {
		return port.Principal{}, parley.Errorf(parley.CodeForbidden, "Who are you?")
	}
	return port.Principal{ID: parley.PrincipalID(cmp.Or(r.Header.Get("X-User"), "ann")), Tenant: "acme"}, nil
}

func (g guard) Enter(r *http.Request, _ string) (port.Visit, error) {
	who, err := g.Who(r)
	return port.Visit{Who: who, Watch: context.WithCancel, Message: func() error { return nil }, Leave: func() {}},
		err
}

// office issues tickets that name the user and the agent, and stores nothing.
type office struct{}

func (office) Ticket(r *http.Request, wanted func() (string, error)) (string, time.Time, error) {
	who, err := guard{}.Who(r)
	if err != nil {
		return "", time.Time{}, err
	}
	agent, err := wanted()
	return fmt.Sprintf("for %s to %s", who.ID, agent), dialecttest.Begin, err
}

func (office) Revoke(_ context.Context, _ port.Principal, who parley.PrincipalID) ([]parley.UserRole, error) {
	if who == "ghost" {
		return nil, parley.Errorf(parley.CodeUnavailable, "Not now.")
	}
	return nil, nil
}

// May permits everything except to the user clumsy.
func (d *door) May(_ context.Context, who port.Principal, action parley.Action, _ port.Resource) error {
	if who.ID == "clumsy" {
		return parley.Errorf(parley.CodeForbidden, "You may not do this: it needs %s.", action)
	}
	return nil
}

// Audited returns a record with the values of the query.
func (d *door) Audited(_ context.Context, who port.Principal, q port.AuditQuery) ([]port.AuditRow, error) {
	if err := d.May(context.Background(), who, parley.ActReadAudit, port.Resource{}); err != nil {
		return nil, err
	}
	return []port.AuditRow{{Tenant: who.Tenant, No: int64(q.Limit),
		Audit: parley.Audit{At: dialecttest.Begin, By: q.By, Action: q.Action,
			Resource: q.Resource, Source: q.Source,
			Metadata: parley.Metadata(map[string]any{"after": q.After, "before": q.Before})}, Hash: "h"}}, nil
}

func mux(d *door) *http.ServeMux {
	m := http.NewServeMux()
	for pattern, h := range handler(d).Routes() {
		m.Handle(pattern, h)
	}
	return m
}

// serve starts a server. At the end of the test, it checks that all followers
// were closed.
func serve(t *testing.T, d *door) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(mux(d))
	t.Cleanup(func() {
		srv.Close() // waits for the handlers
		if d.open != 0 {
			t.Errorf("%d followers were not closed", d.open)
		}
	})
	return srv
}

// ask sends a request without a network. Headers are given as "Name: value".
func ask(d *door, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if method == "POST" || method == "PATCH" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	mux(d).ServeHTTP(w, r)
	return w
}

// get sends a request to a server and returns the open response.
func get(t *testing.T, srv *httptest.Server, path string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// failure decodes the error in an answer.
func failure(t *testing.T, body io.Reader) (code parley.Code, message string) {
	t.Helper()
	var answer struct {
		Error struct {
			Code    parley.Code
			Message string
		}
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		t.Fatal("the error is not JSON: ", err)
	}
	return answer.Error.Code, answer.Error.Message
}

// wholeLog returns a log of a transcript that starts at seq 1.
func wholeLog(t *testing.T) []parley.Event {
	t.Helper()
	for _, log := range dialecttest.Logs(t) {
		if log[0].Seq == 1 {
			return log
		}
	}
	t.Fatal("there is none")
	return nil
}

const logPath = "/api/v1/sessions/" + string(dialecttest.Session) + "/log"

// Project finds two projects.
func (d *door) Project(_ parley.TenantID, name string) (port.Project, error) {
	return projectAt(name)
}

func (d *door) Projects(context.Context, port.Principal) ([]port.Project, error) {
	return []port.Project{port.NewProject("/p", "first"), port.NewProject("/q", "second")}, d.refusal
}

func projectAt(name string) (port.Project, error) {
	for _, p := range []port.Project{port.NewProject("/p", "first"), port.NewProject("/q", "second")} {
		if p.First = p.Root == "/p"; name == "" || p.Is(name) {
			return p, nil
		}
	}
	return port.Project{}, parley.Errorf(parley.CodeInvalid, "There is no project %q; there are: /p, /q.", name)
}

// Erase erases nothing.
func (d *door) Erase(_ context.Context, _ port.Principal, user parley.PrincipalID) (port.ErasureReport, error) {
	return port.ErasureReport{User: user}, nil
}

func (d *door) Retain(_ context.Context, _ port.Principal, dry bool) (port.RetentionReport, error) {
	return port.RetentionReport{DryRun: dry}, nil
}

func (d *door) LegalHolds(context.Context, port.Principal) (port.LegalHolds, error) {
	return nil, nil
}

func (d *door) Hold(_ context.Context, _ port.Principal, change port.HoldChange) (port.LegalHold, error) {
	return change.LegalHold, nil
}
