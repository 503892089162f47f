package main

import (
	"bufio"
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"parley"
)

// A tenantUser is an admin of a tenant who uses every route, tool and dialect.
type tenantUser struct {
	*tenancy
	tenant parley.TenantID
	dice   *rand.Rand
}

func (u *tenantUser) mark(place string) string { return u.marks[u.tenant][place] }

func (u *tenantUser) token() string {
	return token(u.t, u.tenant, "boss", 10*time.Minute, "org_admin")
}

// id returns the id of a session of either tenant, or sometimes an unused id.
func (u *tenantUser) id() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.ids) == 0 || u.dice.IntN(10) == 0 {
		return uuid.NewString()
	}
	return u.ids[u.dice.IntN(len(u.ids))]
}

func (u *tenantUser) opened(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ids = append(u.ids, id)
}

// settle reads a file, and creates the tenant's agents if they are not in files:
// one of them may use all tools.
func (u *tenantUser) settle() {
	u.request("GET", "/api/file?path=note.txt", "") // before it is changed
	if u.tenant != home {
		u.request("POST", "/api/v1/agents",
			fmt.Sprintf(`{"name":"worker","description":%q,"instructions":%q,"tools":["*","look__*","house__*"],`+
				`"approval":"full-auto","autonomy":{"enabled":true},"delegates":["worker"]}`,
				u.mark("description"), "Work. "+u.mark("instructions")))
		u.request("POST", "/api/v1/agents", `{"name":"spare","instructions":"Help."}`)
	}
}

// live uses everything once in random order, and then takes random steps.
func (u *tenantUser) live(steps int) {
	var all []func()
	for _, pattern := range u.patterns {
		all = append(all, func() { u.route(pattern) })
	}
	for name := range u.calls() {
		all = append(all, func() { u.call(name) })
	}
	for _, d := range []string{"threadchat", "agentchat", "agentloop", "debugconsole"} {
		all = append(all, func() { u.dialect(d) })
	}
	all = append(all, u.mcp)
	once := slices.Clone(all)
	u.dice.Shuffle(len(once), func(i, j int) { once[i], once[j] = once[j], once[i] })
	for range 3 { // some sessions and runs for the next steps
		u.route("POST /api/v1/sessions")
		u.call("read_file")
	}
	for _, do := range once {
		do()
	}
	for range steps {
		all[u.dice.IntN(len(all))]()
	}
}

