package parley_test

import (
	"testing"

	"parley"
)

// TestNamedSessions checks that every client can compute the id of a name, but only the user of the name can open a
// session with it.
func TestNamedSessions(t *testing.T) {
	id := parley.NamedSession("acme", "ann", "my chat")
	if !id.Valid() || id != parley.NamedSession("acme", "ann", "my chat") {
		t.Fatalf("%q is no id of a session", id)
	}
	for _, other := range []parley.SessionID{parley.NamedSession("acme", "ann", "my chats"),
		parley.NamedSession("acme", "bob", "my chat"), parley.NamedSession("rival", "ann", "my chat"),
		parley.NamedSession("acme", "annmy", " chat")} {
		if other == id {
			t.Errorf("two names lead to %s", id)
		}
	}
	open := func(by parley.PrincipalID, do parley.CommandBody) parley.Code {
		_, err := parley.Decide(parley.NewState("acme", id), parley.Command{Tenant: "acme", Session: id, By: by, Do: do})
		if err == nil {
			return ""
		}
		return parley.CodeOf(err)
	}
	agent := parley.AgentRef{Name: "helper"}
	for what, do := range map[string]parley.CommandBody{"by its id": parley.OpenSession{},
		"under its name": parley.OpenSession{Name: "my chat"}, "under another name": parley.OpenSession{Name: "mine"},
		"with an input": parley.SubmitInput{Open: true, Content: "hello", Agent: agent, Name: "my chat"}} {
		if code := open("bob", do); code != parley.CodeNotFound {
			t.Errorf("bob opens it %s: %q", what, code)
		}
	}
	if code := open("ann", parley.OpenSession{}); code != parley.CodeNotFound {
		t.Errorf("ann opens it without its name: %q", code)
	}
	for _, do := range []parley.CommandBody{parley.OpenSession{Name: "my chat"},
		parley.SubmitInput{Open: true, Content: "hello", Agent: agent, Name: "my chat"}} {
		if code := open("ann", do); code != "" {
			t.Errorf("%T by ann: %q", do, code)
		}
	}
}
