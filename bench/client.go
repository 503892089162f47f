package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A client follows a session of a Parley server and can send messages to it. It
// uses either a WebSocket of thread chat, or server-sent events of the native
// log with separate requests.
type client struct {
	t  *trial
	id string
	sse,
	watches bool // only follows a session that another client writes to
	agent  string // agent of its messages; empty: the default
	stream *conn
	post   *conn // connection for messages, with sse

	mu    sync.Mutex // guards the fields below; leaf
	tally tally
	now   int64                      // time at which the current message was read
	began func(now int64)            // called when a run has begun
	ended func(now int64, a *answer) // called when a run has ended
	heard func(now int64)            // called for every part of an answer
	gone  error                      // why the connection ended
	quit  bool                       // close was called
	idle  chan struct{}              // closed when every expected run has ended
	ready chan struct{}              // closed when the fence is answered
}

func newID() string { return uuid.Must(uuid.NewRandomFromReader(rand.Reader)).String() }

// open connects a client to a session. An empty id means a new session. token
// is called for each token, with the time at which it was read.
func (t *trial) open(id string, token func(now int64, a *answer, index int, stamp int64)) (*client, error) {
	c := &client{t: t, id: id, sse: t.o.Transport == "sse", watches: id != ""}
	if t.peer != nil {
		return c, c.joinPeer(token)
	}
	if c.id == "" {
		c.id = newID()
	}
	if err := c.connect(token, ""); err != nil {
		return nil, err
	}
	return c, nil
}

// joinPeer opens a session on a peer.
func (c *client) joinPeer(token func(now int64, a *answer, index int, stamp int64)) (err error) {
	c.listenTo(token)
	if c.id, err = c.t.peer.agent.open(c.t); err != nil {
		return err
	}
	return c.t.peer.agent.follow(c)
}

func (c *client) listenTo(token func(now int64, a *answer, index int, stamp int64)) {
	if token != nil {
		c.tally.token = func(a *answer, index int, stamp int64) { token(c.now, a, index, stamp) }
	}
}

func (c *client) connect(token func(now int64, a *answer, index int, stamp int64), after string) (err error) {
	c.listenTo(token)
	if c.sse {
		return c.connectEvents(after)
	}
	c.stream, err = c.t.loop.dial(c.t.server.address, c.t.upgrade("/api/chat/ws?threadId="+c.id), 101)
	if err != nil {
		return err
	}
	c.stream.feed, c.stream.message, c.stream.lost = c.stream.frames, c.threadFrame, c.lost
	if err := c.stream.listen(); err != nil {
		return err
	}
	return c.fence()
}

// fence waits until the server reads the socket, and so follows the session: it
// answers an unknown frame with an error.
func (c *client) fence() error {
	ready := make(chan struct{})
	c.mu.Lock()
	c.ready = ready
	c.mu.Unlock()
	if err := c.stream.write(appendFrame(nil, opText, []byte(`{"type":"fence"}`))); err != nil {
		return err
	}
	select {
	case <-ready:
	case <-time.After(30 * time.Second):
		return errors.New("a new socket was not answered within 30 s")
	case <-c.t.ctx.Done():
		return c.t.ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

func (c *client) connectEvents(after string) (err error) {
	if !c.watches && after == "" {
		if err := c.t.openSession(c.id); err != nil {
			return err
		}
	}
	request := c.t.request("GET", "/api/v1/sessions/"+c.id+"/log", "Accept: text/event-stream\r\n"+after, "")
	if c.stream, err = c.t.loop.dial(c.t.server.address, request, 200); err != nil {
		return err
	}
	c.stream.feed, c.stream.message, c.stream.lost = c.stream.chunks, c.logEvent, c.lost
	if err := c.stream.listen(); err != nil || c.watches || c.post != nil {
		return err
	}
	if c.post, err = c.t.loop.dial(c.t.server.address, "", 0); err != nil {
		return err
	}
	c.post.feed, c.post.lost = c.post.responses, c.lost
	c.post.message = func(_ int64, status, body []byte) {
		if !bytes.HasSuffix(status, []byte(" 202")) {
			c.fail("a message was answered %s %.200s", status, body)
		}
	}
	return c.post.listen()
}

// close closes the connections.
func (c *client) close() {
	c.mu.Lock()
	c.quit = true
	c.mu.Unlock()
	if c.stream != nil {
		c.stream.hangUp()
	}
	if c.post != nil {
		c.post.hangUp()
	}
}

func (c *client) lost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.quit && c.gone == nil {
		c.gone = fmt.Errorf("a connection ended: %w", err)
		c.release()
		if c.ready != nil {
			close(c.ready)
			c.ready = nil
		}
	}
}

func (c *client) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.fail(format, args...)
	c.release()
}

