package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/dialect"
	"parley/dialect/eventbus"
	"parley/dialect/native"
	"parley/server"
)

const testSecret = "a secret of more than thirty-two bytes"

// A cell of the matrix is the expected answer for one route, role and object.
type cell string

const (
	ok        cell = "ok"
	forbidden cell = "forbidden"
	absent    cell = "absent"
)

// A rule says which permission a route needs, and for which object. Every route has one.
type rule struct {
	needs  parley.Action // empty: not even a credential
	on     string        // the kind of object that {id} names: session, card, response, agent, user; empty: no {id}
	query  string        // appended to the path; {id} is replaced here and in the body, too
	body   string
	ok     int  // the status of success
	tenant bool // concerns the whole tenant, so it needs a role that can see all sessions
	// owner: the server's role must own the tables. On PostgreSQL the tests' role does not.
	owner bool
	// rare: the server limits how often this is allowed. It checks the limit after the role.
	rare bool
}

// routeRules is the table of all routes. A route that is missing here fails the test.
var routeRules = map[string]rule{
	"GET /healthz":    {ok: 200},
	"GET /readyz":     {ok: 200},
	"GET /api/health": {ok: 200},
	"GET /{$}":        {ok: 200},

	"GET /auth/options":  {ok: 200},
	"GET /auth/login":    {ok: 404}, // no provider for sign-in is configured
	"GET /auth/callback": {ok: 404},
	"POST /auth/session": {ok: 403, body: `{}`}, // the request does not come from a page of the server
	"POST /auth/logout":  {ok: 403, body: `{}`},

	"GET /api/openapi.json":  {ok: 200},
	"GET /api/asyncapi.json": {ok: 200},

	"GET /api/v1/me":          {needs: "a token", ok: 200},
	"GET /api/v1/projects":    {needs: parley.ActRead, ok: 200},
	"GET /api/v1/agents":      {needs: parley.ActRead, ok: 200},
	"GET /api/v1/agents/{id}": {needs: parley.ActRead, on: "agent", ok: 200},
	"POST /api/v1/agents": {needs: parley.ActAdmin, body: `{"name":"made","instructions":"Help."}`,
		ok: 201},
	"DELETE /api/v1/agents/{id}":         {needs: parley.ActAdmin, on: "made agent", ok: 200},
	"GET /api/v1/skills":                 {needs: parley.ActRead, ok: 200},
	"GET /api/v1/models":                 {needs: parley.ActRead, ok: 200},
	"GET /api/v1/sessions":               {needs: parley.ActRead, ok: 200},
	"GET /api/v1/search":                 {needs: parley.ActRead, query: "?q=input", ok: 200},
	"POST /api/v1/sessions":              {needs: parley.ActMessage, body: `{}`, ok: 201},
	"GET /api/v1/sessions/{id}":          {needs: parley.ActRead, on: "session", ok: 200},
	"PATCH /api/v1/sessions/{id}":        {needs: parley.ActMessage, on: "session", body: `{"title":"x"}`, ok: 200},
	"PUT /api/v1/sessions/{id}/marks":    {needs: parley.ActRead, on: "session", body: `{"pinned":true}`, ok: 200},
	"DELETE /api/v1/sessions/{id}":       {needs: parley.ActMessage, on: "session", ok: 202},
	"POST /api/v1/sessions/{id}/fork":    {needs: parley.ActMessage, on: "session", body: `{}`, ok: 201},
	"POST /api/v1/sessions/{id}/inputs":  {needs: parley.ActMessage, on: "session", body: `{"content":"hi"}`, ok: 202},
	"GET /api/v1/sessions/{id}/branches": {needs: parley.ActRead, on: "session", ok: 200},
	// no run is open
	"POST /api/v1/sessions/{id}/cancel": {needs: parley.ActMessage, on: "session", body: `{}`, ok: 404},
	"POST /api/v1/sessions/{id}/halt":   {needs: parley.ActAdmin, on: "session", body: `{}`, ok: 202},
	// the session has no messages
	"POST /api/v1/sessions/{id}/compact": {needs: parley.ActMessage, on: "session", body: `{}`, ok: 400},
	"POST /api/v1/sessions/{id}/reopen":  {needs: parley.ActAdmin, on: "session", body: `{}`, ok: 202},
	// no input waits
	"DELETE /api/v1/inputs/{id}": {needs: parley.ActMessage, on: "card", ok: 410},
	// no card is open
	"POST /api/v1/approvals/{id}":      {needs: parley.ActMessage, on: "card", body: `{"decision":"allow"}`, ok: 410},
	"POST /api/v1/questions/{id}":      {needs: parley.ActMessage, on: "card", body: `{"answers":[]}`, ok: 410},
	"POST /api/v1/calls/{id}":          {needs: parley.ActMessage, on: "card", body: `{"resolution":"rerun"}`, ok: 410},
	"GET /api/v1/sessions/{id}/log":    {needs: parley.ActRead, on: "session", ok: 200},
	"GET /api/v1/sessions/{id}/export": {needs: parley.ActRead, on: "session", ok: 200},
	"GET /api/v1/log":                  {needs: parley.ActRead, tenant: true, ok: 200},
	"GET /api/v1/audit/events":         {needs: parley.ActReadAudit, ok: 200},
	"POST /api/v1/tickets":             {needs: "a token", body: `{}`, ok: 201},
	"GET /api/v1/users":                {needs: parley.ActReadUsers, ok: 200},
	"GET /api/v1/retention":            {needs: parley.ActWriteUsers, tenant: true, ok: 200},
	"POST /api/v1/retention":           {needs: parley.ActWriteUsers, tenant: true, body: `{}`, ok: 200},
	"GET /api/v1/holds":                {needs: parley.ActWriteUsers, tenant: true, ok: 200},
	"POST /api/v1/holds": {needs: parley.ActWriteUsers, tenant: true, body: `{"kind":"user","id":"zoe","reason":"x"}`,
		ok: 200},
	"POST /api/v1/users/{id}/erase": {needs: parley.ActWriteUsers, on: "user", body: `{}`, ok: 200, tenant: true, owner: true,
		rare: true},
	"POST /api/v1/users/{id}/revoke": {needs: parley.ActWriteUsers, on: "user", body: `{}`, ok: 200},
	"GET /api/v1/runs":               {needs: parley.ActRead, ok: 200},
	"GET /api/v1/runs/{id}":          {needs: parley.ActRead, on: "card", ok: 404}, // there was no run
	"POST /api/v1/runs/{id}/cancel":  {needs: parley.ActMessage, on: "card", body: `{}`, ok: 404},
	// there was no run
	"POST /api/v1/runs/{id}/undo":                {needs: parley.ActMessage, on: "card", body: `{}`, ok: 404},
	"GET /api/v1/runs/{id}/turns/{turn}/request": {needs: parley.ActRead, on: "card", ok: 404},
	"GET /api/v1/timers":                         {needs: parley.ActRead, ok: 200},
	"GET /api/v1/timers/{id}":                    {needs: parley.ActRead, on: "card", ok: 404}, // no timer was set
	"DELETE /api/v1/timers/{id}":                 {needs: parley.ActMessage, on: "card", ok: 404},
	"GET /api/v1/effects":                        {needs: parley.ActRead, ok: 200},
	"GET /api/v1/effects/{id}":                   {needs: parley.ActRead, on: "card", ok: 404},
	"GET /api/v1/approvals":                      {needs: parley.ActRead, ok: 200},
	"GET /api/v1/questions":                      {needs: parley.ActRead, ok: 200},
	"GET /api/v1/calls":                          {needs: parley.ActRead, ok: 200},
	"GET /api/v1/plans":                          {needs: parley.ActRead, ok: 200},
	"POST /api/v1/agents/{id}/start":             {needs: parley.ActAdmin, on: "spare agent", body: `{}`, ok: 200},
	"POST /api/v1/agents/{id}/stop":              {needs: parley.ActAdmin, on: "spare agent", body: `{}`, ok: 200},
	// all checks happen before the upgrade
	"GET /api/v1/agents/{id}/ws":       {needs: parley.ActMessage, on: "agent", ok: 426},
	"POST /api/v1/agents/{id}/message": {needs: parley.ActMessage, on: "agent", body: `{"content":"say hi"}`, ok: 200},
	"POST /api/v1/agents/{id}/stream":  {needs: parley.ActMessage, on: "agent", body: `{"content":"say hi"}`, ok: 200},
	"POST /api/v1/agents/{id}/context": {needs: parley.ActMessage, on: "agent", body: `{"context":"x"}`, ok: 200},
	"GET /api/v1/sessions/{id}/plan":   {needs: parley.ActRead, on: "session", ok: 404}, // the session has no plan
	"POST /api/v1/sessions/{id}/plan": {needs: parley.ActMessage, on: "session", body: `{"decision":"approve"}`,
		ok: 404},

	"GET /api/v1/sessions/{id}/grants":            {needs: parley.ActRead, on: "session", ok: 200},
	"DELETE /api/v1/sessions/{id}/grants/{grant}": {needs: parley.ActMessage, on: "session", ok: 404}, // no such grant

	// the session has no webhook; the URL of a webhook may hold a secret
	"GET /api/v1/sessions/{id}/webhook": {needs: parley.ActMessage, on: "session", ok: 404},
	"PUT /api/v1/sessions/{id}/webhook": {needs: parley.ActMessage, on: "session",
		body: `{"url":"https://hooks.example.com/x"}`, ok: 200},
	"DELETE /api/v1/sessions/{id}/webhook":    {needs: parley.ActMessage, on: "session", ok: 404},
	"POST /api/v1/sessions/{id}/webhook/test": {needs: parley.ActMessage, on: "session", body: `{}`, ok: 404},
	"GET /api/v1/sessions/{id}/servers":       {needs: parley.ActRead, on: "session", ok: 200},
	"PUT /api/v1/sessions/{id}/servers":       {needs: parley.ActMessage, on: "session", body: `{"off":["notes"]}`, ok: 202},
	"GET /api/v1/webhooks":                    {needs: parley.ActMessage, ok: 200},

	"GET /api/events":      {needs: parley.ActRead, ok: 200},
	"GET /api/history":     {needs: parley.ActRead, on: "session", query: "?session_id={id}", ok: 200},
	"POST /api/chat":       {needs: parley.ActMessage, body: `{"message":"say hi"}`, ok: 200},
	"POST /api/chat/clear": {needs: parley.ActMessage, on: "session", body: `{"session_id":"{id}"}`, ok: 200},
	"GET /api/agent-runs":  {needs: parley.ActRead, on: "session", query: "?session_id={id}", ok: 200},
	// there was no run
	"GET /api/agent-children": {needs: parley.ActRead, on: "session", query: "?run_id=run-{id}-9", ok: 404},
	"GET /api/agent-context":  {needs: parley.ActRead, on: "session", query: "?run_id=run-{id}-9", ok: 404},
	// no such run, so nothing is cancelled
	"POST /api/agent-cancel": {needs: parley.ActMessage, body: `{"run_id":"none"}`, ok: 200},
	// there is no such question
	"POST /api/ask-user-response": {needs: parley.ActMessage, body: `{"question_id":"none","answers":[]}`, ok: 404},
	"POST /api/plan/approve":      {needs: parley.ActMessage, body: `{"session_id":"there is none"}`, ok: 404},
	"POST /api/plan/reject":       {needs: parley.ActMessage, body: `{"session_id":"there is none"}`, ok: 404},
	"POST /api/plan/edit": {needs: parley.ActMessage, body: `{"session_id":"there is none","text":"x"}`,
		ok: 404},
	"GET /api/settings":       {needs: parley.ActRead, ok: 200},
	"POST /api/settings":      {needs: parley.ActSettings, body: `{}`, ok: 200},
	"GET /api/config":         {needs: parley.ActRead, ok: 200},
	"POST /api/config":        {needs: parley.ActSettings, body: `{}`, ok: 200},
	"GET /api/mission":        {needs: parley.ActRead, ok: 200},
	"POST /api/mission":       {needs: parley.ActAdmin, body: `{"text":"x"}`, ok: 200},
	"DELETE /api/mission":     {needs: parley.ActAdmin, ok: 200},
	"GET /api/missions":       {needs: parley.ActRead, ok: 200},
	"GET /api/agent-override": {needs: parley.ActRead, on: "agent", query: "?agent_id={id}", ok: 200},
	"POST /api/agent-override": {needs: parley.ActAdmin, on: "agent",
		body: `{"agent_id":"{id}","idle_interval_secs":60}`, ok: 200},
	"GET /api/models":         {needs: parley.ActRead, ok: 200},
	"GET /api/workspace/tree": {needs: parley.ActRead, ok: 200},
	"GET /api/files":          {needs: parley.ActRead, ok: 200},
	"GET /api/file":           {needs: parley.ActRead, ok: 400}, // the parameter path is missing
	"GET /api/v1/missions":    {needs: parley.ActRead, ok: 200},
	"POST /api/v1/missions":   {needs: parley.ActAdmin, body: `{"text":"x"}`, ok: 201},
	"DELETE /api/v1/missions": {needs: parley.ActAdmin, ok: 200},

	"GET /api/v1/agents/{id}/override": {needs: parley.ActRead, on: "agent", ok: 200},
	"POST /api/v1/agents/{id}/override": {needs: parley.ActAdmin, on: "agent", body: `{"idle_interval_secs":60}`,
		ok: 200},

	// allowed only in local mode
	"GET /api/v1/model-keys":            {needs: "a token", ok: 403},
	"PUT /api/v1/model-keys/{id}":       {needs: "a token", on: "user", body: `{"key":"x"}`, ok: 403},
	"DELETE /api/v1/model-keys/{id}":    {needs: "a token", on: "user", ok: 403},
	"POST /api/v1/model-keys/{id}/test": {needs: "a token", on: "user", body: `{}`, ok: 403},

	"GET /api/v1/settings":   {needs: parley.ActRead, ok: 200},
	"PATCH /api/v1/settings": {needs: parley.ActSettings, body: `{"turns":7}`, ok: 200},

	"GET /api/v1/mcp":   {needs: parley.ActRead, ok: 200},
	"GET /api/v1/nodes": {needs: parley.ActAdmin, ok: 200},
	"GET /api/v1/usage": {needs: parley.ActRead, ok: 200},
	// there is no such server
	"POST /api/v1/mcp/{id}/accept": {needs: parley.ActAdmin, on: "user", body: `{"tools":{}}`, ok: 404},

	// the body has neither a command nor a URL; there is no such server
	"PUT /api/v1/mcp/{id}":       {needs: parley.ActSettings, on: "user", body: `{}`, ok: 400},
	"DELETE /api/v1/mcp/{id}":    {needs: parley.ActSettings, on: "user", ok: 404},
	"POST /api/v1/mcp/{id}/test": {needs: parley.ActSettings, on: "user", body: `{}`, ok: 400},

	"GET /.well-known/agent-card.json":          {needs: parley.ActRead, ok: 200},
	"GET /a2a/{id}/.well-known/agent-card.json": {needs: parley.ActRead, on: "agent", ok: 200},
	"POST /a2a/{id}":                            {needs: parley.ActMessage, on: "agent", body: a2aMessage, ok: 200},
	"POST /a2a/{id}/{$}":                        {needs: parley.ActMessage, on: "agent", body: a2aMessage, ok: 200},

	// the header Accept is missing; some tools need more permissions
	"GET /mcp":            {needs: parley.ActRead, ok: 400},
	"POST /mcp":           {needs: parley.ActRead, body: `{}`, ok: 400},
	"DELETE /mcp":         {needs: parley.ActRead, ok: 400},
	"GET /v1/models":      {needs: parley.ActRead, ok: 200},
	"GET /v1/models/{id}": {needs: parley.ActRead, on: "agent", ok: 200},
	"POST /v1/chat/completions": {needs: parley.ActMessage, ok: 200,
		body: `{"model":"helpful-assistant","messages":[{"role":"user","content":"say hi"}]}`},
	"POST /v1/responses":                 {needs: parley.ActMessage, body: `{"model":"helpful-assistant","input":"say hi"}`, ok: 200},
	"GET /v1/responses/{id}":             {needs: parley.ActRead, on: "response", ok: 200},
	"GET /v1/responses/{id}/input_items": {needs: parley.ActRead, on: "response", ok: 200},
	"DELETE /v1/responses/{id}":          {needs: parley.ActMessage, on: "response", ok: 200},
	// the response is already complete
	"POST /v1/responses/{id}/cancel": {needs: parley.ActMessage, on: "response", body: `{}`, ok: 400},
	"POST /api/agui/{id}": {needs: parley.ActMessage, on: "agent", ok: 200,
		body: `{"threadId":"a thread","runId":"r","messages":[{"id":"m","role":"user","content":"say hi"}]}`},
	"GET /api/agui/threads/{id}/stream": {needs: parley.ActRead, on: "session", ok: 200},
	"POST /api/agui/threads/{id}/stop":  {needs: parley.ActMessage, on: "session", body: `{}`, ok: 200},

	"POST /api/aisdk/{id}": {needs: parley.ActMessage, on: "agent", ok: 200,
		body: `{"id":"a chat","messages":[{"role":"user","parts":[{"type":"text","text":"say hi"}]}]}`},
	"GET /api/aisdk/{agent}/{id}/stream": {needs: parley.ActRead, on: "session", ok: 204}, // no run is open
	"GET /api/aisdk/chats/{id}/stream":   {needs: parley.ActRead, on: "session", ok: 204},
	"POST /api/aisdk/chats/{id}/stop":    {needs: parley.ActMessage, on: "session", body: `{}`, ok: 200},

	"GET /api/chat/ws": {needs: parley.ActMessage, on: "thread"},
	"GET /ws":          {needs: parley.ActRead, on: "frames"}, // frames that clients send need more permissions

	"GET /api/agentloop/ws": {needs: parley.ActRead, on: "frames"}, // the same
}