// body returns the body of a request. Requests that store something contain marks;
// others are those of the matrix.
func (u *tenantUser) body(pattern, id string) string {
	agent := "made-" + strings.ToLower(cryptorand.Text())
	bodies := map[string]string{
		"POST /api/v1/agents": fmt.Sprintf(
			`{"name":%q,"description":%q,"instructions":%q,"tools":["*","look__*"]}`, agent, u.mark("description"),
			u.mark("instructions")),
		"POST /api/v1/sessions":             fmt.Sprintf(`{"id":%q,"title":%q}`, id, u.mark("title")),
		"PATCH /api/v1/sessions/{id}":       fmt.Sprintf(`{"title":%q}`, u.mark("title")),
		"POST /api/v1/sessions/{id}/inputs": fmt.Sprintf(`{"content":%q,"agent":"worker"}`, u.mark("input")),
		"PUT /api/v1/sessions/{id}/webhook": fmt.Sprintf(`{"url":"https://hooks.invalid/%s"}`, u.mark("webhook")),
		"POST /api/v1/agents/{id}/message":  fmt.Sprintf(`{"content":%q}`, u.mark("input")),
		"POST /api/v1/agents/{id}/stream":   fmt.Sprintf(`{"content":%q}`, u.mark("input")),
		"POST /api/v1/agents/{id}/context":  fmt.Sprintf(`{"context":%q}`, u.mark("context")),
		"POST /api/v1/agents/{id}/override": fmt.Sprintf(`{"idle_prompt":%q,"idle_interval_secs":3600}`,
			u.mark("prompt")),
		"POST /api/agent-override": fmt.Sprintf(`{"agent_id":%q,"idle_prompt":%q,"idle_interval_secs":3600}`,
			id, u.mark("prompt")),
		"POST /a2a/{id}":         strings.ReplaceAll(a2aMessage, "say hi", u.mark("input")),
		"POST /api/v1/missions":  fmt.Sprintf(`{"text":%q}`, u.mark("mission")),
		"POST /api/mission":      fmt.Sprintf(`{"text":%q}`, u.mark("mission")),
		"PATCH /api/v1/settings": fmt.Sprintf(`{"model":"m-%s"}`, u.mark("model")),
		"POST /api/chat": []string{fmt.Sprintf(`{"message":%q,"session_id":%q}`, u.mark("input"), id),
			fmt.Sprintf(`{"message":%q,"threadId":%q}`, u.mark("input"), id)}[u.dice.IntN(2)],
		"POST /api/agui/{id}": fmt.Sprintf(
			`{"threadId":%q,"runId":"r","messages":[{"id":"m","role":"user","content":%q}]}`, u.id(), u.mark("input")),
		"POST /api/aisdk/{id}": fmt.Sprintf(
			`{"id":%q,"messages":[{"role":"user","parts":[{"type":"text","text":%q}]}]}`, u.id(), u.mark("input")),
		"POST /api/v1/questions/{id}": fmt.Sprintf(`{"answers":[[%q]]}`, u.mark("answer")),
		"POST /api/ask-user-response": fmt.Sprintf(`{"question_id":"%s.5","answers":[{"selected":[%q]}]}`, id,
			u.mark("answer")),
		"POST /v1/chat/completions": fmt.Sprintf(`{"model":"worker","messages":[{"role":"user","content":%q}],`+
			`"metadata":{"session_id":%q}}`, u.mark("input"), id),
		"POST /v1/responses": fmt.Sprintf(`{"model":"worker","input":%q,"metadata":{"session_id":%q}}`,
			u.mark("input"), id),
		"POST /api/plan/edit":                  fmt.Sprintf(`{"session_id":%q,"text":%q}`, id, u.mark("plan")),
		"POST /api/v1/mcp/{id}/accept":         `{"tools":{"look__read":"x"}}`,
		"POST /api/v1/sessions/{id}/reopen":    `{}`,
		"DELETE /api/v1/sessions/{id}/webhook": "",
	}
	if body, ok := bodies[pattern]; ok {
		return body
	}
	return strings.ReplaceAll(routeRules[pattern].body, "{id}", id)
}

// route sends a request to a route, about an object of either tenant.
func (u *tenantUser) route(pattern string) {
	method, path, _ := strings.Cut(pattern, " ")
	rule, id := routeRules[pattern], u.id()
	if pattern == "POST /api/v1/sessions" {
		id = uuid.NewString()
		defer u.opened(id)
	}
	in := id
	switch {
	case strings.Contains(path, "/mcp/"):
		in = []string{"look", "house"}[u.dice.IntN(2)]
	case strings.Contains(path, "/users/"):
		in = "carol"
	case strings.HasSuffix(path, "/start") || strings.HasSuffix(path, "/stop") || method == "DELETE" &&
		strings.HasPrefix(path, "/api/v1/agents/"):
		in = "spare"
	case rule.on == "agent" || strings.HasPrefix(path, "/api/v1/agents/"):
		in = "worker"
	case rule.on == "response":
		in = fmt.Sprintf("resp_%s_%d", strings.ReplaceAll(id, "-", ""), 1+u.dice.IntN(4))
	case rule.on == "card":
		in = fmt.Sprintf("%s.%d", id, 1+u.dice.IntN(12))
	}
	path = strings.ReplaceAll(strings.ReplaceAll(path, "{$}", ""), "{id}", in)
	query := strings.ReplaceAll(rule.query, "{id}", in)
	if pattern == "GET /api/v1/search" {
		query = "?q=" + u.mark("input")
	}
	if more := u.query(path); more != "" && query == "" {
		query = more
	}
	u.use(u.tenant, pattern)
	if rule.on == "thread" || rule.on == "frames" || strings.HasSuffix(path, "/ws") {
		u.request(method, path, "") // a plain request; dialect sends the upgrade
		return
	}
	u.request(method, path+query, u.body(pattern, in))
}

