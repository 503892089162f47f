package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/port"
)

func claimOf(tenant parley.TenantID, id parley.PrincipalID, until time.Time) port.TicketClaim {
	return port.TicketClaim{Agent: "helper", Origin: "https://a.example", Until: until, Identity: port.Identity{
		Principal: port.Principal{ID: id, Tenant: tenant, Roles: []parley.UserRole{parley.RoleReadOnly, "é\u0000"}},
		Issued:    t0, Expires: t0.Add(time.Hour), TokenID: "t-1"}}
}

func hashOf(ticket string) port.TicketHash { return sha256.Sum256([]byte(ticket)) }

func (f *fixture) putTicket(ticket string, claim port.TicketClaim) {
	f.t.Helper()
	if err := f.access().PutTicket(context.Background(), hashOf(ticket), claim, claim.Until); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) takeTicket(ticket string) (port.TicketClaim, bool) {
	f.t.Helper()
	claim, found, err := f.access().TakeTicket(context.Background(), hashOf(ticket))
	if err != nil {
		f.t.Fatal(err)
	}
	return claim, found
}

// ticketsAreTakenOnce checks that only the first caller gets a ticket, even
// across a restart.
func ticketsAreTakenOnce(t *testing.T, f *fixture) {
	ann, bob := claimOf(tenant, "ann", t0), claimOf("rival", "bob", t0)
	f.putTicket("one", ann)
	f.putTicket("two", bob)
	f.reopen()
	for ticket, want := range map[string]port.TicketClaim{"one": ann, "two": bob} {
		if got, found := f.takeTicket(ticket); !found || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %+v\nwant %+v", ticket, found, got, want)
		}
		if _, found := f.takeTicket(ticket); found {
			t.Errorf("%s was taken twice", ticket)
		}
	}
	if _, found := f.takeTicket("three"); found {
		t.Error("a ticket was taken that was never put")
	}
	for i := range 20 {
		ticket := fmt.Sprint("raced ", i)
		f.putTicket(ticket, ann)
		var wg sync.WaitGroup
		var won atomic.Int32
		for range 8 {
			wg.Go(func() {
				if _, found, err := f.access().TakeTicket(context.Background(), hashOf(ticket)); err != nil {
					t.Error(err)
				} else if found {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if n := won.Load(); n != 1 {
			t.Errorf("%d have taken one ticket", n)
		}
	}
}

// ticketsAreForgotten checks that tickets expire, but not early, and that a
// principal cannot have more than parley.MaxTickets.
func ticketsAreForgotten(t *testing.T, f *fixture) {
	ctx := context.Background()
	f.putTicket("expired", claimOf(tenant, "ann", t0))
	f.putTicket("good", claimOf(tenant, "ann", t0.Add(time.Microsecond)))
	f.putTicket("another's", claimOf("rival", "ann", t0))
	for i := range parley.MaxTickets - 1 {
		f.putTicket(fmt.Sprint(i), claimOf(tenant, "ann", t0.Add(parley.MaxTicketLife)))
	}
	claim := claimOf(tenant, "ann", t0.Add(parley.MaxTicketLife))
	if err := f.access().PutTicket(ctx, hashOf("too many"), claim, claim.Until); parley.CodeOf(
		err) != parley.CodeLimited {
		t.Errorf("ticket %d of one principal: %v", parley.MaxTickets+1, err)
	}
	f.putTicket("somebody else's", claimOf(tenant, "bob", t0.Add(parley.MaxTicketLife)))
	for ticket, want := range map[string]bool{"expired": false, "good": true, "another's": true, "too many": false,
		"somebody else's": true} {
		if _, found := f.takeTicket(ticket); found != want {
			t.Errorf("%s: found %v", ticket, found)
		}
	}
	f.putTicket("there is room again", claim)
}

func revocations(t *testing.T, f *fixture) {
	ctx := context.Background()
	for _, r := range []port.Revocation{
		{Tenant: tenant, Principal: "ann", Before: t0.Add(time.Minute)},
		{Tenant: tenant, Principal: "ann", Before: t0}, // covers less than the first one
		{Tenant: tenant, Principal: "bob", Before: t0},
		{Tenant: "rival", Principal: "ann", Before: t0},
		{Tenant: "rival", Principal: "ann", Before: t0.Add(time.Hour)},
		{Tenant: tenant, Principal: "bob", Before: t0.Add(time.Minute), SparesAdmins: true},
		{Tenant: tenant, Principal: "bob", Before: t0.Add(time.Second), SparesAdmins: true},
	} {
		f.append(port.Batch{Tenant: r.Tenant, Revocation: &r, Audit: []parley.Audit{record("revoked")}})
	}
	if n := len(f.chain(tenant)); n != 5 {
		t.Errorf("%d revocations are on record", n)
	}
	f.reopen()
	for after, want := range map[time.Time][]port.Revocation{
		t0.Add(-time.Microsecond): {{Tenant: tenant, Principal: "ann", Before: t0.Add(time.Minute)},
			{Tenant: tenant, Principal: "bob", Before: t0},
			{Tenant: tenant, Principal: "bob", Before: t0.Add(time.Minute), SparesAdmins: true},
			{Tenant: "rival", Principal: "ann", Before: t0.Add(time.Hour)}},
		t0: {{Tenant: tenant, Principal: "ann", Before: t0.Add(time.Minute)},
			{Tenant: tenant, Principal: "bob", Before: t0.Add(time.Minute), SparesAdmins: true},
			{Tenant: "rival", Principal: "ann", Before: t0.Add(time.Hour)}},
		t0.Add(2 * time.Hour): nil,
	} {
		got, err := f.access().Revocations(ctx, after)
		slices.SortStableFunc(got, func(a, b port.Revocation) int {
			return strings.Compare(string(a.Tenant+"/")+string(a.Principal), string(b.Tenant+"/")+string(b.Principal))
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("after %v: %+v, %v\nwant %+v", after, got, err, want)
		}
	}
}
