package dialect

import (
	"testing"

	"parley"
)

const aSession = parley.SessionID("550e8400-e29b-41d4-a716-446655440000")

// TestCards checks each event that makes a card, and the name of its frame.
func TestCards(t *testing.T) {
	for _, c := range []struct {
		body  parley.EventBody
		id    string
		frame string
	}{
		{parley.ApprovalRequested{Call: 5, Name: "shell"}, ".7", "approval_request"},
		{parley.QuestionAsked{Call: 5}, ".7", "question"},
		{parley.ToolCallFinished{Call: 5, Outcome: parley.CallUnknown}, ".5", "tool_call_unknown"},
		{parley.ToolCallFinished{Call: 5, Outcome: parley.CallFailed}, "", ""},
		{parley.RunFinished{}, "", ""},
	} {
		card, ok := Opens(parley.Event{Session: aSession, Seq: 7, Body: c.body})
		wrong := card.ID != string(aSession)+c.id || card.Frame() != c.frame
		if ok != (c.id != "") || ok && (wrong || card.Fields() == nil) {
			t.Errorf("%T opens %+v, %v", c.body, card, ok)
		}
	}
	for _, c := range []struct {
		body           parley.EventBody
		id, frame, how string
	}{
		{parley.ApprovalDecided{Card: 6, Decision: parley.Deny}, ".6", "approval_closed", string(parley.Deny)},
		{parley.QuestionAnswered{Card: 6, Ending: "answered"}, ".6", "question_closed", string("answered")},
		{parley.ToolCallResolved{Call: 5, Resolution: parley.Rerun}, ".5", "tool_call_resolved", string(parley.Rerun)},
		{parley.RunFinished{}, "", "", ""},
	} {
		card, ok := Closes(parley.Event{Session: aSession, Seq: 7, Body: c.body})
		wrong := card.ID != string(aSession)+c.id || card.Frame() != c.frame
		if ok != (c.id != "") || ok && (wrong || card.How != c.how) {
			t.Errorf("%T closes %+v, %v", c.body, card, ok)
		}
	}
}

// TestAnswers checks how each kind of answer is read, and the texts of refusals.
func TestAnswers(t *testing.T) {
	id := `"id":"` + string(aSession) + `.7"`
	for _, c := range []struct {
		kind, data string
		do         parley.CommandBody
		wrong      string
	}{
		{"approval_response", `{` + id + `,"decision":"once","note":"n"}`,
			parley.DecideApproval{Card: 7, Decision: "once", Note: "n"}, ""},
		{"approval_response", `{` + id + `,"decision":1}`, nil, "decision must be a string"},
		{"approval_response", `{` + id + `,"note":{}}`, nil, "note must be a string"},
		{"approval_response", `{"id":7}`, nil, "id must be a string"},
		{"approval_response", `{"id":"x","decision":1}`, nil, "no card"},
		{"approval_response", `{}`, nil, "no card"},
		{"question_response", `{` + id + `}`, nil, "answers is missing"},
		{"question_response", `{` + id + `,"answers":["a"]}`, nil,
			"answers must be a list with a list of strings for each question"},
		{"tool_call_resolution", `{` + id + `,"resolution":"rerun","note":"n"}`,
			parley.ResolveToolCall{Call: 7, Resolution: "rerun", Note: "n"}, ""},
	} {
		o, err := ParseObject([]byte(c.data))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Answer(o, "id", "no card", Answers[c.kind])
		switch {
		case c.wrong != "":
			if err == nil || err.Error() != c.wrong || got.Do != nil {
				t.Errorf("%s %s: %+v, %v", c.kind, c.data, got, err)
			}
		case err != nil || got.Session != aSession || got.Do != c.do:
			t.Errorf("%s %s: %+v, %v", c.kind, c.data, got, err)
		}
	}
}
