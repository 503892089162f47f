package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// messagesByHTTP are messages to a session in every protocol that can continue one by HTTP: the path and the body.
// AGENT and SESSION stand for names, and TURN for a number that differs for each message.
var messagesByHTTP = map[string][2]string{
	"event bus":   {"/api/chat", `{"message":"read color.txt","session_id":"SESSION","agent_id":"AGENT"}`},
	"thread chat": {"/api/chat", `{"message":"read color.txt","threadId":"SESSION","agentId":"AGENT"}`},
	"debug console": {"/api/v1/agents/AGENT/message",
		`{"content":"read color.txt","session_id":"SESSION"}`},
	"debug console, stream": {"/api/v1/agents/AGENT/stream", `{"content":"read color.txt","session_id":"SESSION"}`},
	"native":                {"/api/v1/sessions/SESSION/inputs", `{"content":"read color.txt","agent":"AGENT"}`},
	"responses": {"/v1/responses",
		`{"model":"AGENT","input":"read color.txt","metadata":{"session_id":"SESSION"}}`},
	"agui": {"/api/agui/AGENT", `{"threadId":"SESSION","runId":"rTURN","state":{},"tools":[],"context":[],
		"forwardedProps":{},"messages":[{"id":"mTURN","role":"user","content":"read color.txt"}]}`},
	"aisdk": {"/api/aisdk/AGENT", `{"id":"SESSION","trigger":"submit-message","messages":[{"id":"uTURN","role":"user",
		"parts":[{"type":"text","text":"read color.txt"}]}]}`},
}

// TestSessionsStayInTheirProject: a session of the second project goes on there if a client names no project, and is
// refused if the client names the first one. On a server without the project it can be read, and a message is refused
// with the sentence that says how to bring the project back.
func TestSessionsStayInTheirProject(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	put(t, folders[1], "agents/miller.md", "---\nname: miller\n---\nYou mill.\n") // only in the second project
	s, n := startProjects(t, folders), startNode(t)
	session, turn := newThread(), 0
	var first accepted
	n.post(s, "/api/chat", fmt.Sprintf(`{"message":"read color.txt","session_id":%q,"project_root":%q}`, session,
		folders[1]), &first)
	runs := func(count int) { // waits until so many runs have ended
		t.Helper()
		s.awaitEvent(session, func(e event) bool {
			if e.Type == "RunFinished" {
				if count--; e.Body.Outcome != "completed" {
					t.Errorf("a run ended as %s", e.Body.Outcome)
				}
			}
			return count == 0
		})
	}
	runs(1)
	send := func(protocol, agent, query string) (int, string) {
		t.Helper()
		turn++
		message := messagesByHTTP[protocol]
		fill := strings.NewReplacer("AGENT", agent, "SESSION", session, "TURN", fmt.Sprint(turn)).Replace
		return n.fetch(s, "POST", withQuery(fill(message[0]), query), fill(message[1]))
	}
	ended := 1
	for protocol := range messagesByHTTP {
		if status, answer := send(protocol, "miller", ""); status >= 300 {
			t.Errorf("%s: %d %s", protocol, status, answer)
			continue
		}
		ended++
		runs(ended)
	}
	own := "&project=" + url.QueryEscape(folders[1]+"/") // its own project may be named
	loop, chat := n.loop(s, "/?session="+session+own), n.agentChat(s)
	thread := n.enter(s, session, "&cards=1"+own)
	thread.ask("read color.txt")
	if a := thread.completed(); !strings.Contains(a.text, "The color is indigo") {
		t.Errorf("%+v", a)
	}
	loop.items("loading", "assistant", "function_call", "function_call_output", "assistant", "loaded", "agent_finished",
		"context_info")

	// Another project, by HTTP and by socket.
	before := len(s.events(session))
	other := "project=" + url.QueryEscape(folders[0])
	belongs := "This session belongs to the project " + folders[1] + " and cannot go on in "
	for protocol := range messagesByHTTP {
		query := other
		if protocol == "event bus" {
			query = rooted(folders[0])
		}
		if status, answer := send(protocol, "painter", query); status != 400 || !strings.Contains(answer, belongs) {
			t.Errorf("%s in another project: %d %s", protocol, status, answer)
		}
	}
	c := n.open("ws://"+s.address+"/api/chat/ws?threadId="+session+"&"+other, nil)
	c.opened()
	if f := c.expect("error"); !strings.Contains(f.Error, belongs) || f.RequestID == "" {
		t.Errorf("thread chat in another project: %s", f.raw)
	}
	c.closed(1008)
	c = n.loop(s, "/?session="+session+"&"+other)
	c.input("read color.txt")
	if i := c.items("error")[0]; !strings.Contains(i.raw, belongs) {
		t.Errorf("agent loop in another project: %s", i.raw)
	}
	c = n.open("ws://"+s.address+"/ws?"+other, nil)
	c.opened()
	c.chat("read color.txt", session)
	if f := c.expect("error"); !strings.Contains(f.Error, belongs) {
		t.Errorf("agent chat in another project: %s", f.raw)
	}
	chat.close()

	s.stop()
	s.o.env = nil
	s = s.again()
	back := "To go on with it, start the server with --project " + folders[1] + "."
	for protocol := range messagesByHTTP {
		for _, agent := range []string{"painter", "miller"} {
			if status, answer := send(protocol, agent, ""); status != 400 || !strings.Contains(answer, back) {
				t.Errorf("%s to %s without the project: %d %s", protocol, agent, status, answer)
			}
		}
	}
	thread, loop, chat = n.dial(s, session), n.loop(s, "/?session="+session), n.agentChat(s)
	thread.ask("read color.txt")
	if f := thread.expect("error"); !strings.Contains(f.Error, back) {
		t.Errorf("thread chat without the project: %s", f.raw)
	}
	loop.input("read color.txt")
	if i := loop.items("error")[0]; !strings.Contains(i.raw, back) {
		t.Errorf("agent loop without the project: %s", i.raw)
	}
	chat.chat("read color.txt", session)
	if f := chat.expect("error"); !strings.Contains(f.Error, back) {
		t.Errorf("agent chat without the project: %s", f.raw)
	}
	for _, path := range []string{"/api/history?session_id=" + session, "/api/v1/sessions/" + session + "/log",
		"/api/agent-context?view=raw&run_id=" + first.RunID} {
		if status, got := n.fetch(s, "GET", path, ""); status != 200 || !strings.Contains(got, "The color is indigo") {
			t.Errorf("%s: %d %.500s", path, status, got)
		}
	}
	if after := len(s.events(session)); after != before {
		t.Errorf("refused messages left %d events", after-before)
	}
}
