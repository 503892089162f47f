package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley"
	"parley/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)

// clock is a clock that tests advance.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func reasonOf(err error) Reason {
	if d, ok := errors.AsType[*Denied](err); ok {
		return d.Reason
	}
	if err != nil {
		return Reason(err.Error())
	}
	return ""
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var allRoles = []parley.UserRole{parley.RoleLocal, parley.RoleOrgAdmin, parley.RoleDeptHead, parley.RoleStandardUser,
	parley.RoleReadOnly}

// TestEveryCell compares every role, action and resource with the documented
// table, so that no combination is open by mistake.
func TestEveryCell(t *testing.T) {
	promised := map[parley.UserRole]string{
		parley.RoleLocal:        "agents:read agents:message agents:write tenant:write audit:read users:read users:write departments:read",
		parley.RoleOrgAdmin:     "agents:read agents:message agents:write tenant:write audit:read users:read users:write departments:read",
		parley.RoleDeptHead:     "agents:read agents:message agents:write audit:read users:read users:write departments:read",
		parley.RoleStandardUser: "agents:read agents:message",
		parley.RoleReadOnly:     "agents:read",
	}
	wide := map[parley.UserRole]bool{parley.RoleLocal: true, parley.RoleOrgAdmin: true}
	actions := append([]parley.Action{"", "*", "agents:dream"}, everything...)
	cells := 0
	for _, name := range append([]parley.UserRole{"", "king"}, allRoles...) {
		who := port.Principal{ID: "ann", Tenant: "acme", Roles: []parley.UserRole{name}}
		for _, action := range actions {
			has := slices.Contains(strings.Fields(promised[name]), string(action))
			for _, c := range []struct {
				on   port.Resource
				want parley.Code // with the permission
				wide parley.Code // with the permission for everybody's sessions
			}{
				{on: port.Resource{Kind: port.OwnSessions}},
				{on: port.Resource{Kind: port.OneSession, Owner: "ann"}},
				{on: port.Resource{Kind: port.OneSession, Owner: "bob"}, want: parley.CodeNotFound},
				{on: port.Resource{Kind: port.OneSession, Owner: ""}, want: parley.CodeNotFound},
				{on: port.Resource{Kind: port.EverySession}, want: parley.CodeForbidden},
				{on: port.Resource{Kind: port.OneAgent, Agent: "coder"}},
				{on: port.Resource{Kind: port.WholeTenant}},
				{on: port.Resource{}, want: parley.CodeForbidden, wide: parley.CodeForbidden},
				{on: port.Resource{Kind: 99, Owner: "ann"}, want: parley.CodeForbidden, wide: parley.CodeForbidden},
			} {
				want := c.want
				if wide[name] {
					want = c.wide
				}
				if !has {
					want = parley.CodeForbidden
				}
				c.on.Tenant = "acme"
				expect(t, fmt.Sprintf("%s does %q to %+v", name, action, c.on), Rules{}.Permit(who, action, c.on), want)
				c.on.Tenant = "rival" // even a role for everybody's sessions ends at the tenant
				expect(t, fmt.Sprintf("%s does %q to %+v", name, action, c.on), Rules{}.Permit(who, action, c.on),
					parley.CodeNotFound)
				cells += 2
			}
		}
	}
	t.Logf("%d cells", cells)
}

func expect(t *testing.T, what string, err error, want parley.Code) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || parley.CodeOf(err) != want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestUnidentifiedPrincipalsAreRefused(t *testing.T) {
	for _, who := range []port.Principal{
		{}, {Roles: []parley.UserRole{parley.RoleOrgAdmin}}, {ID: "eve", Roles: []parley.UserRole{parley.RoleOrgAdmin}},
		{Tenant: "acme", Roles: []parley.UserRole{parley.RoleOrgAdmin}},
	} {
		for _, tenant := range []parley.TenantID{"", "acme"} {
			expect(t, fmt.Sprintf("%+v in %q", who, tenant),
				Rules{}.Permit(who, parley.ActRead, port.Resource{Kind: port.OwnSessions, Tenant: tenant}),
				parley.CodeNotFound)
		}
	}
}

