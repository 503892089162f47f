package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// A mortal is a client that is killed and reconnects, again and again. It
// remembers only the messages it has received.
type mortal struct {
	t       *testing.T
	has     []happened
	connect func(leave int) *socket
	replays int // number of messages that it receives again when it reconnects
}

// live connects, receives so many new messages and disconnects. If the dialect
// repeats earlier messages, these must come first and be unchanged.
func (m *mortal) live(messages int) (fresh []happened) {
	m.t.Helper()
	c := m.connect(messages)
	if _, err := c.events.find(within(m.t, patience), func(h happened) bool { return h.Event == "close" }); err != nil {
		m.t.Fatalf("%v; it has %d messages, and was shown\n%s", err, len(m.has), c.history())
	}
	return m.remember(c)
}

// remember takes the messages that a socket received before it ended.
func (m *mortal) remember(c *socket) (fresh []happened) {
	m.t.Helper()
	old := m.has[len(m.has)-m.replays:]
	for _, h := range c.events.all() {
		if h.Event != "message" || isFence(h) {
			continue
		}
		if len(old) > 0 {
			if h.Data != old[0].Data {
				m.t.Fatalf("shown again was\n%s\nand not\n%s", h.Data, old[0].Data)
			}
			old = old[1:]
			continue
		}
		fresh = append(fresh, h)
	}
	m.has = append(m.has, fresh...)
	return fresh
}

// last is the newest message.
func (m *mortal) last() (f struct {
	ID  string
	Seq int64
}) {
	m.t.Helper()
	if err := json.Unmarshal([]byte(m.has[len(m.has)-1].Data), &f); err != nil {
		m.t.Fatal(err)
	}
	return f
}

func (m *mortal) datas() (list []string) {
	for _, h := range m.has {
		list = append(list, h.Data)
	}
	return list
}

func (m *mortal) atEnd() bool { return endsRun(m.has[len(m.has)-1].Data) }

// endsRun recognizes the last message of a run in each dialect that can be resumed.
func endsRun(data string) bool {
	for _, kind := range []string{`"type":"chat.completed"`, `"type":"context_info"`, `"kind":"turn_complete"`,
		`"type":"RunFinished"`} {
		if strings.Contains(data, kind) {
			return true
		}
	}
	return false
}

// atCard returns the card that the last message asks about.
func (m *mortal) atCard(s *server, session string) (kind, id string) {
	data := m.has[len(m.has)-1].Data
	for _, c := range []struct{ mark, kind string }{
		{`"type":"approval_request"`, "approvals"}, {`"header":"Permission"`, "approvals"},
		{`"type":"ApprovalRequested"`, "approvals"},
		{`"type":"question"`, "questions"}, {`"kind":"ask_user"`, "questions"}, {`"type":"QuestionAsked"`, "questions"},
	} {
		if !strings.Contains(data, c.mark) {
			continue
		}
		return c.kind, waits(s, c.kind, session)
	}
	return "", ""
}

// waits returns the id of the open card of a session.
func waits(s *server, kind, session string) string {
	s.t.Helper()
	var list map[string][]struct{ ID string }
	status, body := s.get("/api/v1/"+kind+"?session="+session, nil)
	if err := json.Unmarshal([]byte(body), &list); status != http.StatusOK || err != nil || len(list[kind]) != 1 {
		s.t.Fatalf("%s: %d %s", kind, status, body)
	}
	return list[kind][0].ID
}

// settles answers a card by HTTP.
func settles(s *server, n *node, kind, id string) {
	s.t.Helper()
	body := `{"decision":"allow"}`
	if kind == "questions" {
		body = `{"answers":[["Clear"]]}`
	}
	if status, answer := n.fetch(s, "POST", "/api/v1/"+kind+"/"+id, body); status != http.StatusAccepted {
		s.t.Fatalf("%s %s: %d %s", kind, id, status, answer)
	}
}

