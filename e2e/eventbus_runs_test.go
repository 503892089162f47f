package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Cancel is by run: another session of the same agent goes on. In the original, one engine served all sessions of an
// agent, cancel matched the agent, and runs stayed "running" for ever after a crash (docs/dialects/eventbus.md, bugs 5
// and 7).
func TestEventBusCancels(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	to := n.tempo(s).slowCount(10, 6)
	b := n.tune(s, "")
	one, two := n.say(s, "", "count slowly to 2000"), n.say(s, "", fmt.Sprint("count slowly to ", to))
	other := n.tune(s, "?session_id="+two.SessionID)
	var stopped struct {
		IDs []string `json:"cancelled_run_ids"`
	}
	n.post(s, "/api/agent-cancel", `{"run_id":"`+one.RunID+`"}`, &stopped)
	if !slices.Equal(stopped.IDs, []string{one.RunID}) {
		t.Errorf("stopped were %q", stopped.IDs)
	}
	list := b.until("run", "outcome")
	for last(list).SessionID != one.SessionID {
		list = append(list, b.until("run", "outcome")...)
	}
	if last(list).Data.Outcome.Status != "cancelled" || !slices.Contains(steps(list), "activity/done Cancelled") {
		t.Errorf("%q", steps(list))
	}
	n.post(s, "/api/agent-cancel", `{"run_id":"`+one.RunID+`"}`, &stopped)
	if len(stopped.IDs) != 0 {
		t.Errorf("stopped again were %q", stopped.IDs)
	}
	if done := other.until("turn_complete", ""); done[len(done)-2].Data.Outcome.Status != "completed" {
		t.Errorf("the other ended as %s", done[len(done)-2].raw)
	}

	third := n.say(s, one.SessionID, "count slowly to 2000")
	s.kill()
	s = s.again()
	list = nil
	runs := n.runs(s, "/api/agent-runs?project_root="+s.o.workspace+"&session_id="+one.SessionID)
	if len(runs) != 2 || runs[0].RunID != third.RunID || runs[0].Status != "running" || runs[1].Status != "cancelled" ||
		runs[1].Detail != "cancelled by user" || runs[1].Ended < runs[1].Started || runs[1].Repo != s.o.workspace {
		t.Errorf("%+v", runs)
	}
	n.post(s, "/api/agent-cancel", `{"run_id":"`+third.RunID+`"}`, &stopped) // also after a restart
	if !slices.Equal(stopped.IDs, []string{third.RunID}) {
		t.Errorf("stopped were %q", stopped.IDs)
	}
	if runs := n.runs(s, "/api/agent-runs"); slices.ContainsFunc(runs,
		func(r runLine) bool { return r.Status == "running" }) {
		t.Errorf("%+v", runs)
	}
}

// An EventSource whose server is gone for a while reconnects by itself. It gets
// every message once, in order, as a client that asks for all of them does.
func TestEventBusIsResumedWhereItWasLost(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s, n := startServer(t, options{}), startNode(t)
			b := n.tune(s, "")
			a := n.say(s, "", "count slowly to 9")
			list := b.until("token", "")
			s.o.listen = s.address
			way.end(s)
			s = s.again()
			list = append(list, b.until("turn_complete", "")...)
			n.say(s, a.SessionID, "say more")
			list = append(list, b.until("turn_complete", "")...)

			whole := s.follow("/api/events?session_id="+a.SessionID+"&last_event_id=0", "")
			whole.next() // skip the message about the starting position
			for i, m := range list {
				if all := whole.next(); all.data != m.raw || all.id != m.at || all.event != "" {
					t.Fatalf("message %d was %s %s and is %s %s", i, m.at, m.raw, all.id, all.data)
				}
			}
			// A client can resume after any message.
			for i := range list[:len(list)-1] {
				rest := s.follow("/api/events", list[i].at)
				rest.next()
				if m := rest.next(); m.data != list[i+1].raw {
					t.Fatalf("after %s came %s, not %s", list[i].raw, m.data, list[i+1].raw)
				}
			}
		})
	}
}

