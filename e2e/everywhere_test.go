package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEverywhere drives one session through all dialects at once. Whichever
// dialect opens it, all that can follow it report the same run. A card that one
// dialect shows can be answered in any other, and is then cleared in all. A run
// can be cancelled, queued behind and steered from any dialect.
func TestEverywhere(t *testing.T) {
	t.Parallel()
	for _, opener := range dialects {
		t.Run("opened by "+opener, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			if err := os.WriteFile(filepath.Join(s.o.workspace, "note.txt"), []byte("tea “for” two\n"),
				0o600); err != nil {
				t.Fatal(err)
			}
			g := gather(t, s, n, opener)
			for _, stage := range []struct {
				name string
				do   func(*testing.T, *gathering)
			}{{"memory", remembersEverywhere}, {"answers", everywhereTheSame}, {"cards", cardsEverywhere},
				{"cancels", cancelsEverywhere}, {"busy", busyEverywhere}, {"halt", haltsEverywhere}} {
				if !t.Run(stage.name, func(t *testing.T) {
					g.in(t)
					stage.do(t, g)
				}) {
					return // the parties are not ready for the next stage
				}
			}
		})
	}
}

// same waits for the end of a run in all dialects and compares their reports.
func (g *gathering) same(speaker *party, ending string) told {
	g.t.Helper()
	native := g.member("native")
	want := native.over()
	if want.ending != ending {
		g.t.Errorf("it ended as %s, not as %s", want.ending, ending)
	}
	for _, p := range g.each(speaker) {
		if p == native {
			continue
		}
		if got := p.over(); p.seen(got) != p.seen(want) {
			g.t.Errorf("%s spoke; %s was told\n%s\nand the log says\n%s", speaker.dialect, p.dialect, p.seen(got),
				p.seen(want))
		}
	}
	return want
}

// speakers returns the dialects that speak: all of them in the session that the native protocol opened, elsewhere the
// opener and the three after it. There the opener makes no difference.
func (g *gathering) speakers() []*party {
	if g.opener == "native" {
		return g.members
	}
	first := slices.Index(dialects, g.opener)
	var some []*party
	for i := range 4 {
		some = append(some, g.members[(first+i)%len(g.members)])
	}
	return some
}

// remembersEverywhere: the conversation belongs to the session, and every dialect continues it.
func remembersEverywhere(t *testing.T, g *gathering) {
	said := "In this session you said:\n\n1. say hello"
	for i, speaker := range g.speakers() {
		speaker.say("what did I say")
		if r := g.same(speaker, "completed"); r.text != said {
			t.Errorf("%s was told %q", speaker.dialect, r.text)
		}
		said += fmt.Sprintf("\n%d. what did I say", i+2)
	}
}

const difficult = `"double" “curly” \ \u0041 {"json":[null]} <b>&amp;</b>` + "\n\ttab\r\n\n" +
	"naïve Ελλάδα 日本語 עברית \u2028 e\u0301 👩‍👩‍👧‍👦 🇪🇺."

func everywhereTheSame(t *testing.T, g *gathering) {
	for i, talk := range []struct{ message, ending, says string }{
		{"think about tea", "completed", "I thought about tea"},
		{"repeat " + difficult, "completed", difficult},
		{"lorem 60", "completed", "lorem ipsum dolor"},
		{"read note.txt", "completed", "tea “for” two"},
		{"read nothing.txt", "completed", "That came to nothing."},
		{"read .env", "completed", "That came to nothing."},
		{"fail midway", "failed", "This answer will break off"},
		{"fail", "failed", ""},
	} {
		speaker := g.members[(i+slices.Index(dialects, g.opener))%len(dialects)] // each dialect speaks in some session
		speaker.say(talk.message)
		if r := g.same(speaker, talk.ending); !strings.Contains(r.text, talk.says) {
			t.Errorf("%s: %q", talk.message, r.text)
		}
	}
}

// cardsEverywhere has every dialect answer the card of another: it allows, denies, and answers a question.
func cardsEverywhere(t *testing.T, g *gathering) {
	asker := g.member(g.opener)
	for _, answerer := range g.members {
		file := strings.ReplaceAll(answerer.dialect, " ", "-") + ".txt"
		for _, one := range []struct {
			message, says string
			answer        func(card, text string)
			text          string
		}{
			{"write it to " + file, "It is written.", answerer.decide, allow},
			{"write it to not-" + file, "A person did not allow this.", answerer.decide, deny},
			{"ask me", "Your answer: Coffee.", answerer.choose, "Coffee"},
		} {
			asker.say(one.message)
			id := g.member("native").until(card).id
			for _, p := range g.each(asker) {
				if p.dialect == "native" {
					continue
				}
				if m := p.until(card); m.id != id && m.id != "" {
					t.Errorf("%s was shown the card %s, not %s", p.dialect, m.id, id)
				}
			}
			one.answer(id, one.text)
			for _, p := range g.each(asker) {
				if p == answerer && p.dialect == "agent loop" && one.message != "ask me" {
					continue // in these dialects the events after the answer confirm it
				}
				if m := p.until(cleared); m.id != id && m.id != "" {
					t.Errorf("%s was told that %s is settled, not %s", p.dialect, m.id, id)
				}
			}
			if r := g.same(asker, "completed"); !strings.Contains(r.text, one.says) {
				t.Errorf("%s, answered by %s: %q", one.message, answerer.dialect, r.text)
			}
		}
		wantFile(t, g.s, file, "it")
		wantNoFile(t, g.s, "not-"+file)
	}
}

