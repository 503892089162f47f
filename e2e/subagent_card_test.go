package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// A viewer is a client of a session in one of the dialects.
type viewer struct {
	t       *testing.T
	name    string
	session string
	next    func() shownFrame
	ask     func(content string)
	allow   func(card string)
	ends    func(shownFrame) bool // whether this frame ends the run of the session
	silent  bool                  // a client that decides a card gets no frame about its end
}

// A shownFrame is a frame of any dialect, with the fields that concern cards.
type shownFrame struct {
	Type, Kind, Phase   string
	ID, Agent, AgentID  string
	Bus                 string `json:"agent_id"`
	SessionID           string `json:"session_id"`
	Decision            string
	ApprovalID, Message string
	Done, More          bool
	Payload             *shownFrame
	Data                *struct {
		Question   string `json:"question_id"`
		Widget     string `json:"widget_id"`
		Resolution string
	}
	raw string
}

func parseShown(t *testing.T, raw string) (f shownFrame) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), &f); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	f.raw = raw
	return f
}

// asks returns the card that a frame shows, and the agent that asks.
func (f shownFrame) asks() (card, agent string) {
	switch {
	case f.Type == "approval_request" && f.Payload != nil:
		return f.Payload.ApprovalID, f.Payload.Agent
	case f.Type == "approval_request":
		return f.ID, f.Agent + f.AgentID
	case f.Kind == "ask_user":
		return f.Data.Question, f.Bus
	}
	return "", ""
}

// closes returns how a frame closes a card. The agent loop has only one at a
// time, and does not name it.
func (f shownFrame) closes(card string) string {
	switch {
	case f.Type == "approval_closed" && f.Payload != nil:
		return f.Payload.Decision
	case f.Type == "approval_closed" && f.ID == card:
		return f.Decision
	case f.Kind == "widget_resolved" && f.Data.Widget == card:
		return f.Data.Resolution
	}
	return ""
}

// card waits for a sub-agent's card.
func (v *viewer) card() string {
	v.t.Helper()
	for {
		if card, agent := v.next().asks(); card != "" {
			if agent != "helpful-assistant" || strings.HasPrefix(card, v.session) {
				v.t.Errorf("%s: card %s is of %q", v.name, card, agent)
			}
			return card
		}
	}
}

// sees waits until a card is closed.
func (v *viewer) sees(card, how string) {
	v.t.Helper()
	for {
		f := v.next()
		if got := f.closes(card); got == how {
			return
		} else if got != "" || v.ends(f) {
			v.t.Fatalf("%s: want card %s closed by %s, got %s", v.name, card, how, f.raw)
		}
	}
}

func (v *viewer) ended() {
	v.t.Helper()
	for !v.ends(v.next()) {
	}
}

// socketViewer is a viewer on a WebSocket. Either the server names the session,
// or the test does.
func (n *node) socketViewer(name, url, session string) (*viewer, *socket) {
	n.t.Helper()
	c := n.open(url, nil)
	v := &viewer{t: n.t, name: name, session: session}
	for h := c.next(); h.Event != "open"; h = c.next() {
		if h.Event != "upgrade" {
			n.t.Fatalf("%s: %+v", name, h)
		}
		v.session = h.Data
	}
	v.next = func() shownFrame { n.t.Helper(); return parseShown(n.t, c.frame().raw) }
	v.allow = func(card string) {
		n.t.Helper()
		c.send(map[string]any{"type": "approval_response", "id": card, "decision": "allow"})
	}
	return v, c
}

