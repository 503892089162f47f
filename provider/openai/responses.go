package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"parley"
	"parley/port"
	"parley/provider/upstream"
)

// reasons matches the models that reason before they answer. The others refuse
// the option.
var reasons = regexp.MustCompile(`^(o\d|codex|gpt-([5-9]|\d\d))`)

func reasoner(model string) bool {
	return reasons.MatchString(model) && !strings.Contains(model, "-chat")
}

// speakResponses streams one answer. OpenAI stores nothing: each request
// contains the whole conversation, with the reasoning in the encrypted form in
// which it came.
func (m *Model) speakResponses(ctx context.Context, req port.ModelRequest, summed bool,
	say func(port.ModelChunk) error) error {
	request := upstream.Object{"model": req.Model, "stream": true, "store": false, "input": items(req)}
	if req.MaxTokens > 0 {
		request["max_output_tokens"] = req.MaxTokens
	}
	if req.Instructions != "" {
		request["instructions"] = req.Instructions
	}
	if reasoner(req.Model) {
		request["include"] = []string{"reasoning.encrypted_content"}
		if summed {
			request["reasoning"] = upstream.Object{"summary": "auto"}
		}
	}
	body, err := upstream.Encode(request)
	if err == nil {
		body, err = m.responsesTools.Append(body, req.Tools)
	}
	if err != nil {
		return err
	}
	answer, err := m.client.Post(ctx, "responses", body)
	if err != nil {
		return err
	}
	defer answer.Close()
	h := hearing{model: m, name: req.Model, say: say}
	events := upstream.NewEvents(answer)
	for events.Next() && !bytes.HasPrefix(events.Data, done) {
		var e responsesEvent
		if err := events.Decode(&e); err != nil {
			return err
		}
		if upstream.Present(e.Error) {
			return m.client.Refused(req.Model, events.Data)
		}
		if err := h.hear(&e); err != nil || h.done {
			return err
		}
	}
	return events.Err()
}

// responsesTool converts a tool for the Responses API.
func responsesTool(t parley.ToolSpec) any {
	return upstream.Object{"type": "function", "name": t.Name, "description": t.Description,
		"parameters": parameters(t), "strict": false}
}

// parameters returns the schema of a tool's parameters. OpenAI refuses the whole request if one lacks a type or
// properties, as a tool of an MCP server may that has no parameters.
func parameters(t parley.ToolSpec) map[string]any {
	schema := upstream.Schema(t)
	if schema["type"] == nil {
		schema["type"] = "object"
	}
	if schema["properties"] == nil {
		schema["properties"] = map[string]any{}
	}
	return schema
}