// cancelsEverywhere: each dialect cancels a run of every other, if it can.
func cancelsEverywhere(t *testing.T, g *gathering) {
	asker := g.member(g.opener)
	for _, canceller := range g.members {
		if canceller.cancel == nil {
			continue
		}
		asker.say("count slowly to 1000")
		for _, p := range g.each(asker) {
			if p.dialect == "agent chat" {
				p.until(started)
			} else {
				p.until(words)
			}
		}
		canceller.cancel(asker)
		g.same(asker, "cancelled")
		asker.say("say silence") // and no other message comes
		if r := g.same(asker, "completed"); r.text != "silence" {
			t.Errorf("after %s cancelled: %q", canceller.dialect, r.text)
		}
	}
}

// busyEverywhere: during a run, the documents' sockets queue messages and the
// event bus steers.
func busyEverywhere(t *testing.T, g *gathering) {
	asker := g.member(g.opener)
	for _, other := range g.speakers() {
		if other.deaf {
			continue // it gets only the runs of its own messages
		}
		to := 4
		if other.dialect == "event bus" { // its message must come while the run is active
			start := time.Now()
			asker.say("say ready")
			g.same(asker, "completed")
			to = tempo(time.Since(start)).slowCount(10, 6)
		}
		asker.say(fmt.Sprint("count slowly to ", to))
		for _, p := range g.each(asker) {
			if p.dialect == "agent chat" {
				p.until(started)
			} else {
				p.until(words)
			}
		}
		other.say("say " + other.dialect)
		if other.dialect != "event bus" {
			if r := g.same(asker, "completed"); r.text != counted(to) {
				t.Errorf("%s interfered: %q", other.dialect, r.text)
			}
			for _, p := range g.members {
				p.run = told{} // these dialects showed the message during the other run, when it was received
			}
			if r := g.same(other, "completed"); r.text != other.dialect {
				t.Errorf("%s was answered %q", other.dialect, r.text)
			}
			continue
		}
		want := counted(to) + "\n\nevent bus"
		for _, p := range g.each(asker) {
			r := p.over()
			if r.text != want || r.ending != "completed" {
				t.Errorf("steered: %s was told %q %s", p.dialect, r.text, r.ending)
			}
			// Both messages end, in dialects where messages have an end.
			if p.dialect == "thread chat" || p.dialect == "debug console" && !p.deaf {
				if r := p.over(); r.text != "" || r.ending != "completed" {
					t.Errorf("%s was told %q %s", p.dialect, r.text, r.ending)
				}
			}
		}
	}
}

// haltsEverywhere: a leaked canary is shown in no dialect, and the halted
// session refuses new messages in all.
func haltsEverywhere(t *testing.T, g *gathering) {
	speaker := g.member(g.opener)
	speaker.say("leak")
	g.same(speaker, "failed")
	before := len(g.s.events(g.session))
	status, body := g.n.fetch(g.s, "POST", "/api/v1/sessions/"+g.session+"/inputs", `{"content":"say on"}`)
	if status != http.StatusConflict && status != http.StatusGone && status != http.StatusForbidden {
		t.Errorf("after the halt: %d %s", status, body)
	}
	if status, body := g.n.fetch(g.s, "POST", "/api/chat", `{"message":"say on","session_id":"`+g.session+
		`"}`); status < 400 {
		t.Errorf("after the halt: %d %s", status, body)
	}
	if status, body := g.n.fetch(g.s, "POST", "/api/v1/agents/helpful-assistant/message",
		`{"content":"say on","session_id":"`+g.session+`"}`); status != http.StatusServiceUnavailable {
		t.Errorf("after the halt: %d %s", status, body)
	}
	if class, _, about := g.n.openAI(g.s, g.session, "responses.create",
		asking("say on")).refused(); class != "ConflictError" {
		t.Errorf("after the halt: %s", about)
	}
	a := g.n.agui(g.s, g.session)
	a.start(says1("say on"))
	if h := a.next(); h.Event != "error" || h.Code != http.StatusGone {
		t.Errorf("after the halt: %+v", h)
	}
	if got, _ := g.n.aiStream(g.s, "send", g.session, userSays("u-halt", "say on")); len(got) != 1 ||
		!strings.HasPrefix(got[0], "410 AI_APICallError: ") {
		t.Errorf("after the halt: %q", got)
	}
	if why := (a2aClient{n: g.n, s: g.s, version: "1.0"}).refused("send", map[string]any{"text": "say on",
		"context": g.session}); why != "UnsupportedOperationError -32004" {
		t.Errorf("after the halt: %s", why)
	}
	c := g.n.mcp(g.s, false)
	c.ask("say on", g.session)
	if h := c.until("refused"); !strings.HasPrefix(h.Data, "McpError: ") {
		t.Errorf("after the halt: %+v", h)
	}
	e := startEditor(t, nil, "--server", "http://"+g.s.address)
	e.initialize()
	e.must("session/load", map[string]any{"sessionId": g.session, "cwd": g.s.o.workspace, "mcpServers": []any{}},
		&struct{}{})
	if _, answer := e.until(e.begin("session/prompt", prompting(g.session, "say on"))); answer.Error == nil ||
		answer.Error.Name != "RequestError" {
		t.Errorf("after the halt: %s", answer.raw)
	}
	for _, dialect := range []string{"agent chat", "thread chat", "agent loop"} {
		p := g.member(dialect)
		p.refused = ""
		for p.say("say on"); p.refused == ""; {
			p.hear(&p.run)
		}
	}
	if after := len(g.s.events(g.session)); after != before {
		t.Errorf("%d events were appended to a session that was halted", after-before)
	}
}
