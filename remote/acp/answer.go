package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"sync"
	"time"

	"parley"
	"parley/port"
	"parley/transport/jsonrpc"
)

const (
	maxApprovals = 16   // open approvals of one answer
	maxMade      = 64   // concurrent calls by the server for one answer
	maxTools     = 4096 // the program's own calls in one answer
)

// An answer is one message to a program, and everything that the program sends until it ends the answer.
type answer struct {
	at       *program
	ctx      context.Context // of the caller of Ask
	session  string
	roots    []string // paths of the project's folder
	said     chan port.RemoteSaid
	left     chan struct{} // closed when the caller has stopped reading
	answered chan struct{} // closed when the program has ended the answer, or is lost
	result   promptResult  // set before answered is closed
	err      error         // set before answered is closed

	// The fields below belong to the goroutine that reads from the program.
	tools   map[string]*toolCall
	message string // id of the program's current message
	cost    int64  // of the session so far, in millionths of a US dollar

	mu        sync.Mutex // guards the fields below; no other lock is taken under it
	keys      int
	open      map[string]*permission // approvals, by key
	made      map[string]*made       // calls made by the server, by key
	terminals map[string]*terminal
	context   parley.ContextSize
	over      bool // ignore everything that follows
}

// A toolCall is a call that the program makes itself.
type toolCall struct {
	fields  toolFields
	content []part
	keys    []string // keys in the log of calls that have not ended
	ended   bool
}

// A permission is a request for a person's decision.
type permission struct {
	options []option
	respond jsonrpc.Answer
}

// A made call is a call by the server for the program. Its functions are called as the call progresses.
type made struct {
	started func()
	printed func(string)
	ended   func(port.RemoteResult)
}

func newAnswer(ctx context.Context, at *program, r port.RemoteRequest) *answer {
	roots := []string{r.Root}
	if real, err := filepath.EvalSymlinks(r.Root); err == nil && real != r.Root { // a program may use either path
		roots = append(roots, real)
	}
	return &answer{at: at, ctx: ctx, session: at.known.session, roots: roots, said: make(chan port.RemoteSaid, 64),
		left: make(chan struct{}), answered: make(chan struct{}), tools: map[string]*toolCall{},
		open: map[string]*permission{}, made: map[string]*made{}, terminals: map[string]*terminal{}, cost: at.spent}
}

// say passes s to the caller that reads the answer. It may block: a program sends nothing but the updates of this
// answer.
func (a *answer) say(s port.RemoteSaid) {
	select {
	case a.said <- s:
	case <-a.left:
	case <-a.at.ctx.Done():
	}
}

// finish sets the result of the answer.
func (a *answer) finish(r promptResult, err error) { a.result, a.err = r, err }

// Said yields the updates of the program. See port.RemoteAnswer.
func (a *answer) Said() iter.Seq2[port.RemoteSaid, error] {
	return func(yield func(port.RemoteSaid, error) bool) {
		defer a.leave()
		timer := time.NewTimer(a.at.Times.Silence)
		defer timer.Stop()
		for {
			select {
			case s := <-a.said:
				if !yield(s, nil) {
					return
				}
			case <-a.answered:
				a.last(yield)
				return
			case <-timer.C:
				quiet := time.Since(time.Unix(0, a.at.heard.Load()))
				if !a.waits() && quiet >= a.at.Times.Silence {
					yield(port.RemoteSaid{}, parley.Errorf(parley.CodeUnavailable,
						"The agent's program said nothing for %v.", a.at.Times.Silence))
					return
				}
				timer.Reset(max(a.at.Times.Silence-quiet, time.Second))
			case <-a.ctx.Done():
				yield(port.RemoteSaid{}, a.ctx.Err())
				return
			}
		}
	}
}

// last yields the remaining updates, and the end of the answer. By now the
// reader has passed on everything that came before the end.
func (a *answer) last(yield func(port.RemoteSaid, error) bool) {
	for {
		select {
		case s := <-a.said:
			if !yield(s, nil) {
				return
			}
			continue
		default:
		}
		break
	}
	said, err := a.end()
	yield(said, err)
}

