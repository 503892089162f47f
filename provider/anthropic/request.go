package anthropic

import (
	"cmp"
	"encoding/base64"
	"slices"

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

func (m *Model) request(req port.ModelRequest) upstream.Object {
	most := m.limit(req.Model)
	if most == 0 {
		most = leastOut
		if thinks(req.Model) != notAtAll { // all models that think support more than this
			most = mostSaid
		}
	}
	most = min(most, mostSaid, cmp.Or(req.MaxTokens, mostSaid))
	talk := upstream.Talk(req.Messages)
	request := upstream.Object{"model": req.Model, "stream": true, "max_tokens": most,
		"messages": cached(messages(req.Model, talk))}
	if req.Instructions != "" {
		request["system"] = []upstream.Object{{"type": "text", "text": req.Instructions, "cache_control": ephemeral}}
	}
	switch thinks(req.Model) {
	case asItSeesFit:
		request["thinking"] = upstream.Object{"type": "adaptive", "display": "summarized"}
	case withBudget:
		if most > budget && unbroken(req.Model, talk) {
			request["thinking"] = upstream.Object{"type": "enabled", "budget_tokens": budget}
		}
	}
	return request
}

// ephemeral marks a cache point: the next turn reads everything up to it again, at a tenth of the price. A request has
// two of them, at the end of the instructions and of the conversation.
var ephemeral = upstream.Object{"type": "ephemeral"}

// cached marks the last block of a conversation. Thinking cannot be marked.
func cached(list []upstream.Object) []upstream.Object {
	if n := len(list); n > 0 {
		content := list[n-1]["content"].([]upstream.Object)
		if last := content[len(content)-1]; last["type"] != "thinking" && last["type"] != "redacted_thinking" {
			last["cache_control"] = ephemeral
		}
	}
	return list
}

// tool converts a tool for the vendor.
func tool(t parley.ToolSpec) any {
	schema := upstream.Schema(t)
	schema["type"] = "object"
	if list, ok := schema["required"].([]any); ok { // a server of tools may send nonsense
		schema["required"] = slices.DeleteFunc(list, func(name any) bool {
			_, ok := name.(string)
			return !ok
		})
	} else {
		delete(schema, "required")
	}
	return upstream.Object{"name": t.Name, "description": t.Description, "input_schema": schema}
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
func messages(model string, talk []parley.Message) (list []upstream.Object) {
	names := upstream.CallNames(talk)
	add := func(role string, content []upstream.Object) {
		if len(content) > 0 { // the vendor refuses empty messages
			list = append(list, upstream.Object{"role": role, "content": content})
		}
	}
	var results []upstream.Object // the content of the last message, if it has call results
	for _, m := range talk {
		switch m.Role {
		case parley.RoleUser:
			add("user", user(m))
		case parley.RoleTool:
			block := upstream.Object{"type": "tool_result", "tool_use_id": names[m.Call], "is_error": false,
				"content": []upstream.Object{text(m.Text)}}
			if results = append(results, block); len(results) == 1 {
				add("user", results)
			}
			list[len(list)-1]["content"] = results
			continue
		case parley.RoleAssistant:
			add("assistant", assistant(model, m, names))
		}
		results = nil
	}
	return list
}

func text(words string) upstream.Object { return upstream.Object{"type": "text", "text": words} }

// file returns the source of an image or a document.
func file(i parley.Image) upstream.Object {
	return upstream.Object{"type": "base64", "media_type": i.Type, "data": base64.StdEncoding.EncodeToString(i.Data)}
}

func user(m parley.Message) (blocks []upstream.Object) {
	for _, i := range m.Images {
		switch {
		case upstream.Pages(i):
			blocks = append(blocks, upstream.Object{"type": "document", "title": i.Name, "source": file(i)})
		case i.Type == parley.TypePDF:
			blocks = append(blocks, text(i.AsText()))
		default:
			blocks = append(blocks, upstream.Object{"type": "image", "source": file(i)})
		}
	}
	if m.Text != "" {
		blocks = append(blocks, text(m.Text))
	}
	return blocks
}

// assistant converts a turn, with its thinking if that is known, in the
// original order.
func assistant(model string, m parley.Message, names map[parley.CallID]string) (blocks []upstream.Object) {
	pieces, ok := upstream.Pieces(Name, model, m)
	if !ok {
		pieces = upstream.Plain(m)
	}
	for _, p := range pieces {
		switch {
		case p.Kind == upstream.Thinking && p.Sign != "":
			blocks = append(blocks, upstream.Object{"type": "thinking", "signature": p.Sign, "thinking": p.Words})
		case p.Kind == redacted:
			blocks = append(blocks, upstream.Object{"type": "redacted_thinking", "data": p.Data})
		case p.Kind == upstream.Text && !parley.IsBlank(p.Words): // the vendor refuses blank texts
			blocks = append(blocks, text(p.Words))
		case p.Kind == upstream.Call:
			blocks = append(blocks, upstream.Object{"type": "tool_use", "id": names[p.Call.ID], "name": p.Call.Name,
				"input": upstream.Arguments(p.Call)})
		}
	}
	return blocks
}
