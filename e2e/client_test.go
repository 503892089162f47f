package e2e

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A node is one test's view of npm ws, npm eventsource and fetch. All tests
// share one process of Node.js that runs client.mjs.
type node struct {
	t *testing.T
	*remote
}

// remote is the state that the process keeps for one test.
type remote struct {
	*clientProcess
	ended map[string]bool // requests whose end a socket of the test has received
}

type clientProcess struct {
	stdin  io.WriteCloser
	stderr strings.Builder
	exited chan error

	mu      sync.Mutex // guards the following
	last    int        // number of the latest socket
	sockets map[string]*socket
}

var sharedClient struct {
	sync.Once
	*clientProcess
	err error
}

// startNode gives a test its own clients. They end with the test.
func startNode(t *testing.T) *node {
	t.Helper()
	sharedClient.Do(func() { sharedClient.clientProcess, sharedClient.err = startClientProcess() })
	if sharedClient.err != nil {
		t.Fatal(sharedClient.err)
	}
	return &node{t, &remote{sharedClient.clientProcess, map[string]bool{}}}
}

func startClientProcess() (*clientProcess, error) {
	for _, name := range []string{"ws", "eventsource"} {
		if _, err := os.Stat("node_modules/" + name); err != nil {
			return nil, fmt.Errorf("npm %s is not installed; run npm ci in e2e, or make test", name)
		}
	}
	p := &clientProcess{exited: make(chan error), sockets: map[string]*socket{}}
	cmd := exec.Command("node", "client.mjs")
	cmd.Stderr = &p.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.stdin = stdin
	go func() {
		p.listen(stdout)
		p.exited <- cmd.Wait()
	}()
	return p, nil
}

// stopNode ends the process when the last test that uses it has ended.
func stopNode() error {
	p := sharedClient.clientProcess
	if p == nil {
		return nil
	}
	p.stdin.Close() // this ends client.mjs
	if err := <-p.exited; err != nil {
		return fmt.Errorf("node: %w\n%s", err, p.stderr.String())
	}
	return nil
}

// reaches waits until fetch has no connection left to a server that was killed before s.
func (n *node) reaches(s *server) {
	n.t.Helper()
	await(n.t, patience, "a new connection", func() bool {
		c := n.newSocket()
		n.do(map[string]any{"do": "fetch", "socket": c.name, "url": "http://" + s.address + "/healthz",
			"method": "GET"})
		return c.next().Code == http.StatusOK
	})
}

// restarted kills a server and starts it again at its address.
func (n *node) restarted(s *server) *server {
	n.t.Helper()
	o := s.o
	o.listen = s.address
	again := startServer(n.t, o)
	n.reaches(again)
	return again
}

// in returns the same node for a subtest.
func (n *node) in(t *testing.T) *node { return &node{t, n.remote} }

// newSocket names a connection, which ends with the test.
func (n *node) newSocket() *socket {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	s := &socket{t: n.t, node: n, name: strconv.Itoa(n.last), events: newList[happened]()}
	n.sockets[s.name] = s
	n.t.Cleanup(func() {
		n.do(map[string]any{"do": "forget", "socket": s.name})
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.sockets, s.name)
	})
	return s
}

// A happened is one line of client.mjs: an event of a client.
type happened struct {
	Socket string
	Event  string
	Data   string
	Binary bool
	Code   int
	ID     string
}

