package google

import (
	"encoding/base64"
	"regexp"

	"parley"
	"parley/port"
	"parley/provider/upstream"
)

// thinks matches the models that can return their thinking; the others refuse
// the option.
var thinks = regexp.MustCompile(`^gemini-(2\.5|[3-9])`)

func request(req port.ModelRequest) upstream.Object {
	generation := upstream.Object{}
	if req.MaxTokens > 0 {
		generation["maxOutputTokens"] = req.MaxTokens
	}
	if thinks.MatchString(req.Model) {
		generation["thinkingConfig"] = upstream.Object{"includeThoughts": true}
	}
	request := upstream.Object{"contents": contents(req), "generationConfig": generation}
	if req.Instructions != "" {
		request["systemInstruction"] = content("user", upstream.Object{"text": req.Instructions})
	}
	var functions []upstream.Object
	for _, t := range req.Tools {
		function := upstream.Object{"name": t.Name, "parametersJsonSchema": upstream.Schema(t)}
		if t.Description != "" {
			function["description"] = t.Description
		}
		functions = append(functions, function)
	}
	if len(functions) > 0 {
		request["tools"] = []upstream.Object{{"functionDeclarations": functions}}
	}
	return request
}

func content(role string, parts ...upstream.Object) upstream.Object {
	return upstream.Object{"role": role, "parts": parts}
}

// unsigned is the dummy signature that the vendor documents for calls that
// another model made. Models from 3 on refuse calls without a signature.
var (
	unsigned = []byte("skip_thought_signature_validator")
	strict   = regexp.MustCompile(`^gemini-[3-9]`)
)

// contents converts a conversation for the Gemini API. Consecutive results of
// calls become one user message.
func contents(req port.ModelRequest) (list []upstream.Object) {
	asked := map[parley.CallID]parley.MessageCall{}
	var results []upstream.Object // the parts of the last message, if it has call results
	for _, m := range upstream.Talk(req.Messages) {
		switch m.Role {
		case parley.RoleUser:
			list = append(list, content("user", user(m)...))
		case parley.RoleAssistant:
			for _, c := range m.Calls {
				asked[c.ID] = c
			}
			list = append(list, content("model", turn(req.Model, m)...))
		case parley.RoleTool:
			response := named(asked[m.Call])
			response["response"] = upstream.Object{"output": m.Text}
			if results = append(results, upstream.Object{"functionResponse": response}); len(results) == 1 {
				list = append(list, nil)
			}
			list[len(list)-1] = content("user", results...)
			continue
		}
		results = nil
	}
	return list
}

// named returns the name of a call, and its id if the vendor gave it one.
func named(c parley.MessageCall) upstream.Object {
	o := upstream.Object{"name": c.Name}
	if c.Provider != "" {
		o["id"] = c.Provider
	}
	return o
}

func user(m parley.Message) (parts []upstream.Object) {
	if m.Text != "" {
		parts = append(parts, upstream.Object{"text": m.Text})
	}
	for _, i := range m.Images {
		if i.Type == parley.TypePDF && !upstream.Pages(i) {
			parts = append(parts, upstream.Object{"text": i.AsText()})
			continue
		}
		parts = append(parts, upstream.Object{"inlineData": upstream.Object{"mimeType": i.Type, "data": i.Data}})
	}
	return parts
}

// turn converts a turn of the model, with the signatures of its parts.
func turn(model string, m parley.Message) (parts []upstream.Object) {
	pieces, ok := upstream.Pieces(Name, model, m)
	if !ok {
		pieces = upstream.Plain(m)
	}
	first := true // no call so far; the vendor signs only the first
	for _, p := range pieces {
		var part upstream.Object
		switch {
		case p.Kind == upstream.Text && (p.Words != "" || p.Sign != ""):
			part = upstream.Object{"text": p.Words}
		case p.Kind == upstream.Call:
			call := named(p.Call)
			if arguments := upstream.Arguments(p.Call); len(arguments) > 0 {
				call["args"] = arguments
			}
			part = upstream.Object{"functionCall": call}
			if first && !ok && strict.MatchString(model) {
				part["thoughtSignature"] = unsigned
			}
			first = false
		default:
			continue // summaries of thinking are for users, not for the model
		}
		if _, err := base64.StdEncoding.DecodeString(p.Sign); err == nil && p.Sign != "" {
			part["thoughtSignature"] = p.Sign
		}
		parts = append(parts, part)
	}
	return parts
}
