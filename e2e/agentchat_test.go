package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// agentChat connects to document 001's endpoint. The socket gets everything
// that happens from then on.
func (n *node) agentChat(s *server) *socket {
	n.t.Helper()
	c := n.open("ws://"+s.address+"/ws?cards=1", nil)
	c.opened()
	c.settle()
	return c
}

// chat sends the document's one message; without a session, it names none.
func (c *socket) chat(message, session string) {
	c.t.Helper()
	m := map[string]any{"type": "chat", "message": message}
	if session != "" {
		m["session_id"] = session
	}
	c.send(m)
}

// shows expects exactly these messages next. An object is compared as JSON; one
// that ends with … is the beginning of a message.
func (c *socket) shows(want ...string) {
	c.t.Helper()
	for _, w := range want {
		got := c.frame().raw
		if begin, cut := strings.CutSuffix(w, "…"); got != w && !(cut && strings.HasPrefix(got, begin)) {
			c.t.Fatalf("socket %s:\ngot  %s\nwant %s\nbefore that:\n%s", c.name, got, w, c.history())
		}
	}
}

func quoted(s string) string {
	raw, _ := json.Marshal(s) // the fields are strings: Marshal cannot fail
	return string(raw)
}

func userMessage(s string) string  { return `{"type":"user_message","message":` + quoted(s) + `}` }
func agentMessage(s string) string { return `{"type":"agent_message","message":` + quoted(s) + `}` }

// agentSays is a text from a turn after which the run goes on.
func agentSays(s string) string {
	return `{"type":"agent_message","message":` + quoted(s) + `,"more":true}`
}

func errorMessage(s string) string { return `{"type":"error","error":` + quoted(s) + `}` }

// shut checks that no further message has come, as silent does for threads.
func shut(t *testing.T, sockets ...*socket) {
	t.Helper()
	sockets[0].chat("say silence", "")
	for _, c := range sockets {
		c.shows(userMessage("say silence"), agentMessage("silence"))
	}
}

// The sequences of the document, in its words, reach every connected client.
func TestAgentChatSpeaksAsItsDocumentHasIt(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c, other := n.agentChat(s), n.agentChat(s)
	for _, talk := range []struct {
		message string
		frames  []string
	}{
		{"say Hi! How can I help?", []string{userMessage("say Hi! How can I help?"),
			agentMessage("Hi! How can I help?")}},
		{" \n say <b>“trimmed”</b> & 👩‍👧 \t", []string{userMessage("say <b>“trimmed”</b> & 👩‍👧"),
			agentMessage("<b>“trimmed”</b> & 👩‍👧")}},
		{"think about tea",
			[]string{userMessage("think about tea"),
				`{"type":"agent_thinking","reasoning":"The question is what to say about tea.…`,
				`{"type":"agent_message","message":"I thought about tea…`}},
		{"read nothing.txt",
			[]string{userMessage("read nothing.txt"), agentSays("I read nothing.txt."),
				`{"type":"tool_call","tool_name":"read_file","tool_args":"{\"path\":\"nothing.txt\"}"}`,
				`{"type":"tool_result","tool_name":"read_file","result":"…`,
				`{"type":"agent_message","message":"That came to nothing. …`}},
		{"list files",
			[]string{userMessage("list files"), agentSays("I look at the files of the workspace."),
				`{"type":"tool_call","tool_name":"list_files","tool_args":"{}"}`,
				`{"type":"tool_result","tool_name":"list_files","result":"…`,
				`{"type":"agent_message","message":"The workspace holds:…`}},
		// The original sent failures as agent_message.
		{"fail", []string{userMessage("fail"), errorMessage("The demo model failed, as it was asked to.")}},
		{"fail midway",
			[]string{userMessage("fail midway"), errorMessage("The demo model failed, as it was asked to.")}},
	} {
		c.chat(talk.message, "")
		c.shows(talk.frames...)
		other.shows(talk.frames...)
	}
	shut(t, other, c)
}

// TestAgentChatReportsErrorsToTheSenderOnly: an error goes only to its sender,
// and the socket stays open. The original sent it to every client, and closed
// the socket after most of these.
func TestAgentChatReportsErrorsToTheSenderOnly(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c, other := n.agentChat(s), n.agentChat(s)
	for message, says := range map[string]string{
		`{"type":"chat","message":""}`:     "Empty message received",
		`{"type":"chat","message":" \n "}`: "Empty message received",
		`{"type":"chat"}`:                  "Empty message received",
		`{"type":"ping"}`:                  "Unknown message type: ping",
		`{"message":"x"}`:                  "Unknown message type: None",
		`{"type":"chat","message":`:        "the message is not valid JSON",
		`[]`:                               "the message is not a JSON object",
		`{"type":"chat","message":7}`:      "message must be a string",
		`{"type":"chat","message":"x","session_id":[1]}`: "session_id must be a string",
	} {
		c.text(message)
		c.shows(errorMessage(says))
	}
	shut(t, c, other)
	c.binary("{}")
	c.closed(1003)
	shut(t, other)
}

const rememberTea = "remember that tea is nice"

