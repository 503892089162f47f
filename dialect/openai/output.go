package openai

import (
	"cmp"
	"maps"
	"slices"

	"parley"
	"parley/dialect"
)

// openItem is an output item of a response that is not done.
type openItem struct {
	index  int
	output parley.OutputID // for a text or reasoning
	kind   parley.OutputKind
	text   string
	call   parley.CallID // for a call
}

func (p *projector) head(kind string) eventHead {
	p.out.number++
	return eventHead{kind, p.out.number}
}

// deltaHead returns the head of an event that adds a text.
func (p *projector) deltaHead(kind, text string) eventHead {
	p.out.number += int64(len(text))
	return eventHead{kind, p.out.number}
}

func (p *projector) of(h eventHead, index int) ofItem {
	return ofItem{h, p.out.output[index].itemID(), index}
}

// lifecycle emits the response in its current state.
func (p *projector) lifecycle(kind, status string) {
	p.emit(lifecycle{p.head(kind), p.response(status)})
}

// response returns the response in its current state.
func (v View) response(status string) response {
	r := response{ID: v.out.id.String(), Object: "response", Created: v.out.at.Unix(), Status: status,
		Background: v.Given.background, Model: v.out.agent, Output: slices.Clone(v.out.output), Parallel: true,
		Store: !v.Given.unstored, Text: textFormat{textType{"text"}}, Choice: "auto", Tools: []any{},
		Truncation: "disabled", Metadata: map[string]string{}}
	if r.Output == nil {
		r.Output = []item{}
	}
	r.Metadata["session_id"] = string(v.out.id.session)
	maps.Copy(r.Metadata, v.Given.metadata)
	previous := v.Given.previous
	if before := v.out.id; previous == "" && before.part > 0 {
		before.part--
		previous = before.String()
	}
	if previous != "" {
		r.Previous = &previous
	}
	return r
}

// add adds an item to the output.
func (p *projector) add(i item) (index int) {
	index = len(p.out.output)
	p.out.output = append(slices.Clip(p.out.output), i)
	p.emit(itemEvent{p.head("response.output_item.added"), index, i})
	return index
}

// done emits the final state of an item.
func (p *projector) done(index int, i item) {
	p.out.output = slices.Clone(p.out.output)
	p.out.output[index] = i
	p.emit(itemEvent{p.head("response.output_item.done"), index, i})
}

func (p *projector) at(which func(openItem) bool) int { return slices.IndexFunc(p.out.open, which) }

func (p *projector) close(i int) openItem {
	o := p.out.open[i]
	p.out.open = slices.Delete(slices.Clone(p.out.open), i, i+1)
	return o
}

// piece emits a chunk of text or reasoning.
func (p *projector) piece(id parley.OutputID, kind parley.OutputKind, text string, b parley.OutputAppended) {
	if p.Shape == Chat {
		if kind == parley.Thinking {
			p.chunk(delta{Reasoning: text}, "")
			return
		}
		p.out.text, text = p.out.text.Piece(b)
		p.content(text)
		return
	}
	if text == "" {
		return
	}
	i := p.at(func(o openItem) bool { return o.output == id })
	if i < 0 {
		i = len(p.out.open)
		p.out.open = append(slices.Clip(p.out.open), p.openOutput(id, kind))
	}
	p.out.open = slices.Clone(p.out.open)
	o := &p.out.open[i]
	o.text += text
	if kind == parley.Thinking {
		p.emit(summaryDelta{p.of(p.deltaHead("response.reasoning_summary_text.delta", text), o.index), 0, text})
		return
	}
	p.textDelta(o.index, text)
}

func (p *projector) openOutput(id parley.OutputID, kind parley.OutputKind) openItem {
	o := openItem{output: id, kind: kind}
	if kind == parley.Thinking {
		o.index = p.add(reasoningItem{idOf("rs", p.top, parley.Seq(id)), "reasoning", []summaryText{}})
		p.emit(summaryPart{p.of(p.head("response.reasoning_summary_part.added"), o.index), 0,
			summaryText{"summary_text", ""}})
		return o
	}
	o.index = p.openMessage(messageItem{ID: idOf("msg", p.top, parley.Seq(id))})
	return o
}