const a2aMessage = `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m","role":"user",` +
	`"parts":[{"kind":"text","text":"say hi"}]}}}`

// permissions is the table of the design, repeated independently.
var permissions = map[string][]parley.Action{
	"org_admin": {parley.ActRead, parley.ActMessage, parley.ActAdmin, parley.ActSettings, parley.ActReadAudit,
		parley.ActReadUsers, parley.ActWriteUsers, parley.ActReadDepartments, "a token"},
	"dept_head": {parley.ActRead, parley.ActMessage, parley.ActAdmin, parley.ActReadAudit, parley.ActReadUsers,
		parley.ActWriteUsers, parley.ActReadDepartments, "a token"},
	"standard_user": {parley.ActRead, parley.ActMessage, "a token"},
	"read_only":     {parley.ActRead, "a token"},
	"king":          {"a token"}, // an unknown role
}

// expected is the cell that a rule demands for a role and an object.
func (r rule) expected(role, whose string) cell {
	switch {
	case !slices.Contains(permissions[role], r.needs):
		return forbidden
	case r.tenant && role != "org_admin":
		return forbidden
	case r.on == "session" || r.on == "card" || r.on == "thread" || r.on == "response":
		if whose == "another tenant's" || whose == "another's" && role != "org_admin" {
			return absent
		}
	case (r.on == "agent" || r.on == "spare agent" || r.on == "made agent") && whose == "another tenant's":
		return absent
	}
	return ok
}

