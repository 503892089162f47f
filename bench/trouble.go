package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Scenarios with problems: clients that stop reading, connect and disconnect, or
// send too much at once, and a server that is killed.

// peak samples the server's memory until stop is called, which returns the maximum.
func (t *trial) peak() (stop func() int64) {
	ctx, cancel := context.WithCancel(t.ctx)
	var most int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for most = t.usage().rss; t.pace.until(ctx, clock()+int64(50*time.Millisecond)); {
			most = max(most, t.usage().rss)
		}
	}()
	return func() int64 {
		cancel()
		<-done
		return max(most, t.usage().rss)
	}
}

// runSlow measures readers that read a few KB a second while an agent streams 100 MB to each. Other readers must not be
// slower, and memory must stay flat. The server closes connections that read nothing for 10 s, so these read just
// enough. The same load without slow readers runs on another server, because the conversation needs memory, too.
func runSlow(t *trial) error {
	alone, without, err := t.streamBeside(0)
	if err != nil {
		return err
	}
	t.stopServers()
	n := t.size(1000, 10)
	beside, with, err := t.streamBeside(n)
	if err != nil {
		return err
	}
	t.record("others_alone_p50_ms", alone.ms(0.5))
	t.record("others_beside_stalled_p50_ms", beside.ms(0.5))
	t.record("others_p50_ratio", beside.ms(0.5)/alone.ms(0.5))
	t.record("peak_alone_mb", mib(without))
	t.record("peak_beside_stalled_mb", mib(with))
	t.record("kb_per_stalled_reader", float64(with-without)/1024/float64(n))
	return nil
}

// streamBeside streams 105 MB to ten readers and to slow ones. It returns the lag of the ten and the peak memory of the
// server.
func (t *trial) streamBeside(slow int) (lag *histogram, peak int64, err error) {
	if err := t.start(); err != nil {
		return nil, 0, err
	}
	lag = &histogram{}
	clients, err := t.followers(t.pick(10, 3), func(now int64, a *answer, _ int, stamp int64) {
		lag.record(now - stamp)
	})
	defer closeAll(clients)
	if err != nil {
		return nil, 0, err
	}
	stalled, err := t.stalled(clients[0].id, slow)
	defer func() {
		for _, c := range stalled {
			c.hangUp()
		}
	}()
	if err != nil {
		return nil, 0, err
	}
	highest, sip := t.peak(), t.sip(stalled)
	err = t.streamMuch(clients, slow)
	open := sip()
	peak = highest()
	switch {
	case err != nil:
		return nil, 0, err
	case open < slow:
		return nil, 0, fmt.Errorf("the server closed %d of %d slow readers", slow-open, slow)
	}
	return lag, peak, t.checkLogs(clients[:1])
}

// streamMuch streams 32 answers of 3.3 MB, one after the other, because an answer is limited to 4 MiB.
func (t *trial) streamMuch(clients []*client, slow int) error {
	tokens, size := t.pick(400, 20), t.pick(8<<10, 1<<10)
	for i := range t.pick(32, 2) {
		if err := t.askAll(clients, answer{tokens: tokens, gap: 5 * time.Millisecond, size: size}); err != nil {
			return err
		}
		if err := t.waitAll(clients, time.Minute); err != nil {
			return err
		}
		t.point(fmt.Sprintf("memory beside %d slow readers, MB by MB streamed", slow), mib(int64((i+1)*tokens*size)),
			mib(t.usage().rss))
	}
	return nil
}

// sip reads a little from connections that the loop does not read. stop returns how many of them are still open.
func (t *trial) sip(conns []*conn) (stop func() int) {
	ctx, cancel := context.WithCancel(t.ctx)
	left := make(chan int)
	go func() {
		buf, ended := make([]byte, 4096), map[*conn]bool{}
		for t.pace.until(ctx, clock()+int64(time.Second)) {
			for _, c := range conns {
				n, _, err := unix.Recvfrom(c.fd, buf, unix.MSG_DONTWAIT)
				if err == nil && n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR {
					ended[c] = true
				}
			}
		}
		left <- len(conns) - len(ended)
	}()
	return func() int {
		cancel()
		return <-left
	}
}

// stalled opens connections that follow a session and that the loop does not read.
func (t *trial) stalled(id string, n int) ([]*conn, error) {
	list := make([]*conn, n)
	request, status := t.upgrade("/api/chat/ws?threadId="+id), 101
	if t.o.Transport == "sse" {
		request, status = t.request("GET", "/api/v1/sessions/"+id+"/log", "Accept: text/event-stream\r\n", ""), 200
	}
	err := together(n, 32, func(i int) error {
		c, err := t.loop.dialWith(t.server.address, request, status, 4096)
		if err != nil {
			return err
		}
		list[i] = c
		return nil
	})
	var opened []*conn
	for _, c := range list {
		if c != nil {
			opened = append(opened, c)
		}
	}
	return opened, err
}

