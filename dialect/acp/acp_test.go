package acp

import (
	"testing"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
)

var views = map[string]View{"": {Notices: dialect.Notices{Console: "https://parley.example.com"}},
	"own": {Own: "acp-1-"}}

// TestTranscripts: an editor follows a session from its beginning.
func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[View]{
		Name:    "acp",
		Project: Project,
		Views:   views,
		Starts:  func([]parley.Event) []int { return []int{0} },
		Ignored: Ignored,
		Trees:   true,
	})
}

func TestPrompt(t *testing.T) {
	file := Block{Type: "resource"}
	file.Resource = &struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	}{"file:///a", "b"}
	got, err := Prompt([]Block{{Type: "text", Text: "look"}, {Type: "resource_link", Name: "c", URI: "file:///c"},
		file})
	if want := "look\n[c](file:///c)\n<file uri=\"file:///a\">\nb\n</file>"; got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range [][]Block{nil, {{Type: "text", Text: " \n"}}, {{Type: "image"}}} {
		if _, err := Prompt(bad); err == nil || err.Code != CodeInvalid {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestChoices: an option means what its card defines. Options that the card does not have mean nothing.
func TestChoices(t *testing.T) {
	approval := parley.ApprovalRequested{Similar: parley.SimilarRule{Text: "tests"}}
	for _, c := range []struct {
		ask    Ask
		option string
		want   Answer
	}{
		{Ask{Type: "approval_request", Ask: &Permission{Options: approvalOptions(approval)}}, "allow",
			Answer{Decision: parley.AllowOnce}},
		{Ask{Type: "approval_request", Ask: &Permission{Options: approvalOptions(approval)}}, "always",
			Answer{Decision: parley.AllowAlways}},
		{Ask{Type: "approval_request", Ask: &Permission{Options: approvalOptions(approval)}}, "similar",
			Answer{Decision: parley.AllowAlways, Scope: parley.ScopeSimilar}},
		{Ask{Type: "approval_request", Ask: &Permission{Options: approvalOptions(approval)}}, "deny",
			Answer{Decision: parley.Deny}},
		{Ask{Type: "approval_request", Ask: &Permission{Options: approvalOptions(approval)}}, "stop",
			Answer{Decision: parley.DenyAndStop}},
		{Ask{Type: "tool_call_unknown", Ask: &Permission{Options: resolutionOptions}}, "mark_done",
			Answer{Resolution: parley.MarkDone}},
	} {
		got, ok := c.ask.Choice(c.option)
		if !ok || got.Decision != c.want.Decision || got.Scope != c.want.Scope || got.Resolution != c.want.Resolution {
			t.Errorf("%s: %+v, %v", c.option, got, ok)
		}
	}
	question := Ask{Type: "question",
		Ask: &Permission{Options: answerOptions([]parley.Question{{Options: []parley.Option{
			{Label: "red"}, {Label: "blue"}}}})}}
	if got, ok := question.Choice("answer-1"); !ok || got.Answers[0][0] != "blue" {
		t.Errorf("%+v", got)
	}
	plain := Ask{Type: "approval_request", Ask: &Permission{Options: approvalOptions(parley.ApprovalRequested{})}}
	for _, option := range []string{"similar", "expired", "cancelled", ""} {
		if got, ok := plain.Choice(option); ok {
			t.Errorf("%q means %+v", option, got)
		}
	}
}