func (n *clientProcess) listen(stdout io.Reader) {
	b := bufio.NewReader(stdout)
	for {
		line, err := b.ReadBytes('\n')
		var h happened
		if err != nil || json.Unmarshal(line, &h) != nil {
			break
		}
		n.mu.Lock()
		s := n.sockets[h.Socket]
		n.mu.Unlock()
		if s != nil { // the test has not ended
			s.events.add(h)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.sockets {
		s.events.end()
	}
}

func (n *node) do(command map[string]any) {
	n.t.Helper()
	raw, err := json.Marshal(command)
	if err != nil {
		n.t.Fatal(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := n.stdin.Write(append(raw, '\n')); err != nil {
		n.t.Fatalf("node: %v\n%s", err, n.stderr.String())
	}
}

// open begins a connection; its outcome is the first event.
func (n *node) open(url string, headers map[string]string) *socket {
	n.t.Helper()
	s := n.newSocket()
	n.do(map[string]any{"do": "open", "socket": s.name, "url": url, "headers": headers})
	return s
}

// dial connects to a thread as a client that shows cards. When it returns, the
// server has entered the thread: the socket gets everything that happens from
// then on.
func (n *node) dial(s *server, thread string) *socket {
	n.t.Helper()
	return n.enter(s, thread, "&cards=1")
}

// enter is dial with other parameters of the address.
func (n *node) enter(s *server, thread, more string) *socket {
	n.t.Helper()
	c := n.open("ws://"+s.address+"/api/chat/ws?threadId="+thread+more, nil)
	c.thread, c.past = thread, maps.Clone(n.ended)
	c.opened()
	c.settle()
	return c
}

// A tempo measures how long an answer takes on this machine now. A test that acts during an answer asks for one that
// lasts many times as long.
type tempo time.Duration

// tempo measures a connection and a short answer.
func (n *node) tempo(s *server) tempo {
	n.t.Helper()
	start := time.Now()
	c := n.dial(s, newThread())
	silent(n.t, c)
	c.close()
	return tempo(time.Since(start))
}

// count returns a number to count to that takes the demo model as many times as long, and at least as long as least
// takes.
func (d tempo) count(times, least int) int { return least + times*int(time.Duration(d)/usualPace) }

// slowCount is count for "count slowly".
func (d tempo) slowCount(times, least int) int {
	return least + times*int(time.Duration(d)/(10*usualPace))
}

// seconds returns a delay that is ten times as long, and at least as long as least.
func (d tempo) seconds(least int) int { return least + int(10*time.Duration(d)/time.Second) }

// newThread returns the name of a thread that does not exist yet.
func newThread() string { return uuid.NewString() }

// A socket is one connection of npm ws. Its methods are for the test's own
// goroutine. They end the test if something unexpected comes.
type socket struct {
	t      *testing.T
	node   *node
	name   string
	thread string
	events *list[happened]
	read   int             // number of events taken
	past   map[string]bool // requests whose end other sockets received before this one connected
}

// A frame is any message of the server. Each type has some of the fields.
type frame struct {
	Type      string
	RequestID string
	ThreadID  string
	AgentID   string
	Content   string
	Error     string
	Value     string
	Message   string
	Retryable *bool
	LatencyMs *int64
	ID        string
	Tool      string
	Command   string
	Decision  string
	Card      string // the card that the text is about
	ExpiresAt string
	Questions []struct {
		Question, Header string
		Options          []struct{ Label string }
	}
	raw string
}

// next waits for the next event of the socket.
func (c *socket) next() happened {
	c.t.Helper()
	for {
		h, err := c.events.at(within(c.t, patience), c.read)
		if err != nil {
			c.t.Fatalf("socket %s: %v; before that:\n%s", c.name, err, c.history())
		}
		c.read++
		if !isFence(h) {
			return h
		}
	}
}

func (c *socket) history() string {
	var b strings.Builder
	events := c.events.all()
	for _, h := range events[max(0, len(events)-20):] {
		fmt.Fprintf(&b, "\t%s %d %.300s\n", h.Event, h.Code, h.Data)
	}
	return b.String()
}

func (c *socket) opened() {
	c.t.Helper()
	h := c.next()
	if h.Event == "upgrade" { // the server named the session in its upgrade
		h = c.next()
	}
	if h.Event != "open" {
		c.t.Fatalf("socket %s: want open, got %+v", c.name, h)
	}
}

// refused expects that the server answers the upgrade with an error status.
func (c *socket) refused() (status int, body string) {
	c.t.Helper()
	h := c.next()
	if h.Event != "refused" {
		c.t.Fatalf("socket %s: want a refusal, got %+v", c.name, h)
	}
	return h.Code, h.Data
}

// closed expects that the server closes the socket now, with this code, and returns its reason.
func (c *socket) closed(code int) (reason string) {
	c.t.Helper()
	h := c.next()
	switch {
	case h.Event != "close" || h.Code != code:
		c.t.Fatalf("socket %s: want close %d, got %s %d %q", c.name, code, h.Event, h.Code, h.Data)
	case h.Data == "":
		c.t.Errorf("socket %s: close %d without a reason", c.name, code)
	}
	return h.Data
}

// gone waits for the end of the connection and skips everything before it.
func (c *socket) gone() (code int) {
	c.t.Helper()
	h, err := c.events.find(within(c.t, patience), func(h happened) bool { return h.Event == "close" })
	if err != nil {
		c.t.Fatalf("socket %s: %v", c.name, err)
	}
	return h.Code
}

// frame waits for the next message.
func (c *socket) frame() frame {
	c.t.Helper()
	h := c.next()
	if h.Event != "message" || h.Binary {
		c.t.Fatalf("socket %s: want a text message, got %s %d %q", c.name, h.Event, h.Code, h.Data)
	}
	f := frame{raw: h.Data}
	if err := json.Unmarshal([]byte(h.Data), &f); err != nil {
		c.t.Fatalf("socket %s: %v in %s", c.name, err, h.Data)
	}
	return f
}

// expect waits for the next message, which must be of a type.
func (c *socket) expect(kind string) frame {
	c.t.Helper()
	f := c.frame()
	if f.Type != kind {
		c.t.Fatalf("socket %s: want %s, got %s; before that:\n%s", c.name, kind, f.raw, c.history())
	}
	return f
}

// skipTo waits for a message of a type and skips pieces of text only.
func (c *socket) skipTo(kind string) frame {
	c.t.Helper()
	for {
		f := c.frame()
		if f.Type == kind {
			return f
		}
		if f.Type != "content" && f.Type != "token" {
			c.t.Fatalf("socket %s: want %s, got %s; before that:\n%s", c.name, kind, f.raw, c.history())
		}
	}
}

// An answer is one run as a socket received it.
type answer struct {
	request string
	text    string
	ending  string  // the type of the last frame
	frames  []frame // all frames
}

// answer expects a whole run and nothing else: its start, pieces, its end.
//
// If the server could not record that a run was delivered, it sends the run
// again to a new socket, under the same request. Clients know what they have,
// and skip it. TestAnAnswerThatWasShownIsNotShownAgain checks when the server
// must not do this.
func (c *socket) answer() answer {
	c.t.Helper()
	for {
		a := c.rest(c.expect("chat.started"))
		if !c.past[a.request] {
			c.past = nil // repeated runs come first
			return a
		}
	}
}

// completed is an answer that must have ended well.
func (c *socket) completed() answer {
	c.t.Helper()
	a := c.answer()
	if a.ending != "chat.completed" {
		c.t.Fatalf("socket %s: want chat.completed, got %s", c.name, a.frames[len(a.frames)-1].raw)
	}
	return a
}

// rest reads the rest of an answer after some frames.
func (c *socket) rest(seen ...frame) answer {
	c.t.Helper()
	a := answer{request: seen[0].RequestID, frames: seen}
	for _, f := range seen {
		a.text += f.Content
	}
	for {
		f := c.frame()
		if f.RequestID != a.request {
			c.t.Fatalf("socket %s: in the answer to %s came %s", c.name, a.request, f.raw)
		}
		a.frames = append(a.frames, f)
		switch f.Type {
		case "content":
			a.text += f.Content
		case "chat.completed", "cancelled", "error":
			a.ending, c.node.ended[a.request] = f.Type, true
			return a
		default:
			c.t.Fatalf("socket %s: in the answer to %s came %s", c.name, a.request, f.raw)
		}
	}
}

// pieces takes the start of a run and some pieces of its text, so that the run is under way.
func (c *socket) pieces(n int) []frame {
	c.t.Helper()
	frames := []frame{c.expect("chat.started")}
	for range n {
		frames = append(frames, c.expect("content"))
	}
	return frames
}

func (c *socket) do(what string, more map[string]any) {
	c.t.Helper()
	command := map[string]any{"do": what, "socket": c.name}
	maps.Copy(command, more)
	c.node.do(command)
}

// text sends a text message unchanged.
func (c *socket) text(data string) {
	c.t.Helper()
	c.do("text", map[string]any{"data": data})
}

// raw sends bytes as a text message, even if they are not valid text.
func (c *socket) raw(data string) {
	c.t.Helper()
	c.do("raw", map[string]any{"data": base64.StdEncoding.EncodeToString([]byte(data))})
}

func (c *socket) binary(data string) {
	c.t.Helper()
	c.do("binary", map[string]any{"data": base64.StdEncoding.EncodeToString([]byte(data))})
}

// send sends an object.
func (c *socket) send(message map[string]any) {
	c.t.Helper()
	raw, err := json.Marshal(message)
	if err != nil {
		c.t.Fatal(err)
	}
	c.text(string(raw))
}

// ask sends a chat.request, as the document has it.
func (c *socket) ask(content string) {
	c.t.Helper()
	c.send(map[string]any{"type": "chat.request", "threadId": c.thread, "content": content})
}

// askAs sends a chat.request under a name that the client chooses.
func (c *socket) askAs(request, content string) {
	c.t.Helper()
	c.send(map[string]any{"type": "chat.request", "threadId": c.thread, "content": content, "requestId": request})
}

func (c *socket) cancel(request string) {
	c.t.Helper()
	c.send(map[string]any{"type": "cancel", "requestId": request})
}

// close closes the connection and waits until the server has closed it, too.
func (c *socket) close() {
	c.t.Helper()
	c.do("close", map[string]any{"code": 1000, "reason": "done"})
	c.gone()
}

// terminate drops the connection as a lost network would.
func (c *socket) terminate() {
	c.t.Helper()
	c.do("terminate", nil)
	c.gone()
}

// fence is an unknown message type. The server sends the error about it to its
// sender alone, after it has received everything sent before.
const fence = "e2e-fence"

func isFence(h happened) bool { return h.Event == "message" && strings.Contains(h.Data, fence) }

// settle waits until the server reads the socket. The upgrade is answered
// before the thread is entered; messages are read only after that.
func (c *socket) settle() {
	c.t.Helper()
	c.send(map[string]any{"type": fence})
	h, err := c.events.find(within(c.t, patience), func(h happened) bool { return h.Event == "close" || isFence(h) })
	if err != nil || h.Event == "close" {
		c.t.Fatalf("socket %s: not entered (%v):\n%s", c.name, err, c.history())
	}
}

// silent checks that the sockets have no message left to take: one of them
// asks, and the answer must be the next thing that all of them get. They must
// belong to one idle thread.
func silent(t *testing.T, sockets ...*socket) {
	t.Helper()
	sockets[0].ask("repeat silence")
	var request string
	for i, c := range sockets {
		a := c.completed()
		if i == 0 {
			request = a.request
		}
		if a.request != request || a.text != "silence" {
			t.Fatalf("socket %s: something else came: %+v", c.name, a)
		}
	}
}
