package storetest

import (
	"context"
	"fmt"
	"parley/store/rules"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
)

// auditIsAChain: records go in with batches and on their own, from many at once,
// and every one of them is there once, in one chain per tenant.
func auditIsAChain(t *testing.T, f *fixture) {
	ctx := context.Background()
	const writers, each = 8, 10
	auditKey := rules.AuditKeyOf([]byte("of the server"))
	f.access().KeyAudit(auditKey)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for j := range each {
				b := batch(ID(i), parley.Seq(j), 1)
				b.Audit = []parley.Audit{record(fmt.Sprintf("with.%d.%d", i, j)), record("also")}
				alone := parley.Batch{Tenant: tenant, Audit: []parley.Audit{record("alone")}}
				if i%2 == 0 {
					alone.Tenant = "" // the server's own
				}
				for _, b := range []parley.Batch{b, alone} {
					if res, err := f.Append(ctx, b); err != nil || res.Fenced {
						t.Error(res, err)
					}
				}
			}
		})
	}
	wg.Wait()
	fenced := batch(ID(1), 99, 1)
	fenced.Audit = []parley.Audit{record("never")}
	f.append(fenced)
	f.reopen()
	for _, c := range []struct {
		tenant parley.TenantID
		want   int
	}{{tenant, writers*each*2 + writers*each/2}, {"", writers * each / 2}, {"rival", 0}} {
		rows := f.chain(c.tenant)
		if len(rows) != c.want {
			t.Errorf("%q has %d rows, want %d", c.tenant, len(rows), c.want)
		}
		check := rules.ChainCheck{Key: auditKey}
		if bad, why := check.Add(rows); bad != nil || check.Unkeyed != 0 {
			t.Errorf("%q: row %v %s; %d rows without a key", c.tenant, bad, why, check.Unkeyed)
		}
		if slices.ContainsFunc(rows, func(r parley.AuditRow) bool {
			return r.Action == "never" ||
				r.Tenant != c.tenant
		}) {
			t.Errorf("%q has a row that is not its own", c.tenant)
		}
	}
	tenants, err := f.Tenants(ctx)
	if err != nil || !slices.Equal(tenants, []parley.TenantID{"", tenant}) {
		t.Errorf("tenants %q, %v", tenants, err)
	}
}

func record(action string) parley.Audit {
	return parley.Audit{At: t0, By: "ann", Action: action, Resource: "session", ID: "x", Source: "http",
		Metadata: parley.Metadata(map[string]any{"b": 1, "a": "é\u0000"})}
}

func (f *fixture) chain(tenant parley.TenantID) (rows []parley.AuditRow) {
	f.t.Helper()
	for {
		page, err := f.Tenant(tenant).AuditChain(context.Background(), int64(len(rows)), 7)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(page) == 0 {
			return rows
		}
		rows = append(rows, page...)
	}
}

func auditIsFiltered(t *testing.T, f *fixture) {
	var records []parley.Audit
	for i := range 12 {
		records = append(records, parley.Audit{At: t0.Add(time.Duration(i) * time.Minute),
			By:     parley.PrincipalID([]string{"ann", "bob"}[i%2]),
			Action: []string{"a.a", "b.b", "c.c"}[i%3], Resource: []string{"agent", "tool"}[i/6],
			Source: []string{"http", "websocket"}[i/3%2], Metadata: []byte(`{}`)})
	}
	f.append(parley.Batch{Tenant: tenant, Audit: records})
	for name, c := range map[string]struct {
		q    parley.AuditQuery
		want []int64
	}{
		"newest": {parley.AuditQuery{Limit: 3}, []int64{12, 11, 10}},
		"by":     {parley.AuditQuery{By: "bob", Limit: 2}, []int64{12, 10}},
		"action": {parley.AuditQuery{Action: "b.b", Limit: 9}, []int64{11, 8, 5, 2}},
		"all": {parley.AuditQuery{By: "ann", Action: "a.a", Resource: "agent", Source: "http", Limit: 9},
			[]int64{1}},
		"between": {parley.AuditQuery{After: t0.Add(3 * time.Minute), Before: t0.Add(6 * time.Minute), Limit: 9},
			[]int64{6, 5}},
		"none": {parley.AuditQuery{Action: "x", Limit: 9}, nil},
	} {
		rows, err := f.Tenant(tenant).Audited(context.Background(), c.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, r := range rows {
			got = append(got, r.No)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if rows, err := f.Tenant("rival").Audited(context.Background(), parley.AuditQuery{Limit: 9}); err != nil ||
		len(rows) > 0 {
		t.Errorf("another tenant is shown %d rows, %v", len(rows), err)
	}
}
