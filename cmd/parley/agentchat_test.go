package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley"
	"parley/port"
)

// A chatter is a WebSocket client of agent chat.
type chatter struct {
	t   *testing.T
	ctx context.Context
	c   *websocket.Conn
	all strings.Builder // every frame that it received
}

// chatter connects to agent chat. It returns nil if the server answers 403.
func (w *world) chatter(user parley.PrincipalID, role string) *chatter {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.t.Cleanup(cancel)
	url := strings.Replace(w.addr, "http", "ws", 1) + "/ws?access_token=" + token(w.t, "acme", user, time.Minute, role)
	c, res, err := websocket.Dial(ctx, url, nil)
	if res != nil && res.StatusCode == http.StatusForbidden {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.CloseNow() })
	ch := &chatter{t: w.t, ctx: ctx, c: c}
	// The server reads this frame only after the socket follows the events.
	ch.send(`{"type":"fence"}`)
	ch.until("fence")
	return ch
}

func (c *chatter) send(message string) {
	c.t.Helper()
	if err := c.c.Write(c.ctx, websocket.MessageText, []byte(message)); err != nil {
		c.t.Fatal(err)
	}
}

// until reads frames until one contains any of the words, and returns that frame.
func (c *chatter) until(words ...string) string {
	c.t.Helper()
	for {
		_, msg, err := c.c.Read(c.ctx)
		if err != nil {
			c.t.Fatalf("waiting for %q: %v, after\n%s", words, err, c.all.String())
		}
		fmt.Fprintf(&c.all, "%s\n", msg)
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(string(msg), w) }) {
			return string(msg)
		}
	}
}

// head returns the length of a session's log, as its owner sees it.
func (w *world) head(whose, id string) (head int) {
	w.t.Helper()
	tenant, owner := parley.TenantID("acme"), parley.PrincipalID("ann")
	switch whose {
	case "another's":
		owner = "bob"
	case "another tenant's":
		tenant = "rival"
	}
	r, err := http.NewRequest("GET", w.addr+"/api/v1/sessions/"+id, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token(w.t, tenant, owner, time.Minute, "standard_user"))
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	var m port.Summary
	if err := json.NewDecoder(res.Body).Decode(&m); err != nil || m.Head == 0 {
		w.t.Fatalf("%s: %d %v", id, res.StatusCode, err)
	}
	return int(m.Head)
}

// agentChat sends every kind of frame as every role, about the user's own
// sessions, another user's and another tenant's.
func (w *world) agentChat() {
	for _, bad := range []string{"", "Bearer x", "Bearer " + token(w.t, "acme", "ann", time.Minute, "org_admin") +
		"x"} {
		if status, body := w.ask("GET", "/ws", bad, ""); status != http.StatusUnauthorized {
			w.t.Errorf("agent chat with %.10q: %d %s", bad, status, body)
		}
	}
	const marker = "it has been said"
	for role := range permissions {
		for _, whose := range []string{"her own", "another's", "another tenant's"} {
			mine := whose == "her own" || whose == "another's" && role == "org_admin"
			id := w.object("session", whose)
			c := w.chatter("ann", role)
			if c == nil {
				if slices.Contains(permissions[role], parley.ActRead) {
					w.t.Errorf("agent chat: %s is not let in", role)
				}
				continue
			}
			talks := slices.Contains(permissions[role], parley.ActMessage)

			before := w.head(whose, id)
			c.send(`{"type":"chat","message":"say ` + marker + `","session_id":"` + id + `"}`)
			got := c.until(`"agent_message"`, `"error"`)
			if said := strings.Contains(got, marker); said != talks ||
				!said && !strings.Contains(got, "You may not do this") {
				w.t.Errorf("agent chat: chat as %s on %s: %s", role, whose, got)
			}
			// A user without access to the session gets a new session of the same
			// name instead, and cannot tell the difference.
			if grown := w.head(whose, id) > before; grown != (talks && mine) {
				w.t.Errorf("agent chat: chat as %s on %s: the session has grown is %v", role, whose, grown)
			}

			for _, frame := range []string{`"type":"approval_response","decision":"allow"`,
				`"type":"question_response","answers":[]`, `"type":"tool_call_resolution","resolution":"rerun"`} {
				c.send(`{` + frame + `,"id":"` + id + `.1"}`)
				want := "This was already answered" // also on another tenant's id: ann now has a session of that id
				switch {
				case !talks:
					want = "You may not do this"
				case whose == "another's" && !mine:
					want = "There is no such session."
				case strings.Contains(frame, "resolution"):
					want = "This call needs no resolution."
				}
				if got := c.until(`"error"`); !strings.Contains(got, want) {
					w.t.Errorf("agent chat: %s as %s on %s: %s, want %s", frame, role, whose, got, want)
				}
			}
			w.seen.WriteString(c.all.String())
			c.c.CloseNow()
		}
	}
}

// broadcast checks that every user sees the messages that the user may read, and no
// others.
func (w *world) broadcast() {
	watchers := map[string]*chatter{}
	for role := range permissions {
		if c := w.chatter("ann", role); c != nil {
			watchers[role] = c
		}
	}
	const bobs, last = "this is what bob says", "this is what ann says"
	for _, said := range []struct {
		user parley.PrincipalID
		text string
	}{{"bob", bobs}, {"ann", last}} {
		c := w.chatter(said.user, "standard_user")
		c.send(`{"type":"chat","message":"say ` + said.text + `"}`)
		c.until(`{"type":"agent_message","message":"` + said.text)
	}
	for role, c := range watchers {
		// Events arrive in order, so bob's message would have come before ann's.
		c.until(`{"type":"agent_message","message":"` + last)
		if saw := strings.Contains(c.all.String(), bobs); saw != (role == "org_admin") {
			w.t.Errorf("agent chat: %s was shown what bob says: %v", role, saw)
		}
		w.seen.WriteString(c.all.String())
	}
	if len(watchers) != 4 {
		w.t.Errorf("%d roles may watch", len(watchers))
	}
}
