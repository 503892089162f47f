package storetest

import (
	"context"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// contexts checks that there is one context for each tenant, agent and user,
// and that it is stored together with its audit record.
func contexts(t *testing.T, f *fixture) {
	ctx := context.Background()
	check := func(tn parley.TenantID, agent string, user parley.PrincipalID, want *port.UserContext) {
		t.Helper()
		got, ok, err := f.Tenant(tn).Context(ctx, agent, user)
		if err != nil || ok != (want != nil) || ok && got != *want {
			t.Errorf("%s/%s/%s: %+v, %v, %v; want %+v", tn, agent, user, got, ok, err, want)
		}
	}
	set := func(tn parley.TenantID, c port.UserContext) {
		t.Helper()
		f.append(port.Batch{Tenant: tn, Context: &c, Audit: []parley.Audit{record(port.AuditContext)}})
	}
	check(tenant, "helper", "ann", nil)
	first := port.UserContext{Agent: "helper", User: "ann", Text: "She plays \x00 the <oboe>, \"é\".\n", At: t0}
	set(tenant, first)
	check(tenant, "helper", "ann", &first)
	for _, other := range []struct {
		tn    parley.TenantID
		agent string
		user  parley.PrincipalID
	}{{"rival", "helper", "ann"}, {tenant, "coder", "ann"}, {tenant, "helper", "bob"}, {tenant, "", ""}} {
		check(other.tn, other.agent, other.user, nil)
	}
	second := port.UserContext{Agent: "helper", User: "ann", Text: "The cello.", At: t0.Add(time.Minute)}
	rival := port.UserContext{Agent: "helper", User: "ann", Text: "Somebody else of that name.", At: t0}
	set(tenant, second)
	set("rival", rival)

	// In a batch of a session, the context is stored only if the batch is.
	with := batch(ID(1), 0, 1)
	with.Context = &port.UserContext{Agent: "coder", User: "ann", Text: "She uses tabs.", At: t0}
	f.mustAppend(with)
	fenced := batch(ID(1), 9, 1)
	fenced.Context = &port.UserContext{Agent: "helper", User: "ann", Text: "never", At: t0}
	if !f.append(fenced).Fenced {
		t.Error("not fenced")
	}
	f.reopen()
	check(tenant, "helper", "ann", &second)
	check("rival", "helper", "ann", &rival)
	check(tenant, "coder", "ann", with.Context)
	for tn, want := range map[parley.TenantID]int{tenant: 2, "rival": 1} {
		if rows, err := f.Tenant(tn).Audited(ctx, port.AuditQuery{Action: port.AuditContext,
			Limit: 9}); err != nil || len(rows) != want {
			t.Errorf("%s: on record are %d, %v; want %d", tn, len(rows), err, want)
		}
	}
}