func (p *projector) openMessage(i messageItem) (index int) {
	i.Type, i.Status, i.Role, i.Content = "message", "in_progress", "assistant", []outputText{}
	index = p.add(i)
	p.emit(partEvent{p.of(p.head("response.content_part.added"), index), 0, textPart("")})
	return index
}

func (p *projector) textDelta(index int, text string) {
	p.emit(textDelta{p.of(p.deltaHead("response.output_text.delta", text), index), 0, text, []any{}})
}

func textPart(text string) outputText { return outputText{"output_text", text, []any{}, []any{}} }

// finishOutput emits the text that no chunk has shown, for example because the chunks were deleted, and the end of the
// output.
func (p *projector) finishOutput(b parley.OutputFinished) {
	rest := b.Text[min(p.run.shown, len(b.Text)):]
	switch {
	case !p.out.live:
	case p.Shape == Chat:
		if b.Kind == parley.Text {
			p.out.text, rest = p.out.text.End(b)
			p.content(rest)
		} else if rest != "" {
			p.chunk(delta{Reasoning: rest}, "")
		}
	default:
		p.piece(b.Output, b.Kind, rest, parley.OutputAppended{})
		if i := p.at(func(o openItem) bool { return o.output == b.Output }); i >= 0 {
			p.closeOutput(p.close(i), b.Incomplete)
		}
	}
	p.run.shown = len(b.Text)
}

func (p *projector) closeOutput(o openItem, cut bool) {
	if o.kind == parley.Thinking {
		id := p.out.output[o.index].itemID()
		part := summaryText{"summary_text", o.text}
		p.emit(summaryDone{p.of(p.head("response.reasoning_summary_text.done"), o.index), 0, o.text})
		p.emit(summaryPart{p.of(p.head("response.reasoning_summary_part.done"), o.index), 0, part})
		p.done(o.index, reasoningItem{id, "reasoning", []summaryText{part}})
		return
	}
	status := "completed"
	if cut {
		status = "incomplete"
	}
	p.emit(textDone{p.of(p.head("response.output_text.done"), o.index), 0, o.text, []any{}})
	p.emit(partEvent{p.of(p.head("response.content_part.done"), o.index), 0, textPart(o.text)})
	i := p.out.output[o.index].(messageItem)
	i.Status, i.Content = status, []outputText{textPart(o.text)}
	p.done(o.index, i)
}

// callStarted emits the start of a call of the server's tools.
func (p *projector) callStarted(c call) {
	if p.Shape == Chat {
		return
	}
	i := p.mcpCall(c)
	index := p.add(i)
	p.out.open = append(slices.Clip(p.out.open), openItem{index: index, call: c.id})
	p.emit(p.of(p.head("response.mcp_call.in_progress"), index))
	p.arguments("response.mcp_call_arguments", index, "", c.asked.Arguments)
}

// arguments emits the arguments of a call. Events for functions include the name.
func (p *projector) arguments(kind string, index int, name, arguments string) {
	if arguments != "" {
		p.emit(argumentsDelta{p.of(p.deltaHead(kind+".delta", arguments), index), arguments})
	}
	p.emit(argumentsDone{p.of(p.head(kind+".done"), index), name, arguments})
}

func (p *projector) mcpCall(c call) mcpCall {
	i := mcpCall{ID: idOf("mcp", p.top, parley.Seq(c.id)), Type: "mcp_call", Status: "in_progress", Label: p.run.agent,
		Name: c.asked.Name}
	if c.card != "" {
		i.Approval = &c.card
	}
	return i
}

// callEnded emits the end of a call. It skips the client's own tools: the client knows their results.
func (p *projector) callEnded(b parley.ToolCallFinished) {
	c := p.ended
	if p.Shape == Chat || !p.out.live || c.id == 0 || c.asked.Client {
		return
	}
	if p.at(func(o openItem) bool { return o.call == c.id }) < 0 {
		p.callStarted(c)
	}
	o := p.close(p.at(func(o openItem) bool { return o.call == c.id }))
	i := p.mcpCall(c)
	i.Arguments = c.asked.Arguments
	result := dialect.Result(b)
	if b.Outcome == parley.CallSucceeded {
		i.Status, i.Output = "completed", &result
	} else {
		i.Status, i.Error = "failed", &result
	}
	p.emit(p.of(p.head("response.mcp_call."+i.Status), o.index))
	p.done(o.index, i)
}

