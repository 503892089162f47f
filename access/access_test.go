package access

import (
	"testing"

	"parley"
)

func TestDeniedUnlessPermitted(t *testing.T) {
	local := Local("acme")
	on := parley.Resource{Tenant: "acme", Session: "s", Owner: "somebody"}
	for _, c := range []struct {
		name string
		who  parley.Principal
		act  parley.Action
		on   parley.Resource
		want parley.Code
	}{
		{"local reads", local, parley.ActRead, on, ""},
		{"local talks", local, parley.ActMessage, on, ""},
		{"local halts", local, parley.ActAdmin, on, ""},
		{"an action nobody knows", local, "agents:dream", on, parley.CodeForbidden},
		{"no action", local, "", on, parley.CodeForbidden},
		{"another tenant's", local, parley.ActRead, parley.Resource{Tenant: "rival", Session: "s"}, parley.CodeNotFound},
		{"nobody's", local, parley.ActRead, parley.Resource{}, parley.CodeNotFound},
		{"nobody", parley.Principal{}, parley.ActRead, parley.Resource{}, parley.CodeNotFound},
		{"no role", parley.Principal{ID: "eve", Tenant: "acme"}, parley.ActRead, on, parley.CodeForbidden},
		{"a role nobody knows", parley.Principal{ID: "eve", Tenant: "acme", Roles: []string{"king", ""}}, parley.ActRead, on, parley.CodeForbidden},
	} {
		err := Rules{}.Permit(c.who, c.act, c.on)
		if c.want == "" && err != nil || c.want != "" && (err == nil || parley.CodeOf(err) != c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
