package eventbus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley"
	"parley/port"
)

func ptr[T any](v T) *T { return &v }

func TestMissionsAreListed(t *testing.T) {
	d := golden(t)
	h := handler(d)
	at := time.Unix(1767323045, 999e6).UTC()
	h.NoPrompts = "switched off"
	wants(t, h, "GET", "/api/mission", ``, 200, `{"active":false,"note":"switched off"}`)
	h.NoPrompts = ""
	wants(t, h, "GET", "/api/mission", ``, 200, `{"active":false}`)
	wants(t, h, "GET", "/api/missions?project_root=/p", ``, 200, `{"missions":[]}`)
	d.missions = []port.MissionInfo{{ID: 2, Text: "old", By: "ann", At: at, Ended: at.Add(time.Minute)}}
	wants(t, h, "GET", "/api/mission", ``, 200, `{"active":false}`)
	d.missions = append([]port.MissionInfo{{ID: 9, Text: "new", By: "ann", At: at, Agents: []parley.MissionAgent{
		{Agent: "coder", IdleChoice: parley.IdleChoice{Prompt: ptr("Run the tests."), Seconds: ptr[int64](60)}},
		{Agent: "other"}}}}, d.missions...)
	active := `{"text":"new","created_at":1767323045,"active":true,"agents":[{"id":"coder","idle_prompt":"Run the tests.","idle_interval_secs":60},{"id":"other","idle_prompt":null,"idle_interval_secs":null}]}`
	wants(t, h, "GET", "/api/mission?project_root=%2Fp", ``, 200, active)
	wants(t, h, "GET", "/api/missions", ``, 200,
		`{"missions":[`+active+
			`,{"text":"old","created_at":1767323045,"active":false,"agents":[],"ended_at":1767323105}]}`)
	h.NoPrompts = "switched off"
	wants(t, h, "GET", "/api/mission", ``, 200, active[:len(active)-1]+`,"note":"switched off"}`)
	for _, path := range []string{"/api/mission", "/api/missions", "/api/agent-override?agent_id=coder"} {
		wants(t, h, "GET", path, ``, 403, `{"error":"You may not do this: it needs agents:read."}`, "X-User: clumsy")
		wants(t, h, "GET", path, ``, 401, `{"error"`, "X-User: nobody")
	}
	wants(t, h, "GET", "/api/mission?project_root=/q", ``, 400, `{"error":"project_root: There is no project \"/q\"`)
	wants(t, h, "GET", "/api/missions?project_root=/q", ``, 400,
		`{"error":"project_root: There is no project \"/q\"`)

	wants(t, h, "GET", "/api/agent-override?agent_id=coder&project_root=/p", ``, 200,
		`{"agent_id":"coder","idle_prompt":null,"idle_interval_secs":null}`)
	d.choice = parley.IdleChoice{Prompt: ptr(""), Seconds: ptr[int64](90)}
	wants(t, h, "GET", "/api/agent-override?agent_id=coder", ``, 200,
		`{"agent_id":"coder","idle_prompt":"","idle_interval_secs":90}`)
	wants(t, h, "GET", "/api/agent-override", ``, 400, `{"error":"agent_id is missing."}`)
	wants(t, h, "GET", "/api/agent-override?agent_id=nemo", ``, 404, `{"error":"There is no agent \"nemo\"."}`)
	wants(t, h, "GET", "/api/agent-override?agent_id=coder&project_root=/q", ``, 400,
		`{"error":"project_root: There is no`)
	for _, name := range []string{"..", "a%2Fb", "a%5Cb", "%20"} {
		wants(t, h, "GET", "/api/agent-override?agent_id="+name, ``, 400, `{"error":"agent_id`)
	}
}

