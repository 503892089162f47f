package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"parley"
	"parley/pacing"
	"parley/port"
)

const (
	askWithin    = 300 * time.Millisecond // how long another node may take to answer over the bus
	forwardTries = 20                     // how often a request follows a session that moves from node to node
	fencedTries  = 5
	forwardPause = 10 * time.Millisecond
	replyPause   = 20 * time.Millisecond // between looks at a letter; doubled up to replyPauses
	replyPauses  = 250 * time.Millisecond
)

// route passes a request to the actor of a session, on whichever node it is.
func (e *Engine) route(ctx context.Context, k key, r *request) (port.Receipt, error) {
	starts := r.command.Do != nil && r.command.Do.Rules().Starts
	for try := 1; e.Nodes == nil; try++ {
		receipt, err := e.submitHere(ctx, k, starts, r)
		// An erasure has changed the log, so the actor with the old state leaves. Nothing was done.
		if !errors.Is(err, errFenced) || try == fencedTries || !pacing.Sleep(ctx, forwardPause*time.Duration(try)) {
			return receipt, publicError(err)
		}
	}
	given := r.command.ID
	var asked []string // nodes that cannot have the session
	for try := 1; ; try++ {
		receipt, err := e.submitHere(ctx, k, starts, r)
		node, pass := e.nodeFor(ctx, k, err, asked)
		away, _ := errors.AsType[*awayError](err)
		switch {
		case err == nil || !pass && !isElsewhere(err):
			return receipt, publicError(err)
		case !pass && away != nil && away.node == "":
			return receipt, parley.Errorf(parley.CodeUnavailable, "%s", away.why)
		case try == forwardTries:
			return receipt, parley.Errorf(parley.CodeUnavailable, "No node could be reached that has this session; "+
				"try again in a moment.")
		case pass:
			if r.command.ID == "" {
				r.command.ID = newCommandID()
			}
			got, err := e.forward(ctx, k, node, r)
			switch {
			case err != nil:
				return receipt, err
			case got.Receipt != nil:
				receipt = *got.Receipt
				if given == "" { // the id was made for the nodes only
					receipt.Command, receipt.Repeated = "", false
				}
				return receipt, nil
			case got.Refused != nil:
				f := got.Refused
				return receipt, &parley.Error{Code: f.Code, Message: f.Message, Hint: f.Hint, RetryAfter: f.RetryAfter,
					Vendor: f.Vendor, Problem: f.Problem}
			case got.Unfit != "":
				asked = append(asked, node)
			}
		}
		if !pacing.Sleep(ctx, forwardPause*time.Duration(try)) {
			return receipt, ctx.Err()
		}
	}
}

// nodeFor returns the node to pass a request to that this one did not answer.
func (e *Engine) nodeFor(ctx context.Context, k key, err error, asked []string) (node string, pass bool) {
	away, ok := errors.AsType[*awayError](err)
	if ok && away.node != "" {
		return away.node, !slices.Contains(asked, away.node)
	}
	if !ok && !errors.Is(err, errDraining) {
		return "", false
	}
	st, err := e.Store.Tenant(k.tenant).Session(ctx, k.session)
	if err != nil && parley.CodeOf(err) != parley.CodeNotFound {
		return "", false
	}
	if st.Holder != "" && !slices.Contains(asked, st.Holder) {
		return st.Holder, true
	}
	project := st.Summary.Project
	if ok {
		project = cmp.Or(away.project, project)
	}
	for _, node := range e.nodesServing(project) {
		if !slices.Contains(asked, node) {
			return node, true
		}
	}
	return "", false
}

// An envelope is a request as it goes over the bus.
type envelope struct {
	Tenant  parley.TenantID  `json:"tenant"`
	Session parley.SessionID `json:"session"`
	Command parley.CommandID `json:"command"`
	Body    []byte           `json:"body"`
}

// forward sends a request to another node and waits for the answer. A request that
// is not answered over the bus is stored as a letter, under the same id.
func (e *Engine) forward(ctx context.Context, k key, node string, r *request) (got answer, err error) {
	of := messageID{key: k, command: r.command.ID}
	body := e.sealer.seal(of, newForwarded(r))
	if e.Bus != nil && !r.rest {
		raw, _ := json.Marshal(envelope{k.tenant, k.session, of.command, body}) // strings only
		inTime, cancel := context.WithTimeout(ctx, askWithin)
		raw, err = e.Bus.Ask(inTime, node, raw)
		cancel()
		if err == nil {
			err = e.sealer.open(messageID{k, of.command, true}, raw, &got)
		}
		if err == nil {
			return got, nil
		}
		e.Log.Debug("a node did not answer over the bus", "node", node, "error", err)
	}
	return e.postLetter(ctx, port.Letter{Tenant: k.tenant, Session: k.session, Command: of.command, Node: node,
		Body: body})
}

