package google

import (
	"encoding/base64"
	"regexp"

	"google.golang.org/genai"

	"parley"
	"parley/port"
	"parley/provider/upstream"
)

// thinks matches the models that can return their thinking; the others refuse
// the option.
var thinks = regexp.MustCompile(`^gemini-(2\.5|[3-9])`)

func config(req port.ModelRequest) *genai.GenerateContentConfig {
	c := &genai.GenerateContentConfig{MaxOutputTokens: int32(req.MaxTokens)}
	if req.Instructions != "" {
		c.SystemInstruction = genai.NewContentFromText(req.Instructions, genai.RoleUser)
	}
	if thinks.MatchString(req.Model) {
		c.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true}
	}
	var functions []*genai.FunctionDeclaration
	for _, t := range req.Tools {
		functions = append(functions, &genai.FunctionDeclaration{Name: t.Name, Description: t.Description,
			ParametersJsonSchema: upstream.Schema(t)})
	}
	if len(functions) > 0 {
		c.Tools = []*genai.Tool{{FunctionDeclarations: functions}}
	}
	return c
}

// unsigned is the dummy signature that the vendor documents for calls that
// another model made. Models from 3 on refuse calls without a signature.
var (
	unsigned = []byte("skip_thought_signature_validator")
	strict   = regexp.MustCompile(`^gemini-[3-9]`)
)

// contents converts a conversation for the Gemini API. Consecutive results of
// calls become one user message.
func contents(req port.ModelRequest) (list []*genai.Content) {
	talk := upstream.Talk(req.Messages)
	asked := map[parley.CallID]parley.MessageCall{}
	for i, m := range talk {
		switch m.Role {
		case parley.RoleUser:
			list = append(list, genai.NewContentFromParts(user(m), genai.RoleUser))
		case parley.RoleAssistant:
			for _, c := range m.Calls {
				asked[c.ID] = c
			}
			list = append(list, genai.NewContentFromParts(turn(req.Model, m), genai.RoleModel))
		case parley.RoleTool:
			part := genai.NewPartFromFunctionResponse(asked[m.Call].Name, map[string]any{"output": m.Text})
			part.FunctionResponse.ID = asked[m.Call].Provider
			if i > 0 && talk[i-1].Role == parley.RoleTool {
				last := list[len(list)-1]
				last.Parts = append(last.Parts, part)
			} else {
				list = append(list, genai.NewContentFromParts([]*genai.Part{part}, genai.RoleUser))
			}
		}
	}
	return list
}

func user(m parley.Message) (parts []*genai.Part) {
	if m.Text != "" {
		parts = append(parts, genai.NewPartFromText(m.Text))
	}
	for _, i := range m.Images {
		if i.Type == parley.TypePDF && !upstream.Pages(i) {
			parts = append(parts, genai.NewPartFromText(i.AsText()))
			continue
		}
		parts = append(parts, genai.NewPartFromBytes(i.Data, i.Type))
	}
	return parts
}

// turn converts a turn of the model, with the signatures of its parts.
func turn(model string, m parley.Message) (parts []*genai.Part) {
	pieces, ok := upstream.Pieces(Name, model, m)
	if !ok {
		pieces = upstream.Plain(m)
	}
	first := true // no call so far; the vendor signs only the first
	for _, p := range pieces {
		var part *genai.Part
		switch {
		case p.Kind == upstream.Text && (p.Words != "" || p.Sign != ""):
			part = genai.NewPartFromText(p.Words)
		case p.Kind == upstream.Call:
			part = genai.NewPartFromFunctionCall(p.Call.Name, upstream.Arguments(p.Call))
			part.FunctionCall.ID = p.Call.Provider
			if first && !ok && strict.MatchString(model) {
				part.ThoughtSignature = unsigned
			}
			first = false
		default:
			continue // summaries of thinking are for users, not for the model
		}
		if sign, err := base64.StdEncoding.DecodeString(p.Sign); err == nil && p.Sign != "" {
			part.ThoughtSignature = sign
		}
		parts = append(parts, part)
	}
	return parts
}
