package demo

import (
	"reflect"
	"testing"

	"parley"
	"parley/port"
)

func TestCallingAToolOfAServer(t *testing.T) {
	request := func(input string, results ...string) port.ModelRequest {
		r := port.ModelRequest{Tools: []parley.ToolSpec{{Name: "files__read"}},
			Messages: []parley.Message{{Role: parley.RoleUser, Text: input}}}
		for i, result := range results {
			id := parley.CallID(i + 1)
			r.Messages = append(r.Messages,
				parley.Message{Role: parley.RoleAssistant, Calls: []parley.MessageCall{{ID: id, Name: "files__read"}}},
				parley.Message{Role: parley.RoleTool, Call: id, Text: result})
		}
		return r
	}
	for _, test := range []struct {
		request port.ModelRequest
		want    []step
	}{
		{request(`call files__read {"path": "a b"}`),
			[]step{text("I call files__read."), call{Name: "files__read", Arguments: `{"path":"a b"}`,
				Provider: "demo-1"}}},
		{request(`Call files__read.`),
			[]step{text("I call files__read."), call{Name: "files__read", Arguments: `{}`, Provider: "demo-1"}}},
		{request(`call files__read {"path}`), []step{text("What stands behind the name of the tool is not JSON.")}},
		{request(`call other__read {}`),
			[]step{text("For that I would call `other__read`, but this agent does not offer it to me.")}},
		{request(`call files__read {}`, "its content"), []step{text("It answered:\n\nits content")}},
	} {
		if got := scriptFor(test.request).steps; !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: %#v, want %#v", test.request.Messages[0].Text, got, test.want)
		}
	}
}