// end returns the end of the answer in the form that users see.
func (a *answer) end() (port.RemoteSaid, error) {
	if a.err != nil {
		if _, refused := errors.AsType[*jsonrpc.Error](a.err); refused {
			return port.RemoteSaid{}, parley.Errorf(parley.CodeModel, "%s", errorText(a.err))
		}
		<-a.at.gone // then lastWords knows the reason
		if a.at.Programs.ctx.Err() != nil {
			return port.RemoteSaid{}, &parley.Error{Code: parley.CodeInterrupted,
				Message: "The server stopped in the middle of the answer.", Err: a.err}
		}
		why := a.at.lastWords()
		if why == "" {
			why = a.err.Error()
		}
		return port.RemoteSaid{}, &parley.Error{Code: parley.CodeInterrupted, Err: a.err,
			Message: fmt.Sprintf("The agent's program was lost in the middle of the answer: %s.", why)}
	}
	stop, ok := stops[a.result.Stop]
	if !ok {
		return port.RemoteSaid{}, parley.Errorf(parley.CodeModel, "The agent's program ended its answer: %.40q.",
			a.result.Stop)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.result.Usage
	end := port.RemoteEnd{Stop: stop, Context: a.context, Usage: parley.Usage{Input: u.Input + u.Read + u.Written,
		Output: u.Output + u.Thought, Cached: u.Read, Written: u.Written, CostMicros: max(a.cost-a.at.spent, 0)}}
	a.at.spent = a.cost
	return port.RemoteSaid{Done: true, End: end}, nil
}

// waits reports whether the program waits for a person, or for the server.
func (a *answer) waits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open)+len(a.made) > 0
}

// leave ends the answer on this side. If the program has not ended the answer,
// it is told to cancel, and killed if it does not.
func (a *answer) leave() {
	close(a.left)
	a.drop()
	select {
	case <-a.answered:
	default:
		_ = a.at.conn.Notify(methodCancel, ofSession{a.session}) // fails only if the program is gone
		timer := time.NewTimer(a.at.Times.Cancel)
		select {
		case <-a.answered:
		case <-timer.C:
			a.at.Log.Warn("the program of an agent does not stop and is ended", "agent", a.at.agent)
			a.at.kill()
			<-a.answered
		}
		timer.Stop()
	}
	a.at.current.Store(nil)
	if a.at.ctx.Err() != nil {
		<-a.at.gone
	}
	a.at.release()
}

// drop answers all pending requests of the program: they will get no decision or result.
func (a *answer) drop() {
	a.mu.Lock()
	a.over = true
	open, calls := a.open, a.made
	a.open, a.made = map[string]*permission{}, map[string]*made{}
	a.mu.Unlock()
	for _, p := range open {
		p.respond(permissionResult{outcome{Outcome: "cancelled"}}, nil)
	}
	for _, m := range calls {
		m.ended(port.RemoteResult{Outcome: parley.CallCancelled})
	}
}

// update handles an update of the program. The reader calls it.
func (a *answer) update(p updateParams) {
	u := p.Update
	if p.Session != a.session {
		return
	}
	switch u.Kind {
	case "agent_message_chunk", "agent_thought_chunk":
		a.chunk(u)
	case "tool_call", "tool_call_update":
		var content []part
		_ = json.Unmarshal(u.Content, &content) // content that cannot be decoded is not shown
		if t := a.tool(u.toolFields, content); t != nil {
			a.progress(t)
		}
	case "plan":
		plan := parley.PlanUpdate{}
		for _, e := range u.Entries {
			status := statuses[e.Status]
			if status == "" {
				status = parley.ItemPending
			}
			plan.Items = append(plan.Items, parley.PlanItem{Title: e.Content, Status: status})
		}
		a.say(port.RemoteSaid{Plan: &plan})
	case "usage_update":
		a.mu.Lock()
		a.context = parley.ContextSize{Tokens: int(u.Used), Limit: int(u.Size)}
		if u.Cost != nil && u.Cost.Currency == "USD" && u.Cost.Amount >= 0 && u.Cost.Amount < 1e6 {
			a.cost = int64(math.Round(u.Cost.Amount * 1e6))
		}
		a.mu.Unlock()
	case "notice":
		if u.Severity == "error" || u.Severity == "warning" {
			text := u.Title
			if u.Description != "" {
				text += ": " + u.Description
			}
			a.say(port.RemoteSaid{Trouble: text})
		}
	}
}

