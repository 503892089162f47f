package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A party is a client of one dialect that takes part in a session. All parties
// have the same methods, so that one test can speak to a session, watch it,
// answer and cancel through any of them.
type party struct {
	t       *testing.T
	dialect string
	say     func(text string)
	decide  func(card, decision string) // decides an approval: allow or deny
	choose  func(card, label string)    // answers a question
	cancel  func(*party)                // cancels the active run; nil: the dialect cannot
	hear    func(*told) moment          // takes the next message

	run     told
	deaf    bool // it gets only runs of its own messages
	request string
	refused string   // the last error that did not end a run
	shows   []string // fields of told that the dialect reports
}

// A moment is an event that parties wait for.
type moment struct{ what, id string }

const (
	nothing   = ""
	started   = "a start"
	words     = "words"
	card      = "a card"
	cleared   = "a card that is cleared"
	explained = "an explanation"
	ended     = "an end"
)

// A told is the record of a run, collected from the messages of one dialect.
type told struct {
	inputs   []string
	thinking string
	calls    []string // tool names and arguments
	results  []string // tool names and whether the calls succeeded
	text     string   // the texts of its turns, with an empty line in between
	ending   string   // completed, cancelled or failed

	names map[string]string // names of calls
	part  string            // name of the text that is being streamed
}

// speak adds a text, or a chunk of a text with a name.
func (r *told) speak(name, piece string) moment {
	if r.text != "" && name != r.part {
		r.text += "\n\n"
	}
	r.part = name
	r.text += piece
	return moment{what: words}
}

// end notes how a run ended. Some dialects distinguish more kinds of failure.
func (r *told) end(how string) moment {
	if r.ending = how; how != "completed" && how != "cancelled" {
		r.ending = "failed"
	}
	return moment{what: ended}
}

// until reads up to a moment, which must come before the run's end.
func (p *party) until(what string) moment {
	p.t.Helper()
	for {
		m := p.hear(&p.run)
		if m.what == what {
			return m
		}
		if m.what == ended || m.what == card {
			p.t.Fatalf("%s: want %s, got %s %s; so far: %+v", p.dialect, what, m.what, m.id, p.run)
		}
	}
}

// over reads to the end of the run, and returns its record.
func (p *party) over() told {
	p.t.Helper()
	p.until(ended)
	r := p.run
	p.run = told{}
	return r
}

// seen returns the parts of a run that a dialect reports, in a form that can be compared.
func (p *party) seen(r told) string {
	var b strings.Builder
	for _, field := range p.shows {
		switch field {
		case "inputs":
			fmt.Fprintf(&b, "inputs %q\n", r.inputs)
		case "thinking":
			fmt.Fprintf(&b, "thinking %q\n", strings.TrimSpace(r.thinking))
		case "calls":
			fmt.Fprintf(&b, "calls %q\n", r.calls)
		case "results":
			fmt.Fprintf(&b, "results %q\n", r.results)
		case "text":
			fmt.Fprintf(&b, "text %q\n", r.text)
		case "trimmed text of answers": // agent chat shows no partial answers
			if r.ending == "completed" {
				fmt.Fprintf(&b, "text %q\n", strings.TrimSpace(r.text))
			}
		}
	}
	return b.String() + "ending " + r.ending
}

// A gathering is a session that several parties take part in.
type gathering struct {
	t       *testing.T
	s       *server
	n       *node
	session string
	opener  string
	members []*party // native is last: it gets everything
}

var dialects = []string{"debug console", "agent chat", "thread chat", "agent loop", "event bus", "openai", "agui",
	"aisdk", "a2a", "mcp", "editor", "native"}

// gather opens a session through one dialect, and follows it in all others that
// can.
func gather(t *testing.T, s *server, n *node, opener string) *gathering {
	t.Helper()
	g := &gathering{t: t, s: s, n: n, session: newThread(), opener: opener}
	first := g.join(opener)
	first.say("say hello")
	first.over()
	for _, d := range dialects {
		if d != opener {
			g.members = append(g.members, g.join(d))
		}
	}
	g.members = append(g.members, first)
	slices.SortStableFunc(g.members,
		func(a, b *party) int { return slices.Index(dialects, a.dialect) - slices.Index(dialects, b.dialect) })
	return g
}