// query returns a query for routes that take one.
func (u *tenantUser) query(path string) string {
	one := func(list ...string) string { return list[u.dice.IntN(len(list))] }
	switch path {
	case "/api/file":
		return one("?path=note.txt", "?path=.env", "?path=agents/worker.md", "?path=name-x.txt", "?path=../x")
	case "/api/files":
		return one("", "?path=.", "?path=agents", "?path=skills")
	case "/api/workspace/tree", "/api/mission", "/api/missions", "/api/settings":
		return one("", "?project_root="+u.workspace)
	case "/api/v1/sessions":
		return one("", "?search="+u.mark("title"), "?all=true")
	case "/api/v1/log":
		return "?after=0"
	}
	return ""
}

func (u *tenantUser) request(method, path, body string) {
	ctx, cancel := context.WithTimeout(u.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, u.addr+path, strings.NewReader(body))
	if err != nil {
		u.t.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+u.token())
	if method != "GET" && method != "DELETE" || body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		u.t.Errorf("%s %s: %v", method, path, err)
		return
	}
	defer res.Body.Close()
	var got []byte
	if idle(path) && res.StatusCode == http.StatusOK {
		// The stream may stay silent.
	} else if endless(path) && res.StatusCode == http.StatusOK {
		got = make([]byte, 64<<10) // a part is enough; follow reads the whole stream
		n, _ := res.Body.Read(got)
		got = got[:n]
	} else if got, err = io.ReadAll(res.Body); err != nil {
		u.t.Errorf("%s %s: %v", method, path, err)
	}
	headers, _ := json.Marshal(res.Header)
	u.receive(u.tenant, method+" "+path, slices.Concat(got, []byte("\n"), headers))
}

// follow reads a stream with events of the whole tenant.
func (u *tenantUser) follow(ctx context.Context, path string) {
	r, err := http.NewRequestWithContext(ctx, "GET", u.addr+path, nil)
	if err != nil {
		u.t.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+u.token())
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		if ctx.Err() == nil {
			u.t.Errorf("following %s: %v", path, err)
		}
		return
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		u.receive(u.tenant, "following "+path, line)
		if err != nil {
			return
		}
	}
}

// listen reads the broadcast of agent chat.
func (u *tenantUser) listen(ctx context.Context) {
	c, _, err := websocket.Dial(ctx, strings.Replace(u.addr, "http", "ws", 1)+"/ws?access_token="+u.token(), nil)
	if err != nil {
		if ctx.Err() == nil {
			u.t.Errorf("listening: %v", err)
		}
		return
	}
	defer c.CloseNow()
	for {
		_, frame, err := c.Read(ctx)
		if err != nil {
			return
		}
		u.receive(u.tenant, "listening to /ws", frame)
	}
}

