package eventbus

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

// wants checks the status and the beginning of an answer.
func wants(t *testing.T, h *Handler, method, path, body string, status int, begins string, headers ...string) {
	t.Helper()
	got, answer := ask(h, method, path, body, headers...)
	if got != status || !strings.HasPrefix(answer, begins) {
		t.Errorf("%s %s %.200s: %d %.300s, want %d %s", method, path, body, got, answer, status, begins)
	}
}

var png = "iVBORw0KGgo="

// elsewhere begins the refusal of a request that names another project.
const elsewhere = `{"error":"project_root: the session belongs to another project`

// TestAnotherProject: a request that names a project has no effect on a session of another one.
func TestAnotherProject(t *testing.T) {
	d := golden(t)
	h := handler(d)
	here := `{"project_root":"/r","session_id":"` + string(dialecttest.Session) + `"`
	for path, body := range map[string]string{"/api/chat/clear": here + `}`, "/api/plan/approve": here + `}`,
		"/api/plan/reject": here + `}`, "/api/plan/edit": here + `,"text":"x"}`} {
		wants(t, h, "POST", path, body, 400, elsewhere)
	}
	wants(t, h, "GET", "/api/history?project_root=/r&session_id="+string(dialecttest.Session), "", 400, elsewhere)
	wants(t, h, "POST", "/api/ask-user-response", `{"project_root":"/r","question_id":"`+string(dialecttest.Session)+
		`.3","answers":["x"]}`, 400, elsewhere)
	if len(d.commands) > 0 {
		t.Errorf("%+v", d.commands)
	}
}

func TestChat(t *testing.T) {
	d := golden(t)
	h := handler(d)
	here := `"session_id":"` + string(dialecttest.Session) + `"`
	// The log of the door decides whether a run has started.
	wants(t, h, "POST", "/api/chat", `{"message":"hello",`+here+`}`, 200, `{"status":"started",`+here+`,"run_id":"run-`+
		string(dialecttest.Session)+`-3"}`)
	wants(t, h, "POST", "/api/chat", `{"message":"hello","session_id":"new"}`, 200, `{"status":"queued","session_id":"`)
	wants(t, h, "POST", "/api/chat", `{"message":"@explorer go","agent_id":"coder","project_root":"/p"}`, 200,
		`{"status":"queued"`)
	if do := d.commands[len(d.commands)-1].Do.(parley.SubmitInput); do.Agent.Name != "explorer" || do.Content != "go" ||
		do.Busy != parley.Steer || !do.Open {
		t.Errorf("%+v", do)
	}
	before := len(d.commands)
	left := 0
	h.ThreadChat = func(w http.ResponseWriter, _ *http.Request, visit port.Visit, o dialect.Object) {
		visit.Leave()
		left++
		dialect.WriteJSON(w, 200, o)
	}
	wants(t, h, "POST", "/api/chat", `{"threadId":"t","message":"x"}`, 200, `{"message":"x","threadId":"t"}`)
	wants(t, h, "POST", "/api/chat", `{"threadId":"t","message":"x"}`, 401, `{"error":"Who are you?"}`,
		"X-User: nobody")
	wants(t, h, "POST", "/api/chat", `{"threadId":null,"message":" "}`, 400, `{"error":"message is empty."}`)
	if left != 1 {
		t.Errorf("%d requests were handed to the thread chat, want 1", left)
	}
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		``:                                    {400, "message is missing."},
		`{}`:                                  {400, "message is missing."},
		`{"message":null}`:                    {400, "message is missing."},
		`{"message":" "}`:                     {400, "message is empty."},
		`{"message":["x"]}`:                   {400, "message must be a string."},
		`{"message":"x"`:                      {400, "the message is not valid JSON."},
		`{"message":"x","agent_id":"nemo"}`:   {404, `There is no agent \"nemo\".`},
		`{"message":"@nemo x"}`:               {404, `There is no agent \"nemo\".`},
		`{"message":"x","mode":"fast"}`:       {400, "mode must be plan"},
		`{"message":"x","project_root":"/q"}`: {400, `project_root: There is no project \"/q\"`},
		`{"message":"x","session_id":"` + strings.Repeat("s", 257) +
			`"}`: {400, "session_id is longer than 256 bytes."},
		`{"message":"x","images":["` + strings.Join(slices.Repeat([]string{png}, 5), `","`) +
			`"]}`: {400, "images: at most 4."},
		`{"message":"x","images":["` + base64.StdEncoding.EncodeToString(
			append([]byte("GIF89a"), make([]byte, dialect.MaxImageBytes)...)) + `"]}`: {413,
			"images: more than 4194304 bytes in all."},
		`{"message":"` + strings.Repeat("x", dialect.MaxMessage) + `"}`: {413, "The body is longer than"},
	} {
		wants(t, h, "POST", "/api/chat", body, want.status, `{"error":"`+want.says)
	}
	wants(t, h, "POST", "/api/chat", `{"message":"x"}`, 403,
		`{"error":"You may not do this: it needs agents:message."}`, "X-User: clumsy")
	wants(t, h, "POST", "/api/chat", `{"message":"x"}`, 401, `{"error":"Who are you?"}`, "X-User: nobody")
	wants(t, h, "POST", "/api/chat", `message=x`, 400, `{"error":"Send the header Content-Type: application/json."}`,
		"Content-Type: application/x-www-form-urlencoded")
	if len(d.commands) != before {
		t.Errorf("what was refused led to %+v", d.commands[before:])
	}
	// Four images of a megabyte are accepted.
	picture := base64.StdEncoding.EncodeToString(append([]byte("GIF89a"), make([]byte, dialect.MaxImageBytes/4-6)...))
	wants(t, h, "POST", "/api/chat", `{"message":"x","images":["`+strings.Join(slices.Repeat([]string{picture}, 4),
		`","`)+`"]}`, 200, `{"status"`)
}

