package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley"
)

// Document 004's missions, by npm eventsource and fetch: an idle agent is
// prompted, and again after its interval, also by another process after a kill,
// in one session. After the mission is cleared, it is not prompted any more.
func TestEventBusMissions(t *testing.T) {
	t.Parallel()
	s, n := startServer(t,
		options{env: []string{"AUTONOMY_ENABLED=true", "PARLEY_IDLE_PROMPT_INTERVAL=1s",
			"PARLEY_IDLE_PROMPT_MAX=1000"}}), startNode(t)
	is := func(method, path, body string, status int, want string) {
		t.Helper()
		if got, answer := n.fetch(s, method, path, body); got != status || !strings.HasPrefix(answer, want) {
			t.Fatalf("%s %s %s: %d %s, want %d %s", method, path, body, got, answer, status, want)
		}
	}
	is("GET", "/api/mission", "", 200, `{"active":false}`)
	b := n.tune(s, "")
	is("POST", "/api/agent-override",
		`{"agent_id":"helpful-assistant","idle_prompt":"say Still tidy.","idle_interval_secs":1}`, 200, `{"ok":true,`)
	b.until("run", "sync") // the first fact of the tenant opens its session
	if m := last(b.until("run", "sync")); m.AgentID != "helpful-assistant" || m.SessionID != "" {
		t.Fatalf("%s", m.raw)
	}
	is("POST", "/api/mission", fmt.Sprintf(`{"project_root":%q,"text":"Keep it tidy."}`, s.o.workspace), 200,
		`{"ok":true}`)
	b.until("run", "sync")
	is("GET", "/api/mission?project_root="+s.o.workspace, "", 200, `{"text":"Keep it tidy.","created_at":`)

	session, seen := "", ""
	prompted := func() {
		t.Helper()
		list := b.until("activity", "doing")
		m := last(list)
		if m.Text != "Idle prompt triggered" || m.Data.Status != "idle_prompt_triggered" || m.Root != s.o.workspace ||
			m.AgentID != "helpful-assistant" ||
			!strings.HasPrefix(m.ID, "idle-trigger-helpful-assistant-") || session != "" && m.SessionID != session {
			t.Fatalf("%s\n%s", m.raw, strings.Join(steps(list), "\n"))
		}
		session = m.SessionID
		list = b.until("turn_complete", "")
		seen = last(list).at
		for _, m := range list {
			if m.Kind == "message" && (m.Data.From != "helpful-assistant" || m.Text != "Still tidy.") ||
				m.SessionID != session {
				t.Errorf("%s", m.raw)
			}
		}
	}
	prompted()
	prompted()
	s.kill()
	s = s.again()
	b = n.tune(s, "?last_event_id="+seen) // the new process may begin with a prompt
	prompted()
	is("DELETE", "/api/mission", fmt.Sprintf(`{"project_root":%q}`, s.o.workspace), 200, `{"ok":true}`)
	is("GET", "/api/mission", "", 200, `{"active":false}`)
	is("GET", "/api/missions", "", 200, `{"missions":[{"text":"Keep it tidy."`)
	is("POST", "/api/mission", `{"text":"x","project_root":"/nowhere"}`, 400,
		`{"error":"project_root: There is no project`)

	// The promised and the delivered prompts are the same, once each. After the
	// end of the mission there are none.
	s.stop() // active runs end now, or go on after the next start
	s = s.again()
	runs := len(of("RunStarted", s.events(session)))
	s.awaitEvent(session, func(e event) bool {
		if e.Type == "RunFinished" {
			runs--
		}
		return runs == 0
	})
	taken := map[string]int{}
	for _, e := range s.settled(session) {
		if in, ok := e.Body.(parley.InputReceived); ok && in.Synthetic {
			taken[in.Request]++
		}
	}
	var open, promised []string
	for _, e := range s.exported(string(parley.TenantSession)) {
		switch body := e.Body.(type) {
		case parley.AgentPrompted:
			open = append(open, fmt.Sprint(parley.IdleNamed, e.Seq))
		case parley.PromptSettled:
			if body.Code == "" {
				promised = append(promised, open[len(open)-1])
			}
		}
	}
	for _, name := range promised {
		if taken[name] != 1 {
			t.Errorf("%s was taken %d times", name, taken[name])
		}
	}
	if len(promised) < 3 || len(taken) != len(promised) {
		t.Errorf("promised were %v, and taken %v", promised, taken)
	}
	_, page := s.get("/api/history?session_id="+session, nil)
	var shown struct{ Messages []note }
	if err := json.Unmarshal([]byte(page), &shown); err != nil || len(shown.Messages) == 0 ||
		strings.Contains(page, "standing instruction") {
		t.Errorf("history shows %.500s (%v)", page, err)
	}
}

// Without AUTONOMY_ENABLED a mission is stored. The answer to the user who sets
// it says that no agent is prompted, and why.
func TestMissionsWithoutAutonomy(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	_, answer := n.fetch(s, "POST", "/api/mission",
		`{"text":"Keep it tidy.","agents":[{"id":"helpful-assistant","idle_prompt":"say hi"}]}`)
	if !strings.Contains(answer, `"ok":true`) || !strings.Contains(answer, "AUTONOMY_ENABLED") {
		t.Errorf("%s", answer)
	}
	if _, answer = n.fetch(s, "GET", "/api/mission", ""); !strings.Contains(answer,
		`"active":true,"agents":[{"id":"helpful-assistant","idle_prompt":"say hi","idle_interval_secs":null}]`) ||
		!strings.Contains(answer, "AUTONOMY_ENABLED") {
		t.Errorf("%s", answer)
	}
	s.logged("AUTONOMY_ENABLED", 1)
	if log := s.exported(string(parley.TenantSession)); len(log) != 2 {
		t.Errorf("%d events", len(log))
	}
}