// the demo model's reply to a question about what it was told
func remembered(said ...string) string {
	if len(said) == 0 {
		return agentMessage("This is the first thing you say in this session.")
	}
	list := "In this session you said:\n"
	for i, s := range said {
		list += "\n" + string(rune('1'+i)) + ". " + s
	}
	return agentMessage(list)
}

func TestAgentChatKeepsASessionAcrossConnectionsAndRestarts(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			uuid := newThread()
			for _, session := range []string{"optional-session-id", "any string, even ../this é", uuid} {
				c := n.agentChat(s)
				c.chat(rememberTea, session)
				c.shows(userMessage(rememberTea), `{"type":"agent_message","message":"Noted: tea is nice.…`)
				c.terminate()
			}
			c := n.agentChat(s)
			c.chat("what did I say", "optional-session-id")
			c.shows(userMessage("what did I say"), remembered(rememberTea))

			way.end(s)
			s = s.again()
			c = n.agentChat(s)
			c.chat("what did I say", " optional-session-id ")
			c.shows(userMessage("what did I say"), remembered(rememberTea, "what did I say"))
			c.chat("what did I say", strings.ToUpper(uuid))
			c.shows(userMessage("what did I say"), remembered(rememberTea))
			c.chat("what did I say", "another")
			c.shows(userMessage("what did I say"), remembered())

			// A session_id that is a session's id names that session in every
			// protocol.
			thread := n.dial(s, uuid)
			thread.ask("what did I say")
			if a := thread.completed(); !strings.Contains(a.text, rememberTea) {
				t.Errorf("the thread of the same id knows only %q", a.text)
			}
			c.shows(userMessage("what did I say"), remembered(rememberTea, "what did I say"))
			shut(t, c)
		})
	}
}

func TestAgentChatWithoutASessionLastsAsLongAsItsConnection(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := n.agentChat(s)
	c.chat(rememberTea, "")
	c.shows(userMessage(rememberTea), `{"type":"agent_message","message":"Noted:…`)
	c.chat("what did I say", "")
	c.shows(userMessage("what did I say"), remembered(rememberTea))
	if _, listed := s.get("/api/v1/sessions", nil); strings.Contains(listed, `"id"`) {
		t.Errorf("a session of a connection is listed: %s", listed)
	}
	if _, listed := s.get("/api/v1/sessions?transient=1", nil); strings.Count(listed, `"id"`) != 1 {
		t.Errorf("one connection has these sessions: %s", listed)
	}
	c.close()

	c = n.agentChat(s)
	if _, listed := s.get("/api/v1/sessions?transient=1", nil); strings.Count(listed, `"id"`) != 1 {
		t.Errorf("a session is open before its first message: %s", listed)
	}
	c.chat("what did I say", "")
	c.shows(userMessage("what did I say"), remembered())
}

// After a session was deleted, its name can be used for a new session.
func TestAgentChatBeginsAnewAfterADeletion(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c := n.agentChat(s)
	for _, session := range []string{"notes", newThread()} {
		for range 3 {
			c.chat("what did I say", session)
			c.shows(userMessage("what did I say"), remembered())
			_, listed := s.get("/api/v1/sessions", nil)
			var list struct{ Sessions []struct{ ID string } }
			if err := json.Unmarshal([]byte(listed), &list); err != nil || len(list.Sessions) != 1 {
				t.Fatalf("%s (%v)", listed, err)
			}
			s.request(within(t, patience), http.MethodDelete, "/api/v1/sessions/"+list.Sessions[0].ID, nil,
				"").Body.Close()
		}
	}
	shut(t, c)
}

// The original did not read on until it had answered. If two messages of one
// session came by two sockets, it ran both at once.
func TestAgentChatTakesMessagesWhileItAnswers(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	session := newThread()
	to := n.tempo(s).slowCount(10, 9)
	count := fmt.Sprint("count slowly to ", to)
	c, other := n.agentChat(s), n.agentChat(s)
	both := func(frames ...string) {
		t.Helper()
		c.shows(frames...)
		other.shows(frames...)
	}
	c.chat(count, session)
	both(userMessage(count))
	c.chat("", session)
	c.shows(errorMessage("Empty message received"))
	c.chat("say two", session)
	both(userMessage("say two"))
	other.chat("say three", session)
	both(userMessage("say three"), agentMessage(counted(to)), agentMessage("two"), agentMessage("three"))
	shut(t, c, other)

	open := 0
	for _, e := range s.events(session) {
		switch e.Type {
		case "RunStarted":
			open++
		case "RunFinished":
			open--
		}
		if open > 1 {
			t.Errorf("two runs of one session at once: %s", e)
		}
	}
}

