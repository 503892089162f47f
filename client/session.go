package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"parley"
	"parley/port"
)

// A SessionQuery filters a list of sessions.
type SessionQuery struct {
	Search    string // in the title
	Project   string // root or id
	Transient bool   // list the sessions of connections, too
	Pinned    bool   // only sessions that the caller has pinned
	// Archived selects archived sessions. The zero value leaves them out.
	Archived port.Archive
	Limit    int // zero: 50
}

// Sessions lists sessions, the most recently changed first.
func (c *Client) Sessions(ctx context.Context, q SessionQuery) ([]port.Summary, error) {
	var answer struct{ Sessions []port.Summary }
	values := query("search", q.Search, "project", q.Project, "archived", string(q.Archived), "limit", number(q.Limit))
	if q.Transient {
		values.Set("transient", "1")
	}
	if q.Pinned {
		values.Set("pinned", "1")
	}
	err := c.do(ctx, request{method: http.MethodGet, path: "/sessions", query: values, answer: &answer})
	return answer.Sessions, err
}

// Session describes one session.
func (c *Client) Session(ctx context.Context, id parley.SessionID) (s port.Summary, err error) {
	return s, c.do(ctx, request{method: http.MethodGet, path: sessionPath(id), answer: &s})
}

// A NewSession describes the session to open. Empty fields stand for the server's choice.
type NewSession struct {
	ID      parley.SessionID `json:"id,omitempty"` // of an existing session, or a new UUID of version 4
	Agent   string           `json:"agent,omitempty"`
	Title   string           `json:"title,omitempty"`
	Project string           `json:"project,omitempty"` // root or id
}

// Open opens a session, or returns the existing session with the id.
func (c *Client) Open(ctx context.Context, n NewSession) (s port.Summary, err error) {
	return s, c.do(ctx, request{method: http.MethodPost, path: "/sessions", body: n, answer: &s})
}

// A Fork describes how to fork a session.
type Fork struct {
	At    parley.Seq `json:"at,omitempty"`    // the last event to copy; default: the last one of the session
	Title string     `json:"title,omitempty"` // default: that of the source
}

// Fork opens a session with the conversation of another one, which does not change.
func (c *Client) Fork(ctx context.Context, id parley.SessionID, f Fork) (s port.Summary, err error) {
	return s, c.do(ctx, request{method: http.MethodPost, path: sessionPath(id) + "/fork", body: f, answer: &s})
}

// Rename changes the title of a session.
func (c *Client) Rename(ctx context.Context, id parley.SessionID, title string) (s port.Summary, err error) {
	return s, c.do(ctx, request{method: http.MethodPatch, path: sessionPath(id), body: fields{"title": title},
		answer: &s})
}

// Delete deletes a session.
func (c *Client) Delete(ctx context.Context, id parley.SessionID) error {
	return c.do(ctx, request{method: http.MethodDelete, path: sessionPath(id)})
}

// Halt ends everything in a session, until Reopen. Both need the right to administer the session.
func (c *Client) Halt(ctx context.Context, id parley.SessionID, reason string) (port.Receipt, error) {
	return c.command(ctx, sessionPath(id)+"/halt", "", fields{"reason": reason})
}

// Reopen reopens a session that was halted.
func (c *Client) Reopen(ctx context.Context, id parley.SessionID) (port.Receipt, error) {
	return c.command(ctx, sessionPath(id)+"/reopen", "", fields{})
}

// Compact shortens the model's context of a session. The result appears in the log.
func (c *Client) Compact(ctx context.Context, id parley.SessionID) (port.Receipt, error) {
	return c.command(ctx, sessionPath(id)+"/compact", "", fields{})
}

