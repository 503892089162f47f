package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley"
)

// TestADepartmentHeadIsNoAdministrator checks that a department head cannot change
// a setting of the tenant by any route, create an agent that asks less often than
// the default, or revoke an administrator.
func TestADepartmentHeadIsNoAdministrator(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store []string) {
		w := newWorld(t, store)
		defer w.stop()
		bearer := func(user parley.PrincipalID, role string) string {
			return "Bearer " + token(t, "acme", user, time.Minute, role)
		}
		head, root, ann := bearer("dora", "dept_head"), bearer("root", "org_admin"), bearer("ann", "standard_user")
		for _, c := range []struct {
			method, path, body string
			ok                 int
		}{
			{"PATCH", "/api/v1/settings", `{"approval":"full-auto"}`, 200},
			{"PATCH", "/api/v1/settings", `{"model":"gpt-4o"}`, 200},
			{"POST", "/api/settings", `{"agent":{"approval":"full-auto"}}`, 200},
			{"POST", "/api/settings", `{"agent":{"tool_permission_mode":"auto"}}`, 200},
			{"POST", "/api/config", `{"agent":{"max_iters":9}}`, 200},
			{"POST", "/api/v1/agents", `{"name":"bold","instructions":"Help.","approval":"full-auto"}`, 201},
			{"POST", "/api/v1/agents", `{"name":"bold","instructions":"Help.","approval":"auto-edit"}`, 201},
		} {
			if status, body := w.ask(c.method, c.path, head, c.body); status != http.StatusForbidden {
				t.Errorf("%s %s %s as dept_head: %d %s", c.method, c.path, c.body, status, body)
			}
			if status, body := w.ask(c.method, c.path, root, c.body); status != c.ok {
				t.Errorf("%s %s %s as org_admin: %d %s", c.method, c.path, c.body, status, body)
			}
		}
		if status, body := w.ask("POST", "/api/v1/agents", head,
			`{"name":"mild","instructions":"Help.","approval":"suggest"}`); status != http.StatusCreated {
			t.Errorf("an agent that asks: %d %s", status, body)
		}

		if status, body := w.ask("POST", "/api/v1/users/root/revoke", head, `{}`); status != 200 ||
			!strings.Contains(body, `"spared_roles":["org_admin"]`) {
			t.Errorf("%d %s", status, body)
		}
		if status, body := w.ask("GET", "/api/v1/me", root, ""); status != http.StatusOK {
			t.Errorf("a department head revoked an administrator: %d %s", status, body)
		}
		if status, _ := w.ask("POST", "/api/v1/users/ann/revoke", head, `{}`); status != http.StatusOK {
			t.Errorf("revoking a user: %d", status)
		}
		if status, _ := w.ask("GET", "/api/v1/me", ann, ""); status != http.StatusUnauthorized {
			t.Errorf("a user who was revoked: %d", status)
		}
		if status, body := w.ask("POST", "/api/v1/users/dora/revoke", root, `{}`); status != 200 ||
			strings.Contains(body, "spared") {
			t.Errorf("%d %s", status, body)
		}
		if status, _ := w.ask("GET", "/api/v1/me", head, ""); status != http.StatusUnauthorized {
			t.Errorf("a department head who was revoked: %d", status)
		}
	})
}