// TestNamesOfSessions: an id that cannot be used becomes a name, and the name of a deleted session leads to another
// one. The same key opens the same session.
func TestNamesOfSessions(t *testing.T) {
	gone := parley.Errorf(parley.CodeNotFound, "There is no such session.")
	ids, err := sessionsOf(ann, string(otherSession))
	if err != nil || len(ids) != 1+16 || ids[0] != otherSession {
		t.Fatalf("%v, %v", ids, err)
	}
	d := &door{answers: map[parley.SessionID]error{ids[0]: gone, ids[1]: gone}}
	h := handler(d)
	wants(t, h, "POST", "/api/chat", `{"message":"x","session_id":"`+string(otherSession)+`"}`, 200,
		`{"status":"queued","session_id":"`+string(ids[2])+`"}`)
	wants(t, h, "POST", "/api/chat", `{"message":"x","session_id":" s-one "}`, 200,
		`{"status":"queued","session_id":"s-one"}`)
	if do := d.commands[len(d.commands)-1].Do.(parley.SubmitInput); do.Name != "s-one" {
		t.Errorf("%+v", do)
	}
	wants(t, h, "POST", "/api/chat/clear", `{"session_id":"`+string(otherSession)+`"}`, 200, `{"ok":true}`)
	if _, deletes := d.commands[len(d.commands)-1].Do.(parley.DeleteSession); !deletes ||
		d.commands[len(d.commands)-1].Session != ids[2] {
		t.Errorf("%+v", d.commands)
	}
	for _, id := range ids {
		d.answers[id] = gone
	}
	wants(t, h, "POST", "/api/chat/clear", `{"session_id":"`+string(otherSession)+`"}`, 404,
		`{"error":"There is no such session."}`)
	wants(t, h, "POST", "/api/chat/clear", `{}`, 400, `{"error":"session_id is missing."}`)
	if tenant, _ := sessionsOf(ann, string(parley.TenantSession)); slices.Contains(tenant, parley.TenantSession) {
		t.Error("the tenant's own session is talked to")
	}
	one, first := ask(h, "POST", "/api/chat", `{"message":"x"}`, "Idempotency-Key: k")
	_, second := ask(h, "POST", "/api/chat", `{"message":"x"}`, "Idempotency-Key: k")
	_, other := ask(h, "POST", "/api/chat", `{"message":"x"}`)
	if one != 200 || first != second || first == other {
		t.Errorf("%s\n%s\n%s", first, second, other)
	}
	bob, _ := sessionsOf(port.Principal{ID: "bob", Tenant: "acme"}, "x")
	mine, _ := sessionsOf(ann, "x")
	if slices.ContainsFunc(bob, func(id parley.SessionID) bool { return slices.Contains(mine, id) }) {
		t.Error("two people share a name")
	}
}

