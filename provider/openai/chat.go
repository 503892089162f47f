package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

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
	var response *http.Response
	stream := m.chat.NewStreaming(ctx, openai.ChatCompletionNewParams{},
		option.WithRequestBody("application/json", body), option.WithResponseInto(&response))
	defer stream.Close()
	if err := stream.Err(); err != nil {
		return err
	}
	var t turn
	events := upstream.NewEvents(response.Body)
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
	return openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: t.Name, Description: openai.String(t.Description), Parameters: upstream.Schema(t)})
}

// chatRequest builds a request of the Chat Completions API. Most messages are plain text. They are encoded without the
// SDK, which would take ten times as long, and not as parts, which some servers do not accept.
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
	b := bytes.NewBuffer(make([]byte, 0, size)) // large enough: growing would double it
	encoder := json.NewEncoder(b)               // never fails for texts and numbers
	encoder.SetEscapeHTML(false)
	b.WriteString(`{"stream":true,"stream_options":{"include_usage":true},"model":`)
	_ = encoder.Encode(req.Model)
	if req.MaxTokens > 0 { // compatible servers know this older name
		fmt.Fprintf(b, `,"max_tokens":%d`, req.MaxTokens)
	}
	b.WriteString(`,"messages":[`)
	plain := func(role, text string) {
		b.WriteString(`{"role":"` + role + `","content":`)
		_ = encoder.Encode(text)
		b.WriteString(`},`)
	}
	if req.Instructions != "" {
		plain("system", req.Instructions)
	}
	for _, m := range talk {
		var param openai.ChatCompletionMessageParamUnion
		switch {
		case m.Role == parley.RoleUser && len(m.Images) == 0,
			m.Role == parley.RoleAssistant && len(m.Calls) == 0: // Talk has removed empty messages
			plain(string(m.Role), m.Text)
			continue
		case m.Role == parley.RoleUser:
			param = user(m)
		case m.Role == parley.RoleTool:
			param = openai.ToolMessage(m.Text, names[m.Call])
		case m.Role == parley.RoleAssistant:
			param = assistant(req.Model, m, names)
		}
		raw, err := param.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b.Write(raw)
		b.WriteByte(',')
	}
	return m.chatTools.Append(append(bytes.TrimSuffix(b.Bytes(), []byte(",")), "]}"...), req.Tools)
}

func user(m parley.Message) openai.ChatCompletionMessageParamUnion {
	var parts []openai.ChatCompletionContentPartUnionParam
	if m.Text != "" {
		parts = append(parts, openai.TextContentPart(m.Text))
	}
	for _, i := range m.Images {
		if i.Type == parley.TypePDF { // servers with this API do not read PDF pages
			parts = append(parts, openai.TextContentPart(i.AsText()))
			continue
		}
		parts = append(parts,
			openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: upstream.DataURL(i)}))
	}
	return openai.UserMessage(parts)
}

func assistant(model string, m parley.Message, names map[parley.CallID]string) openai.ChatCompletionMessageParamUnion {
	param := &openai.ChatCompletionAssistantMessageParam{}
	if m.Text != "" {
		param.Content.OfString = openai.String(m.Text)
	}
	for _, c := range m.Calls {
		param.ToolCalls = append(param.ToolCalls,
			openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID: names[c.ID], Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name,
						Arguments: c.Arguments}}})
	}
	// Some models need their thinking back with calls, and some refuse it without calls.
	if pieces, ok := upstream.Pieces(Name, model, m); ok && len(m.Calls) > 0 {
		for _, p := range pieces {
			if p.Kind == upstream.Thinking && p.Data != "" {
				param.SetExtraFields(map[string]any{p.Data: m.Thinking})
			}
		}
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: param}
}