// viewers lists the dialects in which a client can return to a session.
var viewers = map[string]func(n *node, s *server, session string) *viewer{
	"thread chat": func(n *node, s *server, session string) *viewer {
		v, c := n.socketViewer("thread chat", "ws://"+s.address+"/api/chat/ws?threadId="+session+"&cards=1", session)
		c.thread = session
		c.settle()
		v.ask = c.ask
		v.ends = func(f shownFrame) bool { return f.Type == "chat.completed" || f.Type == "cancelled" }
		return v
	},
	"agent chat": func(n *node, s *server, session string) *viewer {
		v, c := n.socketViewer("agent chat", "ws://"+s.address+"/ws?cards=1", session)
		c.settle()
		v.ask = func(content string) { c.chat(content, session) }
		v.ends = func(f shownFrame) bool { return f.Type == "agent_message" && !f.More || f.Type == "error" }
		return v
	},
	"agent loop": func(n *node, s *server, session string) *viewer {
		v, c := n.socketViewer("agent loop", "ws://"+s.address+"/?session="+session, session)
		c.send(map[string]any{"id": "x", "type": "get_session"}) // the answer shows that it follows
		v.ask = c.input
		v.allow = func(string) { c.reviews("yes") }
		v.ends = func(f shownFrame) bool { return f.Type == "loading_state" && strings.Contains(f.raw, "false") }
		v.silent = true
		return v
	},
	"event bus": func(n *node, s *server, session string) *viewer {
		b := n.tune(s, "?session_id="+session)
		v := &viewer{t: n.t, name: "event bus", session: session}
		v.next = func() shownFrame { n.t.Helper(); return parseShown(n.t, b.next().raw) }
		v.ask = func(content string) { n.say(s, session, content) }
		v.allow = func(card string) {
			n.t.Helper()
			if status, body := n.answerCard(s, card, "Allow once", ""); status != 200 {
				n.t.Fatalf("%d %s", status, body)
			}
		}
		v.ends = func(f shownFrame) bool { return f.Kind == "turn_complete" && f.SessionID == session }
		return v
	},
}

const delegated = "delegate write patience to note.txt to helpful-assistant"

// sessionOfAThread returns a session that clients of all these dialects can
// open.
func (n *node) sessionOfAThread(s *server) string {
	n.t.Helper()
	thread := newThread()
	c := n.dial(s, thread)
	c.ask("say hello")
	c.completed()
	c.close()
	return thread
}

// everybody connects to a session in every dialect.
func (n *node) everybody(s *server, session string) (list []*viewer) {
	n.t.Helper()
	for _, connect := range viewers {
		list = append(list, connect(n, s, session))
	}
	return list
}

// The card of a sub-agent is shown and answered in any dialect. All clients see
// the same card, and its end.
func TestSubAgentCardsReachEveryDialect(t *testing.T) {
	t.Parallel()
	for by := range viewers {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			all := n.everybody(s, n.sessionOfAThread(s))
			var answers *viewer
			for _, v := range all {
				if v.name == by {
					v.ask(delegated)
					answers = v
				}
			}
			card := answers.card()
			for _, v := range all {
				if v != answers {
					if other := v.card(); other != card {
						t.Fatalf("%s shows card %s, %s shows %s", v.name, other, by, card)
					}
				}
			}
			wantNoFile(t, s, "note.txt")
			answers.allow(card)
			for _, v := range all {
				if v != answers || !v.silent {
					v.sees(card, "allow")
				}
				v.ended()
			}
			wantFile(t, s, "note.txt", "patience")
		})
	}
}

// A card of a sub-agent waits through a crash, is shown to each client that
// connects after it in any dialect, and is answered there.
func TestACardOfASubAgentWaitsThroughAKill(t *testing.T) {
	t.Parallel()
	for by := range viewers {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			session := n.sessionOfAThread(s)
			first := viewers["thread chat"](n, s, session)
			first.ask(delegated)
			card := first.card()
			s.kill()
			s = s.again()
			wantNoFile(t, s, "note.txt")
			late := viewers[by](n, s, session)
			if again := late.card(); again != card {
				t.Fatalf("the card was %s and is %s now", card, again)
			}
			if _, list := s.get("/api/v1/sessions/"+session, nil); !strings.Contains(list, `"status":"waiting"`) {
				t.Errorf("the session does not wait: %s", list)
			}
			late.allow(card)
			late.ended()
			wantFile(t, s, "note.txt", "patience")
		})
	}
}

