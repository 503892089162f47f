package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// auditIsAChain appends records with batches and on their own, concurrently.
// Every record must be stored once, in one chain per tenant.
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
				alone := port.Batch{Tenant: tenant, Audit: []parley.Audit{record("alone")}}
				if i%2 == 0 {
					alone.Tenant = "" // belongs to the server's own chain
				}
				for _, b := range []port.Batch{b, alone} {
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
		if slices.ContainsFunc(rows, func(r port.AuditRow) bool {
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

func (f *fixture) chain(tenant parley.TenantID) (rows []port.AuditRow) {
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
	records[2].Metadata = parley.Metadata(map[string]any{"session": ID(1), "odd": "\u0000"})
	records[4].Resource, records[4].ID = "session", string(ID(1))
	records[7].Metadata, records[7].ID = parley.Metadata(map[string]any{"session": ID(2)}), string(ID(1))
	records[10].Metadata = parley.Metadata(map[string]any{"session": ID(1), "seq": 9})
	f.append(port.Batch{Tenant: tenant, Audit: records})
	for name, c := range map[string]struct {
		q    port.AuditQuery
		want []int64
	}{
		"newest": {port.AuditQuery{Limit: 3}, []int64{12, 11, 10}},
		"by":     {port.AuditQuery{By: "bob", Limit: 2}, []int64{12, 10}},
		"action": {port.AuditQuery{Action: "b.b", Limit: 9}, []int64{11, 8, 5, 2}},
		"all": {port.AuditQuery{By: "ann", Action: "a.a", Resource: "agent", Source: "http", Limit: 9},
			[]int64{1}},
		"session": {port.AuditQuery{Session: ID(1), Limit: 9}, []int64{11, 5, 3}},
		"page":    {port.AuditQuery{Session: ID(1), BeforeNo: 11, Limit: 1}, []int64{5}},
		"pages":   {port.AuditQuery{BeforeNo: 3, Limit: 9}, []int64{2, 1}},
		"between": {port.AuditQuery{After: t0.Add(3 * time.Minute), Before: t0.Add(6 * time.Minute), Limit: 9},
			[]int64{6, 5}},
		"none": {port.AuditQuery{Action: "x", Limit: 9}, nil},
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
	if rows, err := f.Tenant("rival").Audited(context.Background(), port.AuditQuery{Limit: 9}); err != nil ||
		len(rows) > 0 {
		t.Errorf("another tenant is shown %d rows, %v", len(rows), err)
	}
}

// auditIsCut checks that TrimAudit deletes what retention allows, for one tenant and not under a legal hold. The rest
// of the chain verifies, and accepts new records.
func auditIsCut(t *testing.T, f *fixture) {
	ctx := context.Background()
	key := rules.AuditKeyOf([]byte("of the server"))
	f.access().KeyAudit(key)
	var records []parley.Audit
	for i := range rules.CutPage + 10 {
		records = append(records, record("old"))
		records[i].At = t0.Add(time.Duration(i) * time.Second)
	}
	for _, of := range []parley.TenantID{tenant, "", "rival"} {
		for chunk := range slices.Chunk(records, 100) { // one append of all takes over 5 s on a slow machine
			f.append(port.Batch{Tenant: of, Audit: chunk})
		}
	}
	now := t0.Add(1000 * time.Hour)
	trim := func(of parley.TenantID, before time.Time) (int, bool, error) {
		t.Helper()
		return f.TrimAudit(ctx, of, before, "ann", now)
	}
	if _, _, err := trim(tenant, t0.Add(time.Hour)); parley.CodeOf(err) == parley.CodeForbidden && err != nil {
		return // a serving role may not trim
	}
	f.reopen()
	f.access().KeyAudit(key)
	verify := func(of parley.TenantID, from, rows int64) port.AuditCut {
		t.Helper()
		last, err := f.Tenant(of).Audited(ctx, port.AuditQuery{Action: port.AuditTrimmed, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		check := rules.NewChainCheck(key, rules.LastCut(last))
		for after := int64(0); ; after = check.No {
			page, err := f.Tenant(of).AuditChain(ctx, after, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if bad, why := check.Add(page); bad != nil {
				t.Fatalf("%q: row %d %s", of, bad.No, why)
			}
			if len(page) == 0 {
				break
			}
		}
		if check.Cut.No != from-1 || check.Rows != rows {
			t.Fatalf("%q has %d rows after %d", of, check.Rows, check.Cut.No)
		}
		return check.Cut
	}
	all := int64(len(records))
	verify(tenant, 3601, all-3600+1) // one more: the record of the cut
	if n, err := f.Tenant(tenant).OldAudit(ctx, t0.Add(time.Hour+time.Millisecond)); err != nil || n != 1 {
		t.Errorf("%d are old, %v", n, err)
	}
	if n, more, err := trim(tenant, now); err != nil || n != int(all)-3600 || more {
		t.Errorf("%d, %t, %v", n, more, err)
	}
	if cut := verify(tenant, all+1, 2); cut.Rows != all-3600 {
		t.Errorf("%+v", cut)
	}
	if n, err := f.Tenant(tenant).OldAudit(ctx, now.Add(time.Hour)); err != nil || n != 0 {
		t.Errorf("%d are old where only cuts are on record, %v", n, err)
	}
	if n, more, err := trim("", now); err != nil || n != rules.CutPage || !more {
		t.Errorf("%d, %t, %v", n, more, err)
	}
	verify("", rules.CutPage+1, 11)
	verify("rival", 1, all)

	f.append(port.Batch{Tenant: "rival", Hold: &port.HoldChange{LegalHold: port.LegalHold{Kind: port.HoldUser,
		ID: "bob", Reason: "case", At: t0}}, Audit: []parley.Audit{record("hold.set")}})
	if n, _, err := trim("rival", now); parley.CodeOf(err) != parley.CodeConflict || n != 0 {
		t.Errorf("under a hold: %d, %v", n, err)
	}
	verify("rival", 1, all+1)
	f.append(port.Batch{Tenant: tenant, Audit: []parley.Audit{record("new")}})
	verify(tenant, all+1, 3)
}
