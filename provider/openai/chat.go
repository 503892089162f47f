package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"parley"
	"parley/port"
	"parley/provider/upstream"
)

// Fields in which servers send a model's thinking. Some models refuse to
// continue after a call without their thinking in the same field.
const (
	reasoningContent = "reasoning_content"
	reasoning        = "reasoning"
)

// done is the data of the last event of a stream.
var done = []byte("[DONE]")

// A chatChunk has the fields of a stream event that Parley uses.
type chatChunk struct {
	Error json.RawMessage `json:"error"`
	Usage struct {
		Prompt     upstream.Count `json:"prompt_tokens"`
		Completion upstream.Count `json:"completion_tokens"`
		Total      upstream.Count `json:"total_tokens"`
		Details    struct {
			Cached  upstream.Count `json:"cached_tokens"`
			Written upstream.Count `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Choices []chatChoice `json:"choices"`
}

type chatChoice struct {
	Delta struct {
		Content          upstream.Loose  `json:"content"`
		Refusal          upstream.Loose  `json:"refusal"`
		ReasoningContent upstream.Strict `json:"reasoning_content"`
		Reasoning        upstream.Strict `json:"reasoning"`
		ToolCalls        []chatCall      `json:"tool_calls"`
	} `json:"delta"`
	Finish upstream.Loose `json:"finish_reason"`
}

type chatCall struct {
	Index    upstream.Count `json:"index"`
	ID       upstream.Loose `json:"id"`
	Function struct {
		Name      upstream.Loose `json:"name"`
		Arguments upstream.Loose `json:"arguments"`
	} `json:"function"`
}

// speakChat streams one answer.
func (m *Model) speakChat(ctx context.Context, req port.ModelRequest, say func(port.ModelChunk) error) error {
	body, err := m.chatRequest(req)
	if err != nil {
		return err
	}
	answer, err := m.client.Post(ctx, "chat/completions", body)
	if err != nil {
		return err
	}
	defer answer.Close()
	var t turn
	events := upstream.NewEvents(answer)
	var broken error
	for broken == nil && events.Next() && !bytes.HasPrefix(events.Data, done) {
		var chunk chatChunk
		if broken = events.Decode(&chunk); broken == nil && upstream.Present(chunk.Error) {
			broken = m.client.Refused(req.Model, events.Data)
		}
		if broken != nil {
			break
		}
		if u := chunk.Usage; u.Total > 0 || u.Prompt > 0 {
			t.usage = parley.Usage{Input: int64(u.Prompt), Output: int64(u.Completion),
				Cached: int64(u.Details.Cached), Written: int64(u.Details.Written)}
		}
		for i := range chunk.Choices {
			if err := t.hear(&chunk.Choices[i], say); err != nil {
				return err
			}
		}
	}
	if t.finish == "" { // after a finish reason, later errors do not matter
		return cmp.Or(broken, events.Err())
	}
	for _, c := range t.calls {
		if err := say(
			port.ModelChunk{Call: &parley.MessageCall{Provider: c.id, Name: c.name,
				Arguments: cmp.Or(c.arguments.String(), "{}")}}); err != nil {
			return err
		}
	}
	return say(
		port.ModelChunk{Done: &port.ModelDone{Stop: t.stop(), Usage: t.usage, Memo: t.parts.Memo(Name, req.Model)}})
}

// A turn collects an answer from chunks.
type turn struct {
	calls   []*call
	usage   parley.Usage
	finish  string
	refused bool
	parts   upstream.Recorder
	placed  bool // the field of the thinking is recorded
}

type call struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

func (t *turn) hear(choice *chatChoice, say func(port.ModelChunk) error) error {
	d := &choice.Delta
	// Some servers send the same text in both fields.
	field, words := reasoningContent, string(d.ReasoningContent)
	if words == "" {
		field, words = reasoning, string(d.Reasoning)
	}
	if words != "" {
		t.thought(field, words)
		if err := say(port.ModelChunk{Thinking: words}); err != nil {
			return err
		}
	}
	t.refused = t.refused || d.Refusal != ""
	if words := string(d.Content + d.Refusal); words != "" {
		t.parts.Add(upstream.Text, words)
		if err := say(port.ModelChunk{Text: words}); err != nil {
			return err
		}
	}
	for i := range d.ToolCalls {
		t.part(&d.ToolCalls[i])
	}
	t.finish = cmp.Or(string(choice.Finish), t.finish)
	return nil
}

// thought records the thinking, and the field in which it came.
func (t *turn) thought(field, words string) {
	t.parts.Add(upstream.Thinking, words)
	if !t.placed {
		t.parts.Sign("", field)
		t.placed = true
	}
}

// part adds a chunk of a call. Calls are told apart by their index. Some
// servers give every call index 0, but begin each with an id.
func (t *turn) part(p *chatCall) {
	var c *call
	id := string(p.ID)
	for _, known := range t.calls {
		if known.index == int64(p.Index) && (id == "" || known.id == id || known.id == "") {
			c = known
		}
	}
	if c == nil {
		c = &call{index: int64(p.Index)}
		t.calls = append(t.calls, c)
		t.parts.Begin(upstream.Part{Kind: upstream.Call})
	}
	c.id, c.name = cmp.Or(c.id, id), cmp.Or(c.name, string(p.Function.Name))
	c.arguments.WriteString(string(p.Function.Arguments))
}

func (t *turn) stop() parley.Stop {
	switch {
	case t.finish == "length":
		return parley.StopLength
	case t.finish == "content_filter":
		return parley.StopRefusal
	}
	return ended(t.refused, len(t.calls))
}

// chatTool converts a tool for the Chat Completions API.
func chatTool(t parley.ToolSpec) any {
	return upstream.Object{"type": "function", "function": upstream.Object{"name": t.Name, "description": t.Description,
		"parameters": parameters(t)}}
}

// chatRequest builds a request of the Chat Completions API. Most messages are plain text. They are not encoded as
// parts, which some servers do not accept.
func (m *Model) chatRequest(req port.ModelRequest) ([]byte, error) {
	talk := upstream.Talk(req.Messages)
	names := upstream.CallNames(talk)
	size := 4<<10 + len(req.Instructions)
	for _, m := range talk {
		size += 64 + len(m.Text) + len(m.Text)/16 // with room for escapes
	}
	for _, t := range req.Tools {
		size += 256 + len(t.Description) + len(t.Parameters)
	}
	b := make([]byte, 0, size) // large enough: growing would double it
	b = upstream.AppendText(append(b, `{"stream":true,"stream_options":{"include_usage":true},"model":`...), req.Model)
	if req.MaxTokens > 0 { // compatible servers know this older name
		b = fmt.Appendf(b, `,"max_tokens":%d`, req.MaxTokens)
	}
	b = append(b, `,"messages":[`...)
	plain := func(role, text string) {
		b = append(append(append(b, `{"role":"`...), role...), `","content":`...)
		b = append(upstream.AppendText(b, text), "},"...)
	}
	if req.Instructions != "" {
		plain("system", req.Instructions)
	}
	for _, m := range talk {
		var message upstream.Object
		switch {
		case m.Role == parley.RoleUser && len(m.Images) == 0,
			m.Role == parley.RoleAssistant && len(m.Calls) == 0: // Talk has removed empty messages
			plain(string(m.Role), m.Text)
			continue
		case m.Role == parley.RoleUser:
			message = user(m)
		case m.Role == parley.RoleTool:
			message = upstream.Object{"role": "tool", "tool_call_id": names[m.Call], "content": m.Text}
		case m.Role == parley.RoleAssistant:
			message = assistant(req.Model, m, names)
		}
		raw, err := upstream.Encode(message)
		if err != nil {
			return nil, err
		}
		b = append(append(b, raw...), ',')
	}
	return m.chatTools.Append(append(bytes.TrimSuffix(b, []byte(",")), "]}"...), req.Tools)
}

func user(m parley.Message) upstream.Object {
	var parts []upstream.Object
	text := func(words string) { parts = append(parts, upstream.Object{"type": "text", "text": words}) }
	if m.Text != "" {
		text(m.Text)
	}
	for _, i := range m.Images {
		if i.Type == parley.TypePDF { // servers with this API do not read PDF pages
			text(i.AsText())
			continue
		}
		parts = append(parts, upstream.Object{"type": "image_url", "image_url": upstream.Object{"url": upstream.DataURL(i)}})
	}
	return upstream.Object{"role": "user", "content": parts}
}

func assistant(model string, m parley.Message, names map[parley.CallID]string) upstream.Object {
	message := upstream.Object{"role": "assistant"}
	if m.Text != "" {
		message["content"] = m.Text
	}
	var calls []upstream.Object
	for _, c := range m.Calls {
		calls = append(calls, upstream.Object{"type": "function", "id": names[c.ID],
			"function": upstream.Object{"name": c.Name, "arguments": c.Arguments}})
	}
	message["tool_calls"] = calls
	// Some models need their thinking back with calls, and some refuse it without calls.
	if pieces, ok := upstream.Pieces(Name, model, m); ok {
		for _, p := range pieces {
			if p.Kind == upstream.Thinking && (p.Data == reasoningContent || p.Data == reasoning) {
				message[p.Data] = m.Thinking
			}
		}
	}
	return message
}