func TestAnswers(t *testing.T) {
	event := func(body parley.EventBody) parley.Event {
		return parley.Event{Session: dialecttest.Session, Seq: 7, Body: body}
	}
	approval := event(parley.ApprovalRequested{Call: 6, Digest: "d"})
	asked := event(parley.QuestionAsked{Questions: []parley.Question{
		{Question: "Which?", Options: []parley.Option{{Label: "A"}, {Label: "B"}}},
		{Question: "Which ones?", Options: []parley.Option{{Label: "C"}, {Label: "D"}}, MultiSelect: true}}})
	lost := event(parley.ToolCallRequested{Name: "shell"})
	for _, c := range []struct {
		to      parley.Event
		answers string
		want    any // a command, or a part of a refusal
	}{
		{approval, `[{"question_index":0,"selected":["Allow once"],"custom_text":null}]`,
			parley.DecideApproval{Card: 7, Decision: parley.AllowOnce, Digest: "d"}},
		{approval, `[{"selected":["Always allow exactly this"]}]`,
			parley.DecideApproval{Card: 7, Decision: parley.AllowAlways, Digest: "d"}},
		{approval, `[{"question_index":0,"selected":["Deny"],"custom_text":"use trash"}]`,
			parley.DecideApproval{Card: 7, Decision: parley.Deny, Note: "use trash", Digest: "d"}},
		{approval, `["Always allow similar"]`,
			parley.DecideApproval{Card: 7, Decision: parley.AllowAlways, Scope: parley.ScopeSimilar, Digest: "d"}},
		{approval, `["Deny and stop the run"]`,
			parley.DecideApproval{Card: 7, Decision: parley.DenyAndStop, Digest: "d"}},
		{approval, `["Explain"]`, parley.ExplainApproval{Card: 7}},
		{approval, `["Deny"]`, parley.DecideApproval{Card: 7, Decision: parley.Deny, Digest: "d"}},
		{approval, `["yes"]`, "answers[0].selected must be one of"},
		{approval, `["Allow once","Deny"]`, "answers must be one"},
		{approval, `[]`, "answers must be one"},
		{approval, `[{"selected":[]}]`, "answers[0].selected must be one of"},
		{approval, `[{"selected":["allow once"]}]`, "answers[0].selected must be one of"},
		{approval, `[{"selected":["Allow once","Deny"]}]`, "answers[0].selected must be one of"},
		{approval, `[{"custom_text":"yes"}]`, "answers[0].selected must be one of"},
		{approval, `[{"question_index":1,"selected":["Deny"]}]`, "answers must be one"},
		{asked, `[{"question_index":1,"selected":["D","C"],"custom_text":""},{"question_index":0,"selected":["A"],"custom_text":"but"}]`, parley.AnswerQuestion{Card: 7, Answers: [][]string{{"A", "but"}, {"D", "C"}}}},
		{asked, `[{"selected":["B"]},{"custom_text":"neither"}]`,
			parley.AnswerQuestion{Card: 7, Answers: [][]string{{"B"}, {"neither"}}}},
		{asked, `["B","D"]`, parley.AnswerQuestion{Card: 7, Answers: [][]string{{"B"}, {"D"}}}},
		{asked, `["neither",{"selected":["C","D"]}]`,
			parley.AnswerQuestion{Card: 7, Answers: [][]string{{"neither"}, {"C", "D"}}}},
		{asked, `["A"]`, "answers: question 1 is not answered"},
		{asked, `["A","C","C"]`, "answers[2].question_index"},
		{asked, `["A"," "]`, "answers[1] is empty"},
		{asked, `[{"selected":["A"]}]`, "answers: question 1 is not answered"},
		{asked, `[{"selected":["A","B"]},{"selected":["C"]}]`, "answers[0].selected: only one can be chosen"},
		{asked, `[{"selected":["C"]},{"selected":["C"]}]`, `answers[0].selected: "C" is no option`},
		{asked, `[{"question_index":0,"selected":["A"]},{"question_index":0,"selected":["A"]}]`,
			"answers[1].question_index"},
		{asked, `[{"question_index":2,"selected":["A"]}]`, "answers[0].question_index"},
		{asked, `[{"question_index":-1,"selected":["A"]}]`, "answers[0].question_index"},
		{asked, `[{"selected":[],"custom_text":" "}]`, "answers[0] is empty"},
		{lost, `[{"selected":["It was done"],"custom_text":"I looked"}]`,
			parley.ResolveToolCall{Call: 7, Resolution: parley.MarkDone, Note: "I looked"}},
		{lost, `[{"selected":["Run it again"]}]`, parley.ResolveToolCall{Call: 7, Resolution: parley.Rerun}},
		{lost, `[{"selected":["Stop the run"]}]`, parley.ResolveToolCall{Call: 7, Resolution: parley.Abandon}},
		{lost, `["Stop the run"]`, parley.ResolveToolCall{Call: 7, Resolution: parley.Abandon}},
		{lost, `[{"selected":["Deny"]}]`, "answers[0].selected must be one of"},
		{event(parley.TurnStarted{}), `[{"selected":["Deny"]}]`, "Unknown question_id"},
	} {
		var answers []given
		if err := json.Unmarshal([]byte(c.answers), &answers); err != nil {
			t.Fatal(err)
		}
		got, err := answerTo(c.to, answers)
		if words, refused := c.want.(string); refused {
			if err == nil || !strings.Contains(parley.MessageOf(err), words) {
				t.Errorf("%T %s: %+v, %v", c.to.Body, c.answers, got, err)
			}
		} else if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%T %s: %+v, %v", c.to.Body, c.answers, got, err)
		}
	}
}

