package frames

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"parley"
	"parley/port"
)

// maxApprovals is the maximum number of pending approvals of one request.
const maxApprovals = 16

// A request is one message to an agent, and the answer. The answer ends with a
// chunk that is done, an error, or a halt. Agents written for the original
// debug console may also send nothing more after a blocked tool, after an
// approval request, or after the result of an approved action. Parley cannot
// tell whether such a frame was the last, so a short silence after it also ends
// the answer, unless the frame says that the agent continues.
type request struct {
	id     string
	c      *conn
	canary string
	ctx    context.Context
	wake   chan struct{}
	left   sync.Once
	unhook func() bool

	mu      sync.Mutex // guards the fields below; see the package comment
	queue   []item
	held    int   // bytes in queue
	err     error // error at the end of queue
	over    bool  // ignore all further frames
	spoken  bool  // the agent knows that the request is over
	heard   time.Time
	last    bool                       // the last frame may have ended the answer
	open    map[string]approvalPayload // pending approvals, by key
	resumed map[string]int             // approved tools without a result yet
}

// An item is a part of the answer. Consecutive texts are one item.
type item struct {
	said port.RemoteSaid
	text []byte
	size int
}

func newRequest(ctx context.Context, c *conn, id, canary string) *request {
	return &request{id: id, c: c, canary: canary, ctx: ctx, wake: make(chan struct{}, 1), heard: time.Now(),
		open: map[string]approvalPayload{}, resumed: map[string]int{}}
}

// watch cancels the request as soon as ctx ends, even if the consumer of the
// answer is busy.
func (q *request) watch(ctx context.Context) {
	q.unhook = context.AfterFunc(ctx, q.leave)
}

// leave ends the request on this side.
func (q *request) leave() {
	q.left.Do(func() {
		q.c.forget(q)
		q.mu.Lock()
		q.over = true
		q.stop()
		q.c.unread.Add(int64(-q.held))
		q.queue, q.held = nil, 0
		q.mu.Unlock()
		if q.canary != "" {
			q.c.link.unguard(q.canary)
		}
		q.c.link.release()
	})
}

// stop sends a cancel, once, unless the agent has ended the request. The caller must hold q.mu.
func (q *request) stop() {
	if !q.spoken {
		q.spoken = true
		q.c.send(typeCancel, q.id, struct{}{})
	}
}

// Said yields the parts of the answer. See port.RemoteAnswer.
func (q *request) Said() iter.Seq2[port.RemoteSaid, error] {
	return func(yield func(port.RemoteSaid, error) bool) {
		defer q.unhook()
		defer q.leave()
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		for {
			said, wait, err := q.next()
			switch {
			case err != nil:
				yield(port.RemoteSaid{}, err)
				return
			case said != nil:
				if !yield(*said, nil) || said.Done || said.Halt != nil {
					return
				}
				continue
			}
			var late <-chan time.Time
			if wait > 0 {
				timer.Reset(wait)
				late = timer.C
			}
			select {
			case <-q.wake:
			case <-late:
				q.late()
			case <-q.ctx.Done():
				yield(port.RemoteSaid{}, q.ctx.Err())
				return
			}
		}
	}
}

// next returns the next part of the answer. If there is none, it returns how long to wait for one; 0 means without
// limit, because an approval is pending.
func (q *request) next() (*port.RemoteSaid, time.Duration, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) > 0 {
		i := q.queue[0]
		q.queue = q.queue[1:]
		q.held -= i.size
		q.c.unread.Add(int64(-i.size))
		if i.text != nil {
			i.said.Text = string(i.text)
		}
		return &i.said, 0, nil
	}
	if q.err != nil {
		return nil, 0, q.err
	}
	return nil, q.patience(), nil
}

// patience returns how long to wait for the next frame. The caller must hold q.mu.
func (q *request) patience() time.Duration {
	t := q.c.times()
	limit := t.Silence
	switch {
	case len(q.open) > 0:
		return 0
	case q.last:
		limit = t.Last
	}
	return max(limit-time.Since(q.heard), time.Millisecond)
}

// late ends the answer after too long a silence. It does nothing if a frame has come meanwhile.
func (q *request) late() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) > 0 || q.err != nil || q.patience() > time.Millisecond || len(q.open) > 0 {
		return
	}
	if q.last {
		q.stop()
		q.finish(port.RemoteSaid{Done: true})
		return
	}
	q.breakOff(parley.Errorf(parley.CodeUnavailable, "The agent said nothing for %v.", q.c.times().Silence))
}

// push queues a part of the answer. The caller must hold q.mu.
func (q *request) push(said port.RemoteSaid, size int) {
	o := q.c.link.pool.Options
	size += 64 // overhead of an item, even of an empty one
	// Waiting for the consumer would block all other answers on this connection.
	if len(q.queue) > 0 && q.held+size > o.Unread || q.c.unread.Load()+int64(size) > int64(o.UnreadAll) {
		q.breakOff(parley.Errorf(parley.CodeOverloaded,
			"The agent sends faster than its answer can be stored, so the answer was cut off."))
		return
	}
	q.held += size
	q.c.unread.Add(int64(size))
	if n := len(q.queue); said.Text != "" && n > 0 && q.queue[n-1].text != nil {
		q.queue[n-1].text = append(q.queue[n-1].text, said.Text...)
		q.queue[n-1].size += size
		return
	}
	i := item{said: said, size: size}
	if said.Text != "" {
		i.text = []byte(said.Text)
	}
	q.queue = append(q.queue, i)
	q.rouse()
}

// finish queues the part that ends the answer. The caller must hold q.mu.
func (q *request) finish(said port.RemoteSaid) {
	q.queue = append(q.queue, item{said: said})
	q.over, q.spoken = true, true
	q.rouse()
}

