package native

import (
	"context"
	"strings"
	"testing"

	"parley"
	"parley/dialect/dialecttest"
	"parley/port"
)

func (d *door) TurnRequest(_ context.Context, _ port.Principal, id parley.SessionID, run parley.RunID, number int,
) (port.TurnRequest, error) {
	if id != dialecttest.Session || run != 3 || number != 2 {
		return port.TurnRequest{}, parley.Errorf(parley.CodeNotFound, "There is no such turn.")
	}
	return port.TurnRequest{Agent: "coder", ModelRequest: port.ModelRequest{Model: "demo",
		Instructions: "Be brief.",
		Messages: []parley.Message{
			{Role: parley.RoleUser, Text: "look", Seq: 4,
				Images: []parley.Image{{Type: "image/png", Data: []byte("four")}}},
			{Role: parley.RoleAssistant, Thinking: "hm", Seq: 7, Calls: []parley.MessageCall{{ID: 8, Name: "read_file",
				Arguments: "{}"}}},
			{Role: parley.RoleTool, Call: 8, Text: "text", Seq: 7}},
		Tools: []parley.ToolSpec{{Name: "read_file", Description: "reads", Parameters: `{"type":"object"}`},
			{Name: "odd", Parameters: "{"}}},
		Then: parley.PromptDigest{Instructions: "a", Tools: "b"},
		Now:  parley.PromptDigest{Instructions: "a", Tools: "c"}}, d.refusal
}

func TestTurnRequest(t *testing.T) {
	const want = `{"agent":"coder","model":"demo","instructions":"Be brief.","messages":[` +
		`{"role":"user","text":"look","images":[{"media_type":"image/png","bytes":4}],"seq":4},` +
		`{"role":"assistant","text":"","thinking":"hm","calls":[{"id":8,"name":"read_file","arguments":"{}"}],"seq":7},` +
		`{"role":"tool","text":"text","call":8,"seq":7}],"tools":[` +
		`{"name":"read_file","description":"reads","parameters":{"type":"object"}},` +
		`{"name":"odd","description":"","parameters":null}],"instructions_match":"same","tools_match":"changed"}`
	w := ask(&door{}, "GET", "/api/v1/runs/"+session+".3/turns/2/request", "")
	if got := strings.TrimSpace(w.Body.String()); w.Code != 200 || got != want {
		t.Errorf("%d\n%s\n%s", w.Code, got, want)
	}
	for _, path := range []string{session + ".3/turns/9", session + ".3/turns/0", session + ".3/turns/x", "x/turns/1"} {
		if w := ask(&door{}, "GET", "/api/v1/runs/"+path+"/request", ""); w.Code != 404 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