// resumable lists the dialects that can be resumed. connect returns how a
// client with some messages reconnects, and stayed returns the messages of a
// client that never disconnected.
var resumable = map[string]struct {
	connect func(m *mortal, s *server, n *node, session string) map[string]any
	stayed  func(s *server, n *node, session string) func() []string
}{
	"thread chat": {connect: func(m *mortal, s *server, _ *node, session string) map[string]any {
		m.replays = len(m.has) // it gets all messages from the start of the run
		return map[string]any{"do": "open", "url": "ws://" + s.address + "/api/chat/ws?threadId=" + session}
	}},
	"agent loop": {connect: func(m *mortal, s *server, _ *node, session string) map[string]any {
		query := "?session=" + session
		if len(m.has) > 0 {
			query += "&after=" + m.last().ID
		}
		return map[string]any{"do": "open", "url": "ws://" + s.address + "/" + query}
	}, stayed: func(s *server, n *node, session string) func() []string {
		c := n.open("ws://"+s.address+"/?session="+session, nil)
		c.next()
		c.opened()
		return func() (list []string) {
			for {
				i := c.item()
				if !strings.HasSuffix(i.Type, "_closed") { // a client that connects later does not hear of the card
					list = append(list, i.raw)
				}
				if i.Type == "context_info" {
					return list
				}
			}
		}
	}},
	"event bus": {connect: func(m *mortal, s *server, _ *node, session string) map[string]any {
		last := "0"
		if len(m.has) > 0 {
			last = m.has[len(m.has)-1].ID
		}
		return map[string]any{"do": "listen", "url": "http://" + s.address + "/api/events?session_id=" + session +
			"&last_event_id=" + last}
	}, stayed: wholeBus},
	"event bus by socket": {connect: func(m *mortal, s *server, _ *node, session string) map[string]any {
		last := int64(0)
		if len(m.has) > 0 {
			last = m.last().Seq
		}
		return map[string]any{"do": "open", "url": fmt.Sprintf("ws://%s/api/events?session_id=%s&last_event_id=%d",
			s.address, session, last)}
	}, stayed: wholeBus},
	"native": {connect: func(m *mortal, s *server, _ *node, session string) map[string]any {
		last := "0"
		if len(m.has) > 0 {
			last = m.has[len(m.has)-1].ID
		}
		return map[string]any{"do": "listen", "url": "http://" + s.address + "/api/v1/sessions/" + session +
			"/log?after=" + last}
	}, stayed: func(s *server, _ *node, session string) func() []string {
		return func() []string {
			_, log := s.get("/api/v1/sessions/"+session+"/log", nil)
			return strings.Split(strings.TrimSuffix(log, "\n"), "\n")
		}
	}},
}

// wholeBus returns all messages of the bus for a session with one run.
func wholeBus(s *server, _ *node, session string) func() []string {
	return func() (list []string) {
		whole := s.follow("/api/events?session_id="+session+"&last_event_id=0", "")
		whole.next() // skip the message about the starting position
		for {
			m := whole.next()
			if list = append(list, m.data); strings.Contains(m.data, `"kind":"turn_complete"`) {
				return list
			}
		}
	}
}

// born returns a client of an empty session. It asks for the server's address
// again in every life. After its first connection it calls say.
func born(t *testing.T, dialect string, s func() *server, n *node, session string, say func(*socket)) *mortal {
	m := &mortal{t: t}
	m.connect = func(leave int) *socket {
		command := resumable[dialect].connect(m, s(), n, session)
		command["leave"] = m.replays + leave
		if leave == 0 {
			delete(command, "leave")
		}
		c := n.begin(command)
		c.thread = session
		if _, err := c.events.find(within(t, patience),
			func(h happened) bool { return h.Event == "open" }); err != nil {
			t.Fatalf("%s: %v\n%s", dialect, err, c.history())
		}
		if say != nil {
			say(c)
			say = nil
		}
		return c
	}
	return m
}

// tourWritten is the text of the tour according to the log.
func tourWritten(t *testing.T, s *server, session string) (text string) {
	t.Helper()
	whole := false
	for _, e := range of("OutputFinished", s.events(session)) {
		if e.Body.Kind != "text" {
			continue
		}
		if whole {
			text += "\n\n"
		}
		text += e.Body.Text
		whole = !e.Body.Incomplete
	}
	if !strings.HasPrefix(text, "Welcome! I am Parley's demo model.") ||
		!strings.Contains(text, "You answered: Clear.") || !strings.HasSuffix(text, "whichever of them speaks.") {
		t.Errorf("the tour was %q", text)
	}
	return text
}

