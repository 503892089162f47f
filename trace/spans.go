package trace

import (
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"parley"
)

// A fold turns the events of one run, in order, into spans. It is pure: the same
// log results in the same spans.
type fold struct {
	place
	provider func(model string) string // the vendor of a model, by its name in the conventions
	content  *content                  // nil: spans contain no texts

	ended []*tracepb.Span
	agent parley.AgentRef
	run   *tracepb.Span
	turn  *tracepb.Span // the open or last turn; it ends with its last call
	chat  *tracepb.Span // the open model call
	cut   *tracepb.Span // the model call that a crash ended
	calls map[parley.CallID]*call
	waits map[parley.Seq]*tracepb.Span // for a person, by card, or by call if its outcome is unknown
}

// A call is an open tool call.
type call struct {
	name string
	span *tracepb.Span // span of the last attempt
}

func newFold(p place, provider func(string) string, withContent bool) *fold {
	f := &fold{place: p, provider: provider, calls: map[parley.CallID]*call{}, waits: map[parley.Seq]*tracepb.Span{}}
	if withContent {
		f.content = &content{}
	}
	return f
}

// add handles an event, and reports whether it ends the run.
func (f *fold) add(e parley.Event) (ended bool) {
	if e.Seq == parley.Seq(f.place.run) {
		if b, ok := e.Body.(parley.RunStarted); ok {
			f.startRun(e, b)
		}
		return false
	}
	if e.Run != f.place.run || f.run == nil {
		return false
	}
	switch b := e.Body.(type) {
	case parley.TurnStarted:
		f.startTurn(e, b)
	case parley.OutputStarted, parley.ModelFellBack, parley.ProblemReported, parley.OutputFinished:
		f.inChat(e)
	case parley.TurnFinished:
		f.endChat(e, b)
	case parley.ToolCallRequested, parley.ToolCallStarted, parley.ToolCallBlocked, parley.ToolCallFinished,
		parley.ToolCallResolved, parley.ChildSpawned:
		f.inCall(e)
	case parley.ApprovalRequested, parley.ApprovalDecided, parley.QuestionAsked, parley.QuestionAnswered:
		f.inCard(e)
	case parley.RunFinished:
		f.endRun(e, b)
		return true
	}
	return false
}

func (f *fold) start(id, parent []byte, name string, kind tracepb.Span_SpanKind, at time.Time) *tracepb.Span {
	return &tracepb.Span{TraceId: f.trace, SpanId: id, ParentSpanId: parent, Name: name, Kind: kind,
		Flags: sampled, StartTimeUnixNano: uint64(at.UnixNano())}
}

// sampled is the flag of the W3C trace context for exported traces.
const sampled = 1

// end closes a span. Without an error the status stays unset, as the conventions require.
func (f *fold) end(s *tracepb.Span, at time.Time, errorType, message string) {
	s.EndTimeUnixNano = uint64(at.UnixNano())
	if errorType != "" {
		s.Attributes = append(s.Attributes, text("error.type", errorType)...)
		s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: message}
	}
	f.ended = append(f.ended, s)
}

func link(from, to *tracepb.Span, why string) {
	from.Links = append(from.Links, &tracepb.Span_Link{TraceId: to.TraceId, SpanId: to.SpanId, Flags: sampled,
		Attributes: text("parley.link", why)})
}

func (f *fold) startRun(e parley.Event, b parley.RunStarted) {
	kind := tracepb.Span_SPAN_KIND_INTERNAL
	if b.Agent.Remote {
		kind = tracepb.Span_SPAN_KIND_CLIENT
	}
	f.agent = b.Agent
	f.run = f.start(f.span("run", e.Seq), f.parent, "invoke_agent "+b.Agent.Name, kind, e.At)
	f.run.Attributes = join(text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.agent.name", b.Agent.Name),
		text("gen_ai.agent.version", b.Agent.Digest), f.model(b.Agent.Model),
		text("gen_ai.conversation.id", string(e.Session)), text("parley.run.id", parley.Ref(e.Session, e.Seq)),
		text("parley.tenant", string(f.tenant)), text("parley.root.session", string(e.Root)),
		text("parley.request.id", b.Request), text("parley.mode", string(b.Mode)))
}

// model returns the attributes of the requested model. For remote agents there are none, because their model is
// unknown.
func (f *fold) model(name string) []*attribute {
	if f.agent.Remote || name == "" {
		return nil
	}
	return join(text("gen_ai.provider.name", f.provider(name)), text("gen_ai.request.model", name))
}