// A client with a cursor that is not from this log gets one message that says
// so, and then new events.
func TestEventBusResyncs(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	n.say(s, "", "say before")
	for lastID, reason := range map[string]string{"another-8": "unknown_epoch", "999999999": "beyond_head",
		"what": "unknown_id"} {
		b := n.tune(s, "?last_event_id="+lastID)
		if m := b.next(); m.Kind != "run" || m.Phase != "resync" || m.Data.Reason != reason ||
			m.Text != "Resync required" {
			t.Errorf("%s", m.raw)
		}
		a := n.say(s, "", "say after "+reason)
		list := b.until("turn_complete", "")
		for last(list).SessionID != a.SessionID { // the earlier run has ended
			list = append(list, b.until("turn_complete", "")...)
		}
		if !slices.Contains(steps(list), "message helpful-assistant: after "+reason) {
			t.Errorf("%q", steps(list))
		}
	}
}

// A delegated task is shown with its parent, in a session of its own.
func TestEventBusShowsSubagents(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	if err := os.Mkdir(filepath.Join(workspace, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.md": "---\nname: coder\ndelegates: [explorer]\n---\nCode.\n",
		"b.md": "---\nname: explorer\n---\nExplore.\n"} {
		if err := os.WriteFile(filepath.Join(workspace, "agents", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, n := startServer(t, options{workspace: workspace}), startNode(t)
	b := n.tune(s, "")
	a := n.say(s, "", "delegate say found it to explorer")
	spawned := last(b.until("run", "subagent_spawned"))
	if spawned.AgentID != "coder" || spawned.Data.Subagent != "explorer" || spawned.Data.Parent != "coder" ||
		spawned.Data.ParentRun != a.RunID || spawned.Data.Child == "" {
		t.Fatalf("%s", spawned.raw)
	}
	list := b.until("run", "subagent_result")
	if !slices.ContainsFunc(list, func(m note) bool {
		return m.SessionID == spawned.Data.Child && m.AgentID == "explorer" && m.Kind == "text_segment" &&
			m.Text == "found it" && m.Data.Parent == "coder" && m.Data.ParentRun == a.RunID
	}) {
		t.Errorf("%q", steps(list))
	}
	b.until("turn_complete", "")
	children := n.runs(s, "/api/agent-children?run_id="+a.RunID)
	if len(children) != 1 || children[0].Session != spawned.Data.Child || children[0].Parent != a.RunID ||
		children[0].Status != "completed" {
		t.Errorf("%+v", children)
	}

	// Another agent is addressed by name.
	n.say(s, "", "@explorer say me")
	list = b.until("turn_complete", "")
	if !slices.Contains(steps(list), "message explorer: me") {
		t.Errorf("%q", steps(list))
	}
	if status, body := n.fetch(s, "POST", "/api/chat", `{"message":"@nobody say me"}`); status != 404 {
		t.Errorf("%d %s", status, body)
	}

	// A cancel ends the whole tree.
	a = n.say(s, "", "delegate count slowly to 2000 to explorer")
	b.until("run", "subagent_spawned")
	for m := b.next(); m.Kind != "token" || m.AgentID != "explorer"; m = b.next() {
	}
	var stopped struct {
		IDs []string `json:"cancelled_run_ids"`
	}
	n.post(s, "/api/agent-cancel", `{"run_id":"`+a.RunID+`"}`, &stopped)
	if len(stopped.IDs) != 2 || stopped.IDs[0] != a.RunID {
		t.Errorf("stopped were %q", stopped.IDs)
	}
	ended := map[string]bool{}
	for len(ended) < 2 {
		m := last(b.until("run", "outcome"))
		if m.Data.Outcome.Status != "cancelled" {
			t.Errorf("%s", m.raw)
		}
		ended[m.SessionID] = true
	}
}

// A plan is proposed, edited and approved, or rejected; nothing is done before that.
func TestEventBusDecidesPlans(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	b := n.tune(s, "")
	propose := func() (a accepted) {
		t.Helper()
		n.post(s, "/api/chat", `{"message":"plan a party","mode":"plan"}`, &a)
		if list := b.until("turn_complete", ""); list[len(list)-2].Data.Outcome.Type != "plan" ||
			!slices.Contains(steps(list), "run/plan_update") {
			t.Fatalf("%q", steps(list))
		}
		return a
	}
	a := propose()
	about := `{"session_id":"` + a.SessionID + `","text":"only cake"}`
	for _, c := range []struct{ path, answer string }{{"edit", `{"ok":true}`}, {"approve", `{"status":"approved"}`}} {
		if status, body := n.fetch(s, "POST", "/api/plan/"+c.path, about); status != 200 || body != c.answer {
			t.Errorf("%s: %d %s", c.path, status, body)
		}
	}
	list := b.until("turn_complete", "")
	if !slices.Contains(steps(list), "message user: Plan approved. Starting execution.") ||
		!strings.Contains(list[0].raw, `"plan_text":"only cake"`) {
		t.Errorf("%q", steps(list))
	}
	if status, body := n.fetch(s, "POST", "/api/plan/approve", about); status != 404 ||
		body != `{"error":"No pending plan"}` {
		t.Errorf("%d %s", status, body)
	}
	a = propose()
	if status, body := n.fetch(s, "POST", "/api/plan/reject", `{"session_id":"`+a.SessionID+`"}`); status != 200 ||
		body != `{"status":"rejected"}` {
		t.Errorf("%d %s", status, body)
	}
	if m := last(b.until("message", "")); m.Text != "Plan rejected." {
		t.Errorf("%s", m.raw)
	}
}

// The report of a run is built from its events, not by the clock: another run
// in the same second is not in it (docs/dialects/eventbus.md, bug 12).
func TestEventBusReportsARunByItsEvents(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	b := n.tune(s, "")
	one := n.say(s, "", "say one")
	b.until("turn_complete", "")
	two := n.say(s, one.SessionID, "read nothing.txt")
	b.until("turn_complete", "")
	n.say(s, one.SessionID, "say three")
	b.until("turn_complete", "")
	var c struct {
		Run     runLine
		Summary struct {
			Messages int `json:"message_count"`
			User     int `json:"user_messages"`
			Agent    int `json:"agent_messages"`
			System   int `json:"system_messages"`
		}
		Messages []struct {
			From        string `json:"from_id"`
			Content     string
			Observation bool `json:"is_observation"`
		}
	}
	for view, messages := range map[string]int{"": 0, "summary": 0, "raw": 4} {
		status, body := n.fetch(s, "GET", "/api/agent-context?run_id="+two.RunID+"&view="+view, "")
		c.Messages = nil
		if err := json.Unmarshal([]byte(body), &c); status != 200 || err != nil {
			t.Fatalf("%d %s", status, body)
		}
		if len(c.Messages) != messages || c.Run.RunID != two.RunID || c.Summary.Messages != 4 || c.Summary.User != 1 ||
			c.Summary.Agent != 2 || c.Summary.System != 1 {
			t.Errorf("view %q: %s", view, body)
		}
	}
	if c.Messages != nil && (c.Messages[0].From != "user" || c.Messages[0].Content != "read nothing.txt" ||
		!c.Messages[2].Observation) {
		t.Errorf("%+v", c.Messages)
	}
	for path, want := range map[string]int{"run_id=" + two.RunID + "&view=half": 400, "run_id=run-x-1": 404, "": 400,
		"run_id=run-" + one.SessionID + "-1": 404} {
		if status, body := n.fetch(s, "GET", "/api/agent-context?"+path, ""); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// The original accepted requests from any page (docs/dialects/eventbus.md, bug 10).
func TestEventBusIsNotForOtherPages(t *testing.T) {
	t.Parallel()
	s := startServer(t, options{})
	for _, header := range []http.Header{
		{"Origin": {"http://evil.example"}, "Content-Type": {"application/json"}},
		{"Content-Type": {"text/plain"}},
		{"Content-Type": {"application/x-www-form-urlencoded"}},
	} {
		res := s.request(within(t, patience), "POST", "/api/chat", header, `{"message":"say no"}`)
		res.Body.Close()
		if res.StatusCode < 400 || res.StatusCode >= 500 {
			t.Errorf("%v: %d", header, res.StatusCode)
		}
	}
	if _, listed := s.get("/api/v1/sessions", nil); strings.Contains(listed, `"id"`) {
		t.Errorf("somebody was let in: %s", listed)
	}
}

// A conversation is cleared, and its name can be used for another.
func TestEventBusClears(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	b := n.tune(s, "?session_id=my+notes")
	a := n.say(s, "my notes", rememberTea)
	b.until("turn_complete", "")
	// The id of a run is run-<session>-<seq>.
	sessionOf := func(a accepted) string { return a.RunID[:strings.LastIndex(a.RunID, "-")] }
	if again := n.say(s, "my notes", "what did I say"); sessionOf(again) != sessionOf(a) {
		t.Errorf("%+v and %+v", a, again)
	}
	b.until("turn_complete", "")
	var ok struct{ OK bool }
	n.post(s, "/api/chat/clear", `{"session_id":"my notes"}`, &ok)
	if status, body := n.fetch(s, "POST", "/api/chat/clear", `{"session_id":"my notes"}`); status != 404 || !ok.OK {
		t.Errorf("%v, %d %s", ok.OK, status, body)
	}
	b.until("run", "sync")
	fresh := n.say(s, "my notes", "what did I say")
	list := b.until("turn_complete", "")
	if sessionOf(fresh) == sessionOf(a) || !slices.Contains(steps(list),
		"message helpful-assistant: This is the first thing you say in this session.") {
		t.Errorf("%+v %q", fresh, steps(list))
	}
}

// A client that names its session gets answers with that name. A client that follows all sessions gets the id of the
// session, with the name beside it.
func TestEventBusKeepsTheNamesOfSessions(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	mine, everything := n.tune(s, "?session_id=s-one"), n.tune(s, "")
	if a := n.say(s, "s-one", "say hello"); a.SessionID != "s-one" {
		t.Errorf("%+v", a)
	}
	for _, m := range mine.until("turn_complete", "") {
		if m.SessionID != "s-one" || m.SessionName != "" {
			t.Errorf("who asks for s-one is shown %s", m.raw)
		}
	}
	for _, m := range everything.until("turn_complete", "") {
		if len(m.SessionID) != 36 || m.SessionName != "s-one" {
			t.Errorf("who asks for everything is shown %s", m.raw)
		}
	}
	// The same holds for a client that connects later, and after a restart.
	s.kill()
	s = s.again()
	later := n.tune(s, "?session_id=s-one")
	n.say(s, "s-one", "say more")
	if m := last(later.until("turn_complete", "")); m.SessionID != "s-one" {
		t.Errorf("%s", m.raw)
	}
	list := n.runs(s, "/api/agent-runs?session_id=s-one")
	for _, r := range list {
		if r.Session != "s-one" {
			t.Errorf("%+v", r)
		}
	}
	if len(list) != 2 {
		t.Errorf("%d runs, want 2", len(list))
	}
	if list := n.runs(s, "/api/agent-runs?session_id=s-two"); list == nil || len(list) > 0 {
		t.Errorf("a name that was never used has the runs %+v", list)
	}
	_, page := n.fetch(s, "GET", "/api/history?session_id=s-one", "")
	if !strings.Contains(page, `"session_id":"s-one"`) || strings.Count(page, `"session_id":`) !=
		strings.Count(page, `"session_id":"s-one"`) {
		t.Errorf("%s", page)
	}
}