// TestClientsKilledAtEveryBoundary kills clients after every single message. In
// the end they have the same messages as a client that stayed connected. None
// is missing or repeated, even if the run went on or ended without them.
func TestClientsKilledAtEveryBoundary(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	for dialect := range resumable {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			s, n := s.in(t), n.in(t)
			session := newThread()
			say := func(c *socket) { c.askAs("mine", "/tour") }
			stayed := func() []string { return nil }
			if dialect != "thread chat" {
				if status, body := n.fetch(s, "POST", "/api/v1/sessions", `{"id":"`+session+`"}`); status >= 300 {
					t.Fatalf("%d %s", status, body)
				}
				say = func(*socket) { n.say(s, session, "/tour") }
				stayed = resumable[dialect].stayed(s, n, session)
			}
			m := born(t, dialect, func() *server { return s }, n, session, say)
			lives := 0
			for len(m.has) == 0 || !m.atEnd() {
				m.live(1)
				lives++
				if kind, id := m.atCard(s, session); id != "" {
					settles(s, n, kind, id)
					if kind == "questions" { // the rest of the answer comes while no client is connected
						s.awaitEvent(session, func(e event) bool { return e.Type == "RunFinished" })
					}
				}
			}
			if lives < 20 {
				t.Errorf("it died only %d times", lives)
			}
			text := tourWritten(t, s, session)
			if dialect != "thread chat" {
				want := stayed()
				if got := m.datas(); !slices.Equal(got, want) {
					t.Errorf("who died %d times has\n%s\nand who stayed\n%s", lives, strings.Join(got, "\n"),
						strings.Join(want, "\n"))
				}
				return
			}
			said := ""
			for _, data := range m.datas() {
				var f frame
				if err := json.Unmarshal([]byte(data), &f); err != nil {
					t.Fatal(err)
				}
				if f.Card == "" { // otherwise it is about a card and not part of the answer
					said += f.Content
				}
			}
			if said != text {
				t.Errorf("who died %d times has read %q", lives, said)
			}
			// The client was lost with the last message on its way, so the next socket gets the whole answer again,
			// under the same name, until its delivery is confirmed.
			c := n.enter(s, session, "")
			if a := c.rest(append([]frame{c.expect("chat.started")}, c.upToCards(m.has)...)...); a.request != "mine" ||
				a.ending != "chat.completed" {
				t.Errorf("%+v", a)
			}
			c.close()
			silent(t, n.dial(s, session))
		})
	}
}

// upToCards takes the messages that were shown before, up to the last message
// that is not part of an answer.
func (c *socket) upToCards(shown []happened) (taken []frame) {
	c.t.Helper()
	last := 0
	for i, h := range shown {
		if !strings.Contains(h.Data, `"type":"content"`) && !strings.Contains(h.Data, `"type":"chat.completed"`) {
			last = i
		}
	}
	for _, h := range shown[1 : last+1] {
		f := c.frame()
		if f.raw != h.Data {
			c.t.Fatalf("shown again was %s and not %s", f.raw, h.Data)
		}
		taken = append(taken, f)
	}
	return taken
}

// Agent chat cannot be resumed. It promises that a client that connects gets
// the open cards, and then everything that happens.
func TestAgentChatClientsKilledAtEveryBoundary(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	session := newThread()
	steady := n.agentChat(s)
	m := &mortal{t: t}
	steady.chat("/tour", session)
	m.connect = func(leave int) *socket {
		c := n.begin(map[string]any{"do": "open", "url": "ws://" + s.address + "/ws", "leave": leave})
		c.opened()
		return c
	}
	kind, id := "", ""
	for kind != "questions" {
		m.live(1)
		if kind, id = m.atCard(s, session); kind == "approvals" {
			settles(s, n, kind, id)
		}
	}
	if len(m.has) < 3 {
		t.Errorf("it died only %d times", len(m.has))
	}
	late := n.agentChat(s)
	if f := late.expect("question"); f.raw != m.has[len(m.has)-1].Data {
		t.Errorf("the question was %s and is %s", m.has[len(m.has)-1].Data, f.raw)
	}
	settles(s, n, kind, id)
	var whole, texts []string
	for more := true; more; {
		whole = append(whole, steady.frame().raw)
		var f struct {
			Type, Message string
			More          bool
		}
		if err := json.Unmarshal([]byte(whole[len(whole)-1]), &f); err != nil {
			t.Fatal(err)
		}
		if f.Type == "agent_message" {
			texts, more = append(texts, f.Message), f.More
		}
	}
	at := -1
	for _, h := range m.has {
		i := slices.Index(whole, h.Data)
		if i <= at {
			t.Errorf("%s came out of order, or never for who stayed:\n%s", h.Data, strings.Join(whole, "\n"))
		}
		at = i
	}
	late.shows(whole[at+1:]...)
	if got := strings.Join(texts, "\n\n"); got != strings.TrimSpace(tourWritten(t, s, session)) {
		t.Errorf("the whole answer is %q", got)
	}
	shut(t, late, steady) // and none of it comes again
}