func (g *gathering) member(dialect string) *party {
	return g.members[slices.Index(dialects, dialect)]
}

// each calls f for the parties that get the messages of a speaker.
func (g *gathering) each(speaker *party) (list []*party) {
	for _, p := range g.members {
		if !p.deaf || p == speaker {
			list = append(list, p)
		}
	}
	return list
}

func (g *gathering) join(dialect string) *party {
	g.t.Helper()
	p := &party{t: g.t, dialect: dialect}
	switch dialect {
	case "debug console":
		if g.opener == dialect {
			g.console(p)
		} else {
			g.stream(p)
		}
	case "agent chat":
		g.chat(p)
	case "thread chat":
		g.thread(p)
	case "agent loop":
		g.loop(p)
	case "event bus":
		g.bus(p)
	case "a2a":
		g.a2a(p)
	case "mcp":
		g.mcp(p)
	case "openai":
		g.openAI(p)
	case "agui":
		g.agui(p)
	case "aisdk":
		g.aisdk(p)
	case "native":
		g.log(p)
	case "editor":
		g.editor(p)
	}
	return p
}

// in returns the members for a subtest.
func (g *gathering) in(t *testing.T) {
	g.t, g.s, g.n = t, g.s.in(t), g.n.in(t)
	for _, p := range g.members {
		p.t = t
	}
}

// The decisions that parties use. All can allow and deny.
const (
	allow   = "allow"
	always  = "always"
	deny    = "deny"
	stop    = "stop"
	explain = "explain"
)

func sendsDecision(c *socket) func(string, string) {
	return func(card, decision string) {
		c.send(map[string]any{"type": "approval_response", "id": card, "decision": decision})
	}
}

func sendsAnswer(c *socket) func(string, string) {
	return func(card, label string) {
		c.send(map[string]any{"type": "question_response", "id": card, "answers": [][]string{{label}}})
	}
}

// console is a socket of document 000. The session is its own.
func (g *gathering) console(p *party) {
	c := g.consoleSocket()
	g.session = c.session
	p.shows = []string{"results", "text"}
	p.say, p.decide, p.choose = c.say, sendsDecision(c.socket), sendsAnswer(c.socket)
	p.hear = func(r *told) moment { return relay(r, c.frame()) }
}

// consoleSocket connects to the debug console in local mode.
func (g *gathering) consoleSocket() *console {
	g.t.Helper()
	c := &console{socket: g.n.open("ws://"+g.s.address+"/api/v1/agents/helpful-assistant/ws", nil)}
	c.session = c.next().Data
	c.opened()
	return c
}

func relay(r *told, f relayed) moment {
	switch f.Type {
	case "chunk":
		r.text += f.Content // it includes the empty lines between texts
		if *f.Done {
			return r.end("completed")
		}
		return moment{what: words}
	case "tool_executed", "tool_failed", "tool_blocked":
		r.results = append(r.results, fmt.Sprint(f.ToolName, " ", f.Type == "tool_executed"))
	case "approval_request", "approval_required", "question":
		return moment{card, f.ID}
	case "approval_closed", "question_closed":
		return moment{cleared, f.ID}
	case "approval_explained":
		return moment{explained, f.ID}
	case "error":
		if f.Message == "The answer was cancelled." {
			return r.end("cancelled")
		}
		return r.end("failed")
	case "session_halt":
		return r.end("failed")
	}
	return moment{}
}

