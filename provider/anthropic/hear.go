package anthropic

import (
	"cmp"
	"errors"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"parley"
	"parley/provider/upstream"
)

// hearing is one answer being listened to. It comes as blocks, one after the
// other, each in pieces.
type hearing struct {
	model     string
	say       func(parley.Said) error
	parts     upstream.Recorder
	call      *parley.MessageCall // being said
	arguments strings.Builder
	stop      parley.Stop
	usage     parley.Usage
	fresh     int64 // input that was not remembered
	done      bool
}

func (h *hearing) hear(e anthropic.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		h.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens)
	case "content_block_start":
		return h.begin(e.ContentBlock)
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			return h.words(upstream.Text, e.Delta.Text)
		case "thinking_delta":
			return h.words(upstream.Thinking, e.Delta.Thinking)
		case "signature_delta":
			h.parts.Sign(e.Delta.Signature, "")
		case "input_json_delta":
			h.arguments.WriteString(e.Delta.PartialJSON)
		}
	case "content_block_stop":
		if c := h.call; c != nil {
			c.Arguments = cmp.Or(h.arguments.String(), "{}")
			h.call = nil
			return h.say(parley.Said{Call: c})
		}
	case "message_delta":
		h.stop = stops[e.Delta.StopReason]
		u := e.Usage // of everything so far
		h.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens)
	case "message_stop":
		h.done = true
		return h.say(parley.Said{Done: &parley.ModelDone{Stop: cmp.Or(h.stop, parley.StopEnd), Usage: h.usage,
			Memo: h.parts.Memo(Name, h.model)}})
	}
	return nil
}

var stops = map[anthropic.StopReason]parley.Stop{
	anthropic.StopReasonEndTurn:                    parley.StopEnd,
	anthropic.StopReasonStopSequence:               parley.StopEnd,
	anthropic.StopReasonPauseTurn:                  parley.StopEnd,
	anthropic.StopReasonToolUse:                    parley.StopTools,
	anthropic.StopReasonMaxTokens:                  parley.StopLength,
	anthropic.StopReasonModelContextWindowExceeded: parley.StopLength,
	anthropic.StopReasonRefusal:                    parley.StopRefusal,
}

// count takes over what is counted. The vendor counts what it remembered apart,
// and says zero at the end of what it said at the beginning.
func (h *hearing) count(fresh, cached, written, output int64) {
	h.fresh = cmp.Or(fresh, h.fresh)
	h.usage.Cached, h.usage.Written, h.usage.Output = cmp.Or(cached, h.usage.Cached), cmp.Or(written, h.usage.Written),
		cmp.Or(output, h.usage.Output)
	h.usage.Input = h.fresh + h.usage.Cached + h.usage.Written
}

func (h *hearing) begin(b anthropic.ContentBlockStartEventContentBlockUnion) error {
	switch b.Type {
	case "text":
		h.parts.Begin(upstream.Part{Kind: upstream.Text})
		return h.words(upstream.Text, b.Text)
	case "thinking":
		h.parts.Begin(upstream.Part{Kind: upstream.Thinking})
		return h.words(upstream.Thinking, b.Thinking)
	case "redacted_thinking":
		h.parts.Begin(upstream.Part{Kind: redacted, Data: b.Data})
	case "tool_use":
		h.parts.Begin(upstream.Part{Kind: upstream.Call})
		h.call = &parley.MessageCall{Provider: b.ID, Name: b.Name}
		h.arguments.Reset()
	}
	return nil
}

func (h *hearing) words(kind, words string) error {
	if words == "" {
		return nil
	}
	h.parts.Said(kind, words)
	if kind == upstream.Thinking {
		return h.say(parley.Said{Thinking: words})
	}
	return h.say(parley.Said{Text: words})
}

// broken explains an error event, which the SDK takes out of the stream.
func (m *Model) broken(model string, err error) error {
	if e, ok := errors.AsType[*anthropic.Error](err); ok && e.RawJSON() != "" {
		return m.client.Refused(model, []byte(e.RawJSON()))
	}
	return err
}
