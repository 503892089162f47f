package eventbus

import (
	"cmp"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
)

// inCall shows events about tool calls and cards.
func (p *projection) inCall() {
	switch b := p.e.Body.(type) {
	case parley.ToolCallRequested:
		p.v.calls = append(slices.Clip(p.v.calls), call{id: parley.CallID(p.e.Seq), name: b.Name, args: b.Arguments})
		block := parley.Ref(p.e.Session, p.e.Seq)
		p.show(message{ID: "cb-start-" + block, Kind: "content_block", Phase: "start", AgentID: p.v.agent,
			Data: blockStart{block, "tool_use", b.Name, dialect.Arguments(b.Arguments), p.v.descent()}})
	case parley.ToolCallBlocked:
		p.v = p.v.withoutCall(b.Call)
		p.update(call{id: b.Call}, "blocked", b.Reason, true)
	case parley.ToolCallStarted:
		c := p.v.call(b.Call)
		c.started = p.e.At
		p.v = p.v.withCall(c)
		p.become(callingTool, doing(c.name, c.args))
	case parley.ToolOutputAppended:
		p.progress(b)
	case parley.ToolCallFinished:
		p.callEnded(b)
	case parley.ToolCallResolved, parley.ApprovalDecided, parley.QuestionAnswered:
		c, _ := dialect.Closes(p.e)
		p.close(c.ID, c.How)
	case parley.ApprovalRequested:
		ask := "Allow " + b.Name + "?"
		if b.Why != "" {
			ask += " (" + b.Why + ")"
		}
		p.ask(parley.Ref(p.e.Session, p.e.Seq), askUser{ExpiresAt: &b.Expires,
			Questions: []question{{Question: ask + "\n\n" + b.Show, Header: "Permission",
				Options: approvalOptions(b)}}})
	case parley.ApprovalExplained:
		p.says(p.v.agent, p.v.peer(), "assistant", b.Text)
	case parley.QuestionAsked:
		a := askUser{ExpiresAt: &b.Expires, Questions: []question{}}
		for _, q := range b.Questions {
			a.Questions = append(a.Questions, questionOf(q))
		}
		p.ask(parley.Ref(p.e.Session, p.e.Seq), a)
	}
}

func (v View) call(id parley.CallID) call {
	if i := slices.IndexFunc(v.calls, func(c call) bool { return c.id == id }); i >= 0 {
		return v.calls[i]
	}
	return call{id: id}
}

// withCall replaces an open call.
func (v View) withCall(c call) View {
	if i := slices.IndexFunc(v.calls, func(o call) bool { return o.id == c.id }); i >= 0 {
		v.calls = slices.Clone(v.calls)
		v.calls[i] = c
	}
	return v
}

func (v View) withoutCall(id parley.CallID) View {
	v.calls = slices.DeleteFunc(slices.Clone(v.calls), func(c call) bool { return c.id == id })
	return v
}

const (
	maxSummary = 200     // characters
	maxLine    = 4 << 10 // bytes after which an incomplete line is shown
)

func (p *projection) update(c call, status, result string, failed bool) {
	block := parley.Ref(p.e.Session, parley.Seq(c.id))
	first, _, more := strings.Cut(strings.TrimSpace(result), "\n")
	if first = clip(first, maxSummary); more && !strings.HasSuffix(first, "...") {
		first += "..."
	}
	data := blockUpdate{Block: block, Status: status, Summary: first, IsError: failed, descent: p.v.descent()}
	if !c.started.IsZero() {
		ran := p.e.At.Sub(c.started).Milliseconds()
		data.Duration = &ran
	}
	p.show(message{ID: p.named("cb-update-" + block + "-%d"), Kind: "content_block", Phase: "update", Text: &first,
		AgentID: p.v.agent, Data: data})
}