// stream is the HTTP version of document 000. It can continue a session of
// another client, and gets the answers to its own messages. A socket of another
// session answers cards.
func (g *gathering) stream(p *party) {
	p.deaf, p.shows = true, []string{"results", "text"}
	var answer *socket
	p.say = func(text string) {
		answer = g.n.begin(
			map[string]any{"do": "fetch", "url": "http://" + g.s.address + "/api/v1/agents/helpful-assistant/stream",
				"method": "POST",
				"body":   `{"content":` + quoted(text) + `,"session_id":` + quoted(g.session) + `}`})
	}
	p.hear = func(r *told) moment {
		p.t.Helper()
		h := answer.next()
		body, whole := strings.CutSuffix(h.Data, "event: done\ndata: {}\n\n")
		if h.Event != "answer" || h.Code != http.StatusOK || !whole {
			p.t.Fatalf("%s: %d %s", p.dialect, h.Code, h.Data)
		}
		for line := range strings.Lines(body) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				var f relayed
				if err := json.Unmarshal([]byte(data), &f); err != nil {
					p.t.Fatal(err)
				}
				relay(r, f)
			}
		}
		return moment{what: ended}
	}
	c := g.consoleSocket()
	p.decide, p.choose = sendsDecision(c.socket), sendsAnswer(c.socket)
}

func (g *gathering) chat(p *party) {
	c, texts := g.n.agentChat(g.s), 0
	p.shows = []string{"inputs", "thinking", "calls", "results", "trimmed text of answers"}
	p.say = func(text string) { c.chat(text, g.session) }
	p.decide, p.choose = sendsDecision(c), sendsAnswer(c)
	p.hear = func(r *told) moment {
		f := c.frame()
		var m struct {
			Type, Message, Reasoning, Error string
			ID                              string
			Tool                            string `json:"tool_name"`
			Args                            string `json:"tool_args"`
			Success, More                   bool
		}
		p.parse(f.raw, &m)
		switch m.Type {
		case "user_message":
			r.inputs = append(r.inputs, m.Message)
			return moment{what: started}
		case "agent_thinking":
			r.thinking += m.Reasoning
		case "tool_call":
			r.calls = append(r.calls, m.Tool+" "+m.Args)
		case "tool_result":
			r.results = append(r.results, fmt.Sprint(m.Tool, " ", m.Success))
		case "agent_message":
			texts++
			said := r.speak(fmt.Sprint(texts), m.Message)
			if m.More {
				return said
			}
			return r.end("completed")
		case "error":
			if m.Error == "The answer was cancelled." {
				return r.end("cancelled")
			}
			p.refused = m.Error
			return r.end("failed")
		case "approval_request", "question":
			return moment{card, m.ID}
		case "approval_closed", "question_closed":
			return moment{cleared, m.ID}
		case "approval_explained":
			return moment{explained, m.ID}
		}
		return moment{}
	}
}

func (g *gathering) thread(p *party) {
	c := g.n.dial(g.s, g.session)
	p.shows = []string{"text"}
	p.say, p.decide, p.choose = c.ask, sendsDecision(c), sendsAnswer(c)
	p.cancel = func(*party) { c.cancel(p.request) }
	p.hear = func(r *told) moment {
		switch f := c.frame(); f.Type {
		case "chat.started":
			p.request = f.RequestID
			return moment{what: started}
		case "content":
			r.text += f.Content
			return moment{what: words}
		case "approval_request", "question":
			return moment{card, f.ID}
		case "approval_closed", "question_closed":
			return moment{cleared, f.ID}
		case "approval_explained":
			return moment{explained, f.ID}
		case "chat.completed":
			return r.end("completed")
		case "cancelled":
			return r.end("cancelled")
		case "error":
			p.refused = f.Error
			return r.end("failed")
		}
		return moment{}
	}
}

