package native

import (
	"encoding/json"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"parley"
	"parley/dialect/dialecttest"
	"parley/port"
)

// TestMissionsExplainMissingPrompts: answers about missions say why agents are not prompted.
func TestMissionsExplainMissingPrompts(t *testing.T) {
	h := handler(&door{})
	for _, note := range []string{"", "switched off"} {
		h.NoPrompts = note
		for _, method := range []string{"GET", "POST"} {
			r := httptest.NewRequest(method, "/api/v1/missions", strings.NewReader(`{"text":"x"}`))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.Routes()[method+" /api/v1/missions"](w, r)
			var answer struct{ Note *string }
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code >= 300 ||
				(answer.Note != nil) != (note != "") || note != "" && *answer.Note != note {
				t.Errorf("%s with %q: %d %s", method, note, w.Code, w.Body)
			}
		}
	}
}

func TestMissions(t *testing.T) {
	prompt, seconds := "Look.", int64(60)
	d := &door{missions: []port.MissionInfo{{ID: 2, Project: "/p", Text: "green", By: "ann", At: dialecttest.Begin}},
		choice: parley.IdleChoice{Prompt: &prompt, Seconds: &seconds}}
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
		leadsTo            parley.CommandBody
	}{
		{"GET", "/api/v1/missions", ``, 200,
			`{"missions":[{"id":2,"project":"/p","text":"green","agents":[],"by":"ann","created_at":"2026-01-02T03:04:05Z"}]}`, nil},
		{"POST", "/api/v1/missions",
			`{"text":"x","agents":[{"agent":"coder","idle_prompt":"Look.","idle_interval_secs":60}]}`, 201,
			`{"session"`,
			parley.SetMission{Project: "/p", Text: "x",
				Agents: []parley.MissionAgent{{Agent: "coder", IdleChoice: d.choice}}}},
		{"POST", "/api/v1/missions", `{"text":1}`, 400, `text must be`, nil},
		{"POST", "/api/v1/missions", `{"text":"x","agents":[1]}`, 400, `agents must be a list of objects.`, nil},
		{"POST", "/api/v1/missions", `{"text":"x","agents":[{"agent":"coder","idle_interval_secs":"1"}]}`, 400,
			`idle_interval_secs must be a whole number of seconds.`, nil},
		{"DELETE", "/api/v1/missions", ``, 200, `{"session"`, parley.ClearMission{Project: "/p"}},
		{"GET", "/api/v1/agents/coder/override", ``, 200, `{"idle_prompt":"Look.","idle_interval_secs":60}`, nil},
		{"POST", "/api/v1/agents/coder/override", `{"idle_prompt":"Look."}`, 200,
			`{"idle_prompt":"Look.","idle_interval_secs":60}`,
			parley.SetOverride{Project: "/p", Agent: "coder", IdleChoice: parley.IdleChoice{Prompt: &prompt}}},
		{"POST", "/api/v1/agents/coder/override", `{"idle_prompt":7}`, 400, `idle_prompt must be a string.`, nil},
	} {
		before := len(d.commands)
		if w := ask(d, c.method, c.path, c.body); w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
		switch made := d.commands[before:]; {
		case c.leadsTo == nil && len(made) != 0, c.leadsTo != nil &&
			(len(made) != 1 || made[0].Session != parley.TenantSession || !reflect.DeepEqual(made[0].Do, c.leadsTo)):
			t.Errorf("%s %s: %+v", c.method, c.path, made)
		}
	}
}