// TestErrorsDoNotRevealExistence: without the permission, the answer is the same
// for a session that is the caller's, another user's or absent. With the
// permission, the answers for another user's session and an absent one are
// identical.
func TestErrorsDoNotRevealExistence(t *testing.T) {
	absent := port.Resource{Kind: port.OwnSessions, Tenant: "acme", Session: "s"}
	others := port.Resource{Kind: port.OneSession, Tenant: "acme", Session: "s", Owner: "bob"}
	reader := port.Principal{ID: "ann", Tenant: "acme", Roles: []parley.UserRole{parley.RoleReadOnly}}
	a, b := Rules{}.Permit(reader, parley.ActMessage, absent), Rules{}.Permit(reader, parley.ActMessage, others)
	if a == nil || b == nil || a.Error() != b.Error() {
		t.Errorf("absent: %v; another's: %v", a, b)
	}
	foreign := others
	foreign.Tenant = "rival"
	a, b = Rules{}.Permit(reader, parley.ActRead, foreign), Rules{}.Permit(reader, parley.ActRead, others)
	if a == nil || b == nil || a.Error() != b.Error() {
		t.Errorf("another tenant's: %v; another's: %v", a, b)
	}
}

func TestWritingImpliesTalking(t *testing.T) {
	r := role{actions: []parley.Action{parley.ActAdmin}}
	if !r.permits(parley.ActMessage) || r.permits(parley.ActRead) {
		t.Error("agents:write implies agents:message and nothing else")
	}
	if (role{actions: []parley.Action{parley.ActMessage}}).permits(parley.ActAdmin) {
		t.Error("agents:message implies agents:write")
	}
}

func TestAllowNarrows(t *testing.T) {
	for _, c := range []struct {
		allow []parley.UserRole
		roles []parley.UserRole
		want  parley.Code
	}{
		{[]parley.UserRole{parley.RoleStandardUser}, []parley.UserRole{parley.RoleStandardUser}, ""},
		{[]parley.UserRole{parley.RoleDeptHead, parley.RoleStandardUser},
			[]parley.UserRole{parley.RoleReadOnly, parley.RoleStandardUser}, ""},
		{[]parley.UserRole{parley.RoleDeptHead}, []parley.UserRole{parley.RoleStandardUser}, parley.CodeForbidden},
		{[]parley.UserRole{parley.RoleStandardUser}, []parley.UserRole{parley.RoleDeptHead}, parley.CodeForbidden},
		{[]parley.UserRole{parley.RoleDeptHead}, []parley.UserRole{parley.RoleOrgAdmin}, ""},
		{[]parley.UserRole{parley.RoleDeptHead}, []parley.UserRole{parley.RoleLocal}, ""},
		// A role in the allow list still needs the permission.
		{[]parley.UserRole{parley.RoleReadOnly}, []parley.UserRole{parley.RoleReadOnly}, parley.CodeForbidden},
		{[]parley.UserRole{"king"}, []parley.UserRole{"king", parley.RoleStandardUser}, parley.CodeForbidden},
		{[]parley.UserRole{}, []parley.UserRole{parley.RoleStandardUser}, parley.CodeForbidden},
		{nil, []parley.UserRole{parley.RoleStandardUser}, parley.CodeForbidden},
	} {
		who := port.Principal{ID: "ann", Tenant: "acme", Roles: c.roles}
		on := port.Resource{Kind: port.OneAgent, Tenant: "acme", Agent: "coder",
			Allow: &parley.AgentAllow{Roles: c.allow}}
		expect(t, fmt.Sprintf("%v to %v", c.roles, c.allow), Rules{}.Permit(who, parley.ActMessage, on), c.want)
		expect(t, fmt.Sprintf("%v looks at %v", c.roles, c.allow), Rules{}.Permit(who, parley.ActRead, on), "")
	}
}