func (g *gathering) loop(p *party) {
	c := (*socket)(nil)
	if g.opener == p.dialect {
		c = g.n.open("ws://"+g.s.address+"/", nil)
	} else {
		c = g.n.open("ws://"+g.s.address+"/api/agentloop/ws?session="+g.session, nil)
	}
	if h := c.next(); h.Event != "upgrade" || g.opener != p.dialect && h.Data != g.session {
		g.t.Fatalf("%+v", h)
	} else {
		g.session = h.Data
	}
	c.opened()
	c.session()
	p.shows = []string{"thinking", "calls", "results", "text"}
	p.say = c.input
	request := ""
	p.decide = func(_, decision string) { // it names the card, since earlier ones may have been decided elsewhere
		review := map[string]string{allow: "yes", deny: "no-continue"}[decision]
		c.send(map[string]any{"id": newThread(), "type": "approval_response",
			"payload": map[string]any{"review": review, "requestId": request}})
	}
	p.choose = func(card, label string) {
		c.send(map[string]any{"id": newThread(), "type": "question_response",
			"payload": map[string]any{"questionId": card, "answers": [][]string{{label}}}})
	}
	p.cancel = func(*party) { c.send(map[string]any{"id": newThread(), "type": "cancel"}) }
	failed := ""
	p.hear = func(r *told) moment {
		i := c.item()
		var m struct {
			Payload struct {
				ID, Name, Arguments, Output string
				Call                        string `json:"call_id"`
				Question                    string `json:"questionId"`
			}
		}
		p.parse(i.raw, &m)
		switch i.kind() {
		case "loading":
			failed = ""
			return moment{what: started}
		case "assistant":
			return r.speak(i.Payload.ID, i.text())
		case "reasoning":
			r.thinking += i.text()
		case "function_call":
			r.calls = append(r.calls, m.Payload.Name+" "+m.Payload.Arguments)
			r.call(m.Payload.Call, m.Payload.Name)
		case "function_call_output":
			r.results = append(r.results,
				fmt.Sprint(r.names[m.Payload.Call], " ", strings.Contains(m.Payload.Output, `"exit_code":0,`)))
		case "approval_request":
			request = i.ID
			return moment{card, ""}
		case "question":
			return moment{card, m.Payload.Question}
		case "approval_closed":
			return moment{cleared, ""}
		case "question_closed":
			return moment{cleared, m.Payload.Question}
		case "error":
			p.refused = i.Payload.Message
			if failed = "failed"; i.Payload.Message == "The run was cancelled." {
				failed = "cancelled"
			}
		case "loaded":
			if failed != "" {
				return r.end(failed)
			}
		case "context_info":
			return r.end("completed")
		}
		return moment{}
	}
}

func (r *told) call(id, name string) {
	if r.names == nil {
		r.names = map[string]string{}
	}
	r.names[id] = name
}

func (g *gathering) bus(p *party) {
	b, waits := g.n.tune(g.s, "?session_id="+g.session), false // waits: a card is open
	p.shows = []string{"inputs", "thinking", "calls", "results", "text"}
	p.say = func(text string) { g.n.say(g.s, g.session, text) }
	answers := func(card, label string) {
		if status, body := g.n.answerCard(g.s, card, label, ""); status != http.StatusOK {
			p.t.Errorf("%s: %d %s", card, status, body)
		}
	}
	p.decide, p.choose = func(card, decision string) {
		answers(card, map[string]string{allow: "Allow once", always: "Always allow exactly this", deny: "Deny",
			stop: "Deny and stop the run", explain: "Explain"}[decision])
	}, answers
	p.cancel = func(*party) {
		runs := g.n.runs(g.s, "/api/agent-runs?session_id="+g.session)
		var stopped struct {
			IDs []string `json:"cancelled_run_ids"`
		}
		g.n.post(g.s, "/api/agent-cancel", `{"run_id":"`+runs[0].RunID+`"}`, &stopped)
		if len(stopped.IDs) != 1 {
			p.t.Errorf("cancelled were %q", stopped.IDs)
		}
	}
	p.hear = func(r *told) moment {
		m := b.next()
		var more struct {
			Data struct {
				Block  string `json:"block_id"`
				Tool   string
				Args   json.RawMessage
				Status string
			}
		}
		p.parse(m.raw, &more)
		switch m.Kind + "/" + m.Phase {
		case "message/":
			if m.Data.Role == "user" {
				r.inputs = append(r.inputs, m.Text)
				return moment{what: started}
			}
			if waits {
				return moment{what: explained}
			}
		case "token/":
			if m.Data.Thinking {
				r.thinking += m.Text
				return moment{}
			}
			return r.speak(fmt.Sprint(len(r.names)), m.Text)
		case "text_segment/":
			if !strings.HasSuffix(r.text, m.Text) {
				p.t.Errorf("the segment %q is not what was said: %q", m.Text, r.text)
			}
			r.part = "said"
		case "content_block/start":
			r.calls = append(r.calls, more.Data.Tool+" "+string(more.Data.Args))
			r.call(more.Data.Block, more.Data.Tool)
		case "content_block/update":
			r.results = append(r.results, fmt.Sprint(r.names[more.Data.Block], " ", more.Data.Status == "done"))
		case "ask_user/":
			waits = true
			return moment{card, m.Data.Question}
		case "widget_resolved/":
			waits = false
			return moment{cleared, m.Data.Widget}
		case "run/outcome":
			r.end(m.Data.Outcome.Status)
		case "turn_complete/":
			return moment{what: ended}
		}
		return moment{}
	}
}