// The debug console cannot be resumed either: each socket is a conversation of
// its own. Its run goes on without the socket, and the conversation by HTTP.
func TestDebugConsolesKilledAtEveryBoundary(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	const lives = 8 // chunks, the card, its end, the tool, and chunks
	var sockets []*socket
	var sessions []string
	for i := range lives {
		c := n.begin(map[string]any{"do": "open", "url": "ws://" + s.address + "/api/v1/agents/helpful-assistant/ws",
			"leave": i + 1})
		sessions = append(sessions, c.next().Data)
		c.opened()
		c.send(map[string]any{"type": "message", "content": fmt.Sprintf("write it to %d.txt", i)})
		sockets = append(sockets, c)
	}
	kinds := map[string]bool{}
	for i, c := range sockets {
		c.has(1) // the session exists from then on
		e := s.awaitEvent(sessions[i], func(e event) bool { return e.Type == "ApprovalRequested" })
		settles(s, n, "approvals", fmt.Sprintf("%s.%d", sessions[i], e.Seq))
		s.awaitEvent(sessions[i], func(e event) bool { return e.Type == "RunFinished" })
		c.gone()
		var last happened
		for _, h := range c.events.all() {
			if h.Event == "message" {
				last = h
			}
		}
		var f relayed
		if err := json.Unmarshal([]byte(last.Data), &f); err != nil {
			t.Fatal(err)
		}
		kinds[f.Type] = true
	}
	if len(kinds) < 2 { // which kinds come depends on the number of chunks
		t.Errorf("they died of %v only", kinds)
	}
	for i, session := range sessions {
		wantFile(t, s, fmt.Sprintf("%d.txt", i), "it")
		log := s.events(session)
		if ends := of("RunFinished", log); len(ends) != 1 || ends[0].Body.Outcome != "completed" ||
			len(of("InputReceived", log)) != 1 {
			t.Errorf("%v", log)
		}
		status, body := n.fetch(s, "POST", "/api/v1/agents/helpful-assistant/message",
			`{"content":"what did I say","session_id":"`+session+`"}`)
		if want := fmt.Sprintf(`{"content":"In this session you said:\n\n1. write it to %d.txt"}`,
			i); status != http.StatusOK || body != want {
			t.Errorf("%d %s", status, body)
		}
	}
	fresh := &console{socket: n.open("ws://"+s.address+"/api/v1/agents/helpful-assistant/ws", nil)}
	fresh.session = fresh.next().Data
	fresh.opened()
	fresh.quiet()
}

// has waits until a socket has received so many messages.
func (c *socket) has(messages int) {
	c.t.Helper()
	if _, err := c.events.find(within(c.t, patience), func(h happened) bool {
		if h.Event == "message" {
			messages--
		}
		return messages == 0
	}); err != nil {
		c.t.Fatalf("socket %s: %v\n%s", c.name, err, c.history())
	}
}

