package parley

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
)

// A Child is the session of a sub-agent that has not returned.
type Child struct {
	Call    CallID
	Session SessionID
	Agent   string
}

// MaxDepth is how far below a session that people talk to sub-agents may be,
// unless the agent says otherwise.
const MaxDepth = 2

// MaxChildren of one session may be out at the same time.
const MaxChildren = 16

// ChildRequest is the name of the input that a child is given. Nobody else may give
// an input that name: it is how a parent knows its own.
const ChildRequest = "delegated"

// ChildID is the session of the child that a call starts. It follows from the
// call, so that whoever starts it again starts the same one.
func ChildID(parent SessionID, call CallID) SessionID {
	sum := sha256.Sum256(fmt.Appendf(nil, "child of %s by call %d", parent, call))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80 // a UUID of version 4, as all sessions are
	return SessionID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// spent says which of its limits a run has reached; none: an empty text.
func (r *Run) spent(now time.Time) string {
	a, used := r.Agent, r.Usage.Input+r.Usage.Output
	switch {
	case a.Tokens > 0 && used >= a.Tokens:
		return fmt.Sprintf("The run used %d tokens; it may use %d.", used, a.Tokens)
	case a.Micros > 0 && r.Usage.CostMicros >= a.Micros:
		return fmt.Sprintf("The run cost $%.4f; it may cost $%.4f.", r.Usage.CostUSD(), float64(a.Micros)/1e6)
	case a.Seconds > 0 && now.Sub(r.At) >= time.Duration(a.Seconds)*time.Second:
		return fmt.Sprintf("The run took longer than the %d seconds it may take.", a.Seconds)
	}
	return ""
}

// share is what a child may use: an equal part of what this turn leaves to the
// run, so that all children of a turn together do not use more.
func (r *Run) share(now time.Time, turn Usage, children int) (tokens, seconds, micros int64) {
	used := r.Usage.Plus(turn)
	if r.Agent.Tokens > 0 {
		tokens = max((r.Agent.Tokens-used.Input-used.Output)/int64(children), 1)
	}
	if r.Agent.Seconds > 0 {
		seconds = max(r.Agent.Seconds-int64(now.Sub(r.At)/time.Second), 1)
	}
	if r.Agent.Micros > 0 {
		micros = max((r.Agent.Micros-used.CostMicros)/int64(children), 1)
	}
	return tokens, seconds, micros
}

// Within is the definition with limits no wider than others.
func (a AgentRef) Within(tokens, seconds, micros int64) AgentRef {
	narrow := func(mine, most int64) int64 {
		if mine == 0 || most > 0 && most < mine {
			return most
		}
		return mine
	}
	a.Tokens, a.Seconds, a.Micros = narrow(a.Tokens, tokens), narrow(a.Seconds, seconds), narrow(a.Micros, micros)
	return a
}

// depth is how far below a session that people talk to this one is.
func (s State) depth() int {
	if s.Parent == nil {
		return 0
	}
	return s.Parent.Depth
}

// spawn names the child of a call, or blocks the call. Calls of an agent elsewhere
// are not asked about here, so after untrusted content a person is asked whether
// the agent is to be given the task at all. Its own words are not new to it.
func (d *decision) spawn(call CallID, c CallAsked, turn Usage, children int) {
	r, v := d.s.Run, c.Verdict
	tokens, seconds, micros := r.share(d.at, turn, children)
	most := r.Agent.Depth
	if most == 0 {
		most = MaxDepth
	}
	switch {
	case most < 0:
		d.emit(r.ID, ToolCallBlocked{Call: call, Name: "delegate", Reason: "nothing is delegated here"})
	case d.s.depth() >= most:
		d.emit(r.ID, ToolCallBlocked{Call: call, Name: "delegate", Reason: fmt.Sprintf("sub-agents may be at most %d deep", most)})
	case len(d.s.Children) >= MaxChildren:
		d.emit(r.ID, ToolCallBlocked{Call: call, Name: "delegate", Reason: fmt.Sprintf("at most %d sub-agents work at the same time", MaxChildren)})
	default:
		untrusted := d.s.untrusted()
		d.emit(r.ID, ChildSpawned{Call: call, Child: ChildID(d.s.ID, call), Agent: v.Agent, Task: v.Task,
			Depth: d.s.depth() + 1, Sources: d.s.reading(untrusted...).Sources, Untrusted: untrusted,
			Tokens: tokens, Seconds: seconds, Micros: micros, Hooks: d.s.below()})
		if v.Remote {
			d.ask(c.card(call), false, slices.DeleteFunc(untrusted, func(s Source) bool { return s == RemoteSource(v.Agent) }))
		}
	}
}

// childEnded: a child has returned to its call, or, if that is closed, is gone.
func (d *decision) childEnded(rep Report, b ChildEnded) {
	i := slices.IndexFunc(d.s.Children, func(c Child) bool { return c.Session == b.Child })
	if i < 0 {
		return
	}
	child := d.s.Children[i]
	returned := ChildReturned{Call: child.Call, Child: child.Session, Agent: child.Agent,
		Outcome: b.Outcome, Result: b.Result, Usage: b.Usage,
		// That a message was flagged is said of one run, not of the session.
		Sources: slices.DeleteFunc(slices.Clone(b.Sources), func(s Source) bool { return s == flaggedInput })}
	r := d.s.Run
	if r == nil || d.orphan(child) {
		d.emit(0, returned)
		return
	}
	d.emit(r.ID, returned)
	outcome := CallSucceeded
	if b.Outcome != Completed {
		outcome = CallFailed
	}
	d.emit(r.ID, ToolCallFinished{Call: child.Call, Name: "delegate", Outcome: outcome, Result: b.Result, Finding: b.Finding})
}

// orphan reports whether nobody waits for a child any more.
func (d *decision) orphan(c Child) bool { return d.s.orphan(c) }

func (s State) orphan(c Child) bool {
	if s.Run == nil {
		return true
	}
	call := s.Run.call(c.Call)
	return call == nil || call.Status != CallDelegated && call.Status != CallApproving
}

// orphans: they have to be gone before anything new starts.
func (s State) orphans() bool { return slices.ContainsFunc(s.Children, s.orphan) }

// foldChild folds what becomes of children; foldRun what becomes of their calls.
func (s State) foldChild(e Event) State {
	switch b := e.Body.(type) {
	case ChildSpawned:
		s.Children = append(slices.Clip(s.Children), Child{b.Call, b.Child, b.Agent})
	case ChildReturned:
		if s.Children = slices.DeleteFunc(slices.Clone(s.Children), func(c Child) bool { return c.Session == b.Child }); len(s.Children) == 0 {
			s.Children = nil
		}
	}
	return s
}

// childSteps: every child is waited for, or stopped.
func (s State) childSteps() (steps []Step) {
	for _, c := range s.Children {
		if s.orphan(c) {
			steps = append(steps, StopChild{c.Session})
		} else if call := s.Run.call(c.Call); s.Run.Turn == nil && call.Status == CallDelegated {
			steps = append(steps, RunChild{s.Run.ID, c.Call, c.Session, call.Spawned})
		}
	}
	return steps
}