func TestAllowNamesUsers(t *testing.T) {
	for _, c := range []struct {
		allow parley.AgentAllow
		id    parley.PrincipalID
		role  parley.UserRole
		want  parley.Code
	}{
		{parley.AgentAllow{Users: []parley.PrincipalID{"bob", "ann"}}, "ann", parley.RoleStandardUser, ""},
		{parley.AgentAllow{Users: []parley.PrincipalID{"bob"}}, "ann", parley.RoleStandardUser, parley.CodeForbidden},
		{parley.AgentAllow{Users: []parley.PrincipalID{"bob"}}, "ann", parley.RoleDeptHead, parley.CodeForbidden},
		{parley.AgentAllow{Users: []parley.PrincipalID{"bob"}}, "ann", parley.RoleOrgAdmin, ""},
		{parley.AgentAllow{Users: []parley.PrincipalID{"Ann", "ann "}}, "ann", parley.RoleStandardUser,
			parley.CodeForbidden},
		// A user in the allow list still needs a role that permits messages.
		{parley.AgentAllow{Users: []parley.PrincipalID{"ann"}}, "ann", parley.RoleReadOnly, parley.CodeForbidden},
		{parley.AgentAllow{Users: []parley.PrincipalID{"ann"}}, "ann", "king", parley.CodeForbidden},
		// One of the two lists is enough.
		{parley.AgentAllow{Roles: []parley.UserRole{parley.RoleDeptHead}, Users: []parley.PrincipalID{"ann"}}, "ann",
			parley.RoleStandardUser, ""},
		{parley.AgentAllow{Roles: []parley.UserRole{parley.RoleDeptHead}, Users: []parley.PrincipalID{"ann"}}, "bob",
			parley.RoleDeptHead, ""},
		{parley.AgentAllow{Roles: []parley.UserRole{parley.RoleDeptHead}, Users: []parley.PrincipalID{"ann"}}, "bob",
			parley.RoleStandardUser, parley.CodeForbidden},
		// Role names and user ids are not mixed up.
		{parley.AgentAllow{Users: []parley.PrincipalID{"standard_user"}}, "ann", parley.RoleStandardUser,
			parley.CodeForbidden},
		{parley.AgentAllow{Roles: []parley.UserRole{"ann"}}, "ann", parley.RoleStandardUser, parley.CodeForbidden},
	} {
		who := port.Principal{ID: c.id, Tenant: "acme", Roles: []parley.UserRole{c.role}}
		on := port.Resource{Kind: port.OneAgent, Tenant: "acme", Agent: "coder", Allow: &c.allow}
		expect(t, fmt.Sprintf("%s, a %s, to %v", c.id, c.role, c.allow), Rules{}.Permit(who, parley.ActMessage, on),
			c.want)
		on.Tenant = "rival"
		expect(t, fmt.Sprintf("%s of another tenant to %v", c.id, c.allow), Rules{}.Permit(who, parley.ActMessage, on),
			parley.CodeNotFound)
	}
}

func TestPermissionsAreThoseOfTheRoles(t *testing.T) {
	for role, want := range map[parley.UserRole]string{
		"read_only":     "agents:read",
		"standard_user": "agents:read agents:message",
		"dept_head":     "agents:read agents:message agents:write audit:read users:read users:write departments:read",
		"org_admin":     "agents:read agents:message agents:write tenant:write audit:read users:read users:write departments:read",
		"king":          "",
	} {
		var got []string
		for _, action := range Permissions(port.Principal{ID: "ann", Tenant: "acme",
			Roles: []parley.UserRole{role}}) {
			got = append(got, string(action))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s may %v, want %s", role, got, want)
		}
	}
}