// breakOff ends the answer from this side. The caller must hold q.mu.
func (q *request) breakOff(err error) {
	if q.err == nil {
		q.err = err
	}
	q.stop()
	q.over = true
	q.rouse()
}

// rouse wakes the consumer of the answer.
func (q *request) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// fail ends the answer after the agent has ended the request or is gone.
func (q *request) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spoken = true
	q.breakOff(err)
}

// hear handles a frame of the request, on the goroutine of the reader.
func (q *request) hear(f Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		q.c.troubles.note("a frame came after the end", f.Type)
		return
	}
	q.heard = time.Now()
	if f.Type != typeRuntimeEvent { // runtime events are only remarks
		q.last = false
	}
	read := func(p any) bool {
		if err := json.Unmarshal(f.Payload, p); err != nil {
			q.breakOff(parley.Errorf(parley.CodeModel, "The agent sent a %s that cannot be read.", f.Type))
			return false
		}
		return true
	}
	size := len(f.Payload)
	switch f.Type {
	case typeChunk:
		if p := (chunkPayload{}); read(&p) {
			if p.Content != "" {
				q.push(port.RemoteSaid{Text: p.Content}, size)
			}
			if p.Done && len(q.open) == 0 && !q.over { // not over while an approval is pending
				q.finish(port.RemoteSaid{Done: true})
			}
		}
	case typeToolExecuted, typeToolFailed:
		if p := (toolPayload{}); read(&p) {
			tool := &parley.RemoteTool{Name: p.Tool, Arguments: string(p.Arguments), Outcome: parley.CallSucceeded,
				Result: p.Result}
			if f.Type == typeToolFailed {
				tool.Outcome, tool.Result = parley.CallFailed, reason(p.Error, p.Reason, p.Result)
			}
			q.last = q.carriedOut(p.Tool) && !p.Continues
			q.push(port.RemoteSaid{Tool: tool}, size)
		}
	case typeToolBlocked:
		if p := (toolPayload{}); read(&p) {
			q.last = !p.Continues
			q.push(port.RemoteSaid{Tool: &parley.RemoteTool{Name: p.Tool, Arguments: string(p.Arguments),
				Blocked: reason(p.Reason, p.Error, "it gives no reason")}}, size)
		}
	case typeApproval:
		if p := (approvalPayload{}); read(&p) {
			q.ask(p, size)
		}
	case typeRuntimeEvent:
		if p := (eventPayload{}); read(&p) && p.Status == "failed" && !followed(p.Type) {
			q.push(port.RemoteSaid{Trouble: reason(strings.TrimSpace(p.Title+" "+p.Summary), p.Type)}, size)
		}
	case typeSessionHalt:
		if p := (haltPayload{}); read(&p) {
			if p.Token != "" && strings.Contains(p.Reason, p.Token) {
				p.Reason = ""
			}
			q.finish(port.RemoteSaid{Halt: &parley.RemoteHalted{Reason: p.Reason}})
		}
	case typeError:
		if p := (errorPayload{}); read(&p) {
			q.spoken = true
			q.breakOff(parley.Errorf(parley.CodeModel, "%s", reason(p.Message, p.Code, "The agent failed.")))
		}
	default:
		q.c.troubles.note("a frame has an unknown type", f.Type)
	}
}

// ask adds a pending approval. The caller must hold q.mu.
func (q *request) ask(p approvalPayload, size int) {
	if len(q.open) >= maxApprovals {
		q.breakOff(parley.Errorf(parley.CodeTooLarge, "The agent asks for more than %d things at the same time.",
			maxApprovals))
		return
	}
	key := uuid.NewString()
	q.open[key] = p
	q.push(port.RemoteSaid{Approval: &port.RemoteApproval{Key: key, Name: p.Tool, Arguments: string(p.Arguments),
		Connector: reason(p.Connector, p.ConnectorID), Risk: p.Risk, Target: p.Target}}, size)
}

// carriedOut reports whether the tool had a person's approval, and no other
// approved tool or approval is pending. The caller must hold q.mu.
func (q *request) carriedOut(tool string) bool {
	if q.resumed[tool] == 0 {
		return false
	}
	if q.resumed[tool]--; q.resumed[tool] == 0 {
		delete(q.resumed, tool)
	}
	return len(q.resumed) == 0 && len(q.open) == 0
}

// Decide passes the decision on an approval to the agent. See port.RemoteAnswer.
func (q *request) Decide(d port.RemoteDecision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, ok := q.open[d.Key]
	if !ok || q.over {
		return
	}
	delete(q.open, d.Key)
	q.heard = time.Now() // the agent's turn begins
	switch {
	case d.Allowed:
		if !p.Continues {
			q.resumed[p.Tool]++
		}
		q.c.send(typeResume, q.id, resumePayload{d.Key, d.Card, p.ConnectorID, p.Tool, string(p.Arguments), p.Risk})
	case p.Continues:
		q.c.send(typeDenied, q.id, deniedPayload{d.Key, d.Card, p.Tool, d.Note})
	case len(q.open) == 0 && len(q.resumed) == 0:
		// Document 000 has no frame for a denial, and the agent will send
		// nothing more.
		q.stop()
		q.finish(port.RemoteSaid{Done: true})
	}
	q.rouse()
}

// Made is never called: no frame asks the server to make a call.
func (q *request) Made(port.RemoteMade) {}

// followed reports whether another frame will report the same event.
func followed(event string) bool {
	return event == "run.failed" || strings.HasPrefix(event, "connector.")
}

// reason returns the first text that is not blank.
func reason(texts ...string) string {
	for _, t := range texts {
		if !parley.IsBlank(t) {
			return t
		}
	}
	return ""
}
