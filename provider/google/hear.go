package google

import (
	"cmp"
	"encoding/json"

	"parley"
	"parley/port"
	"parley/provider/upstream"
)

// A chunk has the fields of a stream event that Parley uses.
type chunk struct {
	Error    json.RawMessage `json:"error"`
	Feedback struct {
		BlockReason upstream.Loose `json:"blockReason"`
	} `json:"promptFeedback"`
	Candidates []struct {
		Content struct {
			Parts []part `json:"parts"`
		} `json:"content"`
		Finish upstream.Loose `json:"finishReason"`
	} `json:"candidates"`
	Usage *struct {
		Prompt     upstream.Count `json:"promptTokenCount"`
		ToolUse    upstream.Count `json:"toolUsePromptTokenCount"`
		Candidates upstream.Count `json:"candidatesTokenCount"`
		Thoughts   upstream.Count `json:"thoughtsTokenCount"`
		Cached     upstream.Count `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
}

type part struct {
	Text      upstream.Loose `json:"text"`
	Thought   bool           `json:"thought"`
	Signature upstream.Loose `json:"thoughtSignature"`
	Call      *struct {
		ID   upstream.Loose  `json:"id"`
		Name upstream.Loose  `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// hearing is the state of one answer. Calls are not streamed.
type hearing struct {
	say    func(port.ModelChunk) error
	parts  upstream.Recorder
	calls  int
	finish string
	usage  parley.Usage
}

func (h *hearing) hear(c *chunk) error {
	if u := c.Usage; u != nil { // totals so far
		h.usage = parley.Usage{Input: int64(u.Prompt + u.ToolUse), Output: int64(u.Candidates + u.Thoughts),
			Cached: int64(u.Cached)}
	}
	if c.Feedback.BlockReason != "" {
		h.finish = "SAFETY"
	}
	for _, candidate := range c.Candidates {
		for i := range candidate.Content.Parts {
			if err := h.part(&candidate.Content.Parts[i]); err != nil {
				return err
			}
		}
		h.finish = cmp.Or(string(candidate.Finish), h.finish)
	}
	return nil
}

func (h *hearing) part(p *part) (err error) {
	words := string(p.Text)
	switch {
	case p.Call != nil:
		arguments := "{}"
		if upstream.Present(p.Call.Args) {
			arguments = string(p.Call.Args)
		}
		h.calls++
		h.parts.Begin(upstream.Part{Kind: upstream.Call})
		err = h.say(port.ModelChunk{Call: &parley.MessageCall{Provider: string(p.Call.ID), Name: string(p.Call.Name),
			Arguments: arguments}})
	case p.Thought && words != "":
		h.parts.Add(upstream.Thinking, words)
		err = h.say(port.ModelChunk{Thinking: words})
	case words != "":
		h.parts.Add(upstream.Text, words)
		err = h.say(port.ModelChunk{Text: words})
	case p.Signature != "": // a part that has only a signature, at the end
		h.parts.Begin(upstream.Part{Kind: upstream.Text})
	}
	if p.Signature != "" {
		h.parts.Sign(string(p.Signature), "")
	}
	return err
}

// end reports the end of the turn, if the model has sent a reason for it.
func (h *hearing) end(model string) error {
	stop := parley.StopEnd
	switch h.finish {
	case "", "FINISH_REASON_UNSPECIFIED":
		return nil
	case "MAX_TOKENS":
		stop = parley.StopLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY":
		stop = parley.StopRefusal
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		if h.calls == 0 {
			return parley.Errorf(parley.CodeUnavailable, "Google's model sent a tool call that cannot be parsed.")
		}
	}
	if h.calls > 0 {
		stop = parley.StopTools
	}
	return h.say(port.ModelChunk{Done: &port.ModelDone{Stop: stop, Usage: h.usage, Memo: h.parts.Memo(Name, model)}})
}
