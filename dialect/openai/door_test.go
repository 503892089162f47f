package openai

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

// door is a door to one session with a prepared log. A message to any other session is accepted, and stays the only
// event there.
type door struct {
	port.Door
	log []parley.Event
	did []parley.CommandBody
}

func (*door) May(context.Context, port.Principal, parley.Action, port.Resource) error { return nil }

func (*door) Project(parley.TenantID, string) (port.Project, error) { return port.Project{}, nil }

func (d *door) Session(_ context.Context, _ port.Principal, id parley.SessionID) (port.Summary, error) {
	if len(d.log) == 0 || id != d.log[0].Session {
		return port.Summary{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	m := port.Summary{ID: id, Root: id, Head: d.log[len(d.log)-1].Seq, Status: parley.StatusWaiting}
	for _, e := range d.log {
		switch e.Body.(type) {
		case parley.RunStarted:
			m.Run = e.Run
		case parley.RunFinished:
			m.Run, m.Status = 0, parley.StatusIdle
		}
	}
	return m, nil
}

func (d *door) Submit(_ context.Context, _ port.Principal, c parley.Command) (port.Receipt, error) {
	d.did = append(d.did, c.Do)
	return port.Receipt{Session: c.Session, First: 1, Last: 1}, nil
}

func (d *door) Follow(_ context.Context, _ port.Principal, in port.Scope, from port.Cursor) (port.Follower,
	error) {
	f := &follower{}
	if len(d.log) == 0 || in.Session != d.log[0].Session {
		body := parley.InputReceived{Content: "hello", Agent: parley.AgentRef{Name: "coder"}}
		f.items = []*port.Item{{Event: parley.Event{Session: in.Session, Seq: 1, At: dialecttest.Begin, Body: body}}}
		return f, nil
	}
	for _, e := range d.log {
		if int64(e.Seq) > from.After {
			f.items = append(f.items, &port.Item{Event: e})
		}
	}
	return f, nil
}

// follower returns the existing events and does not wait for more.
type follower struct{ items []*port.Item }

func (f *follower) Next(ctx context.Context) ([]*port.Item, error) { return f.Take(ctx, nil) }

func (f *follower) Take(context.Context, func()) (items []*port.Item, _ error) {
	items, f.items = f.items, nil
	return items, nil
}

func (*follower) Close() {}

type guard struct{}

func (g guard) Who(r *http.Request) (port.Principal, error) {
	who, _, err := g.Begin(r, "")
	return who, err
}

func (g guard) Enter(r *http.Request, _ string) (port.Visit, error) {
	_, stay, err := g.Begin(r, "")
	if err != nil {
		return port.Visit{}, err
	}
	return stay()
}

func (guard) Begin(r *http.Request, _ string) (port.Principal, func() (port.Visit, error), error) {
	who := port.Principal{ID: "ann", Tenant: "acme"}
	if r.Header.Get("X-Nobody") != "" {
		return who, nil, parley.Errorf(parley.CodeUnauthenticated, "Who are you?")
	}
	return who, func() (port.Visit, error) {
		return port.Visit{Who: who, Watch: context.WithCancel, Leave: func() {}}, nil
	}, nil
}

func handler(d *door) *Handler {
	return &Handler{Door: d, Agents: dialecttest.Agents{"coder"}, Guard: guard{}, Conns: dialect.NewConns(),
		Log: slog.New(slog.DiscardHandler)}
}

func TestSlowBodies(t *testing.T) {
	dialecttest.Bodies(t, func() map[string]http.HandlerFunc { return handler(&door{}).Routes() },
		dialecttest.Body{Path: "/v1/responses", JSON: `{"model":"coder","input":"hello","background":true}`,
			Nobody: "X-Nobody: 1"})
}

// fetch sends a request to the handler.
func fetch(t *testing.T, d *door, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, h := range handler(d).Routes() {
		mux.HandleFunc(pattern, h)
	}
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return w.Code, answer
}

// waitingLog returns a log that ends while two calls of the client's tools wait.
func waitingLog(t *testing.T) []parley.Event {
	t.Helper()
	for _, log := range dialecttest.Logs(t) {
		for i, e := range log {
			if b, ok := e.Body.(parley.ToolCallFinished); ok && b.Name == "get_weather" {
				return log[:i]
			}
		}
	}
	t.Fatal("no transcript has calls of get_weather")
	return nil
}

// TestAnswersAreWhole: a request must answer everything that the last response has ended for, and nothing else. A
// refused request submits nothing.
func TestAnswersAreWhole(t *testing.T) {
	log := waitingLog(t)
	const session = "550e8400e29b41d4a716446655440000"
	output := func(call string) string {
		return `{"type":"function_call_output","call_id":"call_` + session + "_" + call + `","output":"sunny"}`
	}
	say := `{"role":"user","content":"hurry"}`
	for _, c := range []struct {
		input  string
		status int
		param  any
		did    int
	}{
		{output("9") + "," + output("10"), 200, nil, 2},
		{output("10") + "," + output("9") + "," + say, 200, nil, 3}, // the message steers the run
		{output("9"), 400, "input[0]", 0},
		{output("9") + "," + output("9"), 409, "input[1]", 0},
		{output("9") + "," + output("10") + "," + output("11"), 409, "input[2]", 0}, // call 11 is the server's own
		{strings.ReplaceAll(output("9"), "550e", "550f"), 404, "input[0]", 0},
		{strings.ReplaceAll(output("9"), "_9", "_09"), 409, "input[0]", 0}, // not an id of this server
		{`{"type":"mcp_approval_response","approval_request_id":"mcpr_x","approve":true}`, 409, "input[0]", 0},
		{say, 409, nil, 0},
		{strings.Replace(output("9"), `"output":"sunny"`, `"output":null`, 1) + "," + output("10"), 400,
			"input[0].output", 0},
		{strings.Replace(output("9"), `,"output":"sunny"`, "", 1) + "," + output("10"), 400, "input[0].output", 0},
		{strings.Replace(output("9"), "sunny", "", 1) + "," + output("10"), 200, nil, 2}, // a result may be empty
		{output("9") + "," + strings.Replace(output("10"), "sunny", strings.Repeat("x", parley.MaxResult+1), 1), 400,
			"input[0]", 0},
	} {
		d := &door{log: log}
		body := `{"model":"coder","background":true,"metadata":{"session_id":"550e8400-e29b-41d4-a716-446655440000"},` +
			`"input":[` + c.input + `]}`
		if strings.Contains(c.input, "550f") {
			body = strings.Replace(body, `"metadata":{"session_id":"550e8400-e29b-41d4-a716-446655440000"},`, "", 1)
		}
		status, answer := fetch(t, d, "POST", "/v1/responses", body)
		refused, _ := answer["error"].(map[string]any)
		if status != c.status || len(d.did) != c.did || refused["param"] != c.param {
			t.Errorf("%s: %d %v, and %d commands", c.input, status, answer, len(d.did))
		}
		if id := "resp_" + session + "_2_1"; status == 200 && answer["id"] != id {
			t.Errorf("the next response is %v, not %s", answer["id"], id)
		}
	}
}

// TestAnswersForAnAgentThatDoesNotExist: requests with answers name an agent, too. If it does not exist, nothing is
// submitted.
func TestAnswersForAnAgentThatDoesNotExist(t *testing.T) {
	d := &door{log: waitingLog(t)}
	output := func(call string) string {
		return `{"type":"function_call_output","call_id":"call_550e8400e29b41d4a716446655440000_` + call +
			`","output":"sunny"}`
	}
	status, answer := fetch(t, d, "POST", "/v1/responses", `{"model":"nobody","background":true,"input":[`+
		output("9")+","+output("10")+`]}`)
	refused, _ := answer["error"].(map[string]any)
	if status != 404 || len(d.did) != 0 || refused["param"] != "model" {
		t.Errorf("%d %v, and %d commands", status, answer, len(d.did))
	}
}

// TestOneLimitForMessages: a request may have as many earlier messages as an input.
func TestOneLimitForMessages(t *testing.T) {
	for n, want := range map[int]bool{parley.MaxEarlier: true, parley.MaxEarlier + 1: false} {
		one := `,{"role":"user","content":"x"},{"role":"assistant","content":"y"}`
		messages := strings.Repeat(one, n/2)[1:] + `,{"role":"user","content":"x"}`
		if n%2 == 0 {
			messages = `{"role":"system","content":"x"}` + strings.Repeat(one, n/2-1) + `,{"role":"user","content":"x"}`
		}
		o, err := dialect.ParseObject([]byte(`{"model":"coder","messages":[` + messages + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		a, err := decodeChat(o, "")
		if (err == nil) != want {
			t.Errorf("%d messages: %v", n, err)
		}
		if in, bad := a.input(a.entries); err == nil && (bad != nil || len(in.Earlier) != n-1 ||
			in.Rules().Wrong != nil) {
			t.Errorf("%d messages come to %d earlier ones: %v, %v", n, len(in.Earlier), bad, in.Rules().Wrong)
		}
	}
}

// TestWithdrawnInputsAreCancelledResponses: an input that was withdrawn before its run started is a cancelled response.
func TestWithdrawnInputsAreCancelledResponses(t *testing.T) {
	for _, log := range dialecttest.Sessions(t) {
		for _, e := range log {
			b, ok := e.Body.(parley.InputWithdrawn)
			if !ok || b.Reason != parley.WithdrawnByRequest {
				continue
			}
			id := responseID{session: e.Session, input: b.Input}.String()
			status, answer := fetch(t, &door{log: log}, "GET", "/v1/responses/"+id, "")
			if status != 200 || answer["status"] != "cancelled" || answer["model"] == "" {
				t.Errorf("%d %v", status, answer)
			}
			return
		}
	}
	t.Error("no transcript has such an input")
}
