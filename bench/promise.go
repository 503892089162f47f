package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Scenarios for work that the server starts by itself, and the load test of the
// agent loop protocol.

// runTimer measures follow-ups that are all due within one second, from their
// due time until a connected client is told that the run has begun.
func runTimer(t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	n := t.size(1000, 5)
	clients, err := t.openMany(n, nil)
	defer closeAll(clients)
	if err != nil {
		return err
	}
	began := make([]atomic.Int64, n) // start of the last run of each session
	for i, c := range clients {
		c.mu.Lock()
		c.agent, c.began = "later", func(now int64) { began[i].Store(now) }
		c.mu.Unlock()
	}
	// All follow-ups must be due within one second, so the delay is shorter by the
	// time that has passed since the first message.
	delay, from := t.pick(12, 2), time.Now()
	for _, c := range clients {
		if !t.pace.until(t.ctx, clock()+int64(time.Second)/int64(t.pick(200, 100))) {
			return t.ctx.Err()
		}
		left := delay - int(time.Since(from).Seconds())
		if left < 1 {
			return errors.New("the messages took too long to send")
		}
		a := t.model.add(answer{tokens: 1, tool: "schedule_follow_up",
			args: fmt.Sprintf(`{"delay_seconds":%d,"reason":"bench"}`, left)})
		c.expect(a)
		c.expect(&answer{tag: a.tag, tokens: a.tokens}) // the follow-up
		if err := c.send(a); err != nil {
			return err
		}
	}
	if err := t.waitAll(clients, time.Minute); err != nil {
		return err
	}
	h := &histogram{}
	for i, c := range clients {
		due, err := t.timerOf(c.id)
		if err != nil {
			return err
		}
		h.record(int64(processStart.Add(time.Duration(began[i].Load())).Sub(due)))
	}
	if err := t.checkLogs(clients); err != nil {
		return err
	}
	t.latency("due_to_delivered", h, nil)
	return nil
}

// timerOf returns the due time of the only timer of a session.
func (t *trial) timerOf(id string) (due time.Time, err error) {
	status, raw, err := t.do("GET", "/api/v1/sessions/"+id+"/log", "")
	if err != nil || status != 200 {
		return due, errors.Join(err, fmt.Errorf("the log was answered %d", status))
	}
	timers := 0
	for line := range bytes.Lines(raw) {
		var e struct {
			Type string
			Body struct{ At time.Time }
		}
		if err := json.Unmarshal(line, &e); err != nil && string(field(line, `"type":"`)) == "TimerSet" {
			return due, err
		}
		if e.Type == "TimerSet" {
			due = e.Body.At
			timers++
		}
	}
	if timers != 1 {
		return due, fmt.Errorf("session %s has %d timers", id, timers)
	}
	return due, nil
}

// runOutbox measures answers that ended while no client was connected. 64 clients
// connect, and each answer is sent, confirmed and marked as delivered.
func runOutbox(t *trial) error {
	sessions, each := t.size(64, 4), t.pick(100, 5)
	plots := make([]plot, sessions)
	for i := range plots {
		plots[i] = plot{id: newID(), runs: each, chunks: 1, size: 20, deliver: true}
	}
	if err := t.startSeeded(plots); err != nil {
		return err
	}
	receivers := make([]*receiver, sessions)
	defer func() {
		for _, r := range receivers {
			if r != nil {
				r.conn.hangUp()
			}
		}
	}()
	from, before := time.Now(), t.usage()
	if err := together(sessions, sessions, func(i int) (err error) {
		receivers[i], err = t.receive(plots[i].id, each)
		return err
	}); err != nil {
		return err
	}
	deadline := time.After(time.Minute)
	for _, r := range receivers {
		select {
		case <-r.all:
		case <-deadline:
			return errors.New("not every owed answer was shown within a minute")
		case <-t.ctx.Done():
			return t.ctx.Err()
		}
	}
	if err := t.untilDelivered(); err != nil {
		return err
	}
	took, after, n := time.Since(from), t.usage(), float64(sessions*each)
	for _, r := range receivers {
		if ends := r.ends.Load(); ends != int64(each) {
			return fmt.Errorf("%d answers of %d were shown", ends, each)
		}
	}
	t.record("effects_per_s", n/took.Seconds())
	t.record("cpu_us_per_effect", micros(after.cpu-before.cpu)/n)
	return nil
}

