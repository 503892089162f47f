package trace

import (
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"parley"
)

// interrupted is the error type of spans that a crash has ended.
const interrupted = string(parley.CodeInterrupted)

// inCall handles an event of a tool call. The span of a call begins when the call
// can run: at its last start, or when the person has decided about it.
func (f *fold) inCall(e parley.Event) {
	f.lastOfTurn(e.At)
	switch b := e.Body.(type) {
	case parley.ToolCallRequested:
		f.request(e, b)
	case parley.ToolCallStarted:
		if c := f.calls[b.Call]; c != nil {
			f.attempt(e, c, b)
		}
	case parley.ChildSpawned:
		if c := f.calls[b.Call]; c != nil {
			c.span.Attributes = append(c.span.Attributes, text("parley.child.session", string(b.Child))...)
		}
	case parley.ToolCallBlocked:
		f.endCall(e, b.Call, "blocked", "blocked", b.Reason)
	case parley.ToolCallFinished:
		c := f.calls[b.Call]
		if c == nil {
			return
		}
		failed := ""
		if b.Outcome == parley.CallFailed || b.Outcome == parley.CallUnknown {
			failed = string(b.Outcome)
		}
		if b.Exit != nil {
			c.span.Attributes = append(c.span.Attributes, number("process.exit.code", int64(*b.Exit))...)
		}
		f.content.returned(c.span, b)
		f.endCall(e, b.Call, string(b.Outcome), failed, "")
		if b.Outcome == parley.CallUnknown {
			f.await(e, parley.Seq(b.Call), b.Call, "resolution", c.name)
		}
	case parley.ToolCallResolved:
		f.answer(e, parley.Seq(b.Call), "parley.resolution", string(b.Resolution))
	}
}

func (f *fold) request(e parley.Event, b parley.ToolCallRequested) {
	c := &call{name: b.Name}
	c.span = f.start(f.span("call", e.Seq), f.span("turn", parley.Seq(b.Turn)), "execute_tool "+b.Name,
		tracepb.Span_SPAN_KIND_INTERNAL, e.At)
	c.span.Attributes = join(text("gen_ai.operation.name", "execute_tool"), text("gen_ai.tool.name", b.Name),
		text("gen_ai.tool.type", "function"), text("gen_ai.tool.call.id", or(b.Provider, parley.Ref(e.Session, e.Seq))),
		text("gen_ai.agent.name", f.agent.Name), text("gen_ai.conversation.id", string(e.Session)),
		text("parley.call.id", parley.Ref(e.Session, e.Seq)))
	f.content.asked(c.span, b)
	if b.RerunOf != 0 {
		c.span.Links = append(c.span.Links, &tracepb.Span_Link{TraceId: f.trace, Flags: sampled,
			SpanId: f.span("call", parley.Seq(b.RerunOf)), Attributes: text("parley.link", "reruns")})
	}
	f.calls[parley.CallID(e.Seq)] = c
}

// attempt begins an attempt at a call. If a crash ended an earlier attempt,
// that attempt has a span of its own.
func (f *fold) attempt(e parley.Event, c *call, b parley.ToolCallStarted) {
	if b.Attempt > 1 {
		before := c.span
		c.span = f.start(f.span("call", e.Seq), before.ParentSpanId, before.Name, before.Kind, e.At)
		c.span.Attributes = join(before.Attributes, number("parley.attempt", int64(b.Attempt)))
		link(c.span, before, "continues")
		f.end(before, e.At, interrupted, "The server stopped while this ran.")
	}
	c.span.StartTimeUnixNano = uint64(e.At.UnixNano())
}

func (f *fold) endCall(e parley.Event, id parley.CallID, outcome, failed, message string) {
	c := f.calls[id]
	if c == nil {
		return
	}
	delete(f.calls, id)
	c.span.Attributes = append(c.span.Attributes, text("parley.outcome", outcome)...)
	f.end(c.span, e.At, failed, message)
}

// inCard handles an event of an approval or a question.
func (f *fold) inCard(e parley.Event) {
	f.lastOfTurn(e.At)
	switch b := e.Body.(type) {
	case parley.ApprovalRequested:
		f.await(e, e.Seq, b.Call, "approval", b.Name)
	case parley.ApprovalDecided:
		f.answer(e, parley.Seq(b.Card), "parley.decision", string(b.Decision))
		f.delay(e, b.Call)
	case parley.QuestionAsked:
		f.await(e, e.Seq, b.Call, "question", "")
	case parley.QuestionAnswered:
		f.answer(e, parley.Seq(b.Card), "parley.ending", string(b.Ending))
		f.delay(e, b.Call)
	}
}

// delay moves the start of a call to the end of the wait for a person.
func (f *fold) delay(e parley.Event, id parley.CallID) {
	if c := f.calls[id]; c != nil {
		c.span.StartTimeUnixNano = uint64(e.At.UnixNano())
	}
}

// await opens the span of a wait for a person. It is a sibling of the call's span,
// so that the duration of a call is that of the tool.
func (f *fold) await(e parley.Event, key parley.Seq, id parley.CallID, kind, tool string) {
	if f.turn == nil {
		return
	}
	s := f.start(f.span("wait", e.Seq), f.turn.SpanId, trimmed(kind+" "+tool), tracepb.Span_SPAN_KIND_INTERNAL, e.At)
	s.Attributes = join(text("parley.wait", kind), text("gen_ai.tool.name", tool),
		text("gen_ai.conversation.id", string(e.Session)),
		text("parley.call.id", parley.Ref(e.Session, parley.Seq(id))))
	f.waits[key] = s
}

func (f *fold) answer(e parley.Event, key parley.Seq, name, value string) {
	if s := f.waits[key]; s != nil {
		delete(f.waits, key)
		s.Attributes = append(s.Attributes, text(name, value)...)
		f.end(s, e.At, "", "")
	}
}