// a2a is a client that streams its own tasks. It finds tasks of other clients in the list of tasks, and can answer and
// cancel them.
func (g *gathering) a2a(p *party) {
	p.deaf, p.shows = true, []string{"text"}
	c := a2aClient{n: g.n, s: g.s, version: "1.0"}
	var talk *socket
	var soon []moment
	waits := ""
	p.say = func(text string) {
		talk, soon, waits = c.in(p.t).begin("talk", map[string]any{"text": text, "context": g.session}), nil, ""
	}
	find := func(status int) string {
		var list struct{ Tasks []a2aEvent }
		p.parse(c.in(p.t).begin("list", map[string]any{"context": g.session, "status": status}).next().Data, &list)
		if len(list.Tasks) != 1 {
			p.t.Fatalf("%d tasks are in the state %d", len(list.Tasks), status)
		}
		return list.Tasks[0].ID
	}
	p.choose = func(_, label string) {
		c.in(p.t).ask("send", map[string]any{"text": label, "task": find(a2aInputRequired), "immediately": true})
	}
	p.decide = p.choose
	p.cancel = func(*party) { c.in(p.t).ask("cancel", map[string]any{"task": find(a2aWorking)}) }
	p.hear = func(r *told) moment {
		if len(soon) == 0 {
			soon = tells(r, parseA2A(p.t, talk.next()), &waits)
		}
		m := soon[0]
		soon = soon[1:]
		return m
	}
}

// tells adds an event of a task to the record; waits is the card that the task waits for.
func tells(r *told, e a2aEvent, waits *string) (list []moment) {
	switch {
	case e.Kind == "task":
		r.text = ""
		for _, a := range e.Artifacts {
			r.text += a.text()
		}
	case e.Kind == "artifactUpdate":
		r.text += e.Artifact.text()
		return []moment{{what: words}}
	}
	if *waits != "" && e.Status.State != a2aInputRequired {
		list = append(list, moment{cleared, *waits})
		*waits = ""
	}
	switch e.Status.State {
	case a2aInputRequired:
		if *waits == "" {
			*waits = e.card()
			list = append(list, moment{card, *waits})
		}
	case a2aCompleted:
		list = append(list, r.end("completed"))
	case a2aCanceled:
		list = append(list, r.end("cancelled"))
	case a2aFailed:
		list = append(list, r.end("failed"))
	}
	return append(list, moment{})
}

