package dialect

// An Operation describes a route for the OpenAPI document. Types are given by values of them.
type Operation struct {
	Summary string
	Query   []string // names of parameters in the address
	Body    any      // what a client sends; nil: nothing
	Status  int      // of success
	Answer  any      // what it is answered; nil: see Media
	Media   string   // of an answer that is no JSON
	Events  bool     // the answer can also be had as server-sent events
	Refused any      // what it is answered if it is refused; nil: the native protocol's error
}

// Messages describe a socket for the AsyncAPI document, by the type of each message. Types are given by values of them.
type Messages struct {
	Sent  map[string]any // by the server
	Taken map[string]any // from a client
}

// CardAnswers are the messages that answer cards, as clients send them in the dialects whose documents have none.
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
