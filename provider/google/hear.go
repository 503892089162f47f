package google

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/genai"

	"parley"
	"parley/port"
	"parley/provider/upstream"
)

// hearing is the state of one answer. Calls are not streamed.
type hearing struct {
	say    func(port.ModelChunk) error
	parts  upstream.Recorder
	calls  int
	finish genai.FinishReason
	usage  parley.Usage
}

func (h *hearing) hear(r *genai.GenerateContentResponse) error {
	if u := r.UsageMetadata; u != nil { // totals so far
		h.usage = parley.Usage{
			Input:  int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount),
			Output: int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount),
			Cached: int64(u.CachedContentTokenCount),
		}
	}
	if f := r.PromptFeedback; f != nil && f.BlockReason != "" {
		h.finish = genai.FinishReasonSafety
	}
	for _, c := range r.Candidates {
		if c.Content != nil {
			for _, p := range c.Content.Parts {
				if err := h.part(p); err != nil {
					return err
				}
			}
		}
		if c.FinishReason != "" {
			h.finish = c.FinishReason
		}
	}
	return nil
}

func (h *hearing) part(p *genai.Part) (err error) {
	switch {
	case p.FunctionCall != nil:
		args, err := json.Marshal(p.FunctionCall.Args)
		if err != nil {
			return err
		}
		if p.FunctionCall.Args == nil {
			args = []byte("{}")
		}
		h.calls++
		h.parts.Begin(upstream.Part{Kind: upstream.Call})
		err = h.say(port.ModelChunk{Call: &parley.MessageCall{Provider: p.FunctionCall.ID, Name: p.FunctionCall.Name,
			Arguments: string(args)}})
		h.sign(p)
		return err
	case p.Thought && p.Text != "":
		h.parts.Add(upstream.Thinking, p.Text)
		err = h.say(port.ModelChunk{Thinking: p.Text})
	case p.Text != "":
		h.parts.Add(upstream.Text, p.Text)
		err = h.say(port.ModelChunk{Text: p.Text})
	case len(p.ThoughtSignature) > 0: // a part that has only a signature, at the end
		h.parts.Begin(upstream.Part{Kind: upstream.Text})
	}
	h.sign(p)
	return err
}

func (h *hearing) sign(p *genai.Part) {
	if len(p.ThoughtSignature) > 0 {
		h.parts.Sign(base64.StdEncoding.EncodeToString(p.ThoughtSignature), "")
	}
}

// end reports the end of the turn, if the model has sent a reason for it.
func (h *hearing) end(model string) error {
	stop := parley.StopEnd
	switch h.finish {
	case "", genai.FinishReasonUnspecified:
		return nil
	case genai.FinishReasonMaxTokens:
		stop = parley.StopLength
	case genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonBlocklist,
		genai.FinishReasonProhibitedContent,
		genai.FinishReasonSPII, genai.FinishReasonLanguage, genai.FinishReasonImageSafety:
		stop = parley.StopRefusal
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall,
		genai.FinishReasonTooManyToolCalls:
		if h.calls == 0 {
			return parley.Errorf(parley.CodeUnavailable, "Google's model sent a tool call that cannot be parsed.")
		}
	}
	if h.calls > 0 {
		stop = parley.StopTools
	}
	return h.say(port.ModelChunk{Done: &port.ModelDone{Stop: stop, Usage: h.usage, Memo: h.parts.Memo(Name, model)}})
}

// broken returns the error for a failure in the middle of a stream.
func (m *Model) broken(model string, err error) error {
	if e, ok := errors.AsType[genai.APIError](err); ok {
		raw, bad := json.Marshal(
			map[string]any{"error": map[string]any{"code": e.Code, "message": e.Message, "status": e.Status}})
		if bad != nil {
			return fmt.Errorf("%w (%w)", err, bad)
		}
		return m.client.Refused(model, raw)
	}
	return err
}
