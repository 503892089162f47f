package dialect

// An Operation describes a route for the OpenAPI document. Types are given as values of them.
type Operation struct {
	Summary string
	Query   []string // names of query parameters
	Body    any      // request body; nil: none
	Status  int      // status of a successful answer
	Answer  any      // answer body; nil: see Media
	Media   string   // media type of an answer that is not JSON
	Events  bool     // the answer is also available as server-sent events
	Refused any      // body of an error; nil: the native protocol's error
}

// Messages describes a socket for the AsyncAPI document, by message type. Types are given as values of them.
type Messages struct {
	Sent  map[string]any // by the server
	Taken map[string]any // from a client
}

// CardAnswers returns the messages that answer cards in dialects whose documents have no cards.
func CardAnswers() map[string]any {
	return map[string]any{
		"approval_response": struct {
			Type     string `json:"type"`
			ID       string `json:"id"`
			Decision string `json:"decision"` // allow, always, deny, stop or explain
			Scope    string `json:"scope,omitempty"`
			Note     string `json:"note,omitempty"`
			Digest   string `json:"digest,omitempty"`
		}{},
		"question_response": struct {
			Type    string     `json:"type"`
			ID      string     `json:"id"`
			Answers [][]string `json:"answers"`
		}{},
		"tool_call_resolution": struct {
			Type       string `json:"type"`
			ID         string `json:"id"`
			Resolution string `json:"resolution"` // rerun, mark_done or abandon
			Note       string `json:"note,omitempty"`
		}{},
	}
}
