package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"parley"
	"parley/provider/upstream"
)

// reasons matches the models that think before they speak. The others refuse to
// be asked for it.
var reasons = regexp.MustCompile(`^(o\d|codex|gpt-([5-9]|\d\d))`)

func reasoner(model string) bool {
	return reasons.MatchString(model) && !strings.Contains(model, "-chat")
}

// speakResponses streams one answer. Nothing is stored at OpenAI: the whole
// conversation goes there each time, with the reasoning in the encrypted form in
// which it came.
func (m *Model) speakResponses(ctx context.Context, req parley.ModelRequest, summed bool,
	say func(parley.Said) error) error {
	params := responses.ResponseNewParams{
		Model: req.Model,
		Store: openai.Bool(false),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: items(req)},
	}
	if req.Instructions != "" {
		params.Instructions = openai.String(req.Instructions)
	}
	if reasoner(req.Model) {
		params.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
		if summed {
			params.Reasoning = shared.ReasoningParam{Summary: shared.ReasoningSummaryAuto}
		}
	}
	for _, t := range req.Tools {
		params.Tools = append(params.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
			Name: t.Name, Description: openai.String(t.Description), Parameters: upstream.Schema(t),
			Strict: openai.Bool(false)}})
	}
	stream := m.responses.NewStreaming(ctx, params)
	defer stream.Close()
	h := hearing{model: m, name: req.Model, say: say}
	for stream.Next() {
		if err := h.hear(stream.Current()); err != nil || h.done {
			return err
		}
	}
	return m.broken(req.Model, stream.Err())
}

// broken explains an error event, which the SDK takes out of the stream.
func (m *Model) broken(model string, err error) error {
	if event, ok := errors.AsType[*ssestream.StreamError](err); ok {
		return m.client.Refused(model, event.Event.Data)
	}
	return err
}

// hearing is one answer of the Responses API being listened to.
type hearing struct {
	model   *Model
	name    string
	say     func(parley.Said) error
	parts   upstream.Recorder
	summary int64 // the part of a summary that is being said
	calls   int
	refused bool
	done    bool
}

func (h *hearing) hear(e responses.ResponseStreamEventUnion) error {
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
		return h.text(e.Delta)
	case "response.refusal.delta":
		h.refused = true
		return h.text(e.Delta)
	case "response.reasoning_summary_text.delta":
		words := e.Delta
		if e.SummaryIndex > h.summary { // the next of several headings
			h.summary, words = e.SummaryIndex, "\n\n"+words
		}
		return h.thinking(words)
	case "response.reasoning_text.delta":
		return h.thinking(e.Delta)
	case "response.output_item.done":
		return h.item(e.Item)
	case "response.completed", "response.incomplete":
		stop := ended(h.refused, h.calls)
		switch {
		case e.Response.IncompleteDetails.Reason == "content_filter":
			stop = parley.StopRefusal
		case e.Response.Status == responses.ResponseStatusIncomplete:
			stop = parley.StopLength
		}
		u := e.Response.Usage
		h.done = true
		return h.say(
			parley.Said{Done: &parley.ModelDone{Stop: stop, Memo: h.parts.Memo(Name, h.name), Usage: parley.Usage{
				Input: u.InputTokens, Output: u.OutputTokens, Cached: u.InputTokensDetails.CachedTokens,
				Written: u.InputTokensDetails.CacheWriteTokens}}})
	case "response.failed":
		return h.failed(string(e.Response.Error.Code), e.Response.Error.Message)
	case "error":
		return h.failed(e.Code, e.Message)
	}
	return nil
}

func (h *hearing) text(words string) error {
	h.parts.Said(upstream.Text, words)
	return h.said(parley.Said{Text: words})
}

func (h *hearing) thinking(words string) error {
	h.parts.Said(upstream.Thinking, words)
	return h.said(parley.Said{Thinking: words})
}

func (h *hearing) said(s parley.Said) error {
	if s.Text == "" && s.Thinking == "" {
		return nil
	}
	return h.say(s)
}

// item is a part of the answer that is complete.
func (h *hearing) item(i responses.ResponseOutputItemUnion) error {
	switch i.Type {
	case "reasoning":
		if i.EncryptedContent != "" {
			h.parts.Sign(i.EncryptedContent, i.ID)
		}
	case "message":
		h.parts.Sign("", string(i.Phase))
	case "function_call":
		h.calls++
		h.parts.Begin(upstream.Part{Kind: upstream.Call})
		return h.say(
			parley.Said{Call: &parley.MessageCall{Provider: i.CallID, Name: i.Name,
				Arguments: cmp.Or(i.Arguments.OfString, "{}")}})
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

// items is the conversation as the Responses API takes it.
func items(req parley.ModelRequest) responses.ResponseInputParam {
	talk := upstream.Talk(req.Messages)
	names := upstream.CallNames(talk)
	var list responses.ResponseInputParam
	for _, m := range talk {
		switch m.Role {
		case parley.RoleUser:
			content := responses.ResponseInputMessageContentListParam{}
			if m.Text != "" {
				content = append(content, responses.ResponseInputContentParamOfInputText(m.Text))
			}
			for _, i := range m.Images {
				image := responses.ResponseInputContentParamOfInputImage(responses.ResponseInputImageDetailAuto)
				image.OfInputImage.ImageURL = openai.String(upstream.DataURL(i))
				content = append(content, image)
			}
			list = append(list, responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser))
		case parley.RoleTool:
			list = append(list,
				responses.ResponseInputItemUnionParam{
					OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
						CallID: openai.String(names[m.Call]),
						Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{
							OfString: openai.String(m.Text)}}})
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

// item is a piece of a turn, unless there is nothing to it.
func item(p upstream.Piece, names map[parley.CallID]string) (list responses.ResponseInputParam) {
	switch {
	case p.Kind == upstream.Thinking && p.Sign != "":
		summary := []responses.ResponseReasoningItemSummaryParam{}
		if p.Words != "" {
			summary = append(summary, responses.ResponseReasoningItemSummaryParam{Text: p.Words})
		}
		reasoning := responses.ResponseInputItemParamOfReasoning(p.Data, summary)
		reasoning.OfReasoning.EncryptedContent = openai.String(p.Sign)
		list = append(list, reasoning)
	case p.Kind == upstream.Text && p.Words != "":
		message := responses.ResponseInputItemParamOfMessage(p.Words, responses.EasyInputMessageRoleAssistant)
		message.OfMessage.Phase = responses.EasyInputMessagePhase(p.Data)
		list = append(list, message)
	case p.Kind == upstream.Call:
		list = append(list, responses.ResponseInputItemParamOfFunctionCall(p.Call.Arguments, names[p.Call.ID],
			p.Call.Name))
	}
	return list
}
