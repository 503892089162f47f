package port

import (
	"context"
	"iter"

	"parley"
)

// A Model speaks. The sequence yields what it says in order and ends with one
// ModelDone or an error. The message of an *Error is shown to people, and
// CodeOverloaded or CodeUnavailable says that trying again may help, after
// RetryAfter. Leaving the loop ends the upstream call.
type Model interface {
	Stream(context.Context, ModelRequest) iter.Seq2[Said, error]
}

// A ModelInfo is a model that can be called, and what is known of it. Prices are in US
// dollars for a million tokens, from the vendor's list; zero: not known.
type ModelInfo struct {
	ID          string  `json:"id"`
	Provider    string  `json:"provider"`
	Default     bool    `json:"default"` // of agents that name none
	Window      int     `json:"context_window,omitempty"`
	InputPrice  float64 `json:"input_price,omitempty"`
	OutputPrice float64 `json:"output_price,omitempty"`
}

type ModelRequest struct {
	Model        string
	Instructions string
	Messages     []parley.Message
	Tools        []parley.ToolSpec
	MaxTokens    int      // that it may say, thinking included; zero: the provider's limit
	Fallback     []string // models to ask instead, in this order, if Model cannot answer
}

// Digest identifies the instructions and the tools of a request.
func (r ModelRequest) Digest() parley.PromptDigest {
	var tools []string
	for _, t := range r.Tools {
		tools = append(tools, t.Name, t.Description, t.Parameters)
	}
	const enough = 32 // hex digits: nobody gains anything by two requests that look the same
	return parley.PromptDigest{Instructions: Digest(r.Instructions)[:enough], Tools: Digest(tools...)[:enough]}
}

// Said is one thing a model said: exactly one field is set. FellBack and Retry
// come before anything else is said.
type Said struct {
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
	Memo  *parley.Memo // what the provider wants back with this turn; nil: nothing
}

// A TurnRequest is what the model of a turn was asked. No store keeps it: it is built again from the log. The parts
// that are not in the log (skills, other agents, tools, the user's context) are as they are now.
type TurnRequest struct {
	ModelRequest
	Turn  parley.TurnID
	Agent string
	Mode  parley.RunMode
	// Hidden: the reader may not change the agent, and is not shown its instructions.
	Hidden bool
	// Then identifies the instructions and tools that were sent, Now those of this request; Then is zero if the call
	// came to no end, or was made by a release that did not note it.
	Then, Now parley.PromptDigest
	// Redefined: the agent's own instructions have changed since the run started. The request has those of the run.
	Redefined bool
}
