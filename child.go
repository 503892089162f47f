package parley

import (
	"fmt"
	"slices"
	"time"
)

// childState is the session of a sub-agent that has not returned.
type childState struct {
	Call    CallID
	Session SessionID
	Agent   string
}

// ChildRequest is the request id of the input that a parent gives its child.
// Clients may not use it, because the parent recognizes its own input by it.
const ChildRequest = "delegated"

// childID returns the id of the child session that a call starts. It depends
// only on parent and call, so a repeated start finds the same session.
func childID(parent SessionID, call CallID) SessionID {
	return derivedSession("child of %s by call %d", parent, call)
}

// An Origin identifies the call that started a sub-agent's session.
type Origin struct {
	Session SessionID `json:"session"`
	Run     RunID     `json:"run"`
	Call    CallID    `json:"call"`
	Depth   int       `json:"depth"` // 1 for the child of a session that people talk to
}

// Sub-agents. A child has a session of its own, named before it starts.
type (
	ChildSpawned struct {
		Call  CallID    `json:"call"`
		Child SessionID `json:"child"`
		Agent string    `json:"agent"`
		Task  string    `json:"task"`
		Depth int       `json:"depth"` // of the child
		// Tainted is set only in logs of earlier releases: some content of the
		// parent was flagged.
		Tainted bool `json:"tainted,omitempty"`
		// Sources are the sources that the parent has read from. Its agent
		// does not trust the sources in Untrusted.
		Sources   []Source `json:"sources,omitempty"`
		Untrusted []Source `json:"untrusted,omitempty"`
		// Limits of the child; 0: no limit.
		Tokens  int64 `json:"tokens,omitempty"`
		Seconds int64 `json:"seconds,omitempty"`
		Micros  int64 `json:"micros,omitempty"` // millionths of a US dollar
		// Hooks are the webhooks to call if the child needs a person.
		Hooks []HookRef `json:"hooks,omitempty"`
		Off   []string  `json:"off,omitempty"` // MCP servers that the child does not use
	}
	ChildReturned struct {
		Call    CallID    `json:"call"`
		Child   SessionID `json:"child"`
		Agent   string    `json:"agent"`
		Outcome Outcome   `json:"outcome"`
		Result  string    `json:"result,omitempty"`
		Usage   Usage     `json:"usage"`
		Sources []Source  `json:"sources,omitempty"` // the child's own sources
	}
)

func (b ChildSpawned) fold(s State, e Event) State {
	s.Children = append(slices.Clip(s.Children), childState{b.Call, b.Child, b.Agent})
	return s.inCall(e, b.Call, func(c *Call) { c.Status, c.Spawned = callDelegated, e.Seq })
}

func (b ChildReturned) fold(s State, e Event) State {
	s.Children = without(s.Children, func(c childState) bool { return c.Session == b.Child })
	if s.Run != nil && e.Run == s.Run.ID {
		s = s.reading(b.Sources...)
	}
	return s.inRun(e, func(r *openRun) { r.Usage = r.Usage.Plus(b.Usage) })
}

// ChildEnded reports that a sub-agent has returned or was stopped.
type ChildEnded struct {
	Child   SessionID
	Outcome Outcome
	Result  string
	Usage   Usage
	Finding *Finding
	Sources []Source // the child's own sources
}

// decide returns the child to its call. If the call is closed, decide only
// records that the child has ended.
func (b ChildEnded) decide(d *decision, _ Report) {
	i := slices.IndexFunc(d.s.Children, func(c childState) bool { return c.Session == b.Child })
	if i < 0 {
		return
	}
	child := d.s.Children[i]
	returned := ChildReturned{Call: child.Call, Child: child.Session, Agent: child.Agent,
		Outcome: b.Outcome, Result: b.Result, Usage: b.Usage,
		// The flag of a message applies to one run, not to the session.
		Sources: slices.DeleteFunc(slices.Clone(b.Sources), func(s Source) bool { return s == flaggedInput })}
	r := d.s.Run
	if r == nil || d.s.orphan(child) {
		d.emit(0, returned)
		return
	}
	d.emit(r.ID, returned)
	outcome := CallSucceeded
	if b.Outcome != Completed {
		outcome = CallFailed
	}
	d.emit(r.ID, ToolCallFinished{Call: child.Call, Name: "delegate", Outcome: outcome, Result: b.Result,
		Finding: b.Finding})
}

