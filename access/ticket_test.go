package access

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley"
	"parley/port"
)

func identity(id parley.PrincipalID) Identity {
	return Identity{Principal: port.Principal{ID: id, Tenant: "acme",
		Roles: []parley.UserRole{parley.RoleStandardUser}}, Issued: start, Expires: start.Add(time.Hour),
		TokenID: "t-1"}
}

func newTickets(c *clock) (*Tickets, *MemoryTickets) {
	store := NewMemoryTickets(c.now)
	return NewTickets(store, c.now), store
}

func issue(t *testing.T, tickets *Tickets, id Identity, agent, origin string) string {
	t.Helper()
	ticket, _, err := tickets.Issue(t.Context(), id, agent, origin)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func TestATicketStandsForItsToken(t *testing.T) {
	c := &clock{at: start}
	tickets, _ := newTickets(c)
	ticket, expires, err := tickets.Issue(t.Context(), identity("ann"), "", "")
	if err != nil || !expires.Equal(start.Add(TicketLife)) || len(ticket) != 43 {
		t.Fatal(ticket, expires, err)
	}
	got, err := tickets.take(t.Context(), ticket, "any", "")
	want := identity("ann")
	want.Ticket = true
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if _, _, err := tickets.Issue(t.Context(), got, "", ""); parley.CodeOf(err) != parley.CodeForbidden {
		t.Errorf("a ticket for a ticket: %v", err)
	}
	short := identity("ann")
	short.Expires = start.Add(time.Second)
	if _, expires, _ := tickets.Issue(t.Context(), short, "", ""); !expires.Equal(short.Expires) {
		t.Errorf("a ticket is good until %v, its token until %v", expires, short.Expires)
	}
}

// A19: TestTicketsAreBound uses tickets in every wrong way. A wrong use uses the ticket up.
func TestTicketsAreBound(t *testing.T) {
	for _, c := range []struct {
		name                             string
		agent, origin, atAgent, atOrigin string
		after                            time.Duration
		ok                               bool
	}{
		{"as it was given", "coder", "https://a.example", "coder", "https://a.example", 0, true},
		{"for any agent", "", "https://a.example", "coder", "https://a.example", 0, true},
		{"another agent", "coder", "", "boss", "", 0, false},
		{"no agent", "coder", "", "", "", 0, false},
		{"another origin", "", "https://a.example", "", "https://b.example", 0, false},
		{"no origin", "", "https://a.example", "", "", 0, false},
		{"an origin where there was none", "", "", "", "https://a.example", 0, false},
		{"in time", "", "", "", "", TicketLife - 1, true},
		{"late", "", "", "", "", TicketLife, false},
	} {
		at := &clock{at: start}
		tickets, _ := newTickets(at)
		ticket := issue(t, tickets, identity("ann"), c.agent, c.origin)
		at.pass(c.after)
		_, err := tickets.take(t.Context(), ticket, c.atAgent, c.atOrigin)
		if c.ok && err != nil || !c.ok && reasonOf(err) != TicketInvalid {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := tickets.take(t.Context(), ticket, c.agent, c.origin); reasonOf(err) != TicketInvalid {
			t.Errorf("%s, and then again: %v", c.name, err)
		}
	}
	tickets, _ := newTickets(&clock{at: start})
	for _, ticket := range []string{"", "x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		string(make([]byte, 1<<16))} {
		if _, err := tickets.take(t.Context(), ticket, "", ""); reasonOf(err) != TicketInvalid {
			t.Errorf("%.50q: %v", ticket, err)
		}
	}
}

// A18: of several clients that use one ticket at once, one gets in.
func TestATicketIsUsedOnce(t *testing.T) {
	tickets, _ := newTickets(&clock{at: start})
	for range 200 {
		ticket := issue(t, tickets, identity("ann"), "", "")
		var in atomic.Int64
		var crowd sync.WaitGroup
		gun := make(chan struct{})
		for range 4 {
			crowd.Go(func() {
				<-gun
				if _, err := tickets.take(context.Background(), ticket, "", ""); err == nil {
					in.Add(1)
				} else if reasonOf(err) != TicketInvalid {
					t.Error(err)
				}
			})
		}
		close(gun)
		crowd.Wait()
		if in.Load() != 1 {
			t.Fatalf("%d got in", in.Load())
		}
	}
}

func TestTicketsAreKeptHashed(t *testing.T) {
	tickets, store := newTickets(&clock{at: start})
	ticket := issue(t, tickets, identity("ann"), "", "")
	if _, ok := store.kept[sha256.Sum256([]byte(ticket))]; !ok || len(store.kept) != 1 {
		t.Errorf("kept: %v", store.kept)
	}
	seen := map[string]bool{}
	for range 50 {
		ticket := issue(t, tickets, identity("ann"), "", "")
		if seen[ticket] {
			t.Fatal("the same ticket twice")
		}
		seen[ticket] = true
	}
}

func TestTicketsAreBounded(t *testing.T) {
	c := &clock{at: start}
	tickets, store := newTickets(c)
	put := func(id parley.PrincipalID) error {
		_, _, err := tickets.Issue(t.Context(), identity(id), "", "")
		return err
	}
	for range parley.MaxTickets {
		if err := put("ann"); err != nil {
			t.Fatal(err)
		}
	}
	if d, ok := errors.AsType[*Denied](put("ann")); !ok || d.Reason != TooOften || d.Retry == 0 {
		t.Error("one principal takes them all")
	}
	for i := range maxTickets - parley.MaxTickets {
		if err := put(parley.PrincipalID(fmt.Sprint("u", i))); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := put("bob"); reasonOf(err) != TooOften {
		t.Errorf("there is no room: %v", err)
	}
	c.pass(TicketLife)
	if err := put("ann"); err != nil || len(store.kept) != 1 || len(store.per) != 1 {
		t.Errorf("%v, and %d tickets of %d principals are kept", err, len(store.kept), len(store.per))
	}
}

// TestClaimsSurviveJSON: stores keep claims as JSON.
func TestClaimsSurviveJSON(t *testing.T) {
	claim := TicketClaim{Identity: identity("ann"), Agent: "coder", Origin: "https://a.example", Until: start}
	raw, err := json.Marshal(claim)
	if err != nil {
		t.Fatal(err)
	}
	var got TicketClaim
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(claim, got); diff != "" {
		t.Errorf("%s: %s", raw, diff)
	}
}
