package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/shared"

	"parley"
	"parley/provider/upstream"
)

// reasoningFields are where servers put what a model thinks. Some models refuse
// to go on after a call unless they are told it again in the same place.
var reasoningFields = []string{"reasoning_content", "reasoning"}

// speakChat streams one answer.
func (m *Model) speakChat(ctx context.Context, req parley.ModelRequest, say func(parley.Said) error) error {
	params := openai.ChatCompletionNewParams{
		Model:         req.Model,
		Messages:      messages(req),
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	for _, t := range req.Tools {
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.Name, Description: openai.String(t.Description), Parameters: upstream.Schema(t)}))
	}
	stream := m.chat.NewStreaming(ctx, params)
	defer stream.Close()
	var t turn
	for stream.Next() {
		chunk := stream.Current()
		if u := chunk.Usage; u.TotalTokens > 0 || u.PromptTokens > 0 {
			t.usage = parley.Usage{Input: u.PromptTokens, Output: u.CompletionTokens,
				Cached: u.PromptTokensDetails.CachedTokens, Written: u.PromptTokensDetails.CacheWriteTokens}
		}
		for _, choice := range chunk.Choices {
			for _, said := range t.hear(choice) {
				if err := say(said); err != nil {
					return err
				}
			}
		}
	}
	if t.finish == "" { // whatever follows the end is not missed
		return m.broken(req.Model, stream.Err())
	}
	for _, c := range t.calls {
		if err := say(
			parley.Said{Call: &parley.MessageCall{Provider: c.id, Name: c.name,
				Arguments: cmp.Or(c.arguments.String(), "{}")}}); err != nil {
			return err
		}
	}
	return say(
		parley.Said{Done: &parley.ModelDone{Stop: t.stop(), Usage: t.usage, Memo: t.parts.Memo(Name, req.Model)}})
}

// A turn as it is gathered from chunks.
type turn struct {
	calls   []*call
	usage   parley.Usage
	finish  string
	refused bool
	parts   upstream.Recorder
	placed  bool // it is noted where thinking comes
}

type call struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

func (t *turn) hear(choice openai.ChatCompletionChunkChoice) (said []parley.Said) {
	for _, field := range reasoningFields {
		if words := text(choice.Delta.JSON.ExtraFields[field]); words != "" {
			t.thought(field, words)
			said = append(said, parley.Said{Thinking: words})
			break // some send both, and the same in each
		}
	}
	words := choice.Delta.Content
	if choice.Delta.Refusal != "" {
		t.refused = true
		words += choice.Delta.Refusal
	}
	if words != "" {
		t.parts.Said(upstream.Text, words)
		said = append(said, parley.Said{Text: words})
	}
	for _, part := range choice.Delta.ToolCalls {
		t.part(part)
	}
	t.finish = cmp.Or(choice.FinishReason, t.finish)
	return said
}

// thought notes in which place the thinking came.
func (t *turn) thought(field, words string) {
	t.parts.Said(upstream.Thinking, words)
	if !t.placed {
		t.parts.Sign("", field)
		t.placed = true
	}
}

// part adds to a call. Calls are told apart by their index; servers that give
// every call the first one begin each with an id.
func (t *turn) part(p openai.ChatCompletionChunkChoiceDeltaToolCall) {
	var c *call
	for _, known := range t.calls {
		if known.index == p.Index && (p.ID == "" || known.id == p.ID || known.id == "") {
			c = known
		}
	}
	if c == nil {
		c = &call{index: p.Index}
		t.calls = append(t.calls, c)
		t.parts.Begin(upstream.Part{Kind: upstream.Call})
	}
	c.id, c.name = cmp.Or(c.id, p.ID), cmp.Or(c.name, p.Function.Name)
	c.arguments.WriteString(p.Function.Arguments)
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

// text is a field that the SDK does not know.
func text(field respjson.Field) (words string) {
	_ = json.Unmarshal([]byte(field.Raw()), &words) // absent, null or no text: nothing
	return words
}

// messages is the conversation as the Chat Completions API takes it.
func messages(req parley.ModelRequest) (list []openai.ChatCompletionMessageParamUnion) {
	talk := upstream.Talk(req.Messages)
	names := upstream.CallNames(talk)
	if req.Instructions != "" {
		list = append(list, openai.SystemMessage(req.Instructions))
	}
	for _, m := range talk {
		switch m.Role {
		case parley.RoleUser:
			list = append(list, user(m))
		case parley.RoleTool:
			list = append(list, openai.ToolMessage(m.Text, names[m.Call]))
		case parley.RoleAssistant:
			list = append(list, assistant(req.Model, m, names))
		}
	}
	return list
}

func user(m parley.Message) openai.ChatCompletionMessageParamUnion {
	if len(m.Images) == 0 { // as plain as possible: not every server takes parts
		return openai.UserMessage(m.Text)
	}
	var parts []openai.ChatCompletionContentPartUnionParam
	if m.Text != "" {
		parts = append(parts, openai.TextContentPart(m.Text))
	}
	for _, i := range m.Images {
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
	// It is needed with calls, and refused by some without them.
	if pieces, ok := upstream.Pieces(Name, model, m); ok && len(m.Calls) > 0 {
		for _, p := range pieces {
			if p.Kind == upstream.Thinking && p.Data != "" {
				param.SetExtraFields(map[string]any{p.Data: m.Thinking})
			}
		}
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: param}
}