func TestAskUserResponse(t *testing.T) {
	d := golden(t)
	h := handler(d)
	id := string(otherSession) + ".7" // both questions are open
	right := `,"answers":[{"selected":["SQLite"]},{"selected":["Audit"]}]}`
	wants(t, h, "POST", "/api/ask-user-response", `{"question_id":"`+id+`"`+right, 200, `{"status":"ok"}`)
	if c := d.commands[len(d.commands)-1]; c.Session != otherSession ||
		!reflect.DeepEqual(c.Do, parley.AnswerQuestion{Card: 7, Answers: [][]string{{"SQLite"}, {"Audit"}}}) {
		t.Errorf("%+v", c)
	}
	wants(t, h, "POST", "/api/ask-user-response", `{"question_id":"`+id+`","answers":["Postgres","Audit"]}`, 200,
		`{"status":"ok"}`)
	for body, want := range map[string]string{
		`{"question_id":"` + id + `"}`:              `400 {"error":"answers is missing."}`,
		`{"question_id":"` + id + `","answers":7}`:  `400 {"error":"answers must be a list`,
		`{"question_id":"` + id + `","answers":[]}`: `400 {"error":"answers: question 0`,
		`{` + right[1:]:              `400 {"error":"question_id is missing."}`,
		`{"question_id":"x"` + right: `404 {"error":"Unknown question_id"}`,
		`{"question_id":"` + string(otherSession) + `.2"` + right:  `404 {"error":"Unknown question_id"}`,
		`{"question_id":"` + string(otherSession) + `.99"` + right: `404 {"error":"Unknown question_id"}`,
		`{"question_id":"` + string(childSession) + `.7"` + right:  `404 {"error":"Unknown question_id"}`,
	} {
		if status, answer := ask(h, "POST", "/api/ask-user-response", body); !strings.HasPrefix(
			fmt.Sprint(status, " ", answer), want) {
			t.Errorf("%s: %d %s, want %s", body, status, answer, want)
		}
	}
	d.answers = map[parley.SessionID]error{otherSession: parley.Errorf(parley.CodeClosed,
		"This was already answered, has expired or never was.")}
	wants(t, h, "POST", "/api/ask-user-response", `{"question_id":"`+id+`"`+right, 410,
		`{"error":"This was already answered`)
	wants(t, h, "POST", "/api/ask-user-response", `{"question_id":"`+id+`"`+right, 403, `{"error":"You may not`,
		"X-User: clumsy")
}