// A receiver counts ended runs on a socket of thread chat.
type receiver struct {
	conn *conn
	ends atomic.Int64
	all  chan struct{} // closed when all runs have ended
}

func (t *trial) receive(id string, want int) (*receiver, error) {
	c, err := t.loop.dial(t.server.address, t.upgrade("/api/chat/ws?threadId="+id), 101)
	if err != nil {
		return nil, err
	}
	r := &receiver{conn: c, all: make(chan struct{})}
	c.feed = c.frames
	c.message = func(_ int64, _, data []byte) {
		if bytes.HasPrefix(data, []byte(`{"type":"chat.completed"`)) && r.ends.Add(1) == int64(want) {
			close(r.all)
		}
	}
	return r, c.listen()
}

// untilDelivered waits until the server has marked every effect as delivered.
func (t *trial) untilDelivered() error {
	for deadline := time.Now().Add(time.Minute); ; {
		left := 0
		for _, status := range []string{"pending", "executing"} {
			var list struct{ Effects []struct{ ID string } }
			if err := t.get("/api/v1/effects?limit=1&status="+status, &list); err != nil {
				return err
			}
			left += len(list.Effects)
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("effects were shown and not marked within a minute")
		}
		if !t.pace.until(t.ctx, clock()+int64(2*time.Millisecond)) {
			return t.ctx.Err()
		}
	}
}

// runLoad is the load test of the agent loop protocol: many connections with
// several open inputs each. Every input must end once, with its complete text.
func runLoad(t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	n, under := t.size(100, 4), 4
	list := make([]*looper, n)
	defer func() {
		for _, l := range list {
			if l != nil {
				l.conn.hangUp()
			}
		}
	}()
	if err := together(n, 32, func(i int) (err error) {
		list[i], err = t.newLooper()
		return err
	}); err != nil {
		return err
	}
	deadline := time.Now().Add(time.Duration(t.pick(6000, 200)) * time.Millisecond)
	from, before, inputs := time.Now(), t.usage(), atomic.Int64{}
	err := together(n, n, func(i int) error {
		for range under {
			if err := list[i].input(); err != nil {
				return err
			}
		}
		for open := under; open > 0; open-- {
			select {
			case err := <-list[i].ended:
				if err != nil {
					return err
				}
			case <-t.ctx.Done():
				return t.ctx.Err()
			case <-time.After(time.Minute):
				return errors.New("an input had no end within a minute")
			}
			inputs.Add(1)
			if time.Now().Before(deadline) {
				if err := list[i].input(); err != nil {
					return err
				}
				open++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	took, after, done := time.Since(from), t.usage(), float64(inputs.Load())
	for _, l := range list {
		if err := l.tally.finished(); err != nil {
			return err
		}
	}
	t.record("closed_loop_inputs_per_s", done/took.Seconds())
	t.record("cpu_ms_per_input", (after.cpu-before.cpu).Seconds()*1e3/done)
	t.record("rss_mb", mib(after.rss))
	return nil
}

// A looper is a client of the agent loop protocol.
type looper struct {
	client
	conn  *conn
	ended chan error
}

func (t *trial) newLooper() (*looper, error) {
	c, err := t.loop.dial(t.server.address, t.upgrade("/api/agentloop/ws"), 101)
	if err != nil {
		return nil, err
	}
	l := &looper{client: client{t: t}, conn: c, ended: make(chan error, 64)}
	c.feed, c.message = c.frames, l.frame
	c.lost = func(err error) { l.ended <- fmt.Errorf("a connection ended: %w", err) }
	return l, c.listen()
}

func (l *looper) input() error {
	a := l.t.model.add(answer{tokens: 20})
	l.expect(a)
	return l.conn.write(appendFrame(nil, opText, []byte(`{"id":"`+newID()+`","type":"user_input","payload":{"input":[`+
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"`+a.prompt()+`"}]}]}}`)))
}

func (l *looper) frame(_ int64, _, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch string(field(data, `"type":"`)) {
	case "response_item":
		l.tally.text(field(data, `"text":"`))
	case "agent_finished":
		l.tally.end()
		l.ended <- l.tally.err
	case "error":
		l.ended <- fmt.Errorf("the server sent %.200s", data)
	}
}