// runChurn measures clients that connect, ask, get an answer and disconnect.
func runChurn(t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	var visits atomic.Int64
	round := func(during time.Duration) error {
		deadline := time.Now().Add(during)
		workers := t.size(32, 4)
		return together(workers, workers, func(int) error {
			for time.Now().Before(deadline) && t.ctx.Err() == nil {
				c, err := t.open("", nil)
				if err != nil {
					return err
				}
				err = c.ask(t.model.add(answer{tokens: 2}))
				if err == nil {
					err = t.waitAll([]*client{c}, time.Minute)
				}
				c.close()
				if err != nil {
					return err
				}
				visits.Add(1)
			}
			return nil
		})
	}
	if err := round(time.Duration(t.pick(2000, 50)) * time.Millisecond); err != nil {
		return err
	}
	t.settle()
	before, warm, from := t.usage(), visits.Load(), time.Now()
	if err := round(time.Duration(t.pick(6000, 150)) * time.Millisecond); err != nil {
		return err
	}
	took := time.Since(from).Seconds()
	n := float64(visits.Load() - warm)
	t.settle()
	after := t.usage()
	t.record("closed_loop_visits_per_s", n/took)
	t.record("cpu_ms_per_visit", (after.cpu-before.cpu).Seconds()*1e3/n)
	t.record("kb_kept_per_visit", float64(after.rss-before.rss)/1024/n)
	return nil
}

// A witness keeps every event of a session that it has received.
type witness struct {
	mu     sync.Mutex // guards the fields below; leaf
	tally  tally
	cursor string // of the last event
	lines  [][]byte
	ended  chan struct{} // closed when the run has ended
	over   bool
	first  int64 // time of the first event after a reconnect; 0: none yet
	conn   *conn
}

func (w *witness) follow(t *trial, id string) (err error) {
	header := "Accept: text/event-stream\r\n"
	w.mu.Lock()
	if w.cursor != "" {
		header += "Last-Event-ID: " + w.cursor + "\r\n"
	}
	w.first = 0
	w.mu.Unlock()
	if w.conn, err = t.loop.dial(t.server.address, t.request("GET", "/api/v1/sessions/"+id+"/log", header, ""),
		200); err != nil {
		return err
	}
	w.conn.feed, w.conn.message = w.conn.chunks, w.event
	return w.conn.listen()
}

func (w *witness) event(now int64, id, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.sequence(seqOf(id))
	w.cursor = string(id)
	w.lines = append(w.lines, bytes.Clone(data))
	if w.first == 0 {
		w.first = now
	}
	if string(field(data, `"type":"`)) == "RunFinished" && !w.over {
		w.over = true
		close(w.ended)
	}
}

// runCrash kills the server while agents stream, and starts it again. Every event
// that a client has received must still be in the log. Clients resume at their
// cursor, and every run ends once.
func runCrash(t *trial) error {
	data, err := t.dir()
	if err != nil {
		return err
	}
	if err := t.startOn(data, "127.0.0.1:0"); err != nil {
		return err
	}
	n := t.size(20, 3)
	ids, seen, asked := make([]string, n), make([]*witness, n), make([]*answer, n)
	defer func() {
		for _, w := range seen {
			if w != nil && w.conn != nil {
				w.conn.hangUp()
			}
		}
	}()
	for i := range ids {
		ids[i], seen[i] = newID(), &witness{ended: make(chan struct{})}
		asked[i] = t.model.add(answer{tokens: t.pick(100, 30), gap: 10 * time.Millisecond})
		if err := t.openSession(ids[i]); err != nil {
			return err
		}
		if err := seen[i].follow(t, ids[i]); err != nil {
			return err
		}
		if err := t.submit(ids[i], asked[i].prompt()); err != nil {
			return err
		}
	}
	t.pace.until(t.ctx, clock()+int64(t.pick(300, 100))*int64(time.Millisecond))
	t.server.kill()
	from := clock()
	if err := t.startOn(data, t.server.address); err != nil {
		return err
	}
	t.record("restart_ms", float64(clock()-from)/1e6)
	ctx, cancel := context.WithTimeout(t.ctx, time.Minute)
	defer cancel()
	resumed := &histogram{}
	for i, w := range seen {
		if err := w.follow(t, ids[i]); err != nil {
			return err
		}
	}
	for i, w := range seen {
		select {
		case <-w.ended:
		case <-ctx.Done():
			return fmt.Errorf("a run did not end after the server was killed: %w", ctx.Err())
		}
		w.mu.Lock()
		if w.first > 0 {
			resumed.record(w.first - from)
		}
		w.mu.Unlock()
		if err := t.survived(ids[i], w, asked[i]); err != nil {
			return fmt.Errorf("session %s: %w", ids[i], err)
		}
	}
	t.record("first_event_after_kill_p50_ms", resumed.ms(0.5))
	return nil
}

func (t *trial) submit(id, content string) error {
	status, body, err := t.do("POST", "/api/v1/sessions/"+id+"/inputs", `{"agent":"bench","content":"`+content+`"}`)
	if err == nil && status != 202 {
		err = fmt.Errorf("a message was answered %d %.200s", status, body)
	}
	return err
}

