package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"parley"
)

// looper connects to the agent loop. It also returns the status of the answer.
func (w *world) looper(path, query, role string) (*chatter, int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.t.Cleanup(cancel)
	url := strings.Replace(w.addr, "http", "ws", 1) + path + "?access_token=" + token(w.t, "acme", "ann", time.Minute,
		role) + query
	c, res, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		if res == nil {
			w.t.Fatal(err)
		}
		return nil, res.StatusCode
	}
	w.t.Cleanup(func() { c.CloseNow() })
	return &chatter{t: w.t, ctx: ctx, c: c}, res.StatusCode
}

// agentLoop has every role connect, resume sessions of every owner, and send a
// message, at both addresses of the agent loop.
func (w *world) agentLoop() {
	const marker = "looped"
	for _, path := range []string{"/", "/api/agentloop/ws"} {
		for _, bad := range []string{"", "?access_token=x"} {
			_, res, err := websocket.Dial(context.Background(), strings.Replace(w.addr, "http", "ws", 1)+path+bad, nil)
			if err == nil || res == nil || res.StatusCode != http.StatusUnauthorized {
				w.t.Errorf("%s%s: %v", path, bad, err)
			}
		}
		for role := range permissions {
			reads, talks := slices.Contains(permissions[role], parley.ActRead),
				slices.Contains(permissions[role], parley.ActMessage)
			for _, whose := range []string{"", "her own", "another's", "another tenant's"} {
				query, mine := "", whose == "" || whose == "her own" || whose == "another's" && role == "org_admin"
				if whose != "" {
					query = "&session=" + w.object("session", whose)
				}
				want := http.StatusSwitchingProtocols
				if !reads {
					want = http.StatusForbidden
				} else if !mine {
					want = http.StatusNotFound
				}
				c, got := w.looper(path, query, role)
				if got != want {
					w.t.Errorf("agent loop: %s as %s on %q: %d, want %d", path, role, whose, got, want)
				}
				if c == nil {
					continue
				}
				c.send(`{"id":"x","type":"user_input","payload":{"input":[{"role":"user","content":"say ` + marker +
					`"}]}}`)
				answer := c.until("agent_finished", `"error"`)
				if talks != strings.Contains(answer, "agent_finished") ||
					!talks && !strings.Contains(answer, "You may not do this") {
					w.t.Errorf("agent loop: as %s on %q: %s", role, whose, answer)
				}
				if talks {
					for _, frame := range []string{`"type":"approval_response","payload":{"review":"yes"}`,
						`"type":"manual_compact"`} {
						c.send(`{"id":"x",` + frame + `}`)
						c.until(`"error"`, "context_compacted")
					}
				}
				w.seen.WriteString(c.all.String())
				c.c.CloseNow()
			}
		}
	}
	if !strings.Contains(w.seen.String(), `"text":"`+marker+`"`) {
		w.t.Error("agent loop: nothing was said")
	}
}
