package anthropic

import (
	"cmp"
	"encoding/base64"

	"github.com/anthropics/anthropic-sdk-go"

	"parley"
	"parley/port"
	"parley/provider/upstream"
)

const (
	// mostSaid is the default limit of an answer. The vendor counts this limit
	// against the account's rate limit before the answer begins.
	mostSaid = 16_384
	leastOut = 4_096 // supported by every model
	budget   = 4_096 // thinking budget, in tokens
)

func (m *Model) params(req port.ModelRequest) anthropic.MessageNewParams {
	most := m.limit(req.Model)
	if most == 0 {
		most = leastOut
		if thinks(req.Model) != notAtAll { // all models that think support more than this
			most = mostSaid
		}
	}
	talk := upstream.Talk(req.Messages)
	params := anthropic.MessageNewParams{
		Model:     anthropic.Model(req.Model),
		MaxTokens: int64(min(most, mostSaid, cmp.Or(req.MaxTokens, mostSaid))),
		Messages:  messages(req.Model, talk),
	}
	// Set two cache points: the next turn reads everything up to them again, at
	// a tenth of the price.
	if req.Instructions != "" {
		params.System = []anthropic.TextBlockParam{
			{Text: req.Instructions, CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	}
	if n := len(params.Messages); n > 0 {
		last := params.Messages[n-1].Content
		if mark := last[len(last)-1].GetCacheControl(); mark != nil {
			*mark = anthropic.NewCacheControlEphemeralParam()
		}
	}
	switch thinks(req.Model) {
	case asItSeesFit:
		params.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{
			Display: anthropic.ThinkingConfigAdaptiveDisplaySummarized}
	case withBudget:
		if params.MaxTokens > budget && unbroken(req.Model, talk) {
			params.Thinking = anthropic.ThinkingConfigParamOfEnabled(budget)
		}
	}
	return params
}

// tool converts a tool for the vendor.
func tool(t parley.ToolSpec) any {
	schema := upstream.Schema(t)
	properties := schema["properties"]
	delete(schema, "properties")
	delete(schema, "type") // always "object"
	required, _ := schema["required"].([]any)
	delete(schema, "required")
	input := anthropic.ToolInputSchemaParam{Properties: properties, ExtraFields: schema}
	for _, name := range required {
		if name, ok := name.(string); ok {
			input.Required = append(input.Required, name)
		}
	}
	return anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
		Name: t.Name, Description: anthropic.String(t.Description), InputSchema: input}}
}

// unbroken reports whether all turns since the last message of a person can be
// sent with their thinking. If one of them is from another model, or has lost
// its thinking, the vendor refuses more thinking in this run.
func unbroken(model string, talk []parley.Message) bool {
	for i := len(talk) - 1; i >= 0 && talk[i].Role != parley.RoleUser; i-- {
		if talk[i].Role != parley.RoleAssistant {
			continue
		}
		pieces, ok := upstream.Pieces(Name, model, talk[i])
		if !ok || len(pieces) == 0 || pieces[0].Kind != upstream.Thinking && pieces[0].Kind != redacted {
			return false
		}
	}
	return true
}

// redacted is the kind of a thinking part that only the vendor can read.
const redacted = "redacted"

// messages converts a conversation for the Messages API. Consecutive results of
// calls become one user message.
func messages(model string, talk []parley.Message) (list []anthropic.MessageParam) {
	names := upstream.CallNames(talk)
	results := false // the last message has call results
	for _, m := range talk {
		switch m.Role {
		case parley.RoleUser:
			list = append(list, anthropic.NewUserMessage(user(m)...))
		case parley.RoleTool:
			block := anthropic.NewToolResultBlock(names[m.Call], m.Text, false)
			if results {
				last := &list[len(list)-1]
				last.Content = append(last.Content, block)
			} else {
				list = append(list, anthropic.NewUserMessage(block))
			}
		case parley.RoleAssistant:
			list = append(list, anthropic.NewAssistantMessage(assistant(model, m, names)...))
		}
		results = m.Role == parley.RoleTool
	}
	return list
}

func user(m parley.Message) (blocks []anthropic.ContentBlockParamUnion) {
	for _, i := range m.Images {
		switch {
		case upstream.Pages(i):
			pages := anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{
				Data: base64.StdEncoding.EncodeToString(i.Data)})
			pages.OfDocument.Title = anthropic.String(i.Name)
			blocks = append(blocks, pages)
			continue
		case i.Type == parley.TypePDF:
			blocks = append(blocks, anthropic.NewTextBlock(i.AsText()))
			continue
		}
		blocks = append(blocks, anthropic.NewImageBlockBase64(i.Type, base64.StdEncoding.EncodeToString(i.Data)))
	}
	if m.Text != "" {
		blocks = append(blocks, anthropic.NewTextBlock(m.Text))
	}
	return blocks
}

// assistant converts a turn, with its thinking if that is known, in the
// original order.
func assistant(model string, m parley.Message, names map[parley.CallID]string) (
	blocks []anthropic.ContentBlockParamUnion) {
	pieces, ok := upstream.Pieces(Name, model, m)
	if !ok {
		pieces = upstream.Plain(m)
	}
	for _, p := range pieces {
		switch {
		case p.Kind == upstream.Thinking && p.Sign != "":
			blocks = append(blocks, anthropic.NewThinkingBlock(p.Sign, p.Words))
		case p.Kind == redacted:
			blocks = append(blocks, anthropic.NewRedactedThinkingBlock(p.Data))
		case p.Kind == upstream.Text && !parley.IsBlank(p.Words): // the vendor refuses blank texts
			blocks = append(blocks, anthropic.NewTextBlock(p.Words))
		case p.Kind == upstream.Call:
			blocks = append(blocks, anthropic.NewToolUseBlock(names[p.Call.ID], upstream.Arguments(p.Call),
				p.Call.Name))
		}
	}
	return blocks
}