// mcp is a client that calls the agent as a tool, and whose person answers cards. If a card belongs to another client's
// message, it attends to the run by a call without a message.
func (g *gathering) mcp(p *party) {
	p.deaf, p.shows = true, []string{"text"}
	c, asks := g.n.mcp(g.s, true), false
	p.say = func(text string) {
		c.t, asks = p.t, true
		c.ask(text, g.session)
	}
	answer := func(card string, content map[string]any) {
		c.t = p.t
		if !asks {
			c.call("ask_agent", map[string]any{"session": g.session})
			if shown := c.kind("waiting").Meta.Card; shown != card {
				p.t.Errorf("%s was shown the card %s, not %s", p.dialect, shown, card)
			}
			c.until("elicit")
		}
		c.act("answer", map[string]any{"action": "accept", "content": content})
		if !asks {
			c.result()
		}
	}
	p.decide = func(card, decision string) { answer(card, map[string]any{"decision": decision}) }
	p.choose = func(card, label string) { answer(card, map[string]any{"answer_1": label}) }
	p.hear = func(r *told) moment {
		c.t = p.t
		switch h, told := c.hear(); h.Event {
		case "progress":
			switch told.Meta.Kind {
			case "text":
				r.text += told.Message
				return moment{what: words}
			case "waiting":
				return moment{card, told.Meta.Card}
			case "settled":
				return moment{cleared, told.Meta.Card}
			}
		case "result":
			asks = false
			var end mcpResult
			p.parse(h.Data, &end)
			switch last := end.Content[len(end.Content)-1].Text; {
			case !end.IsError:
				r.text = end.text()
				return r.end("completed")
			case last == "The run was cancelled.":
				return r.end("cancelled")
			}
			return r.end("failed")
		case "elicit", "unasked":
		default:
			p.t.Fatalf("%+v", h)
		}
		return moment{}
	}
}

// log is the native log, by an EventSource.
func (g *gathering) log(p *party) {
	if g.opener == p.dialect {
		if status, body := g.n.fetch(g.s, "POST", "/api/v1/sessions", `{"id":"`+g.session+`"}`); status >= 300 {
			g.t.Fatalf("%d %s", status, body)
		}
	}
	path := "/api/v1/sessions/" + g.session
	c := g.n.begin(map[string]any{"do": "listen", "url": fmt.Sprintf("http://%s%s/log?after=%d", g.s.address, path,
		len(g.s.events(g.session)))})
	c.opened()
	post := func(path, body string) {
		if status, answer := g.n.fetch(g.s, "POST", path, body); status != http.StatusAccepted {
			p.t.Errorf("POST %s: %d %s", path, status, answer)
		}
	}
	p.shows = []string{"inputs", "thinking", "calls", "results", "text", "trimmed text of answers"}
	p.say = func(text string) { post(path+"/inputs", `{"content":`+quoted(text)+`}`) }
	p.decide = func(card, decision string) { post("/api/v1/approvals/"+card, `{"decision":"`+decision+`"}`) }
	p.choose = func(card, label string) { post("/api/v1/questions/"+card, `{"answers":[[`+quoted(label)+`]]}`) }
	p.cancel = func(*party) { post(path+"/cancel", "{}") }
	p.hear = func(r *told) moment {
		h := c.next()
		var e struct {
			Seq  int
			Type string
			Body struct {
				Content, Text, Kind, Name, Arguments, Outcome string
				Card                                          int
			}
		}
		p.parse(h.Data, &e)
		ref := func(seq int) string { return fmt.Sprintf("%s.%d", g.session, seq) }
		switch e.Type {
		case "InputReceived":
			r.inputs = append(r.inputs, e.Body.Content)
		case "RunStarted":
			return moment{what: started}
		case "OutputAppended":
			if e.Body.Kind == "text" {
				return moment{what: words}
			}
		case "OutputFinished":
			if e.Body.Kind == "thinking" {
				r.thinking += e.Body.Text
				return moment{}
			}
			return r.speak(fmt.Sprint(e.Seq), e.Body.Text)
		case "ToolCallRequested":
			r.calls = append(r.calls, e.Body.Name+" "+e.Body.Arguments)
		case "ToolCallFinished", "ToolCallBlocked":
			r.results = append(r.results, fmt.Sprint(e.Body.Name, " ", e.Body.Outcome == "succeeded"))
		case "ApprovalRequested", "QuestionAsked":
			return moment{card, ref(e.Seq)}
		case "ApprovalDecided", "QuestionAnswered":
			return moment{cleared, ref(e.Body.Card)}
		case "ApprovalExplained":
			return moment{explained, ref(e.Body.Card)}
		case "RunFinished":
			return r.end(e.Body.Outcome)
		}
		return moment{}
	}
}

func (p *party) parse(raw string, into any) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(raw), into); err != nil {
		p.t.Fatalf("%s: %v in %s", p.dialect, err, raw)
	}
}
