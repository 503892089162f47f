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
	maxApprovals = 16   // of one answer that are open
	maxMade      = 64   // calls of one answer that the server makes at the same time
	maxTools     = 4096 // calls of the program's own in one answer
)

// An answer is one message to a program, and what the program says and wants until
// its last word.
type answer struct {
	at       *program
	ctx      context.Context // of who asked
	session  string
	roots    []string // names of the project's folder
	said     chan port.RemoteSaid
	left     chan struct{} // closed when nobody listens any more
	answered chan struct{} // closed when the program has had its last word, or is lost
	result   promptResult  // set before answered is closed
	err      error         // likewise

	// Of the goroutine that reads what the program says.
	tools   map[string]*toolCall
	message string // the id of what it says
	cost    int64  // of the session, in millionths of a US dollar

	mu        sync.Mutex // guards the following; leaf
	keys      int
	open      map[string]*permission // approvals, by key
	made      map[string]*made       // calls of the server, by key
	terminals map[string]*terminal
	context   parley.ContextSize
	over      bool // nothing more of it is heard
}

// A toolCall is a call of the program's own.
type toolCall struct {
	fields  toolFields
	content []part
	keys    []string // under which it stands in the log, and has not ended
	ended   bool
}

// A permission is what a person is asked.
type permission struct {
	options []option
	respond jsonrpc.Answer
}

// A made call is one that the server makes; it is told what becomes of it.
type made struct {
	started func()
	printed func(string)
	ended   func(port.RemoteResult)
}

func newAnswer(ctx context.Context, at *program, r port.RemoteRequest) *answer {
	roots := []string{r.Root}
	if real, err := filepath.EvalSymlinks(r.Root); err == nil && real != r.Root { // a program may find it out
		roots = append(roots, real)
	}
	return &answer{at: at, ctx: ctx, session: at.known.session, roots: roots, said: make(chan port.RemoteSaid, 64),
		left: make(chan struct{}), answered: make(chan struct{}), tools: map[string]*toolCall{},
		open: map[string]*permission{}, made: map[string]*made{}, terminals: map[string]*terminal{}, cost: at.spent}
}

// say hands something to who listens. Waiting for that is right: nothing else comes
// from this program.
func (a *answer) say(s port.RemoteSaid) {
	select {
	case a.said <- s:
	case <-a.left:
	case <-a.at.ctx.Done():
	}
}

// finish notes the program's last word.
func (a *answer) finish(r promptResult, err error) { a.result, a.err = r, err }

// Said yields what the program says. See port.RemoteAnswer.
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

// last yields what is left of an answer, and how it ended. The reader has handed
// over everything that came before the last word.
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

// end is the last word of the program as people are told it.
func (a *answer) end() (port.RemoteSaid, error) {
	if a.err != nil {
		if _, refused := errors.AsType[*jsonrpc.Error](a.err); refused {
			return port.RemoteSaid{}, parley.Errorf(parley.CodeModel, "%s", errorText(a.err))
		}
		<-a.at.gone // to know why
		if a.at.Programs.ctx.Err() != nil {
			return port.RemoteSaid{}, &parley.Error{Code: parley.CodeInterrupted,
				Message: "The server stopped in the " +
					"middle of the answer.", Err: a.err}
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

// leave ends the answer on this side. A program that has not had its last word is
// told to stop, and ended if it does not.
func (a *answer) leave() {
	close(a.left)
	a.drop()
	select {
	case <-a.answered:
	default:
		_ = a.at.conn.Notify(methodCancel, ofSession{a.session}) // one that is gone needs not be told
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

// drop answers everything that the program waits for: nobody will.
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

// update takes a piece of news. It is called by the reader.
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
		_ = json.Unmarshal(u.Content, &content) // what cannot be read is not shown
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

// tool is the call that the program speaks of, with what it says of it now. It is
// nil if there are too many.
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

// progress tells how far a call of the program's own is. One that is only announced
// may still be asked about, and is not told.
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

// key is a new name for something in the log.
func (a *answer) key() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys++
	return fmt.Sprintf("acp-%d", a.keys)
}

// Decide says what became of an approval. See port.RemoteAnswer.
func (a *answer) Decide(d port.RemoteDecision) {
	a.mu.Lock()
	p := a.open[d.Key]
	delete(a.open, d.Key)
	a.mu.Unlock()
	if p != nil {
		a.at.heard.Store(time.Now().UnixNano()) // it is the program's turn again
		p.respond(permissionResult{choose(p.options, d.Allowed)}, nil)
	}
}

// choose picks the option that says what a person said and no more: Parley remembers
// itself what is allowed for good. A program that offers only to be allowed for good
// is told that the question was cancelled.
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

// Made says what becomes of a call of the server. See port.RemoteAnswer.
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