// postLetter stores a letter and waits for the answer, even if its node dies and
// another node takes the session.
func (e *Engine) postLetter(ctx context.Context, l port.Letter) (got answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*e.Nodes.Lease())
	defer cancel()
	if err := e.Nodes.Post(ctx, l); err != nil {
		return got, err
	}
	e.tellNodes(letterTopic+l.Node, nil)
	k := key{l.Tenant, l.Session}
	for pause := replyPause; ; pause = min(2*pause, replyPauses) {
		raw, there, err := e.Nodes.Replied(ctx, l)
		switch {
		case err != nil && ctx.Err() == nil:
			return got, err
		case err == nil && raw != nil:
			if err := e.Nodes.Withdraw(ctx, l); err != nil {
				e.Log.Debug("a letter was not removed", "error", err) // it is removed later
			}
			return got, e.sealer.open(messageID{k, l.Command, true}, raw, &got)
		case err == nil && !there:
			receipt, found, err := e.Store.Tenant(k.tenant).Receipt(ctx, k.session, l.Command)
			if err == nil && !found {
				err = errUnreached
			}
			return answer{Receipt: &receipt.Receipt}, err
		}
		if !e.hasOtherNodes() { // the letter's node has died, and this one would read no letters
			e.readLettersSoon()
		}
		if !pacing.Sleep(ctx, pause) {
			_ = e.Nodes.Withdraw(context.WithoutCancel(ctx), l) // the caller has gone; a node may still work on it
			return got, errUnreached
		}
	}
}

var errUnreached = parley.Errorf(parley.CodeUnavailable,
	"The node that has this session does not answer; try again in "+
		"a moment.")

const letterTopic = "c.letters."

// tellNodes sends a message to the other nodes over the bus, if there is one.
func (e *Engine) tellNodes(topic string, message []byte) {
	if e.Bus != nil && e.hasOtherNodes() {
		e.Bus.Publish(topic, message)
	}
}

// answerBusRequest answers a request of another node over the bus. A message that
// cannot be opened comes from a sender without the key, and gets no answer.
func (e *Engine) answerBusRequest(ctx context.Context, message []byte) []byte {
	var v envelope
	if json.Unmarshal(message, &v) != nil {
		return nil
	}
	of := messageID{key: key{v.Tenant, v.Session}, command: v.Command}
	got, ok := e.answerRequest(ctx, of, v.Body, "")
	if !ok {
		return nil
	}
	of.answer = true
	return e.sealer.seal(of, got)
}

// answerRequest passes another node's request to the actor on this node.
func (e *Engine) answerRequest(ctx context.Context, of messageID, sealed []byte, letter parley.CommandID) (got answer,
	ok bool) {
	var p forwarded
	if err := e.sealer.open(of, sealed, &p); err != nil {
		e.Log.Warn("a message was dropped: it was not encrypted with the key of this database's nodes",
			"session", of.session, "error", err)
		return got, false
	}
	r, err := p.request(of)
	if err != nil { // maybe a command of a later release
		return answer{Unfit: err.Error()}, true
	}
	r.letter = letter
	// Requests that start something are accepted even while this node stops: the node that passed one on takes the
	// session over.
	receipt, err := e.submitHere(ctx, of.key, false, r)
	away, isAway := errors.AsType[*awayError](err)
	switch {
	case err == nil:
		return answer{Receipt: &receipt}, true
	case isAway && away.node != "":
		return answer{Elsewhere: away.node}, true
	case isAway:
		return answer{Unfit: away.why}, true
	case errors.Is(err, errDraining):
		return answer{Unfit: "it is stopping"}, true
	case isElsewhere(err):
		return answer{Again: true}, true
	case ctx.Err() != nil:
		return got, false
	}
	err = publicError(err)
	f := &refused{Code: parley.CodeOf(err), Message: parley.MessageOf(err)}
	if x, ok := errors.AsType[*parley.Error](err); ok {
		f.Hint, f.RetryAfter, f.Vendor, f.Problem = x.Hint, x.RetryAfter, x.Vendor, x.Problem
	}
	return answer{Refused: f}, true
}

// readLettersSoon makes watch read letters.
func (e *Engine) readLettersSoon() {
	select {
	case e.letterCame <- struct{}{}:
	default: // a signal is pending
	}
}

// readLetters answers letters for this node, and for nodes that have died. It
// does not wait for the answers.
func (e *Engine) readLetters() {
	e.mu.Lock()
	busy := len(e.answeringLetters)
	e.mu.Unlock()
	list, err := e.Nodes.Letters(e.ctx, lettersAtATime+busy)
	if err != nil {
		if e.ctx.Err() == nil {
			e.Log.Warn("letters of other nodes cannot be read", "error", err)
		}
		return
	}
	for _, l := range list {
		of := messageID{key: key{l.Tenant, l.Session}, command: l.Command}
		e.mu.Lock()
		busy := e.answeringLetters[of]
		e.answeringLetters[of] = true
		e.mu.Unlock()
		if busy {
			continue
		}
		e.wg.Go(func() {
			e.answerLetter(l, of)
			e.mu.Lock()
			delete(e.answeringLetters, of)
			e.mu.Unlock()
		})
	}
}

// answerLetter answers one letter, or redirects it to another node. If the
// command was appended, the append has removed the letter already.
func (e *Engine) answerLetter(l port.Letter, of messageID) {
	got, ok := e.answerRequest(e.ctx, of, l.Body, l.Command)
	var err error
	switch {
	case !ok || got.Again:
		return // the letter is read again
	case got.Elsewhere != "":
		err = e.Nodes.Redirect(e.ctx, l, got.Elsewhere)
		e.tellNodes(letterTopic+got.Elsewhere, nil)
	default:
		of.answer = true
		err = e.Nodes.Reply(e.ctx, l, e.sealer.seal(of, got))
	}
	if err != nil && e.ctx.Err() == nil {
		e.Log.Warn("a letter of another node was not answered", "session", l.Session, "error", err)
	}
}