// A responsesEvent has the fields of a stream event that Parley uses.
type responsesEvent struct {
	Type         upstream.Loose  `json:"type"`
	Error        json.RawMessage `json:"error"`
	Code         upstream.Loose  `json:"code"`
	Message      upstream.Loose  `json:"message"`
	Delta        upstream.Loose  `json:"delta"`
	SummaryIndex upstream.Count  `json:"summary_index"`
	Item         responsesItem   `json:"item"`
	Response     struct {
		Status     upstream.Loose `json:"status"`
		Incomplete struct {
			Reason upstream.Loose `json:"reason"`
		} `json:"incomplete_details"`
		Error struct {
			Code    upstream.Loose `json:"code"`
			Message upstream.Loose `json:"message"`
		} `json:"error"`
		Usage struct {
			Input   upstream.Count `json:"input_tokens"`
			Output  upstream.Count `json:"output_tokens"`
			Details struct {
				Cached  upstream.Count `json:"cached_tokens"`
				Written upstream.Count `json:"cache_write_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	} `json:"response"`
}

type responsesItem struct {
	Type      upstream.Loose  `json:"type"`
	ID        upstream.Loose  `json:"id"`
	Encrypted upstream.Loose  `json:"encrypted_content"`
	Phase     upstream.Loose  `json:"phase"`
	CallID    upstream.Loose  `json:"call_id"`
	Name      upstream.Loose  `json:"name"`
	Arguments upstream.Strict `json:"arguments"`
}

// hearing is the state of one answer of the Responses API.
type hearing struct {
	model   *Model
	name    string
	say     func(port.ModelChunk) error
	parts   upstream.Recorder
	summary int64 // index of the current part of the summary
	calls   int
	refused bool
	done    bool
}

func (h *hearing) hear(e *responsesEvent) error {
	switch e.Type {
	case "response.output_item.added":
		switch e.Item.Type {
		case "reasoning":
			h.summary = 0
			h.parts.Begin(upstream.Part{Kind: upstream.Thinking})
		case "message":
			h.parts.Begin(upstream.Part{Kind: upstream.Text})
		}
	case "response.output_text.delta":
		return h.text(string(e.Delta))
	case "response.refusal.delta":
		h.refused = true
		return h.text(string(e.Delta))
	case "response.reasoning_summary_text.delta":
		words := string(e.Delta)
		if n := int64(e.SummaryIndex); n > h.summary { // a new part of the summary begins
			h.summary, words = n, "\n\n"+words
		}
		return h.thinking(words)
	case "response.reasoning_text.delta":
		return h.thinking(string(e.Delta))
	case "response.output_item.done":
		return h.item(&e.Item)
	case "response.completed", "response.incomplete":
		stop := ended(h.refused, h.calls)
		switch {
		case e.Response.Incomplete.Reason == "content_filter":
			stop = parley.StopRefusal
		case e.Response.Status == "incomplete":
			stop = parley.StopLength
		}
		u := e.Response.Usage
		h.done = true
		return h.say(
			port.ModelChunk{Done: &port.ModelDone{Stop: stop, Memo: h.parts.Memo(Name, h.name), Usage: parley.Usage{
				Input: int64(u.Input), Output: int64(u.Output), Cached: int64(u.Details.Cached),
				Written: int64(u.Details.Written)}}})
	case "response.failed":
		return h.failed(string(e.Response.Error.Code), string(e.Response.Error.Message))
	case "error":
		return h.failed(string(e.Code), string(e.Message))
	}
	return nil
}

func (h *hearing) text(words string) error {
	h.parts.Add(upstream.Text, words)
	return h.said(port.ModelChunk{Text: words})
}

func (h *hearing) thinking(words string) error {
	h.parts.Add(upstream.Thinking, words)
	return h.said(port.ModelChunk{Thinking: words})
}

func (h *hearing) said(s port.ModelChunk) error {
	if s.Text == "" && s.Thinking == "" {
		return nil
	}
	return h.say(s)
}

// item handles a complete item of the answer.
func (h *hearing) item(i *responsesItem) error {
	switch i.Type {
	case "reasoning":
		if i.Encrypted != "" {
			h.parts.Sign(string(i.Encrypted), string(i.ID))
		}
	case "message":
		h.parts.Sign("", string(i.Phase))
	case "function_call":
		h.calls++
		h.parts.Begin(upstream.Part{Kind: upstream.Call})
		return h.say(
			port.ModelChunk{Call: &parley.MessageCall{Provider: string(i.CallID), Name: string(i.Name),
				Arguments: cmp.Or(string(i.Arguments), "{}")}})
	}
	return nil
}

func (h *hearing) failed(code, message string) error {
	raw, err := json.Marshal(map[string]any{"error": map[string]string{"code": code, "message": message}})
	if err != nil {
		return err
	}
	return h.model.client.Refused(h.name, raw)
}

// items converts a conversation for the Responses API.
func items(req port.ModelRequest) (list []upstream.Object) {
	talk := upstream.Talk(req.Messages)
	names := upstream.CallNames(talk)
	for _, m := range talk {
		switch m.Role {
		case parley.RoleUser:
			list = append(list, upstream.Object{"role": "user", "content": content(m)})
		case parley.RoleTool:
			list = append(list, upstream.Object{"type": "function_call_output", "call_id": names[m.Call], "output": m.Text})
		case parley.RoleAssistant:
			pieces, ok := upstream.Pieces(Name, req.Model, m)
			if !ok {
				pieces = upstream.Plain(m)
			}
			for _, p := range pieces {
				list = append(list, item(p, names)...)
			}
		}
	}
	return list
}

// content converts the message of a user.
func content(m parley.Message) []upstream.Object {
	list := []upstream.Object{}
	text := func(words string) { list = append(list, upstream.Object{"type": "input_text", "text": words}) }
	if m.Text != "" {
		text(m.Text)
	}
	for _, i := range m.Images {
		switch {
		case upstream.Pages(i):
			list = append(list, upstream.Object{"type": "input_file", "filename": i.Name, "file_data": upstream.DataURL(i)})
		case i.Type == parley.TypePDF:
			text(i.AsText())
		default:
			list = append(list, upstream.Object{"type": "input_image", "detail": "auto", "image_url": upstream.DataURL(i)})
		}
	}
	return list
}

// item converts a piece of a turn. It returns nothing for an empty piece.
func item(p upstream.Piece, names map[parley.CallID]string) []upstream.Object {
	switch {
	case p.Kind == upstream.Thinking && p.Sign != "":
		summary := []upstream.Object{}
		if p.Words != "" {
			summary = append(summary, upstream.Object{"type": "summary_text", "text": p.Words})
		}
		return []upstream.Object{{"type": "reasoning", "id": p.Data, "summary": summary, "encrypted_content": p.Sign}}
	case p.Kind == upstream.Text && p.Words != "":
		message := upstream.Object{"role": "assistant", "content": p.Words}
		if p.Data != "" {
			message["phase"] = p.Data
		}
		return []upstream.Object{message}
	case p.Kind == upstream.Call:
		return []upstream.Object{{"type": "function_call", "call_id": names[p.Call.ID], "name": p.Call.Name,
			"arguments": p.Call.Arguments}}
	}
	return nil
}