// Cancelling the parent's run closes the cards of its sub-agents in every
// dialect.
func TestCancellingClosesCardsOfSubAgents(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	session := n.sessionOfAThread(s)
	all := n.everybody(s, session)
	all[0].ask(delegated)
	card := all[0].card()
	for _, v := range all[1:] {
		v.card()
	}
	if status, body := n.fetch(s, "POST", "/api/v1/sessions/"+session+"/cancel", "{}"); status != 202 && status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	for _, v := range all {
		if v.name != "agent chat" && v.name != "event bus" { // these show the child's session, with an end of its own
			v.sees(card, "cancelled")
			v.ended()
			continue
		}
		for v.next().closes(card) != "cancelled" {
		}
	}
	if status, body := n.fetch(s, "POST", "/api/v1/approvals/"+card, `{"decision":"allow"}`); status != 410 &&
		status != 404 && status != 409 {
		t.Errorf("a cancelled card was answered: %d %s", status, body)
	}
	wantNoFile(t, s, "note.txt")
}

// The debug console has a session for each socket. Its cards are answered
// there, or in any other dialect.
func TestTheDebugConsoleShowsCardsOfSubAgents(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	for _, by := range []string{"here", "native", "cancel"} {
		v, c := n.socketViewer("debug console", "ws://"+s.address+"/api/v1/agents/helpful-assistant/ws", "")
		v.ends = func(f shownFrame) bool { return f.Type == "error" || f.Done }
		c.send(map[string]any{"type": "message", "content": strings.Replace(delegated, "note", by, 1)})
		card := v.card()
		want := "allow"
		switch by {
		case "here":
			v.allow(card)
		case "native":
			n.fetch(s, "POST", "/api/v1/approvals/"+card, `{"decision":"allow"}`)
		case "cancel":
			want = "cancelled"
			n.fetch(s, "POST", "/api/v1/sessions/"+v.session+"/cancel", "{}")
		}
		v.sees(card, want)
		v.ended()
		if want == "allow" {
			wantFile(t, s, by+".txt", "patience")
		} else {
			wantNoFile(t, s, by+".txt")
		}
	}
}

// In a terminal the card names the sub-agent, and a letter answers it.
func TestParleyChatAsksForSubAgents(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	cmd := exec.CommandContext(within(t, patience), binary(t), "chat", "--server", s.address, "--thread",
		uuid.NewString())
	cmd.Dir = t.TempDir()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed := ""
	until := func(words string) {
		t.Helper()
		for buf := make([]byte, 4096); !strings.Contains(printed, words); {
			k, err := out.Read(buf)
			if printed += string(buf[:k]); err != nil {
				t.Fatalf("%v after %s", err, printed)
			}
		}
	}
	write := func(line string) {
		t.Helper()
		if _, err := in.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	until("> ")
	write(delegated)
	until("[helpful-assistant: write_file wants your approval]")
	until("[s]top: ")
	write("y")
	until("It is written.")
	in.Close()
	until("Go on with: ")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(s.o.workspace, "note.txt")); err != nil || string(got) != "patience" {
		t.Errorf("%q, %v", got, err)
	}
}

// A thread accepts answers to its own cards and to those of its sub-agents, and
// to no others.
func TestACardOfAnotherThreadIsNotAnsweredHere(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	here, there := n.dial(s, newThread()), n.dial(s, newThread())
	there.ask(delegated)
	there.expect("chat.started")
	card := there.skipTo("approval_request")
	decide(here, card, "allow", "")
	if f := here.expect("error"); !strings.Contains(f.Error, "have nothing of this id") {
		t.Errorf("%s", f.raw)
	}
	decide(here, frame{ID: uuid.NewString() + ".7"}, "allow", "")
	if f := here.expect("error"); !strings.Contains(f.Error, "have nothing of this id") {
		t.Errorf("%s", f.raw)
	}
	wantNoFile(t, s, "note.txt")
	decide(there, card, "deny", "no")
	if f := there.expect("approval_closed"); f.ID != card.ID || f.RequestID != card.RequestID || f.Decision != "deny" {
		t.Errorf("%s", f.raw)
	}
	wantNoFile(t, s, "note.txt")
}
