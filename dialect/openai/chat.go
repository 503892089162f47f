package openai

import (
	"cmp"
	"net/http"
	"strings"

	"parley"
)

// chunk emits a chunk of a completion.
func (p *projector) chunk(d delta, finish string) {
	c := choice{Delta: d}
	if finish != "" {
		c.Finish = &finish
	}
	p.emit(p.chunkOf(c))
}

func (p *projector) chunkOf(choices ...choice) chunk {
	if choices == nil {
		choices = []choice{}
	}
	return chunk{ID: p.out.id.as("chatcmpl"), Object: "chat.completion.chunk", Created: p.out.at.Unix(),
		Model: p.out.agent, Choices: choices}
}

func (p *projector) content(text string) {
	if text != "" {
		p.chunk(delta{Content: &text}, "")
	}
}

func (p *projector) endChat(finish string, used parley.Usage) {
	p.chunk(delta{}, finish)
	if p.Usage {
		last := p.chunkOf()
		last.Usage = usageOfChat(used)
		p.emit(last)
	}
}

func (p *projector) pauseChat(waiting []wait, used parley.Usage) {
	finish := "stop"
	var words []string
	var calls []chatCall
	for _, w := range waiting {
		if w.card != nil {
			words = append(words, p.Text(*w.card, p.top))
			continue
		}
		n := len(calls)
		calls = append(calls, chatCall{&n, idOf("call", p.top, parley.Seq(w.call.id)), "function",
			chatFunction{w.call.asked.Name, w.call.asked.Arguments}})
	}
	if len(words) > 0 {
		p.content(strings.TrimRight(p.out.text.Aside(strings.Join(words, "\n\n")), "\n"))
	}
	if len(calls) > 0 {
		finish = "tool_calls"
		p.chunk(delta{ToolCalls: calls}, "")
	}
	p.endChat(finish, used)
}

func (p *projector) finishChat(b parley.RunFinished, used parley.Usage) {
	switch {
	case b.Outcome == parley.Cancelled:
		p.emit(failedRun{refusalOf(parley.CodeClosed, "The run was cancelled."), http.StatusConflict})
	case b.Outcome != parley.Completed:
		p.emit(failedRun{refusalOf(b.Code, cmp.Or(b.Message, "The run ended before it was complete.")), statusOf(b)})
	case p.run.stop == parley.StopLength:
		p.endChat("length", used)
	case p.run.stop == parley.StopRefusal:
		p.endChat("content_filter", used)
	default:
		p.endChat("stop", used)
	}
}

// failedRun ends a completion whose run failed.
type failedRun struct {
	refusal
	status int
}

// statusOf returns the HTTP status for a failed run.
func statusOf(b parley.RunFinished) int {
	switch b.Code {
	case parley.CodeModel:
		return http.StatusBadGateway
	case parley.CodeContext:
		return http.StatusBadRequest
	}
	return statusOfCode(b.Code)
}

// whole assembles a completion from its chunks.
type whole struct {
	completion
	text, thought strings.Builder
	calls         []chatCall
	finish        string
	ended         bool
	failed        *failedRun
}

func (w *whole) add(body any) {
	c, ok := body.(chunk)
	if !ok {
		failed := body.(failedRun)
		w.failed, w.ended = &failed, true
		return
	}
	w.ID, w.Object, w.Created, w.Model = c.ID, "chat.completion", c.Created, c.Model
	if c.Usage != nil {
		w.Usage, w.ended = c.Usage, true
	}
	for _, choice := range c.Choices {
		if choice.Delta.Content != nil {
			w.text.WriteString(*choice.Delta.Content)
		}
		w.thought.WriteString(choice.Delta.Reasoning)
		for _, call := range choice.Delta.ToolCalls {
			call.Index = nil
			w.calls = append(w.calls, call)
		}
		if choice.Finish != nil {
			w.finish = *choice.Finish
		}
	}
}

func (w *whole) answer() completion {
	m := chatMessage{Role: "assistant", Reasoning: w.thought.String(), ToolCalls: w.calls}
	if text := w.text.String(); text != "" || len(w.calls) == 0 {
		m.Content = &text
	}
	w.Choices = []completionChoice{{Message: m, Finish: w.finish}}
	return w.completion
}