// A client that connects in the middle of an answer gets the whole answer at
// its end. A run whose socket has gone goes on, also if the server is killed in
// between.
func TestAgentChatShowsLateClientsWholeAnswers(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, paced(t, 5*usualPace)), startNode(t)
	session := newThread()
	to := n.tempo(s).count(2, 15) // at a fifth of the usual speed
	count := fmt.Sprint("count to ", to)
	last := 0
	// half waits until the agent counts.
	half := func(c *socket) {
		t.Helper()
		c.chat(count, session)
		c.shows(userMessage(count))
		begin := s.awaitEvent(session, func(e event) bool { return e.Type == "InputReceived" && e.Seq > last }).Seq
		s.awaitEvent(session, func(e event) bool {
			return e.Type == "OutputAppended" && e.Seq > begin && strings.Contains(e.Body.Text, "3")
		})
		last = begin
	}
	c := n.agentChat(s)
	half(c)
	c.terminate()
	late := n.agentChat(s)
	late.shows(agentMessage(counted(to)))

	half(late)
	s.kill()
	s = s.pacedAgain(usualPace)
	late = n.agentChat(s)
	late.shows(agentMessage(counted(to)))
	shut(t, late)
}

// The original ran every tool without approval.
func TestAgentChatAsksBeforeItWrites(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			c := n.agentChat(s)
			card := func(c *socket) frame {
				t.Helper()
				f := c.expect("approval_request")
				if !strings.HasSuffix(f.Command, "\n\npatience") ||
					!strings.Contains(f.raw, `"tool_name":"write_file"`) {
					t.Fatalf("the card is %s", f.raw)
				}
				return f
			}
			c.chat("write patience to note.txt", "")
			c.shows(userMessage("write patience to note.txt"), agentSays("I write that to note.txt."),
				`{"type":"tool_call","tool_name":"write_file","tool_args":"…`)
			first := card(c)
			way.end(s)
			wantNoFile(t, s, "note.txt")

			s = s.again()
			c, late := n.agentChat(s), n.agentChat(s)
			for _, c := range []*socket{c, late} {
				if again := card(c); again.raw != first.raw {
					t.Errorf("the card was %s and is %s now", first.raw, again.raw)
				}
			}
			decide(late, first, "allow", "")
			for _, c := range []*socket{c, late} {
				c.shows(`{"type":"approval_closed","id":"`+first.ID+`","decision":"allow"}`,
					`{"type":"tool_result","tool_name":"write_file","result":"…`,
					`{"type":"agent_message","message":"It is written.…`)
			}
			wantFile(t, s, "note.txt", "patience")
			decide(c, first, "allow", "")
			c.shows(errorMessage("This was already answered, has expired or never was."))
			last := n.agentChat(s)
			shut(t, c, late, last) // a decided card is shown to no client
		})
	}
}

// The original had such a setting, but ignored it.
func TestAgentChatLimitsTurns(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	if err := os.Mkdir(filepath.Join(workspace, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, "agents", "brief.md"),
		[]byte("---\nname: brief\nlimits: {turns: 1}\n---\nBe brief.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, n := startServer(t, options{workspace: workspace}), startNode(t)
	c := n.agentChat(s)
	c.chat("list files", "") // needs two turns
	c.shows(userMessage("list files"), agentSays("I look at the files of the workspace."), `{"type":"tool_call",…`,
		`{"type":"tool_result",…`, `{"type":"error","error":"…`)
	shut(t, c)
}

func TestAgentChatAsksQuestions(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	c, other := n.agentChat(s), n.agentChat(s)
	c.chat("ask me", "")
	for _, c := range []*socket{c, other} {
		c.shows(userMessage("ask me"), agentSays("Then here is a question."),
			`{"type":"tool_call","tool_name":"ask_user",…`)
	}
	card := c.expect("question")
	if shown := other.expect("question"); shown.raw != card.raw || !slices.ContainsFunc(card.Questions[0].Options,
		func(o struct{ Label string }) bool { return o.Label == "Coffee" }) {
		t.Fatalf("the question is %s and %s", card.raw, shown.raw)
	}
	other.send(map[string]any{"type": "question_response", "id": card.ID, "answers": [][]string{{"Coffee"}}})
	for _, c := range []*socket{c, other} {
		c.shows(`{"type":"question_closed","id":"`+card.ID+`","decision":"answered"}`,
			`{"type":"tool_result","tool_name":"ask_user",…`,
			`{"type":"agent_message","message":"Your answer: Coffee.…`)
	}
	shut(t, c, other)
}

// TestAgentChatLimitsMessagesButNotAnswers: a client that exceeds its rate
// limit can still answer cards.
func TestAgentChatLimitsMessagesButNotAnswers(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{env: []string{"PARLEY_LIMIT_MESSAGES=2/hour"}}), startNode(t)
	c := n.agentChat(s) // agentChat has sent one message
	c.chat("write less to note.txt", "")
	c.shows(userMessage("write less to note.txt"), agentSays("I write that to note.txt."), `{"type":"tool_call",…`)
	card := c.expect("approval_request")
	c.chat("say more", "")
	c.shows(errorMessage("That is too often; come back later."))
	decide(c, card, "deny", "less is more")
	c.shows(`{"type":"approval_closed","id":"`+card.ID+`","decision":"deny"}`,
		`{"type":"tool_result","tool_name":"write_file","result":"A person did not allow this: less is more","success":false}`,
		`{"type":"agent_message","message":"That came to nothing.…`)
	wantNoFile(t, s, "note.txt")
}