func TestPlans(t *testing.T) {
	d := golden(t)
	h := handler(d)
	body := `{"session_id":"` + string(otherSession) + `","agent_id":"coder","clear_context":true,"text":"mine"}`
	for path, want := range map[string]struct {
		do     parley.DecidePlan
		answer string
	}{
		"approve": {parley.DecidePlan{Decision: parley.ApprovePlan, Agent: parley.AgentRef{Name: "coder"}, Fresh: true},
			`{"status":"approved"}`},
		"reject": {parley.DecidePlan{Decision: parley.RejectPlan, Agent: parley.AgentRef{Name: "coder"}, Fresh: true},
			`{"status":"rejected"}`},
		"edit": {parley.DecidePlan{Decision: parley.EditPlan, Agent: parley.AgentRef{Name: "coder"}, Fresh: true,
			Text: "mine"}, `{"ok":true}`},
	} {
		wants(t, h, "POST", "/api/plan/"+path, body, 200, want.answer)
		if got := d.commands[len(d.commands)-1].Do; !reflect.DeepEqual(got, want.do) {
			t.Errorf("%s: %+v", path, got)
		}
		wants(t, h, "POST", "/api/plan/"+path, `{}`, 400, `{"error":"session_id is missing."}`)
	}
	wants(t, h, "POST", "/api/plan/edit", `{"session_id":"x"}`, 400, `{"error":"text is missing."}`)
	wants(t, h, "POST", "/api/plan/approve", `{"session_id":"x","clear_context":"yes"}`, 400,
		`{"error":"clear_context must be true or false."}`)
	wants(t, h, "POST", "/api/plan/approve", `{"session_id":"x"}`, 404, `{"error":"No pending plan"}`)
	before := len(d.commands)
	wants(t, h, "POST", "/api/plan/approve", strings.Replace(body, "coder", "nobody", 1), 404,
		`{"error":"There is no agent`)
	d.answers = map[parley.SessionID]error{otherSession: parley.Errorf(parley.CodeNotFound, "No pending plan")}
	wants(t, h, "POST", "/api/plan/approve", body, 404, `{"error":"No pending plan"}`)
	if len(d.commands) != before+1 {
		t.Errorf("it was looked for elsewhere: %+v", d.commands[before:])
	}
}

// runsOfATree returns a run that has delegated to two others. One of them has
// delegated again; the other has ended.
func runsOfATree() []port.RunInfo {
	at := func(s int) time.Time { return dialecttest.Begin.Add(time.Duration(s) * time.Second) }
	below := func(of parley.SessionID, run parley.RunID) *parley.Origin {
		return &parley.Origin{Session: of, Run: run}
	}
	grandchild := parley.SessionID("44444444-4444-4444-8444-000000000003")
	return []port.RunInfo{ // newest first
		{Session: grandchild, Root: dialecttest.Session, Run: 3, Agent: "explorer", Parent: below(otherSession, 3),
			StartedAt: at(9), Waiting: true},
		{Session: otherSession, Root: dialecttest.Session, Run: 3, Agent: "explorer",
			Parent: below(dialecttest.Session, 5), StartedAt: at(8)},
		{Session: childSession, Root: dialecttest.Session, Run: 3, Agent: "explorer",
			Parent: below(dialecttest.Session, 5), StartedAt: at(7), EndedAt: at(8), Outcome: parley.Interrupted},
		{Session: dialecttest.Session, Root: dialecttest.Session, Run: 5, Agent: "coder", StartedAt: at(6)},
	}
}

