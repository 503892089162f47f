package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"
)

// allows answers the latest approval, for the rest of the session.
func (c *socket) allows(scope string) {
	c.t.Helper()
	c.send(map[string]any{"id": uuid.NewString(), "type": "approval_response",
		"payload": map[string]any{"review": "always", "scope": scope}})
}

// TestGrants: over the agent loop, always covers exactly the shown call, or the shown rule. Grants are listed and
// revoked over the native protocol, also after a restart.
func TestGrants(t *testing.T) {
	t.Parallel()
	s, n := startSandboxed(t, "suggest"), startNode(t)
	c := n.loop(s, "/")
	ran := append([]string{"function_call", "function_call_output", "assistant"}, answered...)
	asks := func(command string) item {
		t.Helper()
		c.input("run " + command)
		return c.items("loading", "assistant", "approval_request")[2]
	}
	runs := func(command string) { // runs without approval
		t.Helper()
		c.input("run " + command)
		c.items(append([]string{"loading", "assistant"}, ran...)...)
	}
	denies := func() {
		t.Helper()
		c.reviews("no-continue")
		c.items(ran...)
	}
	const rule = "mkdir with other arguments, to make folders in the workspace"
	if card := asks("mkdir a"); card.Payload.Similar != rule {
		t.Errorf("the card is %s", card.raw)
	}
	c.allows("")
	c.items(ran...)
	runs("mkdir a")
	asks("mkdir b") // always covers exactly the shown call
	c.allows("similar")
	c.items(ran...)
	for _, similar := range []string{"mkdir c", "mkdir -p d/e f", "mkdir g && ls"} {
		runs(similar)
	}
	for _, attack := range []string{"mkdir h; rm -rf a", "mkdir /etc/x", "mkdir ../x", "mkdir .git", "mkdir $(touch x)",
		"mkdir i > x", "mkdir j | tee x", "sudo mkdir k", "rm -rf a", "touch l"} {
		asks(attack)
		denies()
	}

	card := asks("rm -rf a")
	if card.Payload.Similar != "" {
		t.Errorf("a rule is offered for %s", card.raw)
	}
	c.allows("similar")
	refused := c.items("error")[0].Payload
	if refused.Details == nil || refused.Details.Code != 400 ||
		refused.Details.Error != "No rule for similar calls was offered. Allow exactly this call, or deny it." {
		t.Errorf("%+v", refused)
	}
	denies()
	wantNoFile(t, s, "x")

	session := c.session()
	grants := func() (ids, texts []string) {
		t.Helper()
		var list struct {
			Grants []struct{ ID, Scope, Tool, Text, By string }
		}
		_, body := s.get("/api/v1/sessions/"+session+"/grants", nil)
		if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Grants) == 0 {
			t.Fatalf("%v in %s", err, body)
		}
		for _, g := range list.Grants {
			ids, texts = append(ids, g.ID), append(texts, g.Scope+" "+g.Tool+" "+g.By)
			if g.Scope == "similar" && g.Text != rule || g.Text == "" {
				t.Errorf("%+v", g)
			}
		}
		return ids, texts
	}
	revokes := func(id string, want int) {
		t.Helper()
		response := s.request(within(t, patience), http.MethodDelete, "/api/v1/sessions/"+session+"/grants/"+id, nil, "")
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("revoking %s: %d", id, response.StatusCode)
		}
	}
	c.close()
	s.stop()
	s = s.again()
	c = n.loop(s, "/?session="+session)
	ids, texts := grants()
	if !slices.Equal(texts, []string{"exact shell local", "similar shell local"}) {
		t.Errorf("%q", texts)
	}
	runs("mkdir m")
	revokes(ids[1], 202)
	revokes(ids[1], 404)
	revokes("x", 404)
	asks("mkdir n")
	denies()
	runs("mkdir a") // the other grant holds
	if _, texts := grants(); !slices.Equal(texts, []string{"exact shell local"}) {
		t.Errorf("%q", texts)
	}
}