// calls returns arguments for every tool.
func (u *tenantUser) calls() map[string][]string {
	note := filepath.Join(u.workspace, "note.txt")
	calls := map[string][]string{
		"read_file": {`{"path":"note.txt"}`, `{"path":".env"}`, `{"path":"agents/worker.md"}`,
			`{"path":"artifact://` + strings.Repeat("A", 26) + `.txt"}`},
		"list_files": {`{}`, `{"path":"agents"}`}, "find_files": {`{"pattern":"**/*"}`},
		"search_files": {`{"pattern":"."}`, `{"pattern":"KEY","path":"."}`},
		"write_file":   {`{"path":"of-` + string(u.tenant) + `.txt","content":"` + u.mark("input") + `"}`},
		"edit_file":    {`{"path":"note.txt","old_text":"the file","new_text":"the  file"}`},
		"apply_patch": {`{"patch":"*** Begin Patch\n*** Add File: patched-` + string(u.tenant) +
			`.txt\n+` + u.mark("input") + `\n*** End Patch"}`},
		"shell": {`{"command":["cat","note.txt"]}`, `{"command":["bash","-c","ls -a; cat *; cat .env"]}`,
			`{"command":["cat","` + note + `"]}`, `{"command":["git","log","-p"]}`},
		"skill":    {`{"name":"trick"}`},
		"delegate": {`{"agent_id":"worker","task":"tool read_file {\"path\":\"note.txt\"}"}`},
		"ask_user": {`{"questions":[{"question":"` + u.mark("input") +
			`","header":"x","options":[],"multi_select":false}]}`},
		"update_plan":        {`{"items":[{"title":"` + u.mark("plan") + `","status":"pending"}]}`},
		"finalize_task":      {`{"title":"` + u.mark("plan") + `","summary":"x"}`},
		"schedule_follow_up": {`{"delay_seconds":1,"reason":"` + u.mark("input") + `"}`}, "cancel_follow_ups": {`{}`},
	}
	for _, server := range []string{"look", "house"} {
		calls[server+"__read"] = []string{`{"path":"` + note + `"}`, `{"path":"note.txt"}`,
			`{"path":"` + filepath.Join(u.workspace, ".env") + `"}`}
		calls[server+"__list"] = []string{`{"path":"` + u.workspace + `"}`, `{"path":"."}`, `{"path":"/"}`}
		calls[server+"__write"] = []string{`{"path":"` + filepath.Join(u.workspace, "by-"+string(u.tenant)+".txt") +
			`","text":"` + u.mark("input") + `"}`}
		calls[server+"__where"], calls[server+"__environment"] = []string{`{}`}, []string{`{}`}
	}
	return calls
}

// call makes the tenant's agent call a tool.
func (u *tenantUser) call(name string) {
	list := u.calls()[name]
	u.use(u.tenant, "tool "+name)
	u.say(name, list[u.dice.IntN(len(list))], nil)
}

// say opens a session in which the agent calls a tool, and follows it until the run
// ends.
func (u *tenantUser) say(name, arguments string, started func()) {
	id := uuid.NewString()
	u.request("POST", "/api/v1/sessions", fmt.Sprintf(`{"id":%q,"title":%q}`, id, u.mark("title")))
	u.opened(id)
	ctx, cancel := context.WithTimeout(u.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", u.addr+"/api/v1/sessions/"+id+"/log", nil)
	if err != nil {
		u.t.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+u.token())
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		u.t.Error(err)
		return
	}
	defer res.Body.Close()
	input, _ := json.Marshal(map[string]string{"content": "tool " + name + " " + arguments, "agent": "worker"})
	u.request("POST", "/api/v1/sessions/"+id+"/inputs", string(input))
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		u.receive(u.tenant, "the log of a session that calls "+name, []byte(line))
		switch {
		case err != nil:
			u.t.Errorf("%s: the run of %s did not end: %v", u.tenant, name, err)
			return
		case strings.Contains(line, `"type":"ToolOutputAppended"`) && started != nil:
			started()
			started = nil
		case strings.Contains(line, `"type":"QuestionAsked"`) || strings.Contains(line, `"type":"ApprovalRequested"`):
			u.request("POST", "/api/v1/sessions/"+id+"/cancel", `{}`)
		case strings.Contains(line, `"type":"RunFinished"`):
			return
		}
	}
}