func TestRuns(t *testing.T) {
	d := &door{runs: runsOfATree()}
	h := handler(d)
	top := "run-" + string(dialecttest.Session) + "-5"
	status, body := ask(h, "GET", "/api/agent-runs?project_root=/p", "")
	var list []run
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != 200 || len(list) != 4 || list[3].ID != top {
		t.Fatalf("%d %s", status, body)
	}
	if want := `{"run_id":"` + top +
		`","repo_path":"/p","session_id":"550e8400-e29b-41d4-a716-446655440000","agent_id":"coder","agent_kind":"main","parent_run_id":null,"status":"running","detail":null,"started_at":1767323051,"ended_at":null}`; !strings.HasSuffix(body, want+"]") {
		t.Errorf("%s", body)
	}
	if list[0].Status != "running" || *list[0].Detail != "waiting for a person" || list[2].Status != "failed" ||
		*list[2].Ended != 1767323053 || *list[2].Parent != top || list[2].Kind != "subagent" {
		t.Errorf("%s", body)
	}
	_, body = ask(h, "GET", "/api/agent-children?run_id="+top, "")
	list = nil
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list) != 2 || list[0].Session != childSession ||
		list[1].Session != otherSession {
		t.Errorf("oldest first: %s", body)
	}
	wants(t, h, "GET", "/api/agent-children?run_id=run-x-5", "", 404, `{"error":"Unknown run_id"}`)
	wants(t, h, "GET", "/api/agent-children", "", 400, `{"error":"run_id is missing."}`)
	wants(t, h, "GET", "/api/agent-runs?session_id=s-one", "", 200, `[]`)
	wants(t, h, "GET", "/api/agent-runs?session_id=s-one", "", 403, `{"error"`, "X-User: clumsy")
	wants(t, h, "GET", "/api/agent-runs?session_id=11111111-1111-4111-8111-111111111111", "", 404,
		`{"error":"There is no such session."}`)
	wants(t, h, "GET", "/api/agent-runs?project_root=/q", "", 400, `{"error":"project_root: `)
	wants(t, h, "GET", "/api/agent-children?project_root=/r&run_id="+top, "", 400, elsewhere)
	wants(t, h, "POST", "/api/agent-cancel", `{"project_root":"/r","run_id":"`+top+`"}`, 400, elsewhere)

	// The tree is cancelled from the top; ended runs are skipped.
	wants(t, h, "POST", "/api/agent-cancel", `{"run_id":"`+top+`"}`, 200,
		`{"cancelled_run_ids":["`+top+`","run-`+string(otherSession)+
			`-3","run-44444444-4444-4444-8444-000000000003-3"]}`)
	for i, want := range []parley.SessionID{dialecttest.Session, otherSession, "44444444-4444-4444-8444-000000000003"} {
		if c := d.commands[i]; c.Session != want || c.Do.(parley.CancelRun).Run == 0 {
			t.Errorf("%+v", c)
		}
	}
	for _, none := range []string{"run-x", "run-" + string(childSession) + "-3", "run-" + string(dialecttest.Session) +
		"-9"} {
		wants(t, h, "POST", "/api/agent-cancel", `{"run_id":"`+none+`"}`, 200, `{"cancelled_run_ids":[]}`)
	}
	wants(t, h, "POST", "/api/agent-cancel", `{}`, 400, `{"error":"run_id is missing."}`)
	if len(d.commands) != 3 {
		t.Errorf("%+v", d.commands)
	}
}

