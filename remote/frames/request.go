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

// maxApprovals of one request may be open.
const maxApprovals = 16

// A request is one message to an agent and what it says to it. The agent's last
// word is a chunk that is done, an error, or a halt. Agents that were written for
// the original debug console also say nothing more after a blocked tool, and
// after an approval was asked for, or its action carried out: of these one cannot
// tell, and so a short silence after them is the end too, unless the frame says
// that the agent continues.
type request struct {
	id     string
	c      *conn
	canary string
	ctx    context.Context
	wake   chan struct{}
	left   sync.Once
	unhook func() bool

	mu      sync.Mutex // guards the following; see the table of locks
	queue   []item
	held    int   // bytes in it
	err     error // why it ended, after the queue
	over    bool  // nothing of it is heard any more
	spoken  bool  // the agent knows that it is over
	heard   time.Time
	last    bool                       // what was heard may have been the last word
	open    map[string]approvalPayload // what people are asked, by key
	resumed map[string]int             // tools that they allowed and that have not been used
}

// An item is something said; texts that follow on each other are one.
type item struct {
	said port.RemoteSaid
	text []byte
	size int
}

func newRequest(ctx context.Context, c *conn, id, canary string) *request {
	return &request{id: id, c: c, canary: canary, ctx: ctx, wake: make(chan struct{}, 1), heard: time.Now(),
		open: map[string]approvalPayload{}, resumed: map[string]int{}}
}

// watch has the agent told at once when nobody wants its answer any more, however
// busy who was to hear it is.
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

// stop tells the agent to stop, once, unless it has. It needs q.mu.
func (q *request) stop() {
	if !q.spoken {
		q.spoken = true
		q.c.send(typeCancel, q.id, struct{}{})
	}
}

// Said yields what the agent says. See port.RemoteAnswer.
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

// next is what was said and not yet heard, or else how long to wait for more; zero
// for as long as it takes: a person is asked.
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

// patience needs q.mu.
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

// late is called when nothing was heard for too long, unless something was.
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

// push needs q.mu.
func (q *request) push(said port.RemoteSaid, size int) {
	o := q.c.link.pool.Options
	size += 64 // what it costs to say nothing
	// What nobody takes is not waited for: all other answers come by the same way.
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

// finish is push for what ends the answer. It needs q.mu.
func (q *request) finish(said port.RemoteSaid) {
	q.queue = append(q.queue, item{said: said})
	q.over, q.spoken = true, true
	q.rouse()
}

// breakOff ends the answer from this side, before its agent has. It needs q.mu.
func (q *request) breakOff(err error) {
	if q.err == nil {
		q.err = err
	}
	q.stop()
	q.over = true
	q.rouse()
}

// rouse wakes who waits for what the agent says.
func (q *request) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// fail ends the answer: the agent has, or is gone.
func (q *request) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spoken = true
	q.breakOff(err)
}

// hear takes a frame of the request, on the goroutine that reads.
func (q *request) hear(f Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		q.c.troubles.note("a frame came after the end", f.Type)
		return
	}
	q.heard = time.Now()
	if f.Type != typeRuntimeEvent { // these are remarks
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
			if p.Done && len(q.open) == 0 && !q.over { // while a person is asked it is not over
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

// ask needs q.mu.
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

// carriedOut reports whether the tool was used because a person allowed it, and
// nothing else is waited for. It needs q.mu.
func (q *request) carriedOut(tool string) bool {
	if q.resumed[tool] == 0 {
		return false
	}
	if q.resumed[tool]--; q.resumed[tool] == 0 {
		delete(q.resumed, tool)
	}
	return len(q.resumed) == 0 && len(q.open) == 0
}

// Decide says what became of an approval. See port.RemoteAnswer.
func (q *request) Decide(d port.RemoteDecision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, ok := q.open[d.Key]
	if !ok || q.over {
		return
	}
	delete(q.open, d.Key)
	q.heard = time.Now() // it is the agent's turn again
	switch {
	case d.Allowed:
		if !p.Continues {
			q.resumed[p.Tool]++
		}
		q.c.send(typeResume, q.id, resumePayload{d.Key, d.Card, p.ConnectorID, p.Tool, string(p.Arguments), p.Risk})
	case p.Continues:
		q.c.send(typeDenied, q.id, deniedPayload{d.Key, d.Card, p.Tool, d.Note})
	case len(q.open) == 0 && len(q.resumed) == 0:
		// The document has no frame that says no, and the agent has said all it
		// will say.
		q.stop()
		q.finish(port.RemoteSaid{Done: true})
	}
	q.rouse()
}

// Made is not called: no frame asks the server to make a call.
func (q *request) Made(port.RemoteMade) {}

// followed reports whether another frame says the same.
func followed(event string) bool {
	return event == "run.failed" || strings.HasPrefix(event, "connector.")
}

// reason is the first text that says something.
func reason(texts ...string) string {
	for _, t := range texts {
		if !parley.IsBlank(t) {
			return t
		}
	}
	return ""
}