func TestMissionsAreChanged(t *testing.T) {
	d := golden(t)
	h := handler(d)
	leadsTo := func(want parley.CommandBody) {
		t.Helper()
		c := d.commands[len(d.commands)-1]
		if diff := cmp.Diff(want, c.Do); diff != "" || c.Session != parley.TenantSession || c.Via != parley.ViaHTTP ||
			c.ID != "k1" {
			t.Errorf("%+v\n%s", c, diff)
		}
	}
	key := "Idempotency-Key: k1"
	wants(t, h, "POST", "/api/mission",
		`{"project_root":"/p","text":"Keep it green.","agents":[{"id":"coder","idle_prompt":"Test.","idle_interval_secs":60},{"id":"other","idle_prompt":null}]}`, 200, `{"ok":true}`, key)
	leadsTo(parley.SetMission{Project: "/p", Text: "Keep it green.", Agents: []parley.MissionAgent{
		{Agent: "coder", IdleChoice: parley.IdleChoice{Prompt: ptr("Test."), Seconds: ptr[int64](60)}},
		{Agent: "other"}}})
	h.NoPrompts = "switched off"
	wants(t, h, "POST", "/api/mission", `{"text":"x","agents":null}`, 200, `{"note":"switched off","ok":true}`, key)
	leadsTo(parley.SetMission{Project: "/p", Text: "x"})
	clear := parley.ClearMission{Project: "/p"}
	for _, r := range [][2]string{{"/api/mission", ``}, {"/api/mission?project_root=/p", ``},
		{"/api/mission", `{"project_root":"/p"}`}, {"/api/mission?project_root=/p", `{}`}} {
		before := len(d.commands)
		wants(t, h, "DELETE", r[0], r[1], 200, `{"ok":true}`, key, "Content-Type: application/json")
		if leadsTo(clear); len(d.commands) != before+1 {
			t.Errorf("%v: %d commands", r, len(d.commands)-before)
		}
	}
	wants(t, h, "POST", "/api/agent-override",
		`{"agent_id":"coder","idle_prompt":"Look.","idle_interval_secs":45,"project_root":"/p"}`, 200,
		`{"ok":true,"agent_id":"coder","idle_prompt":"Look.","idle_interval_secs":45}`, key)
	leadsTo(parley.SetOverride{Project: "/p", Agent: "coder", IdleChoice: parley.IdleChoice{Prompt: ptr("Look."),
		Seconds: ptr[int64](45)}})
	wants(t, h, "POST", "/api/agent-override", `{"agent_id":"coder","idle_prompt":null}`, 200,
		`{"ok":true,"agent_id":"coder","idle_prompt":null,"idle_interval_secs":null}`, key)
	leadsTo(parley.SetOverride{Project: "/p", Agent: "coder"})

	before := len(d.commands)
	for _, c := range []struct{ method, path, body, says string }{
		{"POST", "/api/mission", ``, "text is missing."},
		{"POST", "/api/mission", `{"text":" "}`, "text is missing."},
		{"POST", "/api/mission", `{"text":7}`, "text must be a string."},
		{"POST", "/api/mission", `{"text":"x"`, "the message is not valid JSON."},
		{"POST", "/api/mission", `{"text":"x","text":"y"}`, ""},
		{"POST", "/api/mission", `{"text":"x","project_root":"/q"}`, `project_root: There is no project`},
		{"POST", "/api/mission?project_root=/p", `{"text":"x","project_root":"/q"}`,
			`project_root: There is no project`},
		{"POST", "/api/mission", `{"text":"x","agents":{}}`, "agents must be a list of objects."},
		{"POST", "/api/mission", `{"text":"x","agents":["coder"]}`, "agents[0] must be an object with an id."},
		{"POST", "/api/mission", `{"text":"x","agents":[{}]}`, "agents[0]: id is missing."},
		{"POST", "/api/mission", `{"text":"x","agents":[{"id":"a"},{"id":"b","idle_interval_secs":"60"}]}`,
			"agents[1]: idle_interval_secs must be a whole number of seconds."},
		{"DELETE", "/api/mission?project_root=/q", ``, `project_root: There is no project`},
		{"DELETE", "/api/mission", `{"project_root":"/q"}`, `project_root: There is no project`},
		{"DELETE", "/api/mission?project_root=/p", `{"project_root":"/q"}`, `project_root: There is no project`},
		{"DELETE", "/api/mission", `nonsense`, "the message is not valid JSON."},
		{"POST", "/api/agent-override", `{}`, "agent_id is missing."},
		{"POST", "/api/agent-override", `{"agent_id":"../coder"}`, "agent_id:"},
		{"POST", "/api/agent-override", `{"agent_id":"a\\b"}`, "agent_id:"},
		{"POST", "/api/agent-override", `{"agent_id":"coder","idle_prompt":["x"]}`, "idle_prompt must be a string."},
		{"POST", "/api/agent-override", `{"agent_id":"coder","idle_interval_secs":1.5}`, "idle_interval_secs must be " +
			"a whole number of seconds."},
		{"POST", "/api/agent-override", `{"agent_id":"coder","idle_interval_secs":1e400}`,
			"idle_interval_secs must be a whole number of seconds."},
	} {
		wants(t, h, c.method, c.path, c.body, 400, `{"error":"`+c.says, "Content-Type: application/json")
	}
	wants(t, h, "DELETE", "/api/mission", `project_root=/p`, 400,
		`{"error":"Send the header Content-Type: application/json."}`,
		"Content-Type: application/x-www-form-urlencoded")
	if len(d.commands) != before {
		t.Errorf("what was refused led to %+v", d.commands[before:])
	}
}