func TestSettings(t *testing.T) {
	d := &door{}
	h := handler(d)
	h.Server = func(parley.TenantID) map[string]json.RawMessage {
		return map[string]json.RawMessage{"server.port": json.RawMessage("8080"),
			"models": json.RawMessage(`[{"id":"demo"}]`)}
	}
	for _, path := range []string{"/api/settings", "/api/config"} {
		d.commands, d.answers = nil, nil
		const now = `{"agent":{"approval":"suggest","compact_at":0.8,"max_delegation_depth":2,"max_iters":50,"tool_permission_mode":"ask"},"models":[{"id":"demo"}],"routing":{"default_models":[]},"server":{"port":8080}}`
		wants(t, h, "GET", path, "", 200, now)
		wants(t, h, "POST", path, now, 200, now) // sent back unchanged
		wants(t, h, "POST", path, `{"models":[ {"id" : "demo"} ]}`, 200, now)
		for body, says := range map[string]string{
			`{"agent":{"max_iters":20},"server":{"port":1}}`:                   "server.port cannot be changed while the server runs.",
			`{"api_key":"secret"}`:                                             "api_key cannot be changed",
			`{"agent":{"tool_permission_mode":"never"}}`:                       "agent.tool_permission_mode must be ask or auto.",
			`{"agent":{"tool_permission_mode":"auto","approval":"auto-edit"}}`: "agent.approval and agent.tool_permission_mode are two names of one setting; send one of them.",
			`{"routing":{"default_models":["a","b"]}}`:                         "routing.default_models must be a list of at most one model.",
			`{"agent.max_iters":7}`:                                            "agent.max_iters is no setting.",
			`{"agent":{"max_iters":1,"max_iters":2}}`:                          `agent: the key \"max_iters\" is there twice.`,
			`[]`: "the message is not a JSON object.",
		} {
			wants(t, h, "POST", path, body, 400, `{"error":"`+says)
		}
		if len(d.commands) > 0 {
			t.Errorf("what was refused led to %+v", d.commands)
		}
		wants(t, h, "POST", path,
			`{"project_root":"/p","agent":{"max_iters":20,"tool_permission_mode":"auto"},"routing":{"default_models":["m"]}}`, 200, `{`)
		want := parley.ChangeSettings{Values: map[string]json.RawMessage{"turns": json.RawMessage("20"),
			"approval": json.RawMessage(`"full-auto"`), "model": json.RawMessage(`"m"`)}}
		if len(d.commands) != 1 || d.commands[0].Session != parley.TenantSession ||
			!reflect.DeepEqual(d.commands[0].Do, want) {
			t.Errorf("%+v", d.commands)
		}
		d.answers = map[parley.SessionID]error{parley.TenantSession: parley.Errorf(parley.CodeInvalid,
			"turns must be a whole number from 1 to 1000.")}
		wants(t, h, "POST", path, `{"agent":{"max_iters":0}}`, 400,
			`{"error":"agent.max_iters must be a whole number from 1 to 1000."}`)
		wants(t, h, "POST", path, `{}`, 403, `{"error":"You may not do this: it needs tenant:write."}`,
			"X-User: clumsy")
		wants(t, h, "GET", path, "", 403, `{"error":"You may not do this: it needs agents:read."}`, "X-User: clumsy")
	}
}

// TestDetailsAreCutBetweenCharacters: details are cut between characters. The
// original server cut bytes and crashed (docs/dialects/eventbus.md, bug 13).
func TestDetailsAreCutBetweenCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tool := rapid.SampledFrom([]string{"read_file", "write_file", "edit_file", "apply_patch", "list_files",
			"find_files", "search_files", "shell", "other"}).Draw(t, "tool")
		text := strings.ToValidUTF8(rapid.String().Draw(t, "text"), "")
		var args any = map[string]any{"path": text, "pattern": text, "command": []string{text, text}}
		if rapid.Bool().Draw(t, "odd") {
			args = map[string]any{"path": 7, "pattern": []int{}, "command": text}
		}
		got := doing(tool, string(dialect.Encode(args)))
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > maxDetail+3 || strings.ContainsAny(got, "\n\r") {
			t.Fatalf("%q", got)
		}
	})
}

func TestRunNames(t *testing.T) {
	if session, run, ok := parseRun(runName(dialecttest.Session, 42)); !ok || session != dialecttest.Session ||
		run != 42 {
		t.Errorf("%s %d %v", session, run, ok)
	}
	for _, bad := range []string{"", "run-", "run", "run--1", "x", string(dialecttest.Session) + "-42",
		"run-" + string(dialecttest.Session), "run-" + string(dialecttest.Session) + "-042",
		"run-" + string(dialecttest.Session) + "-0", "run-" + strings.ToUpper(string(dialecttest.Session)) + "-1"} {
		if _, _, ok := parseRun(bad); ok {
			t.Errorf("%q is a run", bad)
		}
	}
}

