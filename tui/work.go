package tui

import (
	"slices"
	"time"

	"parley"
)

// A Call is a tool call of the session or of a sub-agent.
type Call struct {
	Session parley.SessionID
	ID      parley.CallID
	Child   parley.SessionID // the session that it delegates to
	Depth   int              // 0: a call of the session itself
	Agent   string           // name of the sub-agent
	Tool    string
	Line    string // the call on one line
	State   CallState
	Output  string // the end of its output so far
	Result  string
	Began   time.Time
	Ended   time.Time
}

// A CallState is the state of a call.
type CallState string

const (
	CallWaits   CallState = "waits" // for a person, or for its turn
	CallRuns    CallState = "runs"
	CallDone    CallState = "done"
	CallFailed  CallState = "failed"
	CallRefused CallState = "refused" // by a person or a rule
	CallStopped CallState = "stopped"
	CallLost    CallState = "lost" // its outcome is unknown
)

// keptOutput is how many bytes of a call's output are kept. The log has all of it.
const keptOutput = 8 << 10

// foldWork handles the events of tool calls, including those of sub-agents.
func (t Talk) foldWork(e parley.Event) Talk {
	switch b := e.Body.(type) {
	case parley.ToolCallRequested:
		agent, depth := t.child(e.Session)
		return t.begin(e, Call{Session: e.Session, ID: parley.CallID(e.Seq), Depth: depth, Agent: agent, Tool: b.Name,
			Line: CallLine(b.Name, b.Arguments), State: CallWaits})
	case parley.ToolCallStarted:
		return t.doing(e, b.Call).call(e, b.Call, func(c *Call) {
			c.State, c.Began, c.Output = CallRuns, e.At, ""
			if b.Attempt > 1 {
				c.Result = "again"
			}
		})
	case parley.ToolOutputAppended:
		return t.call(e, b.Call, func(c *Call) {
			if c.Output += b.Text; len(c.Output) > keptOutput {
				c.Output = c.Output[len(c.Output)-keptOutput:]
			}
		})
	case parley.ToolCallBlocked:
		return t.call(e, b.Call, func(c *Call) { c.State, c.Result, c.Ended = CallRefused, b.Reason, e.At })
	case parley.ToolCallFinished:
		return t.call(e, b.Call, func(c *Call) {
			c.State, c.Result, c.Ended = afterCall(b.Outcome), b.Result, e.At
		})
	case parley.ChildSpawned:
		_, depth := t.child(e.Session)
		t.children = append(slices.Clip(t.children), childAgent{b.Child, b.Agent, depth + 1})
		return t.doing(e, b.Call).call(e, b.Call, func(c *Call) {
			c.Child, c.State, c.Began, c.Line = b.Child, CallRuns, e.At, b.Agent+": "+short(b.Task)
		})
	}
	return t
}

func afterCall(o parley.CallOutcome) CallState {
	switch o {
	case parley.CallSucceeded:
		return CallDone
	case parley.CallDenied:
		return CallRefused
	case parley.CallCancelled:
		return CallStopped
	case parley.CallUnknown:
		return CallLost
	}
	return CallFailed
}

// doing shows on the status line which tool of the session runs.
func (t Talk) doing(e parley.Event, id parley.CallID) Talk {
	if e.Session != t.Session || t.Run == 0 {
		return t
	}
	if _, c := t.find(e.Session, id); c != nil {
		t.Doing = "running " + c.Tool
	}
	return t
}

func (t Talk) child(session parley.SessionID) (agent string, depth int) {
	for _, c := range t.children {
		if c.session == session {
			return c.agent, c.depth
		}
	}
	return "", 0
}

// begin adds a call: to the last group, or after the call that started its sub-agent.
func (t Talk) begin(e parley.Event, c Call) Talk {
	if c.Session != t.Session {
		for n := len(t.Items) - 1; n >= 0; n-- {
			at := slices.IndexFunc(t.Items[n].Calls, func(by Call) bool { return by.Child == c.Session })
			if at < 0 {
				continue
			}
			calls := t.Items[n].Calls
			depth := calls[at].Depth
			for at++; at < len(calls) && calls[at].Depth > depth; at++ {
			}
			return t.replace(n, func(i *Item) { i.Calls = slices.Insert(slices.Clone(calls), at, c) })
		}
		return t // the call of a sub-agent that started before the first event
	}
	if n := len(t.Items) - 1; n >= 0 && t.Items[n].Kind == Worked && t.Items[n].Open {
		return t.replace(n, func(i *Item) { i.Calls = append(slices.Clip(i.Calls), c) })
	}
	return t.add(e, Item{Kind: Worked, Open: true, Calls: []Call{c}})
}

// find returns the index of the item of a call, and a pointer to the call, which must not be changed.
func (t Talk) find(session parley.SessionID, id parley.CallID) (int, *Call) {
	for n := len(t.Items) - 1; n >= 0; n-- {
		for at := range t.Items[n].Calls {
			if c := &t.Items[n].Calls[at]; c.Session == session && c.ID == id {
				return n, c
			}
		}
	}
	return 0, nil
}

func (t Talk) call(e parley.Event, id parley.CallID, change func(*Call)) Talk {
	n, found := t.find(e.Session, id)
	if found == nil {
		return t
	}
	return t.replace(n, func(i *Item) {
		i.Calls = slices.Clone(i.Calls)
		for at := range i.Calls {
			if c := &i.Calls[at]; c.Session == e.Session && c.ID == id {
				change(c)
			}
		}
	})
}