func (a *answer) chunk(u update) {
	var b block
	if json.Unmarshal(u.Content, &b) != nil {
		return
	}
	text := b.words()
	if u.Message != "" {
		if a.message != "" && a.message != u.Message && u.Kind == "agent_message_chunk" {
			text = "\n\n" + text
		}
		if u.Kind == "agent_message_chunk" {
			a.message = u.Message
		}
	}
	switch {
	case text == "":
	case u.Kind == "agent_thought_chunk":
		a.say(port.RemoteSaid{Thinking: text})
	default:
		a.say(port.RemoteSaid{Text: text})
	}
}

// tool returns the call that an update refers to, with the new fields merged
// in. It returns nil if there are too many calls.
func (a *answer) tool(said toolFields, content []part) *toolCall {
	t := a.tools[said.ID]
	if t == nil {
		if len(a.tools) >= maxTools || said.ID == "" {
			return nil
		}
		t = &toolCall{}
		a.tools[said.ID] = t
	}
	f := &t.fields
	for _, field := range []struct {
		to   *string
		from string
	}{{&f.ID, said.ID}, {&f.Title, said.Title}, {&f.Name, said.Name}, {&f.Tool, said.Tool}, {&f.Status, said.Status}} {
		if field.from != "" {
			*field.to = field.from
		}
	}
	if len(said.Input) > 0 {
		f.Input = said.Input
	}
	if len(said.Output) > 0 {
		f.Output = said.Output
	}
	if said.Locations != nil {
		f.Locations = said.Locations
	}
	if content != nil {
		t.content = content
	}
	return t
}

// progress reports the state of one of the program's own calls. It does not report a call that was only announced: the
// program may still ask for permission.
func (a *answer) progress(t *toolCall) {
	switch status := t.fields.Status; {
	case t.ended:
	case status == "in_progress" && len(t.keys) == 0:
		t.keys = []string{a.key()}
		a.say(port.RemoteSaid{Began: &parley.RemoteBegan{Key: t.keys[0], Name: t.tool(), Arguments: t.arguments()}})
	case status == "completed" || status == "failed":
		t.ended = true
		if len(t.keys) == 0 {
			t.keys = []string{a.key()}
		}
		outcome := parley.CallSucceeded
		if status == "failed" {
			outcome = parley.CallFailed
		}
		for _, key := range t.keys {
			a.say(port.RemoteSaid{Tool: &parley.RemoteTool{Key: key, Name: t.tool(), Arguments: t.arguments(),
				Outcome: outcome, Result: t.result()}})
		}
		t.content, t.fields.Input, t.fields.Output = nil, nil, nil
	}
}

// key returns a new key for a call or an approval in the log.
func (a *answer) key() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys++
	return fmt.Sprintf("acp-%d", a.keys)
}

// Decide passes the decision on an approval to the program. See port.RemoteAnswer.
func (a *answer) Decide(d port.RemoteDecision) {
	a.mu.Lock()
	p := a.open[d.Key]
	delete(a.open, d.Key)
	a.mu.Unlock()
	if p != nil {
		a.at.heard.Store(time.Now().UnixNano()) // the program's turn begins
		p.respond(permissionResult{choose(p.options, d.Allowed)}, nil)
	}
}

// choose picks the option that allows or rejects this one call, because Parley itself remembers permanent permissions.
// If the program offers only a permanent permission, the request is answered as cancelled.
func choose(options []option, allowed bool) outcome {
	kinds := []string{"reject_once", "reject_always"}
	if allowed {
		kinds = []string{"allow_once"}
	}
	for _, kind := range kinds {
		for _, o := range options {
			if o.Kind == kind {
				return outcome{"selected", o.ID}
			}
		}
	}
	return outcome{Outcome: "cancelled"}
}

// Made handles the progress of a call by the server. See port.RemoteAnswer.
func (a *answer) Made(n port.RemoteMade) {
	a.mu.Lock()
	m := a.made[n.Key]
	if n.Ended != nil {
		delete(a.made, n.Key)
	}
	a.mu.Unlock()
	switch {
	case m == nil:
	case n.Started:
		m.started()
	case n.Printed != "":
		m.printed(n.Printed)
	case n.Ended != nil:
		a.at.heard.Store(time.Now().UnixNano())
		m.ended(*n.Ended)
	}
}