// An Input is a message to an agent.
type Input struct {
	Content string          `json:"content"`
	Agent   string          `json:"agent,omitempty"`   // default: the agent of the session
	Model   string          `json:"model,omitempty"`   // instead of the agent's; needs the right to change the agent
	Request string          `json:"request,omitempty"` // a name chosen by the caller; events repeat it
	Busy    parley.BusyMode `json:"busy,omitempty"`    // default: parley.Queue
	Mode    parley.RunMode  `json:"mode,omitempty"`    // plan: the agent proposes a plan and changes nothing
	Project string          `json:"project,omitempty"` // must be that of the session
	// Instructions replace those of the agent. They need the right to change the agent.
	Instructions string `json:"instructions,omitempty"`
	// ClientCalls means that the server executes no tools for this input. Every call of the run waits for ReturnResult.
	ClientCalls bool `json:"client_calls,omitempty"`
	// Images are the contents of at most 4 images and documents, together at most 4 MiB: PNG, JPEG, GIF, WebP or PDF.
	Images [][]byte `json:"images,omitempty"`
	// Key is the idempotency key: inputs of a session with the same key and the same content take effect once. Set it
	// to repeat an input in another process. Empty: Submit makes one.
	Key string `json:"-"`
}

// Submit sends an input to a session. The First of the receipt is the seq of its InputReceived. If the answer is lost,
// Submit repeats the request; the input takes effect once.
func (c *Client) Submit(ctx context.Context, id parley.SessionID, in Input) (port.Receipt, error) {
	return c.command(ctx, sessionPath(id)+"/inputs", in.Key, in)
}

// Withdraw withdraws a waiting input, named by its session and the seq of its InputReceived.
func (c *Client) Withdraw(ctx context.Context, id parley.SessionID, input parley.InputID) (r port.Receipt,
	err error) {
	return r, c.do(ctx, request{method: http.MethodDelete, path: "/inputs/" + parley.Ref(id, parley.Seq(input)),
		answer: &r})
}

// Cancel ends the open run of a session.
func (c *Client) Cancel(ctx context.Context, id parley.SessionID) (port.Receipt, error) {
	return c.command(ctx, sessionPath(id)+"/cancel", "", fields{})
}

// CancelRequest ends the run of the input that was submitted with a request name, or withdraws that input.
func (c *Client) CancelRequest(ctx context.Context, id parley.SessionID, name string) (port.Receipt, error) {
	return c.command(ctx, sessionPath(id)+"/cancel", "", fields{"request": name})
}

// Plan returns the last plan of a session.
func (c *Client) Plan(ctx context.Context, id parley.SessionID) (p parley.Plan, err error) {
	return p, c.do(ctx, request{method: http.MethodGet, path: sessionPath(id) + "/plan", answer: &p})
}

// A PlanAnswer decides a waiting plan.
type PlanAnswer struct {
	Decision parley.PlanDecision `json:"decision"`
	Text     string              `json:"text,omitempty"`  // of parley.EditPlan
	Agent    string              `json:"agent,omitempty"` // executes the plan; default: the author of the plan
	Fresh    bool                `json:"fresh,omitempty"` // without the earlier conversation
}

// DecidePlan approves, edits or rejects the plan of a session.
func (c *Client) DecidePlan(ctx context.Context, id parley.SessionID, a PlanAnswer) (port.Receipt, error) {
	return c.command(ctx, sessionPath(id)+"/plan", "", a)
}

// Grants lists the calls that people allowed for the rest of a session, the oldest first.
func (c *Client) Grants(ctx context.Context, id parley.SessionID) ([]parley.GrantInfo, error) {
	var answer struct{ Grants []parley.GrantInfo }
	err := c.do(ctx, request{method: http.MethodGet, path: sessionPath(id) + "/grants", answer: &answer})
	return answer.Grants, err
}

// RevokeGrant revokes a grant.
func (c *Client) RevokeGrant(ctx context.Context, id parley.SessionID, grant string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: sessionPath(id) + "/grants/" + url.PathEscape(grant)})
}

type fields map[string]any

func (c *Client) command(ctx context.Context, path, key string, body any) (r port.Receipt, err error) {
	return r, c.do(ctx, request{method: http.MethodPost, path: path, key: key, body: body, answer: &r})
}

func sessionPath(id parley.SessionID) string { return "/sessions/" + url.PathEscape(string(id)) }

// query returns URL values from pairs of names and values. It leaves out empty values.
func query(pairs ...string) url.Values {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return values
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
