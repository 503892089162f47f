package anthropic

import (
	"cmp"
	"encoding/json"
	"io"
	"strings"

	"parley"
	"parley/port"
	"parley/provider/upstream"
)

// hearing is the state of one answer. It comes as blocks, one after the other,
// each in chunks.
type hearing struct {
	model     string
	say       func(port.ModelChunk) error
	parts     upstream.Recorder
	call      *parley.MessageCall // the call that is being streamed
	arguments strings.Builder
	stop      parley.Stop
	usage     parley.Usage
	fresh     int64 // input tokens that were not cached
	done      bool
}

func (h *hearing) hear(e *event) error {
	switch e.Type {
	case "message_start":
		h.count(e.Message.Usage)
	case "content_block_start":
		return h.begin(&e.Block)
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			return h.words(upstream.Text, string(e.Delta.Text))
		case "thinking_delta":
			return h.words(upstream.Thinking, string(e.Delta.Thinking))
		case "signature_delta":
			h.parts.Sign(string(e.Delta.Signature), "")
		case "input_json_delta":
			h.arguments.WriteString(string(e.Delta.PartialJSON))
		}
	case "content_block_stop":
		if c := h.call; c != nil {
			c.Arguments = cmp.Or(h.arguments.String(), "{}")
			h.call = nil
			return h.say(port.ModelChunk{Call: c})
		}
	case "message_delta":
		h.stop = stops[string(e.Delta.StopReason)]
		h.count(e.Usage) // totals so far
	case "message_stop":
		h.done = true
		return h.say(port.ModelChunk{Done: &port.ModelDone{Stop: cmp.Or(h.stop, parley.StopEnd), Usage: h.usage,
			Memo: h.parts.Memo(Name, h.model)}})
	}
	return nil
}

var stops = map[string]parley.Stop{
	"end_turn":                      parley.StopEnd,
	"stop_sequence":                 parley.StopEnd,
	"pause_turn":                    parley.StopEnd,
	"tool_use":                      parley.StopTools,
	"max_tokens":                    parley.StopLength,
	"model_context_window_exceeded": parley.StopLength,
	"refusal":                       parley.StopRefusal,
}

// count records the token counts. The vendor counts cached tokens separately.
// At the end it sends zero for counts that it sent at the beginning.
func (h *hearing) count(u usage) {
	h.fresh = cmp.Or(int64(u.Input), h.fresh)
	h.usage.Cached = cmp.Or(int64(u.Cached), h.usage.Cached)
	h.usage.Written = cmp.Or(int64(u.Written), h.usage.Written)
	h.usage.Output = cmp.Or(int64(u.Output), h.usage.Output)
	h.usage.Input = h.fresh + h.usage.Cached + h.usage.Written
}

func (h *hearing) begin(b *block) error {
	switch b.Type {
	case "text":
		h.parts.Begin(upstream.Part{Kind: upstream.Text})
		return h.words(upstream.Text, string(b.Text))
	case "thinking":
		h.parts.Begin(upstream.Part{Kind: upstream.Thinking})
		return h.words(upstream.Thinking, string(b.Thinking))
	case "redacted_thinking":
		h.parts.Begin(upstream.Part{Kind: redacted, Data: string(b.Data)})
	case "tool_use":
		h.parts.Begin(upstream.Part{Kind: upstream.Call})
		h.call = &parley.MessageCall{Provider: string(b.ID), Name: string(b.Name)}
		h.arguments.Reset()
	}
	return nil
}

func (h *hearing) words(kind, words string) error {
	if words == "" {
		return nil
	}
	h.parts.Add(kind, words)
	if kind == upstream.Thinking {
		return h.say(port.ModelChunk{Thinking: words})
	}
	return h.say(port.ModelChunk{Text: words})
}

// listen reads an answer to its end. It ignores events without a type, which
// Anthropic does not send, and pings.
func (m *Model) listen(h *hearing, body io.Reader) error {
	events := upstream.NewEvents(body)
	for events.Next() {
		switch events.Type {
		case "", "ping":
			continue
		case "error":
			if !json.Valid(events.Data) {
				return upstream.Unclear(events.Data)
			}
			return m.client.Refused(h.model, events.Data)
		}
		var e event
		if err := events.Decode(&e); err != nil {
			return err
		}
		if err := h.hear(&e); err != nil || h.done {
			return err
		}
	}
	return events.Err()
}

// An event has the fields of a stream event that Parley uses.
type event struct {
	Type    upstream.Loose `json:"type"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
	Block block `json:"content_block"`
	Delta struct {
		Type        upstream.Loose `json:"type"`
		Text        upstream.Loose `json:"text"`
		Thinking    upstream.Loose `json:"thinking"`
		Signature   upstream.Loose `json:"signature"`
		PartialJSON upstream.Loose `json:"partial_json"`
		StopReason  upstream.Loose `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

type block struct {
	Type     upstream.Loose `json:"type"`
	ID       upstream.Loose `json:"id"`
	Name     upstream.Loose `json:"name"`
	Text     upstream.Loose `json:"text"`
	Thinking upstream.Loose `json:"thinking"`
	Data     upstream.Loose `json:"data"`
}

type usage struct {
	Input   upstream.Count `json:"input_tokens"`
	Output  upstream.Count `json:"output_tokens"`
	Cached  upstream.Count `json:"cache_read_input_tokens"`
	Written upstream.Count `json:"cache_creation_input_tokens"`
}
