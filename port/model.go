package port

import (
	"context"
	"iter"

	"parley"
)

// A Model calls language models. The sequence yields the output in order and
// ends with one ModelDone or an error. The message of an *Error is shown to
// people. CodeOverloaded or CodeUnavailable means that a retry may help, after
// RetryAfter. Leaving the loop ends the upstream call.
type Model interface {
	Stream(context.Context, ModelRequest) iter.Seq2[ModelChunk, error]
}

// A ModelInfo describes a model that can be called. Prices are in US dollars for a million tokens, from the vendor's
// list; zero: not known.
type ModelInfo struct {
	ID          string  `json:"id"`
	Provider    string  `json:"provider"`
	Default     bool    `json:"default"` // for agents that name no model
	Window      int     `json:"context_window,omitempty"`
	InputPrice  float64 `json:"input_price,omitempty"`
	OutputPrice float64 `json:"output_price,omitempty"`
}

type ModelRequest struct {
	Model        string
	Instructions string
	Messages     []parley.Message
	Tools        []parley.ToolSpec
	MaxTokens    int      // maximum output, thinking included; zero: the provider's limit
	Fallback     []string // models to call instead, in this order, if Model cannot answer
}

// Digest identifies the instructions and the tools of a request.
func (r ModelRequest) Digest() parley.PromptDigest {
	var tools []string
	for _, t := range r.Tools {
		tools = append(tools, t.Name, t.Description, t.Parameters)
	}
	const enough = 32 // hex digits: nothing is gained by a collision
	return parley.PromptDigest{Instructions: Digest(r.Instructions)[:enough], Tools: Digest(tools...)[:enough]}
}

// ModelChunk is one part of a model's output: exactly one field is set. FellBack and
// Retry come before any other part.
type ModelChunk struct {
	Text     string
	Thinking string
	Call     *parley.MessageCall
	Done     *ModelDone
	FellBack *parley.FellBack
	Retry    *parley.Retrying
}

type ModelDone struct {
	Stop  parley.Stop
	Usage parley.Usage
	Memo  *parley.Memo // data that the provider gets back with this turn; nil: none
}

// A TurnRequest is the model request of a turn. No store keeps it: it is built again from the log. The parts that are
// not in the log (skills, other agents, tools, the user's context) are as they are now.
type TurnRequest struct {
	ModelRequest
	Turn  parley.TurnID
	Agent string
	Mode  parley.RunMode
	// Hidden: the reader may not change the agent, and so must not see its instructions.
	Hidden bool
	// Then identifies the instructions and tools that were sent, and Now those of this request. Then is zero if the
	// call did not finish, or was made by a release that did not record it.
	Then, Now parley.PromptDigest
	// Redefined: the agent's own instructions have changed since the run started. This request has the run's
	// instructions.
	Redefined bool
}
