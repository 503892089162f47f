package parley

import (
	"encoding/json"
	"regexp"
	"strings"
)

// A ClientTool is a tool that the client of an input offers to the model for the
// run of that input. The client carries out the calls itself. A call waits in the
// log for its ReturnToolResult, like a card for its answer.
type ClientTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Parameters  string `json:"parameters,omitempty"` // JSON Schema of an object; empty: no parameters
}

// Spec returns the tool as the model sees it.
func (t ClientTool) Spec() ToolSpec {
	parameters := t.Parameters
	if parameters == "" {
		parameters = `{"type":"object","properties":{}}`
	}
	return ToolSpec{Name: t.Name, Description: t.Description, Parameters: parameters, Client: true}
}

var clientToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkClientTools validates the tools of an input.
func checkClientTools(tools []ClientTool) error {
	if len(tools) > maxClientTools {
		return Errorf(CodeTooLarge, "A message can offer at most %d tools, and this one offers %d.", maxClientTools,
			len(tools))
	}
	size, seen := 0, map[string]bool{}
	for _, t := range tools {
		if !clientToolName.MatchString(t.Name) {
			return Errorf(CodeInvalid, "The name of a tool has 1 to 64 letters, digits, _ and -. %.40q has not.",
				t.Name)
		}
		if seen[t.Name] {
			return Errorf(CodeInvalid, "Two tools are called %q.", t.Name)
		}
		seen[t.Name] = true
		if t.Parameters != "" && (!strings.HasPrefix(strings.TrimSpace(t.Parameters), "{") ||
			!json.Valid([]byte(t.Parameters))) {
			return Errorf(CodeInvalid, "The parameters of the tool %q are no JSON object.", t.Name)
		}
		size += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	if size > maxClientToolBytes {
		return Errorf(CodeTooLarge, "The tools of a message are longer than %d bytes.", maxClientToolBytes)
	}
	return nil
}

// ReturnToolResult ends a call that the client carries out.
type ReturnToolResult struct {
	Call   CallID
	Result string
	Failed bool `json:",omitempty"`

	Finding *Finding `json:",omitempty"` // of the sentinel in the result
}

func (do ReturnToolResult) Rules() Rules {
	return Rules{Action: ActMessage, Answers: true, Limits: []limit{{"result", len(do.Result), MaxResult}}}
}

func (do ReturnToolResult) decide(d *decision, _ Command) error {
	var c *Call
	if d.s.Run != nil {
		c = d.s.Run.call(do.Call)
	}
	if c == nil || c.Status != callAwaited || !d.at.Before(c.Expires) {
		return Errorf(CodeClosed, "This call does not wait for a result: it has ended or never was.")
	}
	outcome := CallSucceeded
	if do.Failed {
		outcome = CallFailed
	}
	d.emit(d.s.Run.ID, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: outcome, Result: CleanText(do.Result),
		Finding: do.Finding})
	return nil
}