// survived compares the events that a client received, before and after the crash,
// with the log.
func (t *trial) survived(id string, w *witness, a *answer) error {
	status, raw, err := t.do("GET", "/api/v1/sessions/"+id+"/log", "")
	if err != nil || status != 200 {
		return errors.Join(err, fmt.Errorf("the log was answered %d", status))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tally.err != nil {
		return w.tally.err
	}
	log := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	if len(log) < len(w.lines) {
		return fmt.Errorf("%d events were shown and the log has %d", len(w.lines), len(log))
	}
	for i, line := range w.lines {
		if !bytes.Equal(line, log[i]) {
			return fmt.Errorf("event %d was shown as %.200s, and the log has %.200s", i+1, line, log[i])
		}
	}
	ends, last := 0, []byte(nil)
	for _, line := range log {
		switch string(field(line, `"type":"`)) {
		case "RunFinished":
			ends++
			if string(field(line, `"outcome":"`)) != "completed" {
				return fmt.Errorf("the run ended as %s", field(line, `"outcome":"`))
			}
		case "OutputFinished":
			last = field(line, `"text":"`)
		}
	}
	whole := tally{expect: []*answer{a}}
	whole.text(last)
	whole.end()
	if ends != 1 {
		return fmt.Errorf("the run ended %d times", ends)
	}
	return whole.finished()
}

// runInputs sends many large messages at once. A server may refuse some of them for
// the moment; the client then retries.
func runInputs(t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	n, size := t.size(400, 8), t.pick(1_000_000, 50_000)
	t.settle()
	before := t.usage()
	ids, asked := make([]string, n), make([]*answer, n)
	if err := together(n, 16, func(i int) error {
		ids[i], asked[i] = newID(), t.model.add(answer{tokens: 1})
		return t.openSession(ids[i])
	}); err != nil {
		return err
	}
	filler := strings.Repeat("x", size)
	var retries atomic.Int64
	stop := t.peak()
	err := together(n, n, func(i int) error {
		if err := t.submitPatiently(ids[i], filler+" "+asked[i].prompt(), &retries); err != nil {
			return err
		}
		return t.untilIdle(ids[i])
	})
	most := stop()
	if err != nil {
		return err
	}
	for i, id := range ids {
		if err := t.checkSession(id, asked[i:i+1]); err != nil {
			return err
		}
	}
	t.settle()
	t.record("peak_mb", mib(most))
	t.record("kb_per_input", float64(most-before.rss)/1024/float64(n))
	t.record("after_mb", mib(t.usage().rss))
	t.record("refused_and_repeated", float64(retries.Load()))
	return nil
}

// submitPatiently sends a message until it is accepted. All attempts have one key, because a message that was refused
// with 503 may be stored all the same.
func (t *trial) submitPatiently(id, content string, retries *atomic.Int64) error {
	for key := newID(); ; {
		status, body, err := t.do("POST", "/api/v1/sessions/"+id+"/inputs", `{"content":"`+content+`"}`,
			"Idempotency-Key", key)
		switch {
		case err != nil:
			return err
		case status == 202:
			return nil
		case status != 429 && status != 503:
			return fmt.Errorf("a message was answered %d %.200s", status, body)
		}
		retries.Add(1)
		if !t.pace.until(t.ctx, clock()+int64(100*time.Millisecond)) {
			return t.ctx.Err()
		}
	}
}

// untilIdle polls a session, at long intervals, until it is idle.
func (t *trial) untilIdle(id string) error {
	for {
		var s struct{ Status string }
		if err := t.get("/api/v1/sessions/"+id, &s); err != nil || s.Status == "idle" {
			return err
		}
		if !t.pace.until(t.ctx, clock()+int64(t.pick(2000, 50))*int64(time.Millisecond)) {
			return t.ctx.Err()
		}
	}
}

// runKeepAlive measures HTTP connections that were used once and stay open.
func runKeepAlive(t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	t.settle()
	n, before := t.size(1000, 20), t.usage().rss
	var closed atomic.Int64
	conns := make([]*conn, n)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.hangUp()
			}
		}
	}()
	if err := together(n, 32, func(i int) error {
		c, err := t.loop.dial(t.server.address, t.request("GET", "/api/health", "", ""), 200)
		if err != nil {
			return err
		}
		conns[i] = c
		c.rest, c.feed = nil, func([]byte) ([]byte, error) { return nil, nil }
		c.lost = func(error) { closed.Add(1) }
		return c.listen()
	}); err != nil {
		return err
	}
	t.settle()
	t.record("kb_per_connection", float64(t.usage().rss-before)/1024/float64(n))
	wait := 0 * time.Second
	if t.r.Repeat == 1 {
		wait = time.Duration(t.pick(130, 0)) * time.Second
	}
	from := time.Now()
	for closed.Load() < int64(n) && time.Since(from) < wait {
		if !t.pace.until(t.ctx, clock()+int64(time.Second)) {
			return t.ctx.Err()
		}
	}
	if wait > 0 {
		t.record("open_after_130s", float64(int64(n)-closed.Load()))
	}
	return nil
}
