package port

import (
	"strings"
	"testing"
	"time"

	"parley"
)

func TestAdmit(t *testing.T) {
	now := time.Date(2026, 11, 16, 22, 30, 0, 0, time.UTC)
	spent := func(tokens, micros int64) Spent { return Spent{Usage: parley.Usage{Input: tokens, CostMicros: micros}} }
	call := func(user parley.PrincipalID, tokens, micros int64) Hold {
		return Hold{User: user, Tokens: tokens, Micros: micros}
	}
	for _, test := range []struct {
		name        string
		q           Quotas
		tenant, own Spent
		held        []Hold
		want        Hold
		ok          bool
		refused     string
	}{
		{name: "no quota", want: call("ann", 1<<40, 1<<40), ok: true},
		{name: "room", q: Quotas{User: Quota{Tokens: 100}}, own: spent(20, 0), held: []Hold{call("ann", 40, 0)},
			want: call("ann", 40, 0), ok: true},
		{name: "no room beside another", q: Quotas{User: Quota{Tokens: 100}}, own: spent(20, 0),
			held: []Hold{call("ann", 41, 0)}, want: call("ann", 40, 0)},
		{name: "of another user", q: Quotas{User: Quota{Tokens: 100}}, own: spent(20, 0),
			held: []Hold{call("bob", 41, 0)}, want: call("ann", 40, 0), ok: true},
		{name: "of another user of the tenant", q: Quotas{Tenant: Quota{Tokens: 100}}, tenant: spent(20, 0),
			held: []Hold{call("bob", 41, 0)}, want: call("ann", 40, 0)},
		{name: "alone, with a little left", q: Quotas{User: Quota{Tokens: 100}}, own: spent(99, 0),
			want: call("ann", 40, 0), ok: true},
		{name: "reached", q: Quotas{User: Quota{Tokens: 100}}, own: spent(100, 0), want: call("ann", 1, 0),
			refused: "The daily quota of this user for tokens is reached: 100 of 100 are used, 0 are left. It renews at " +
				"2026-11-17T00:00:00Z."},
		{name: "money", q: Quotas{Tenant: Quota{Micros: 2_000_000}}, tenant: spent(0, 2_500_000),
			want:    call("ann", 1, 0),
			refused: "The daily quota of this tenant for cost is reached: $2.5000 of $2.0000 are used, $0.0000 are left."},
		{name: "money beside another", q: Quotas{Tenant: Quota{Micros: 10}}, held: []Hold{call("bob", 1, 6)},
			want: call("ann", 1, 6)},
		{name: "sessions under way count", q: Quotas{User: Quota{Sessions: 2}}, own: Spent{Sessions: 1},
			held: []Hold{{User: "ann", Sessions: 1}}, want: Hold{User: "ann", Sessions: 1},
			refused: "The daily quota of this user for sessions is reached: 2 of 2 are used, 0 are left."},
		{name: "sessions are not asked of calls", q: Quotas{User: Quota{Sessions: 1}}, own: Spent{Sessions: 1},
			want: call("ann", 1, 0), ok: true},
		{name: "storage", q: Quotas{User: Quota{Storage: 10}}, own: Spent{Storage: 11}, want: call("ann", 1, 0),
			refused: "The storage quota of this user is reached: 11 bytes of 10 bytes are used, 0 bytes are left. It does " +
				"not renew by itself"},
	} {
		ok, err := test.q.Admit(now, test.tenant, test.own, test.held, test.want)
		message := ""
		if err != nil {
			message = parley.MessageOf(err)
		}
		if ok != test.ok || !strings.HasPrefix(message, test.refused) || (message == "") != (test.refused == "") {
			t.Errorf("%s: %v, %q", test.name, ok, message)
		}
		if err != nil && parley.CodeOf(err) != parley.CodeQuota {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	_, err := Quotas{User: Quota{Tokens: 1}}.Admit(now, Spent{}, spent(1, 0), nil, call("ann", 1, 0))
	tokens := parley.ReachedQuota{Of: "user", What: "tokens"}
	if e := err.(*parley.Error); e.RetryAfter != 90*time.Minute || *e.Quota != tokens {
		t.Errorf("%+v", e)
	}
}