// TestContextIsOfTheRun: an input belongs to the run that adopts it, whenever it was received.
func TestContextIsOfTheRun(t *testing.T) {
	var log []parley.Event
	for _, l := range dialecttest.Logs(t) {
		if has[parley.InputWithdrawn](l) && has[parley.InputAdopted](l) {
			log = l
		}
	}
	d := &door{events: log, head: log[len(log)-1].Position, runs: []port.RunInfo{
		{Session: dialecttest.Session, Root: dialecttest.Session, Run: 22, Agent: "explorer",
			StartedAt: dialecttest.Begin, Outcome: parley.Completed},
		{Session: dialecttest.Session, Root: dialecttest.Session, Run: 3, Agent: "coder", StartedAt: dialecttest.Begin,
			Outcome: parley.Completed}}}
	for run, want := range map[int][]string{3: {"user: Count to three", "coder: 1 2 3",
		"user: stop " + strings.Repeat("é", 120), "coder: Stopped."}, 22: {"user: and then this"}} {
		status, body := ask(handler(d), "GET", fmt.Sprintf("/api/agent-context?run_id=run-%s-%d&view=raw",
			dialecttest.Session, run), "")
		var c runContext
		if err := json.Unmarshal([]byte(body), &c); err != nil || status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		var got []string
		for _, m := range c.Messages {
			got = append(got, m.From+": "+m.Content)
		}
		if diff := cmp.Diff(want, got); diff != "" || c.Summary.Messages != len(want) {
			t.Errorf("%s\n%s", diff, body)
		}
	}
}

// TestProjectsAreHiddenFromOtherTenants: other tenants are not told the path of a project and cannot find it out.
func TestProjectsAreHiddenFromOtherTenants(t *testing.T) {
	d := golden(t)
	d.runs = runsOfATree()
	h := handler(d)
	for path, want := range map[string]string{
		"/api/agent-runs":                 `"repo_path":""`,
		"/api/agent-runs?project_root=/p": `project_root: There is no project`,
		"/api/settings?project_root=/p":   `project_root: There is no project`,
		"/api/events?project_root=/p":     `project_root: There is no project`,
	} {
		if _, body := ask(h, "GET", path, "", "X-Tenant: rival"); !strings.Contains(body, want) ||
			strings.Contains(body, `"/p"`) && !strings.Contains(path, "project_root") {
			t.Errorf("%s: %s", path, body)
		}
	}
	rival := port.Principal{ID: "eve", Tenant: "rival"}
	b, err := h.begin(t.Context(), rival, wish{last: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.follower.Close()
	items, err := b.follower.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range items {
		for _, m := range b.show(t.Context(), i) {
			if strings.Contains(string(m.data), "project_root") {
				t.Errorf("another tenant is told: %s", m.data)
			}
		}
	}
}

// TestStoppedAgentsAreNotLoggedAsErrors: messages to a stopped agent are not logged as
// errors.
func TestStoppedAgentsAreNotLoggedAsErrors(t *testing.T) {
	for code, want := range map[parley.Code]bool{parley.CodeStopped: false, parley.CodeUnavailable: true} {
		d := golden(t)
		h := handler(d)
		var log strings.Builder
		h.Log = slog.New(slog.NewTextHandler(&log, nil))
		d.answers = map[parley.SessionID]error{otherSession: parley.Errorf(code, "no")}
		wants(t, h, "POST", "/api/chat", `{"message":"x","session_id":"`+string(otherSession)+`"}`, 503,
			`{"error":"no"}`)
		if got := strings.Contains(log.String(), "level=ERROR"); got != want {
			t.Errorf("%s: %q", code, log.String())
		}
	}
}

// TestModels: principals with read access get the list of models, with the
// tenant's default.
func TestModels(t *testing.T) {
	h := handler(golden(t))
	wants(t, h, "GET", "/api/models", "", 200, `[]`)
	h.Models = func(_ context.Context, byDefault string) ([]port.ModelInfo, error) {
		return []port.ModelInfo{{ID: "m", Provider: "openai", Default: byDefault == ""}}, nil
	}
	wants(t, h, "GET", "/api/models", "", 200, `[{"id":"m","provider":"openai","default":true}]`)
	wants(t, h, "GET", "/api/models", "", 403, `{"error"`, "X-User: clumsy")
	wants(t, h, "GET", "/api/models", "", 401, `{"error"`, "X-User: nobody")
}
