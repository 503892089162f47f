package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"parley/dialect/native"
	"parley/dialect/openai"
)

// TestSummariesArePlain checks that the summaries of routes have no riddles.
func TestSummariesArePlain(t *testing.T) {
	operations := native.Operations()
	maps.Copy(operations, openai.Operations())
	for pattern, o := range operations {
		if riddles.MatchString(o.Summary) {
			t.Errorf("%s: %q", pattern, o.Summary)
		}
	}
}

// TestAnswersMatchTheDocument checks that the server's answers match the OpenAPI document.
func TestAnswersMatchTheDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kinds["sqlite"](t))
	defer w.stop()
	boss := visitor{w, "ann", "org_admin"}
	_, body, _ := boss.post("GET", "/api/openapi.json", "")
	doc, err := openapi3.NewLoader().LoadFromData([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	session, waits := uuid.NewString(), uuid.NewString()
	asked := boss.a2a("SendMessage", said("write it to a.txt", `,"contextId":"`+waits+`"`)).Result.Task
	boss.a2a("SendMessage", said("say hello", `,"contextId":"`+session+`"`))
	boss.a2a("SendMessage", said("ask me", `,"contextId":"`+session+`"`))
	boss.post("POST", "/api/v1/missions",
		`{"text":"Look.","agents":[{"agent":"helpful-assistant","idle_prompt":"Look."}]}`)
	boss.post("POST", "/api/v1/agents", `{"name":"made","instructions":"Help."}`)
	boss.post("PUT", "/api/v1/sessions/"+session+"/webhook", `{"url":"https://hooks.example.com/x"}`)
	card := asked.Status.Message.Parts[1].Data.ID
	var response struct{ ID string }
	_, body, _ = boss.post("POST", "/v1/responses", `{"model":"helpful-assistant","input":"say hello"}`)
	if err := json.Unmarshal([]byte(body), &response); err != nil {
		t.Fatal(err)
	}
	operations := native.Operations()
	maps.Copy(operations, openai.Operations())
	seen := 0
	for _, step := range []struct{ pattern, id, body string }{
		{"GET /api/v1/me", "", ""}, {"GET /api/v1/projects", "", ""}, {"GET /api/v1/skills", "", ""},
		{"GET /api/v1/models", "", ""}, {"GET /api/v1/mcp", "", ""}, {"GET /api/v1/settings", "", ""},
		{"PATCH /api/v1/settings", "", `{"turns":7}`}, {"GET /api/v1/agents", "", ""},
		{"GET /api/v1/agents/{id}", "helpful-assistant", ""},
		{"POST /api/v1/agents", "", `{"name":"x","instructions":"Help."}`},
		{"POST /api/v1/agents/{id}/stop", "spare", "{}"}, {"POST /api/v1/agents/{id}/start", "spare", "{}"},
		{"GET /api/v1/agents/{id}/override", "spare", ""},
		{"POST /api/v1/agents/{id}/override", "spare", `{"idle_interval_secs":60}`},
		{"DELETE /api/v1/agents/{id}", "made", ""},
		{"GET /api/v1/missions", "", ""}, {"POST /api/v1/missions", "", `{"text":"y"}`},
		{"DELETE /api/v1/missions", "", ""},
		{"GET /api/v1/sessions", "", ""}, {"GET /api/v1/search", "?q=hi", ""}, {"POST /api/v1/sessions", "", "{}"},
		{"GET /api/v1/sessions/{id}", session, ""},
		{"PUT /api/v1/sessions/{id}/marks", session, `{"pinned":true}`},
		{"PATCH /api/v1/sessions/{id}", session, `{"title":"x"}`}, {"GET /api/v1/sessions/{id}/grants", session, ""},
		{"GET /api/v1/sessions/{id}/webhook", session, ""},
		{"PUT /api/v1/sessions/{id}/webhook", session, `{"url":"https://hooks.example.com/y"}`},
		{"DELETE /api/v1/sessions/{id}/webhook", session, ""}, {"GET /api/v1/runs", "", ""},
		{"GET /api/v1/approvals", "", ""}, {"GET /api/v1/questions", "", ""}, {"GET /api/v1/calls", "", ""},
		{"GET /api/v1/plans", "", ""},
		{"POST /api/v1/approvals/{id}", card, `{"decision":"deny"}`}, {"GET /api/v1/timers", "", ""},
		{"GET /api/v1/effects", "", ""}, {"POST /api/v1/sessions/{id}/inputs", session, `{"content":"say on"}`},
		{"POST /api/v1/sessions/{id}/cancel", session, "{}"}, {"POST /api/v1/sessions/{id}/halt", session, "{}"},
		{"POST /api/v1/sessions/{id}/reopen", session, "{}"}, {"DELETE /api/v1/sessions/{id}", session, ""},
		{"GET /api/v1/audit/events", "", ""}, {"POST /api/v1/tickets", "", "{}"},
		{"POST /api/v1/users/{id}/revoke", "carol", "{}"},
		{"GET /v1/models", "", ""}, {"GET /v1/models/{id}", "helpful-assistant", ""},
		{"POST /v1/chat/completions", "",
			`{"model":"helpful-assistant","messages":[{"role":"user","content":"say hello"}]}`},
		{"POST /v1/responses", "", `{"model":"helpful-assistant","input":"say hello"}`},
		{"GET /v1/responses/{id}", response.ID, ""}, {"GET /v1/responses/{id}/input_items", response.ID, ""},
		{"DELETE /v1/responses/{id}", response.ID, ""},
	} {
		method, path, _ := strings.Cut(step.pattern, " ")
		o := doc.Paths.Find(path).GetOperation(method)
		if step.body != "" {
			matches(t, "the body of "+step.pattern, o.RequestBody.Value.Content["application/json"].Schema, step.body)
		}
		path = strings.ReplaceAll(path, "{id}", step.id)
		if strings.HasPrefix(step.id, "?") {
			path += step.id
		}
		status, answer, _ := boss.post(method, path, step.body)
		described := o.Responses.Value(fmt.Sprint(status))
		if status != operations[step.pattern].Status || described == nil {
			t.Errorf("%s is answered %d %s, which is not described", step.pattern, status, answer)
			continue
		}
		matches(t, step.pattern, described.Value.Content["application/json"].Schema, answer)
		seen++
	}
	for path, id := range map[string]string{"/api/v1/sessions/{id}": uuid.NewString(), "/v1/responses/{id}": "resp_x"} {
		status, refused, _ := boss.post("GET", strings.ReplaceAll(path, "{id}", id), "")
		if status != http.StatusNotFound {
			t.Errorf("%d %s", status, refused)
		}
		matches(t, "a refusal of "+path, doc.Paths.Find(path).Get.Responses.Default().Value.
			Content["application/json"].Schema, refused)
	}
	if seen < 47 {
		t.Errorf("%d answers were compared", seen)
	}
}

func matches(t *testing.T, what string, described *openapi3.SchemaRef, text string) {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Errorf("%s: %v in %s", what, err, text)
		return
	}
	if err := described.Value.VisitJSON(value); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
