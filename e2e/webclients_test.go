package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestWebClientsAreRefused: the official clients of AG-UI and the AI SDK raise their own errors for an unknown agent,
// an empty message, another user's session and a deleted session. Nothing is appended.
func TestWebClientsAreRefused(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, jwt()), startNode(t)
	ann, eve := s.user("ann"), s.user("eve")
	mine, foreign, gone := newThread(), newThread(), newThread()
	for id, who := range map[string]*visitor{mine: ann, foreign: eve, gone: ann} {
		who.must(http.StatusCreated, http.MethodPost, "/api/v1/sessions", `{"id":"`+id+`"}`)
	}
	ann.must(http.StatusAccepted, http.MethodDelete, "/api/v1/sessions/"+gone, "")
	await(t, patience, "the end of the session", func() bool {
		status, _ := ann.ask(http.MethodGet, "/api/v1/sessions/"+gone, "")
		return status == http.StatusNotFound
	})
	head := func(who *visitor, id string) string {
		return who.must(http.StatusOK, http.MethodGet, "/api/v1/sessions/"+id+"/log", "")
	}
	before := head(ann, mine) + head(eve, foreign)
	headers := map[string]string{"Authorization": "Bearer " + ann.token}
	for _, one := range []struct {
		agent, session, text string
		status               int
		says                 string
	}{
		{"nobody", mine, "say hi", http.StatusNotFound, "There is no agent"},
		{"nobody", newThread(), "say hi", http.StatusNotFound, "There is no agent"},
		{"helpful-assistant", mine, " ", http.StatusBadRequest, ""},
		{"helpful-assistant", foreign, "say hi", http.StatusNotFound, "There is no such session."},
		{"helpful-assistant", gone, "say hi", http.StatusNotFound, "There is no such session."},
	} {
		ask := userSays("u1", one.text)
		ask["api"], ask["headers"] = "http://"+s.address+"/api/aisdk/"+one.agent, headers
		want := fmt.Sprintf("%d AI_APICallError: ", one.status)
		if got, _ := n.aiStream(s, "send", one.session, ask); len(got) != 1 || !strings.HasPrefix(got[0], want) ||
			!strings.Contains(got[0], one.says) {
			t.Errorf("AI SDK, %+v: %q", one, got)
		}
		a := &aguiAgent{socket: n.begin(map[string]any{"do": "use", "module": "agui", "act": "open",
			"thread": one.session, "url": "http://" + s.address + "/api/agui/" + one.agent, "headers": headers})}
		a.opened()
		a.start(says1(one.text))
		if h := a.next(); h.Event != "error" || h.Code != one.status || !strings.Contains(h.Data, one.says) {
			t.Errorf("AG-UI, %+v: %+v", one, h)
		}
	}
	if after := head(ann, mine) + head(eve, foreign); after != before {
		t.Errorf("something was appended:\n%s", after)
	}
}
