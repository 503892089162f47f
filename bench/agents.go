package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// An agentServer describes a peer that runs agents: how the bench opens, follows
// and uses its sessions.
type agentServer struct {
	open   func(*trial) (id string, err error)
	follow func(*client) error // called before the first message
	send   func(*client, *answer) error
}

var agentScenarios = []string{"runs", "first", "stream", "memory", "cold"}

// post sends a request and decodes its answer. A status other than 2xx is an error.
func (t *trial) post(path, body string, into any) error {
	status, raw, err := t.do("POST", path, body)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("%s was answered %d %.200s", path, status, raw)
	}
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// langGraph streams the answer in the response to its message.
var langGraph = agentServer{
	open: func(t *trial) (string, error) {
		var thread struct {
			ID string `json:"thread_id"`
		}
		err := t.post("/threads", "{}", &thread)
		return thread.ID, err
	},
	follow: func(*client) error { return nil },
	send: func(c *client, a *answer) error {
		request := c.t.request("POST", "/threads/"+c.id+"/runs/stream", "",
			`{"assistant_id":"agent","input":{"messages":[`+
				`{"role":"user","content":"`+a.prompt()+`"}]},"stream_mode":["messages-tuple"]}`)
		c.t.wg.Go(func() {
			s, err := c.t.loop.dial(c.t.server.address, request, 200)
			if err != nil {
				c.fail("%v", err)
				return
			}
			s.whole, s.feed = true, s.chunks
			s.message = func(now int64, _, event []byte) {
				switch {
				case bytes.HasPrefix(event, []byte("event: messages")):
					c.text(now, field(event, `"content": "`))
				case bytes.HasPrefix(event, []byte("event: error")):
					c.fail("the server sent %.300s", event)
				}
			}
			s.lost = func(err error) {
				if !errors.Is(err, io.EOF) {
					c.fail("a stream ended: %v", err)
					return
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				c.end(clock())
			}
			if err := s.listen(); err != nil {
				c.fail("%v", err)
			}
		})
		return nil
	},
}

// An eventHub distributes the events of opencode's single stream to the clients
// of its sessions.
type eventHub struct {
	connect sync.Once
	err     error // of connect

	mu       sync.Mutex // guards sessions; leaf
	sessions map[string]*client
}

// listen follows the events of a server. The connection ends when the server does.
func (h *eventHub) listen(t *trial) error {
	h.sessions = map[string]*client{}
	c, err := t.loop.dial(t.server.address, t.request("GET", "/event", "", ""), 200)
	if err != nil {
		return err
	}
	c.feed, c.message = c.chunks, h.event
	return c.listen()
}

var openCode = agentServer{
	open: func(t *trial) (string, error) {
		var session struct{ ID string }
		err := t.post("/session", `{"title":"bench"}`, &session)
		return session.ID, err
	},
	follow: func(c *client) error {
		hub := &c.t.hub
		hub.connect.Do(func() { hub.err = hub.listen(c.t) })
		hub.mu.Lock()
		defer hub.mu.Unlock()
		hub.sessions[c.id] = c
		return hub.err
	},
	send: func(c *client, a *answer) error {
		c.t.wg.Go(func() {
			if err := c.t.post("/session/"+c.id+"/prompt_async", `{"model":{"providerID":"bench","modelID":"bench"},`+
				`"parts":[{"type":"text","text":"`+a.prompt()+`"}]}`, nil); err != nil {
				c.fail("%v", err)
			}
		})
		return nil
	},
}

func (h *eventHub) event(now int64, _, data []byte) {
	h.mu.Lock()
	c := h.sessions[string(field(data, `"sessionID":"`))]
	h.mu.Unlock()
	if c == nil {
		return
	}
	switch string(field(data, `"type":"`)) {
	case "message.part.delta":
		c.text(now, field(data, `"delta":"`))
	case "session.idle":
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(now)
	case "session.error":
		c.fail("the server sent %.300s", data)
	}
}

// firstSession retries until a server that has just started opens a session.
func (t *trial) firstSession() error {
	for deadline := time.Now().Add(30 * time.Second); ; {
		ctx, cancel := context.WithTimeout(t.ctx, 5*time.Second)
		attempt := &trial{bench: t.bench, ctx: ctx, server: t.server}
		_, err := t.peer.agent.open(attempt)
		cancel()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if !t.pace.until(t.ctx, clock()+int64(5*time.Millisecond)) {
			return t.ctx.Err()
		}
	}
}

// coldPeer measures the time from the start of a peer to its first session.
func (t *trial) coldPeer() error {
	h := &histogram{}
	for range t.pick(3, 1) {
		if err := t.startPeer(); err != nil {
			return err
		}
		h.record(int64(time.Since(t.server.begun)))
		t.stopServers()
	}
	t.record("empty_first_session_ms", h.ms(0.5))
	return nil
}