// The server is killed and restarted in the middle of the first text, with an
// open card, in a later text, and with an open question. Clients of all
// dialects that can be resumed follow one session through it.
func TestServerKilledAtBoundaries(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, paced(t, slowPace)), startNode(t)
	s.o.listen = s.address
	session := newThread()
	current := func() *server { return s }
	all := map[string]*mortal{}
	for dialect := range resumable {
		all[dialect] = born(t, dialect, current, n, session, nil)
	}
	thread := all["thread chat"]
	sockets := map[string]*socket{"thread chat": thread.connect(0)} // this opens the session
	sockets["thread chat"].settle()
	connect := func() {
		for dialect, m := range all {
			if sockets[dialect] == nil {
				sockets[dialect] = m.connect(0)
			}
		}
	}
	connect()
	sockets["thread chat"].askAs("mine", "/tour")
	// shown waits until the thread's client has a message of a kind after a given one.
	shown := func(kind string, times int, behind string) {
		t.Helper()
		if _, err := sockets["thread chat"].events.find(within(t, patience), func(h happened) bool {
			if strings.Contains(h.Data, `"type":"`+behind+`"`) {
				behind = ""
			}
			if behind == "" && strings.Contains(h.Data, `"type":"`+kind+`"`) {
				times--
			}
			return times == 0
		}); err != nil {
			t.Fatalf("%v\n%s", err, sockets["thread chat"].history())
		}
	}
	crash := func(pace time.Duration) { // pace is for the next server
		t.Helper()
		s.kill()
		for dialect, c := range sockets {
			if _, err := c.events.find(within(t, patience), func(h happened) bool {
				return h.Event == "close" ||
					h.Event == "error"
			}); err != nil {
				t.Fatal(err)
			}
			if dialect == "event bus" || dialect == "native" {
				c.do("deafen", nil)
			}
			all[dialect].remember(c)
		}
		clear(sockets)
		s = s.pacedAgain(pace)
		connect()
	}
	card := func(kind string, pace time.Duration) {
		t.Helper()
		shown(map[string]string{"approvals": "approval_request", "questions": "question"}[kind], 1, "")
		crash(pace)
		shown(map[string]string{"approvals": "approval_request", "questions": "question"}[kind], 1, "")
		settles(s, n, kind, waits(s, kind, session))
	}
	shown("content", 3, "chat.started")
	crash(usualPace)
	card("approvals", slowPace)
	shown("content", 1, "approval_closed")
	crash(usualPace)
	card("questions", usualPace)
	shown("chat.completed", 1, "")
	for dialect, m := range all {
		if _, err := sockets[dialect].events.find(within(t, patience),
			func(h happened) bool { return h.Event == "message" && endsRun(h.Data) }); err != nil {
			t.Fatalf("%s: %v\n%s", dialect, err, sockets[dialect].history())
		}
		m.remember(sockets[dialect])
	}
	text := tourWritten(t, s, session)
	if cuts := strings.Count(fmt.Sprint(s.events(session)), "Incomplete:true"); cuts != 2 {
		t.Errorf("%d texts were cut", cuts)
	}
	said := ""
	for _, data := range thread.datas() {
		var f frame
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			t.Fatal(err)
		}
		if f.Card == "" {
			said += f.Content
		}
	}
	if said != text {
		t.Errorf("in the thread was read\n%q and in the log stands\n%q", said, text)
	}
	for _, dialect := range []string{"event bus", "event bus by socket", "native"} {
		if got, want := all[dialect].datas(), resumable[dialect].stayed(s, n, session)(); !slices.Equal(got, want) {
			t.Errorf("%s: there came\n%s\nand there is\n%s", dialect, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	// A client that resumes the agent loop after its first message gets the
	// rest, without cards that were settled meanwhile.
	loop := all["agent loop"]
	whole := born(t, "agent loop", current, n, session, nil)
	whole.has = loop.has[:1:1]
	c := whole.connect(0)
	if _, err := c.events.find(within(t, patience),
		func(h happened) bool { return h.Event == "message" && endsRun(h.Data) }); err != nil {
		t.Fatal(err)
	}
	whole.remember(c)
	plain := func(list []string) (kept []string) {
		for _, data := range list {
			var i item
			if err := json.Unmarshal([]byte(data), &i); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains([]string{"approval_request", "approval_closed", "question", "question_closed"},
				i.Type) {
				kept = append(kept, data)
			}
		}
		return kept
	}
	if got, want := plain(loop.datas()), plain(whole.datas()); !slices.Equal(got, want) {
		t.Errorf("agent loop: there came\n%s\nand there is\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	wantFile(t, s, "parley-tour.txt", "Written on a tour of Parley. Delete this file whenever you like.\n")
}