var callStatuses = map[parley.CallOutcome]string{
	parley.CallSucceeded: "done",
	parley.CallFailed:    "failed",
	parley.CallDenied:    "denied",
	parley.CallCancelled: "cancelled",
	parley.CallUnknown:   "unknown",
}

func (p *projection) callEnded(b parley.ToolCallFinished) {
	c := p.v.call(b.Call)
	p.v = p.v.withoutCall(b.Call)
	for _, stream := range []parley.Stream{parley.Stdout, parley.Stderr} {
		if rest := c.line(stream); *rest != "" {
			p.progressed(b.Call, b.Name, *rest, stream)
		}
	}
	p.update(c, callStatuses[b.Outcome], dialect.Result(b), b.Outcome != parley.CallSucceeded)
	switch {
	case b.Outcome == parley.CallUnknown: // only a person can resolve it
		p.ask(parley.Ref(p.e.Session, parley.Seq(b.Call)), askUser{Questions: []question{{
			Question: strings.TrimSpace(b.Name + ": " + b.Result), Header: "Unknown",
			Options: options(runAgain, markAsDone, abandonRun)}}})
	case b.Outcome == parley.CallSucceeded && b.Name == "finalize_task":
		p.v.task = taskOf(c.args)
	}
}

// progress shows the output of a tool line by line. An incomplete line waits
// for its end. If an event has more lines than it may have messages, the last
// message has all the remaining lines.
func (p *projection) progress(b parley.ToolOutputAppended) {
	c := p.v.call(b.Call)
	rest := c.line(b.Stream)
	lines := strings.Split(*rest+b.Text, "\n")
	*rest, lines = lines[len(lines)-1], lines[:len(lines)-1]
	if len(*rest) > maxLine {
		lines, *rest = append(lines, *rest), ""
	}
	p.v = p.v.withCall(c)
	if len(lines) > perEvent {
		lines = append(lines[:perEvent-1:perEvent-1], strings.Join(lines[perEvent-1:], "\n"))
	}
	for _, l := range lines {
		p.progressed(b.Call, c.name, l, b.Stream)
	}
}

func (p *projection) progressed(id parley.CallID, tool, line string, stream parley.Stream) {
	line = strings.TrimSuffix(line, "\r")
	p.show(message{ID: p.byAgent("tool-progress"), Kind: "tool_progress", Text: &line, AgentID: p.v.agent,
		Data: toolProgress{tool, line, cmp.Or(string(stream), "stdout"), parley.Ref(p.e.Session, parley.Seq(id))}})
}

func questionOf(q parley.Question) question {
	shown := question{Question: q.Question, Header: q.Header, Options: []option{}, MultiSelect: q.MultiSelect}
	for _, o := range q.Options {
		next := option{Label: o.Label}
		if o.Description != "" {
			next.Description = &o.Description
		}
		shown.Options = append(shown.Options, next)
	}
	return shown
}

// ask shows a card, and keeps its message for clients that connect while it is
// open.
func (p *projection) ask(id string, a askUser) {
	a.Question = id
	p.show(message{ID: "ask-user-" + id, Kind: "ask_user", AgentID: p.v.agent, Data: a})
	shown := p.frames[len(p.frames)-1].Body.(message) // with the fields that show sets
	p.v.cards = append(slices.Clip(p.v.cards), card{id, shown})
}

func (p *projection) close(id, how string) {
	p.v.cards = slices.DeleteFunc(slices.Clone(p.v.cards), func(c card) bool { return c.id == id })
	p.resolved(how, card{id: id})
}

// resolved makes all clients dismiss cards.
func (p *projection) resolved(how string, cards ...card) {
	if len(cards) == 0 {
		return
	}
	data := resolved{Widget: cards[0].id, Resolution: how}
	if len(cards) > 1 {
		for _, c := range cards {
			data.Widgets = append(data.Widgets, c.id)
		}
	}
	p.show(message{ID: "widget-resolved-" + data.Widget, Kind: "widget_resolved", AgentID: p.v.agent, Data: data})
}
