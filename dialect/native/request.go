package native

import (
	"encoding/json"
	"net/http"
	"strconv"

	"parley"
	"parley/port"
)

// The request to the model in a turn.
type (
	turnRequest struct {
		Agent    string         `json:"agent"`
		Model    string         `json:"model,omitempty"`           // empty: the default, which was not recorded
		Fallback []string       `json:"fallback_models,omitempty"` // models to call if the first cannot answer
		Mode     parley.RunMode `json:"mode,omitempty"`
		// Instructions are absent for readers who may not change the agent.
		Instructions string           `json:"instructions,omitempty"`
		Hidden       bool             `json:"instructions_hidden,omitempty"`
		Messages     []requestMessage `json:"messages"`
		Tools        []requestTool    `json:"tools"`
		// InstructionsMatch and ToolsMatch compare this request with the one that was sent: same, changed, or unknown
		// if the call did not end.
		InstructionsMatch string `json:"instructions_match"`
		ToolsMatch        string `json:"tools_match"`
		// Redefined: the agent's own instructions have changed since. This request has the instructions of the run.
		Redefined bool `json:"agent_redefined,omitempty"`
	}
	requestMessage struct {
		Role       string         `json:"role"`
		Text       string         `json:"text"`
		Thinking   string         `json:"thinking,omitempty"`
		Incomplete bool           `json:"incomplete,omitempty"`
		Calls      []requestCall  `json:"calls,omitempty"`
		Call       parley.CallID  `json:"call,omitempty"` // the call that this is the result of
		Images     []requestImage `json:"images,omitempty"`
		Seq        parley.Seq     `json:"seq"` // its first event in the log
	}
	requestCall struct {
		ID        parley.CallID `json:"id"`
		Name      string        `json:"name"`
		Arguments string        `json:"arguments"`
	}
	requestImage struct {
		Type  string `json:"media_type"`
		Bytes int    `json:"bytes"`
	}
	requestTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"` // a JSON Schema
	}
)

// getRequest returns the request to the model in a turn of a run.
func (h *Handler) getRequest(r request) (int, any, error) {
	session, run, err := r.ref(errNoRun)
	if err != nil {
		return 0, nil, err
	}
	number, _ := strconv.Atoi(r.PathValue("turn")) // if the name is not a number, no turn has it
	asked, err := h.Door.TurnRequest(r.Context(), r.who, session, parley.RunID(run), number)
	return http.StatusOK, requestOf(asked), err
}

func requestOf(q port.TurnRequest) turnRequest {
	shown := turnRequest{Agent: q.Agent, Model: q.Model, Fallback: q.Fallback, Mode: q.Mode,
		Instructions: q.Instructions,
		Hidden:       q.Hidden, Messages: []requestMessage{}, Tools: []requestTool{}, Redefined: q.Redefined,
		InstructionsMatch: "unknown", ToolsMatch: "unknown"}
	if q.Then != (parley.PromptDigest{}) {
		shown.InstructionsMatch = match(q.Then.Instructions, q.Now.Instructions)
		shown.ToolsMatch = match(q.Then.Tools, q.Now.Tools)
	}
	for _, m := range q.Messages {
		line := requestMessage{Role: string(m.Role), Text: m.Text, Thinking: m.Thinking, Incomplete: m.Incomplete,
			Call: m.Call, Seq: m.Seq}
		for _, c := range m.Calls {
			line.Calls = append(line.Calls, requestCall{c.ID, c.Name, c.Arguments})
		}
		for _, i := range m.Images {
			line.Images = append(line.Images, requestImage{i.Type, len(i.Data)})
		}
		shown.Messages = append(shown.Messages, line)
	}
	for _, t := range q.Tools {
		parameters := json.RawMessage(t.Parameters)
		if !json.Valid(parameters) {
			parameters = json.RawMessage("null")
		}
		shown.Tools = append(shown.Tools, requestTool{t.Name, t.Description, parameters})
	}
	return shown
}

func match(then, now string) string {
	if then == now {
		return "same"
	}
	return "changed"
}