// closeAll ends all open items as incomplete.
func (p *projector) closeAll() {
	for len(p.out.open) > 0 {
		o := p.close(0)
		if o.call == 0 {
			p.closeOutput(o, true)
			continue
		}
		i := p.out.output[o.index].(mcpCall)
		for _, c := range p.run.calls {
			if c.id == o.call {
				i.Arguments = c.asked.Arguments
			}
		}
		i.Status = "incomplete"
		p.done(o.index, i)
	}
}

func (p *projector) pauseResponse(waiting []wait, used parley.Usage) {
	p.closeAll()
	for _, w := range waiting {
		switch {
		case w.call != nil:
			p.function(*w.call)
		case w.card.Kind == parley.CardApproval:
			i := p.approval(*w.card)
			p.done(p.add(i), i)
		default: // a question can be answered by a message
			p.notice(*w.card)
		}
	}
	p.end("response.completed", "completed", used, nil)
}

// notice emits a message that describes a card in words.
func (p *projector) notice(c dialect.Card) {
	o := openItem{text: p.Text(c, p.top), kind: parley.Text}
	o.index = p.openMessage(messageItem{ID: idOf("msg", c.Session, c.Seq), Card: c.ID})
	p.textDelta(o.index, o.text)
	p.closeOutput(o, false)
}

func (p *projector) approval(c dialect.Card) approvalRequest {
	asks := c.Asks.(parley.ApprovalRequested)
	asked := c.Call // the call of a sub-agent
	for _, o := range p.run.calls {
		if c.Session == p.top && o.id == asks.Call {
			asked = o.asked
		}
	}
	return approvalRequest{idOf("mcpr", c.Session, c.Seq), "mcp_approval_request", cmp.Or(c.Agent, p.run.agent),
		asks.Name, string(dialect.Arguments(asked.Arguments)), asks.Show, asks.Why, asks.Expires}
}

// function emits a call of the client's tools.
func (p *projector) function(c call) {
	f := functionCall{idOf("fc", p.top, parley.Seq(c.id)), "function_call", "in_progress",
		idOf("call", p.top, parley.Seq(c.id)), c.asked.Name, ""}
	index := p.add(f)
	p.arguments("response.function_call_arguments", index, f.Name, c.asked.Arguments)
	f.Status, f.Arguments = "completed", c.asked.Arguments
	p.done(index, f)
}

// end emits the last event of a response.
func (p *projector) end(kind, status string, used parley.Usage, change func(*response)) {
	r := p.response(status)
	r.Usage = usageOfResponse(used)
	if change != nil {
		change(&r)
	}
	p.emit(lifecycle{p.head(kind), r})
}

func (p *projector) finishResponse(b parley.RunFinished, used parley.Usage) {
	p.closeAll()
	switch {
	case b.Outcome == parley.Cancelled:
		// No event type means cancelled; the status tells it.
		p.end("response.incomplete", "cancelled", used, nil)
	case b.Outcome != parley.Completed:
		p.end("response.failed", "failed", used, func(r *response) {
			r.Error = &responseError{failureCode(b), cmp.Or(b.Message, "The run ended before it was complete.")}
		})
	case p.run.stop == parley.StopLength:
		p.end("response.incomplete", "incomplete", used, func(r *response) {
			r.Incomplete = &incomplete{"max_output_tokens"}
		})
	case p.run.stop == parley.StopRefusal:
		p.end("response.incomplete", "incomplete", used, func(r *response) {
			r.Incomplete = &incomplete{"content_filter"}
		})
	default:
		p.end("response.completed", "completed", used, nil)
	}
}

// failureCode returns the reason for a failed run, as a code that OpenAI's clients know.
func failureCode(b parley.RunFinished) string {
	switch {
	case b.Code == parley.CodeContext:
		return "context_length_exceeded"
	case b.Code == parley.CodeBlocked:
		return "invalid_prompt"
	case b.Vendor != nil && b.Vendor.Status == 429:
		return "rate_limit_exceeded"
	}
	return "server_error"
}