// TestEveryRouteForEveryRole uses every route of the server as every role, on the
// user's own objects, another user's and another tenant's. No answer may contain
// data of another tenant, and the server's log may not, either.
func TestEveryRouteForEveryRole(t *testing.T) {
	r := newRoutes(handlerDeps{conns: dialect.NewConns()}, &eventbus.Handler{}, &native.Handler{})
	web := server.New(nil, slog.New(slog.DiscardHandler), server.Options{Routes: r.handlers})
	for _, pattern := range web.Patterns() {
		if _, ok := routeRules[pattern]; !ok {
			t.Errorf("%s has no rule: nobody has said who may use it", pattern)
		}
	}

	onBoth(t, func(t *testing.T, store []string) {
		w := newWorld(t, store)
		for pattern, r := range routeRules {
			method, path, _ := strings.Cut(pattern, " ")
			path = strings.ReplaceAll(path, "{$}", "")
			if r.needs == "" {
				if status, _ := w.ask(method, path, "", r.body); status != r.ok {
					t.Errorf("%s without a credential: %d", pattern, status)
				}
				continue
			}
			if r.on == "thread" || r.on == "frames" {
				continue // tested below
			}
			for _, bad := range []string{"", "Bearer x", "Bearer " + token(t, "acme", "ann", time.Minute, "org_admin") +
				"x"} {
				if status, body := w.askAbout(r, method, path, w.object(r.on, "her own"),
					bad); status != http.StatusUnauthorized {
					t.Errorf("%s with %.10q: %d %s", pattern, bad, status, body)
				}
			}
			for role := range permissions {
				for _, whose := range []string{"her own", "another's", "another tenant's"} {
					if r.on == "" && whose != "her own" {
						continue
					}
					want := r.expected(role, whose)
					if r.owner && want == ok && slices.Contains(store, "--database-url") {
						want = forbidden
					}
					auth := "Bearer " + token(t, "acme", "ann", time.Minute, role)
					status, body := w.askAbout(r, method, path, w.object(r.on, whose), auth)
					if got := r.cell(status, body); got != want {
						t.Errorf("%s as %s on %s: %d %s, want %s", pattern, role, whose, status, body, want)
					}
				}
			}
		}
		for role := range permissions {
			for _, whose := range []string{"her own", "another's"} {
				want := routeRules["GET /api/chat/ws"].expected(role, whose)
				if got := w.thread(t, role, w.object("session", whose)); got != want {
					t.Errorf("thread chat as %s on %s: %s, want %s", role, whose, got, want)
				}
				if got := w.postThread(role, w.object("session", whose)); got != want {
					t.Errorf("thread chat by HTTP as %s on %s: %s, want %s", role, whose, got, want)
				}
			}
		}
		w.agentChat()
		w.agentLoop()
		w.broadcast()
		w.keepsSecrets()
	})
}

func (r rule) cell(status int, body string) cell {
	switch {
	case status == r.ok && !strings.Contains(body, "There is no such session."):
		return ok
	case r.rare && status == http.StatusTooManyRequests && strings.Contains(body, "Nothing was erased."):
		return ok
	case status == http.StatusForbidden:
		return forbidden
	case status == http.StatusNotFound:
		return absent
	}
	return cell(fmt.Sprint(status))
}
