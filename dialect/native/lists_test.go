package native

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/dialect/dialecttest"
	"parley/port"
)

const run3 = `{"id":"` + session + `.3","session":"` + session + `","root":"` + session +
	`","run":3,"agent":"coder","owner":"ann",` +
	`"parent":{"session":"` + session +
	`","run":1,"call":2,"depth":1},"request":"r1","waiting":true,"started_at":"2026-01-02T03:04:05Z"}`

func TestRuns(t *testing.T) {
	for path, want := range map[string]port.RunQuery{
		"":                    {Limit: 50},
		"?open=1&limit=7":     {Open: true, Limit: 7},
		"?agent=coder":        {Agent: "coder", Limit: 50},
		"?limit=9999":         {Limit: 200},
		"?session=" + session: {Session: dialecttest.Session, Limit: 50},
		"?parent=" + session + ".5": {Parent: &parley.Origin{Session: dialecttest.Session, Run: 5},
			Limit: 50},
		"?before=2026-01-02T15:04:05.000007Z": {Before: time.Date(2026, 1, 2, 15, 4, 5, 7000, time.UTC), Limit: 50},
		"/" + session + ".3":                  {Session: dialecttest.Session, Run: 3, Limit: 1},
	} {
		d := &door{}
		w := ask(d, "GET", "/api/v1/runs"+path, "")
		answer := run3
		if !strings.HasPrefix(path, "/") {
			answer = `{"runs":[` + run3 + `]}`
		}
		if w.Code != 200 || strings.TrimSpace(w.Body.String()) != answer {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if !reflect.DeepEqual(d.runQuery, want) {
			t.Errorf("%s asks for %+v, want %+v", path, d.runQuery, want)
		}
	}
	for path, want := range map[string]int{"?limit=x": 400, "?limit=0": 400, "?before=yesterday": 400, "?parent=x": 404,
		"/x": 404, "/" + session + ".404": 404} {
		if w := ask(&door{}, "GET", "/api/v1/runs"+path, ""); w.Code != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	d := &door{}
	if w := ask(d, "POST", "/api/v1/runs/"+session+".3/cancel", `{}`); w.Code != 202 || len(d.commands) != 1 ||
		d.commands[0].Do != (parley.CancelRun{Run: 3}) ||
		d.commands[0].Session != dialecttest.Session {
		t.Errorf("%d %s, %+v", w.Code, w.Body, d.commands)
	}
	if w := ask(d, "POST", "/api/v1/runs/3/cancel", `{}`); w.Code != 404 || len(d.commands) != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestCards(t *testing.T) {
	for path, kind := range map[string]parley.CardKind{"approvals": parley.CardApproval,
		"questions": parley.CardQuestion, "calls": parley.CardCall, "plans": parley.CardPlan} {
		d := &door{}
		w := ask(d, "GET", "/api/v1/"+path+"?status=unknown&session="+session+"&limit=3", "")
		want := `{"` + path + `":[{"id":"` + session + `.9","kind":"` + string(kind) + `","session":"` + session +
			`","root":"` + session +
			`","run":3,"seq":9,"call":8,"agent":"coder","owner":"ann","tool":"write_file","arguments":"{}","show":"write it","asked_at":"2026-01-02T03:04:05Z"}]}`
		if got := strings.TrimSpace(w.Body.String()); w.Code != 200 || got != want {
			t.Errorf("%s: %d\n%s\n%s", path, w.Code, got, want)
		}
		if d.cardQuery != (port.CardQuery{Session: dialecttest.Session, Kind: kind, Limit: 3}) {
			t.Errorf("%s asks for %+v", path, d.cardQuery)
		}
	}
	if w := ask(&door{}, "GET", "/api/v1/calls?status=running", ""); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestGrants(t *testing.T) {
	const path = "/api/v1/sessions/" + session + "/grants"
	d := &door{}
	want := `{"grants":[{"id":"7","scope":"similar","tool":"shell","text":"mkdir with other arguments","by":"ann",` +
		`"at":"2026-01-02T03:04:05Z"}]}`
	if w := ask(d, "GET", path, ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, name := range []string{"7", "x"} {
		ask(d, "DELETE", path+"/"+name, "")
	}
	want = fmt.Sprintf("%+v", []parley.CommandBody{parley.RevokeGrant{Grant: 7}, parley.RevokeGrant{}})
	var sent []parley.CommandBody
	for _, c := range d.commands {
		sent = append(sent, c.Do)
	}
	if got := fmt.Sprintf("%+v", sent); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	body := `{"decision":"always","scope":"similar","digest":"d"}`
	if w := ask(d, "POST", "/api/v1/approvals/"+session+".7", body); w.Code != 202 ||
		d.commands[2].Do != (parley.DecideApproval{Card: 7, Decision: "always", Scope: "similar", Digest: "d"}) {
		t.Errorf("%d %s %+v", w.Code, w.Body, d.commands)
	}
	d.refusal = parley.Errorf(parley.CodeNotFound, "There is no such session.")
	if w := ask(d, "GET", path, ""); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestPlans(t *testing.T) {
	const path = "/api/v1/sessions/" + session + "/plan"
	d := &door{}
	if w := ask(d, "GET", path, ""); w.Code != 200 ||
		strings.TrimSpace(w.Body.String()) != `{"items":[{"title":"one","status":"pending"}],"status":"planned"}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for body, want := range map[string]parley.CommandBody{
		`{"decision":"approve","fresh":true,"agent":"coder"}`: parley.DecidePlan{Decision: parley.ApprovePlan,
			Fresh: true, Agent: parley.AgentRef{Name: "coder"}},
		`{"decision":"edit","text":"other"}`: parley.DecidePlan{Decision: parley.EditPlan, Text: "other"},
		`{"decision":"reject"}`:              parley.DecidePlan{Decision: parley.RejectPlan},
	} {
		d := &door{}
		if w := ask(d, "POST", path, body); w.Code != 202 || len(d.commands) != 1 || d.commands[0].Do != want {
			t.Errorf("%s: %d %s, %+v", body, w.Code, w.Body, d.commands)
		}
	}
	for _, bad := range []string{`{"decision":1}`, `{"decision":"approve","fresh":"yes"}`, `{"text":[]}`} {
		if w := ask(d, "POST", path, bad); w.Code != 400 || len(d.commands) > 0 {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
	if w := ask(d, "POST", inputs, `{"content":"x","mode":"plan"}`); w.Code != 202 ||
		d.commands[0].Do.(parley.SubmitInput).Mode != parley.ModePlan {
		t.Errorf("%d %s, %+v", w.Code, w.Body, d.commands)
	}
}

func TestSettings(t *testing.T) {
	const want = `{"approval":"suggest","turns":50,"compact_at":0.8,"max_delegation_depth":2}`
	d := &door{}
	for _, method := range []string{"GET", "PATCH"} {
		if w := ask(d, method, "/api/v1/settings", `{"turns":7,"model":null}`); w.Code != 200 ||
			strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
	if len(d.commands) != 1 || d.commands[0].Session != parley.TenantSession {
		t.Fatalf("%+v", d.commands)
	}
	if values := d.commands[0].Do.(parley.ChangeSettings).Values; len(values) != 2 || string(values["turns"]) != "7" ||
		string(values["model"]) != "null" {
		t.Errorf("%s", values)
	}
}

func TestTimersAndEffects(t *testing.T) {
	const at = `"2026-01-02T03:04:05Z"`
	d := &door{}
	w := ask(d, "GET", "/api/v1/timers?status=pending&limit=3&session="+session, "")
	want := `{"timers":[{"id":"` + session + `.9","session":"` + session +
		`","timer":9,"run":3,"agent":"coder","owner":"ann","by":"tool","reason":"a reminder","status":"pending",` +
		`"why":"cooldown","fire_at":` + at + `,"created_at":` + at + `,"updated_at":` + at + `}]}`
	if got := strings.TrimSpace(w.Body.String()); w.Code != 200 || got != want ||
		d.timerQuery != (port.TimerQuery{Session: dialecttest.Session, Status: parley.TimerPending, Limit: 3}) {
		t.Errorf("%d %s, %+v", w.Code, got, d.timerQuery)
	}
	w = ask(d, "GET", "/api/v1/effects?status=completed", "")
	want = `{"effects":[{"id":"` + session + `.5","session":"` + session +
		`","effect":5,"run":3,"owner":"ann","type":"send_message","request":"r1","status":"completed","attempts":1,` +
		`"last_attempt_at":` + at + `,"created_at":` + at + `,"updated_at":` + at + `}]}`
	if got := strings.TrimSpace(w.Body.String()); w.Code != 200 || got != want ||
		d.effectQuery != (port.EffectQuery{Status: port.EffectCompleted, Limit: 50}) {
		t.Errorf("%d %s, %+v", w.Code, got, d.effectQuery)
	}
	for _, bad := range []string{"timers?status=fired", "timers?limit=0", "effects?status=sent", "effects?limit=x"} {
		if w := ask(d, "GET", "/api/v1/"+bad, ""); w.Code != 400 {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
	if w := ask(d, "DELETE", "/api/v1/timers/"+session+".9", ""); w.Code != 202 || len(d.commands) != 1 ||
		d.commands[0].Do != (parley.CancelTimer{Timer: 9}) {
		t.Errorf("%d %s, %+v", w.Code, w.Body, d.commands)
	}
	if w := ask(d, "GET", "/api/v1/timers/"+session+".9", ""); w.Code != 200 ||
		!strings.Contains(w.Body.String(), `{"id":"`+session+`.9",`) || d.timerQuery.Timer != 9 {
		t.Errorf("%d %s, %+v", w.Code, w.Body, d.timerQuery)
	}
	if w := ask(d, "GET", "/api/v1/effects/"+session+".5", ""); w.Code != 200 ||
		!strings.Contains(w.Body.String(), `{"id":"`+session+`.5",`) || d.effectQuery.Effect != 5 {
		t.Errorf("%d %s, %+v", w.Code, w.Body, d.effectQuery)
	}
	for _, unknown := range []string{"GET timers/9", "GET timers/" + session + ".404", "DELETE timers/9",
		"GET effects/x", "GET effects/" + session + ".404"} {
		method, path, _ := strings.Cut(unknown, " ")
		if w := ask(d, method, "/api/v1/"+path, ""); w.Code != 404 || len(d.commands) != 1 {
			t.Errorf("%s: %d %s", unknown, w.Code, w.Body)
		}
	}
	// Cancelling a timer that has fired gives another error than one that never existed.
	d.refusal = parley.Errorf(parley.CodeClosed, "It does not wait.")
	if w := ask(d, "DELETE", "/api/v1/timers/"+session+".9", ""); w.Code != 410 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