// RunChild is a step: have a sub-agent carry out the task of a call and wait
// for its end. Spawned is the Seq of the ChildSpawned.
type RunChild struct {
	Run     RunID
	Call    CallID
	Child   SessionID
	Spawned Seq
}

func (RunChild) step() {}

// StopChild is a step: stop a child whose call is closed.
type StopChild struct{ Child SessionID }

func (StopChild) step() {}

// share returns the limits of one child: the time that the run has left, and an
// equal part of the tokens and the cost that it has left after this turn. All
// children of a turn together stay within the limits of the run.
func (r *openRun) share(now time.Time, turn Usage, children int) (tokens, seconds, micros int64) {
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

// Within returns a, narrowed to the given limits.
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

// depth returns how many levels the session is below one that people talk to.
func (s State) depth() int {
	if s.Parent == nil {
		return 0
	}
	return s.Parent.Depth
}

// spawn opens the child of a call, or blocks the call. The server does not judge
// the calls of a remote agent. So if untrusted content precedes the task, a person
// must approve giving it to the agent. The remote agent's own words do not count
// as untrusted here.
func (d *decision) spawn(call CallID, c CallAsked, turn Usage, children int) {
	r, v := d.s.Run, c.Verdict
	tokens, seconds, micros := r.share(d.at, turn, children)
	most := r.Agent.Depth
	if most == 0 {
		most = maxDepth
	}
	switch {
	case most < 0:
		d.emit(r.ID, ToolCallBlocked{Call: call, Name: "delegate", Reason: "nothing is delegated here"})
	case d.s.depth() >= most:
		d.emit(r.ID, ToolCallBlocked{Call: call, Name: "delegate",
			Reason: fmt.Sprintf("sub-agents may be at most %d deep", most)})
	case len(d.s.Children) >= MaxChildren:
		d.emit(r.ID, ToolCallBlocked{Call: call, Name: "delegate",
			Reason: fmt.Sprintf("at most %d sub-agents work at the same time", MaxChildren)})
	default:
		untrusted := d.s.untrusted()
		d.emit(r.ID, ChildSpawned{Call: call, Child: childID(d.s.ID, call), Agent: v.Agent, Task: v.Task,
			Depth: d.s.depth() + 1, Sources: d.s.reading(untrusted...).Sources, Untrusted: untrusted,
			Tokens: tokens, Seconds: seconds, Micros: micros, Hooks: d.s.below(), Off: d.s.Off})
		if v.Remote {
			d.ask(c.card(call), false,
				slices.DeleteFunc(untrusted, func(s Source) bool { return s == remoteSource(v.Agent) }))
		}
	}
}

// orphan reports whether no call waits for the child any more.
func (s State) orphan(c childState) bool {
	if s.Run == nil {
		return true
	}
	call := s.Run.call(c.Call)
	return call == nil || call.Status != callDelegated && call.Status != callApproving
}

// orphans reports whether a child must be stopped before anything new starts.
func (s State) orphans() bool { return slices.ContainsFunc(s.Children, s.orphan) }

// childSteps returns the steps that wait for children and stop orphans.
func (s State) childSteps() (steps []Step) {
	for _, c := range s.Children {
		if s.orphan(c) {
			steps = append(steps, StopChild{c.Session})
		} else if call := s.Run.call(c.Call); s.Run.Turn == nil && call.Status == callDelegated {
			steps = append(steps, RunChild{s.Run.ID, c.Call, c.Session, call.Spawned})
		}
	}
	return steps
}