// release ends wait. The caller holds mu.
func (c *client) release() {
	if c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// expect adds a run to those that must come. It is called for every client of a
// session before the message is sent.
func (c *client) expect(a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.expect = append(c.tally.expect, a)
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
}

// send sends the message that requests an answer.
func (c *client) send(a *answer) error {
	if c.t.peer != nil {
		return c.t.peer.agent.send(c, a)
	}
	name := ""
	if c.sse {
		if c.agent != "" {
			name = `"agent":"` + c.agent + `",`
		}
		return c.post.write([]byte(c.t.request("POST", "/api/v1/sessions/"+c.id+"/inputs", "",
			`{`+name+`"content":"`+a.prompt()+`"}`)))
	}
	if c.agent != "" {
		name = `"agentId":"` + c.agent + `",`
	}
	return c.stream.write(appendFrame(nil, opText,
		[]byte(`{"type":"chat.request","threadId":"`+c.id+`",`+name+`"content":"`+a.prompt()+`"}`)))
}

// ask expects a run and sends its message.
func (c *client) ask(a *answer) error {
	c.expect(a)
	return c.send(a)
}

// wait waits until every expected run has ended, and returns the first error.
func (c *client) wait(ctx context.Context) error {
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			c.mu.Lock()
			defer c.mu.Unlock()
			return fmt.Errorf("%d of %d runs of a session ended, %d tokens into the next: %w", c.tally.run,
				len(c.tally.expect), c.tally.index, ctx.Err())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tally.err != nil {
		return c.tally.err
	}
	if c.gone != nil {
		return c.gone
	}
	return c.tally.finished()
}

// end handles the end of a run. The caller holds mu.
func (c *client) end(now int64) {
	c.tally.end()
	if n := c.tally.run; n > 0 && n <= len(c.tally.expect) && c.ended != nil {
		c.ended(now, c.tally.expect[n-1])
	}
	if c.tally.run == len(c.tally.expect) || c.tally.err != nil {
		c.release()
	}
}

// text handles a part of an answer.
func (c *client) text(now int64, part []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard != nil {
		c.heard(now)
	}
	c.now = now
	if c.tally.text(part); c.tally.err != nil {
		c.release()
	}
}

func (c *client) threadFrame(now int64, _, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard != nil {
		c.heard(now)
	}
	switch {
	case bytes.HasPrefix(data, []byte(`{"type":"content"`)):
		c.now = now
		c.tally.text(field(data, `"content":"`))
	case bytes.HasPrefix(data, []byte(`{"type":"chat.completed"`)):
		c.end(now)
	case bytes.HasPrefix(data, []byte(`{"type":"chat.started"`)):
		if c.began != nil {
			c.began(now)
		}
	case c.ready != nil && bytes.HasPrefix(data, []byte(`{"type":"error"`)):
		close(c.ready)
		c.ready = nil
	default:
		c.tally.fail("the server sent %.200s", data)
		c.release()
	}
}

func (c *client) logEvent(now int64, id, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard != nil {
		c.heard(now)
	}
	c.tally.sequence(seqOf(id))
	switch string(field(data, `"type":"`)) {
	case "OutputAppended":
		c.now = now
		c.tally.text(field(data, `"text":"`))
	case "RunStarted":
		if c.began != nil {
			c.began(now)
		}
	case "RunFinished":
		if outcome := field(data, `"outcome":"`); string(outcome) != "completed" {
			c.tally.fail("a run ended as %s", outcome)
		}
		c.end(now)
	}
	if c.tally.err != nil {
		c.release()
	}
}

// Requests.

func (t *trial) headers() string {
	h := "Host: " + t.server.address + "\r\n"
	if t.o.Token != "" {
		h += "Authorization: Bearer " + t.o.Token + "\r\n"
	}
	return h
}

// request formats a request. header consists of complete lines.
func (t *trial) request(method, path, header, body string) string {
	head := method + " " + path + " HTTP/1.1\r\n" + t.headers() + header
	if body != "" {
		head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return head + "\r\n" + body
}

func (t *trial) upgrade(path string) string { return upgradeRequest(path, t.headers()) }

func upgradeRequest(path, headers string) string {
	return "GET " + path + " HTTP/1.1\r\n" + headers + "Connection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: YmVuY2hiZW5jaGJlbmNoIQ==\r\n\r\n"
}

// do sends a request that is not measured.
func (t *trial) do(method, path, body string, header ...string) (int, []byte, error) {
	status, raw, err := t.fetch(method, path, body, header...)
	if err != nil {
		return 0, nil, err
	}
	defer raw.Close()
	all, err := io.ReadAll(raw)
	return status, all, err
}

// fetch sends a request with further header fields, as names and values.
func (t *trial) fetch(method, path, body string, header ...string) (int, io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(t.ctx, method, "http://"+t.server.address+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if t.o.Token != "" {
		r.Header.Set("Authorization", "Bearer "+t.o.Token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := t.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	return answer.StatusCode, answer.Body, nil
}

func (t *trial) openSession(id string) error {
	status, body, err := t.do("POST", "/api/v1/sessions", fmt.Sprintf(`{"id":%q}`, id))
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("opening a session was answered %d %.200s", status, body)
	}
	return err
}

// get sends a request and decodes the answer.
func (t *trial) get(path string, into any) error {
	status, body, err := t.do("GET", path, "")
	if err == nil && status != 200 {
		err = fmt.Errorf("%s was answered %d %.200s", path, status, body)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// checkLogs compares the logs of a Parley server's sessions with the expected
// runs.
func (t *trial) checkLogs(clients []*client) error {
	if t.peer != nil {
		return nil // a peer's log, if it has one, has another format
	}
	for _, c := range clients {
		if err := t.checkSession(c.id, c.tally.expect); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) checkSession(id string, runs []*answer) error {
	status, body, err := t.fetch("GET", "/api/v1/sessions/"+id+"/log", "")
	if err != nil {
		return err
	}
	defer body.Close()
	if status != 200 {
		return fmt.Errorf("the log of session %s was answered %d", id, status)
	}
	if err := checkLog(body, runs); err != nil {
		return fmt.Errorf("session %s: %w", id, err)
	}
	return nil
}

// together runs f for 0 to n-1, at most width at a time, and returns the first
// error.
func together(n, width int, f func(i int) error) error {
	var wg sync.WaitGroup
	var once sync.Once
	var failed error
	places := make(chan struct{}, width)
	for i := range n {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			if err := f(i); err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	wg.Wait()
	return failed
}

// openMany opens n sessions with one client each.
func (t *trial) openMany(n int, token func(now int64, a *answer, index int, stamp int64)) ([]*client, error) {
	list := make([]*client, n)
	err := together(n, 32, func(i int) (err error) {
		list[i], err = t.open("", token)
		return err
	})
	return list, err
}

func closeAll(clients []*client) {
	for _, c := range clients {
		if c != nil {
			c.close()
		}
	}
}

// waitAll waits for the runs of all clients, up to a time limit.
func (t *trial) waitAll(clients []*client, within time.Duration) error {
	ctx, cancel := context.WithTimeout(t.ctx, within)
	defer cancel()
	for _, c := range clients {
		if err := c.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