// dialect sends a message over a socket, to a session of either tenant.
func (u *tenantUser) dialect(name string) {
	id := u.id()
	text, _ := json.Marshal(u.mark("input"))
	path, frame, ends := "", "", []string{}
	switch name {
	case "threadchat":
		path, ends = "/api/chat/ws?threadId="+id, []string{"chat.completed", `"error"`}
		frame = fmt.Sprintf(`{"type":"chat.request","threadId":%q,"content":%s}`, id, text)
	case "agentchat":
		path, ends = "/ws?x=1", []string{`"agent_message"`, `"error"`}
		frame = fmt.Sprintf(`{"type":"chat","message":%s,"session_id":%q}`, text, id)
	case "agentloop":
		path, ends = "/api/agentloop/ws?session="+id, []string{"agent_finished", `"error"`}
		frame = fmt.Sprintf(`{"id":"x","type":"user_input","payload":{"input":[{"role":"user","content":%s}]}}`, text)
	case "debugconsole":
		path, ends = "/api/v1/agents/worker/ws?x=1", []string{`"done":true`, `"error"`}
		frame = fmt.Sprintf(`{"type":"message","content":%s}`, text)
	}
	u.use(u.tenant, "dialect "+name)
	ctx, cancel := context.WithTimeout(u.t.Context(), time.Minute)
	defer cancel()
	c, res, err := websocket.Dial(ctx, strings.Replace(u.addr, "http", "ws", 1)+path+"&access_token="+u.token(), nil)
	if err != nil {
		if res == nil {
			u.t.Errorf("%s: %v", name, err)
			return
		}
		u.receive(u.tenant, name, []byte(err.Error()))
		return
	}
	defer c.CloseNow()
	if err := c.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
		return // the server has closed the socket
	}
	for {
		_, got, err := c.Read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				u.t.Errorf("%s as %s: no end", name, u.tenant)
			}
			u.receive(u.tenant, name, []byte(err.Error()))
			return
		}
		u.receive(u.tenant, name, got)
		more := bytes.Contains(got, []byte(`"more":true`)) // agent chat: the run continues
		if !more && slices.ContainsFunc(ends, func(end string) bool { return bytes.Contains(got, []byte(end)) }) {
			return
		}
	}
}

// mcp uses the MCP tools: it asks an agent, and reads a session of either tenant.
func (u *tenantUser) mcp() {
	u.use(u.tenant, "dialect mcpserver")
	client, fresh := "", uuid.NewString()
	defer u.opened(fresh)
	for _, call := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"x","version":"1"}}}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask_agent","arguments":{`+
			`"agent":"worker","message":%q,"session":%q}}}`, u.mark("input"), fresh),
		fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_session","arguments":{`+
			`"session":%q}}}`, u.id()),
	} {
		ctx, cancel := context.WithTimeout(u.t.Context(), 30*time.Second)
		r, err := http.NewRequestWithContext(ctx, "POST", u.addr+"/mcp", strings.NewReader(call))
		if err != nil {
			u.t.Error(err)
		}
		r.Header.Set("Authorization", "Bearer "+u.token())
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if client != "" {
			r.Header.Set("Mcp-Session-Id", client)
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			u.t.Errorf("mcp: %v", err)
			cancel()
			return
		}
		got, err := io.ReadAll(res.Body)
		if err != nil {
			u.t.Errorf("mcp: %v", err)
		}
		res.Body.Close()
		cancel()
		u.receive(u.tenant, "mcp", got)
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			client = id
		}
	}
}

// lookBack requests everything about every session after all runs have ended.
func (u *tenantUser) lookBack() {
	for _, id := range slices.Clone(u.ids) {
		for _, path := range []string{"/api/v1/sessions/", "/api/history?session_id=", "/api/agent-runs?session_id=",
			"/api/v1/runs?session="} {
			u.request("GET", path+id, "")
		}
		for _, path := range []string{"/log", "/plan", "/webhook", "/grants"} {
			u.request("GET", "/api/v1/sessions/"+id+path, "")
		}
	}
	for _, path := range []string{"/api/v1/sessions?all=true", "/api/v1/agents", "/api/v1/agents/worker",
		"/api/v1/skills", "/api/v1/projects", "/api/v1/models", "/api/models", "/api/v1/runs", "/api/v1/timers",
		"/api/v1/effects",
		"/api/v1/usage", "/api/v1/missions", "/api/v1/settings", "/api/v1/mcp", "/api/v1/audit/events", "/api/settings", "/api/config",
		"/api/mission", "/api/missions",
		"/api/agent-override?agent_id=worker", "/api/workspace/tree", "/api/files", "/api/file?path=note.txt"} {
		u.request("GET", path, "")
	}
}