func (f *fold) endRun(e parley.Event, b parley.RunFinished) {
	for _, s := range f.waits { // waits of calls that were abandoned with the run
		f.end(s, e.At, "", "")
		f.lastOfTurn(e.At)
	}
	f.endTurn()
	f.run.Attributes = join(f.run.Attributes, usage(b.Usage), text("parley.outcome", string(b.Outcome)))
	f.content.ofRun(f.run)
	failed := ""
	if b.Outcome == parley.Failed || b.Outcome == parley.Interrupted || b.Outcome == parley.Halted {
		failed = or(string(b.Code), string(b.Outcome))
	}
	f.end(f.run, e.At, failed, b.Message)
}

// startTurn opens the spans of a turn and of its model call. A remote agent calls
// its model itself, so it has no span for that.
func (f *fold) startTurn(e parley.Event, b parley.TurnStarted) {
	f.endTurn()
	f.turn = f.start(f.span("turn", e.Seq), f.run.SpanId, "turn", tracepb.Span_SPAN_KIND_INTERNAL, e.At)
	f.turn.Attributes = join(number("parley.turn", int64(b.Number)),
		text("gen_ai.conversation.id", string(e.Session)))
	if f.agent.Remote {
		return
	}
	model := or(b.Model, f.agent.Model)
	f.chat = f.start(f.span("chat", e.Seq), f.turn.SpanId, trimmed("chat "+model), tracepb.Span_SPAN_KIND_CLIENT, e.At)
	f.chat.Attributes = join(text("gen_ai.operation.name", "chat"), f.model(model), flag("gen_ai.request.stream", true),
		text("gen_ai.agent.name", f.agent.Name), text("gen_ai.conversation.id", string(e.Session)))
	if f.cut != nil {
		link(f.chat, f.cut, "continues")
		f.cut = nil
	}
}

func (f *fold) inChat(e parley.Event) {
	switch b := e.Body.(type) {
	case parley.OutputFinished:
		f.content.said(b)
	case parley.OutputStarted:
		if f.chat != nil && !has(f.chat.Attributes, firstChunk) {
			waited := time.Duration(e.At.UnixNano() - int64(f.chat.StartTimeUnixNano))
			f.chat.Attributes = append(f.chat.Attributes, seconds(firstChunk, waited)...)
		}
	case parley.ModelFellBack:
		if f.chat != nil {
			f.chat.Attributes = append(f.chat.Attributes, text(responseModel, b.Actual)...)
			f.note(f.chat, e, "parley.model.fell_back", join(text("gen_ai.request.model", b.Preferred),
				text(responseModel, b.Actual), text("parley.reason", b.Reason)))
		}
	case parley.ProblemReported:
		if f.chat != nil && b.Retry != nil {
			f.note(f.chat, e, "parley.model.retry", join(text("parley.reason", b.Retry.Problem),
				number("parley.attempt", int64(b.Retry.Attempt))))
		}
	}
}

// note adds an event to a span.
func (f *fold) note(s *tracepb.Span, e parley.Event, name string, attributes []*attribute) {
	s.Events = append(s.Events, &tracepb.Span_Event{TimeUnixNano: uint64(e.At.UnixNano()), Name: name,
		Attributes: attributes})
}

// endChat ends the model call. The turn continues with the calls that the model has requested.
func (f *fold) endChat(e parley.Event, b parley.TurnFinished) {
	f.lastOfTurn(e.At)
	failed := ""
	if b.Stop == parley.StopCut || b.Stop == parley.StopFailed {
		failed = or(string(b.Code), string(b.Stop))
		if f.turn != nil {
			f.turn.Attributes = append(f.turn.Attributes, text("error.type", failed)...)
			f.turn.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: b.Message}
		}
	}
	if f.chat == nil {
		return
	}
	if !has(f.chat.Attributes, responseModel) && failed == "" {
		f.chat.Attributes = append(f.chat.Attributes, text(responseModel, or(attributeOf(f.chat.Attributes,
			"gen_ai.request.model"), f.agent.Model))...)
	}
	f.chat.Attributes = join(f.chat.Attributes, usage(b.Usage), texts("gen_ai.response.finish_reasons",
		finishReason(b.Stop)))
	f.content.ofChat(f.chat, finishReason(b.Stop))
	if b.Stop == parley.StopCut {
		f.cut = f.chat
	}
	f.end(f.chat, e.At, failed, b.Message)
	f.chat = nil
}

// lastOfTurn moves the end of the turn to the time of an event in it.
func (f *fold) lastOfTurn(at time.Time) {
	if f.turn != nil {
		f.turn.EndTimeUnixNano = uint64(at.UnixNano())
	}
}

func (f *fold) endTurn() {
	if f.turn != nil {
		f.ended = append(f.ended, f.turn)
		f.turn = nil
	}
}
