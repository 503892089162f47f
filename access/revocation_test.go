package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
)

// shared is a RevocationStore that several servers share.
type shared struct {
	mu      sync.Mutex
	list    []Revocation
	records []parley.Audit
	err     error
	before  func() // called before a revocation is stored
}

func (s *shared) Append(_ context.Context, b port.Batch) (port.Appended, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil {
		s.before()
	}
	if s.err == nil {
		s.list = append(s.list, *b.Revocation)
		s.records = append(s.records, b.Audit...)
	}
	return port.Appended{}, s.err
}

func (s *shared) Revocations(_ context.Context, after time.Time) (list []Revocation, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.list {
		if v.Before.After(after) {
			list = append(list, v)
		}
	}
	return list, s.err
}

func revocations(t *testing.T, store RevocationStore) *Revocations {
	t.Helper()
	r, err := NewRevocations(t.Context(), store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func until(issued, expires time.Time) Identity {
	id := identity("ann")
	id.Issued, id.Expires = issued, expires
	return id
}

// A16: an identity ends at the exact moment, and not before.
func TestAnIdentityEndsWhenItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := revocations(t, nil)
		ctx, done := r.Watch(t.Context(), until(time.Now(), time.Now().Add(time.Hour)))
		defer done()
		time.Sleep(time.Hour - time.Nanosecond)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("too early:", context.Cause(ctx))
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if reasonOf(context.Cause(ctx)) != TokenExpired {
			t.Errorf("it ended with %v", context.Cause(ctx))
		}
		over, done := r.Watch(t.Context(), until(time.Now(), time.Now()))
		defer done()
		if reasonOf(context.Cause(over)) != TokenExpired {
			t.Errorf("what is over: %v", context.Cause(over))
		}
		local, done := r.Watch(t.Context(), Identity{Principal: Local("acme")})
		time.Sleep(10 * MaxTokenLife)
		synctest.Wait()
		if local.Err() != nil {
			t.Errorf("what never expires: %v", context.Cause(local))
		}
		done()
		if !errors.Is(context.Cause(local), context.Canceled) || len(r.watchers) != 2 { // ann, and ann's token
			t.Errorf("once nobody watches: %v, %d watched", context.Cause(local), len(r.watchers))
		}
	})
}

// A15: a revocation acts at once on this server, within the interval of Keep on
// others, and only on the revoked principal.
func TestRevocationEndsWhatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shared{}
		here, there := revocations(t, store), revocations(t, store)
		keep, stop := context.WithCancel(t.Context())
		var keeper sync.WaitGroup
		keeper.Go(func() { there.Keep(keep, 2*time.Second, slog.New(slog.DiscardHandler)) })
		defer keeper.Wait()
		defer stop()

		issued := time.Now()
		later := issued.Add(time.Hour)
		bob := until(issued, later)
		bob.Principal.ID = "bob"
		rival := until(issued, later)
		rival.Tenant = "rival"
		old := until(issued, later)
		unknown := until(time.Time{}, later)
		fresh := until(issued.Add(3*time.Second), later)
		var watched []context.Context
		for _, id := range []Identity{old, unknown, fresh, bob, rival} {
			ctx, done := here.Watch(t.Context(), id)
			defer done()
			watched = append(watched, ctx)
		}
		elsewhere, done := there.Watch(t.Context(), old)
		defer done()

		time.Sleep(time.Second)
		if err := here.Revoke(t.Context(), Revocation{Tenant: "acme", Principal: "ann", Before: time.Now()},
			parley.Audit{}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []Reason{TokenRevoked, TokenRevoked, "", "", ""} {
			if got := reasonOf(context.Cause(watched[i])); got != want {
				t.Errorf("%d: %q, want %q", i, got, want)
			}
		}
		for id, want := range map[*Identity]Reason{&old: TokenRevoked, &unknown: TokenRevoked, &fresh: "", &bob: "",
			&rival: ""} {
			if got := reasonOf(here.Check(*id)); got != want {
				t.Errorf("%+v comes again: %q, want %q", id, got, want)
			}
		}
		late, done := here.Watch(t.Context(), old)
		defer done()
		if reasonOf(context.Cause(late)) != TokenRevoked {
			t.Error("who came just before it was revoked, and watched just after")
		}
		if elsewhere.Err() != nil {
			t.Error("nobody has told the other server yet")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if reasonOf(context.Cause(elsewhere)) != TokenRevoked {
			t.Errorf("on another server: %v", context.Cause(elsewhere))
		}
		if got := reasonOf(revocations(t, store).Check(old)); got != TokenRevoked {
			t.Errorf("after a restart: %q", got)
		}
	})
}

// C15: when a role is removed, connections that used it end, and the next token
// has fewer permissions.
func TestARoleIsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := revocations(t, nil)
		was := until(time.Now(), time.Now().Add(time.Hour))
		ctx, done := r.Watch(t.Context(), was)
		defer done()
		if err := r.Revoke(t.Context(), Revocation{Tenant: "acme", Principal: "ann", Before: time.Now()},
			parley.Audit{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		is := until(time.Now(), time.Now().Add(time.Hour))
		is.Roles = []parley.UserRole{parley.RoleReadOnly}
		if ctx.Err() == nil || r.Check(was) == nil || r.Check(is) != nil {
			t.Error("the old identity is good, or the new one is not")
		}
		on := port.Resource{Kind: port.OneSession, Tenant: "acme", Owner: "ann"}
		expect(t, "a decision as before", Rules{}.Permit(is.Principal, parley.ActMessage, on), parley.CodeForbidden)
	})
}

func TestRevocationsThatMakeNoSense(t *testing.T) {
	r := revocations(t, nil)
	for _, v := range []Revocation{
		{}, {Tenant: "acme", Before: time.Now()}, {Principal: "ann", Before: time.Now()},
		{Tenant: "ACME", Principal: "ann", Before: time.Now()},
		{Tenant: "acme", Principal: "ann"}, {Tenant: "acme", Principal: "ann", Before: time.Now().Add(time.Hour)},
	} {
		if err := r.Revoke(t.Context(), v, parley.Audit{}); parley.CodeOf(err) != parley.CodeInvalid {
			t.Errorf("%+v: %v", v, err)
		}
	}
}

// TestARevocationThatIsNotOnRecord: a revocation that could not be stored has
// no effect. One that is stored takes effect afterwards and not before.
func TestARevocationThatIsNotOnRecord(t *testing.T) {
	store := &shared{}
	r := revocations(t, store)
	id := until(time.Now(), time.Now().Add(time.Hour))
	ctx, done := r.Watch(t.Context(), id)
	defer done()
	revoke := func() error {
		v := Revocation{Tenant: "acme", Principal: "ann", Before: time.Now()}
		return r.Revoke(t.Context(), v, parley.Audit{Action: port.AuditRevoked})
	}
	holds := func() bool { return ctx.Err() != nil || r.Check(id) != nil }
	early := false
	store.before = func() { early = early || holds() }
	store.err = errors.New("disk full")
	if err := revoke(); err == nil {
		t.Error("the caller was not told that it was not saved")
	}
	if holds() {
		t.Error("it holds and is not on record")
	}
	if _, err := NewRevocations(t.Context(), store, time.Now); err == nil {
		t.Error("a server starts without knowing what was revoked")
	}
	store.err = nil
	if err := revoke(); err != nil || early || ctx.Err() == nil || r.Check(id) == nil {
		t.Errorf("%v; held too early: %v; holds: %v", err, early, holds())
	}
	if len(store.records) != 1 || store.records[0].Action != port.AuditRevoked {
		t.Errorf("%+v", store.records)
	}
}

// TestRevokingARoleAbove: a department head revokes the tokens of users, but no
// token of an administrator, whether or not the server has seen it.
func TestRevokingARoleAbove(t *testing.T) {
	store := &shared{}
	r := revocations(t, store)
	e := &Entrance{Revocations: r}
	issued, later := time.Now(), time.Now().Add(time.Hour)
	token := func(roles ...parley.UserRole) Identity {
		id := until(issued, later)
		id.Roles = roles
		return id
	}
	as := func(role parley.UserRole) port.Principal {
		return port.Principal{ID: "dora", Tenant: "acme", Roles: []parley.UserRole{role}}
	}
	user, head, admin := token(parley.RoleStandardUser), token(parley.RoleDeptHead),
		token(parley.RoleReadOnly, parley.RoleOrgAdmin)
	open := map[string]context.Context{}
	for name, id := range map[string]Identity{"user": user, "admin": admin} {
		ctx, done := r.Watch(t.Context(), id)
		defer done()
		open[name] = ctx
	}
	spared, err := e.Revoke(t.Context(), as(parley.RoleDeptHead), "ann")
	if err != nil || len(spared) != 1 || spared[0] != parley.RoleOrgAdmin {
		t.Errorf("%v %v", spared, err)
	}
	if string(store.records[0].Metadata) != `{"spared_roles":["org_admin"]}` || store.records[0].By != "dora" ||
		store.records[0].ID != "ann" {
		t.Errorf("on record: %+v %s", store.records[0], store.records[0].Metadata)
	}
	if r.Check(user) == nil || r.Check(head) == nil || open["user"].Err() == nil {
		t.Error("a token without the higher role is good")
	}
	if r.Check(admin) != nil || open["admin"].Err() != nil {
		t.Error("a department head revoked an administrator")
	}
	if again := revocations(t, store); again.Check(admin) != nil || again.Check(user) == nil {
		t.Error("after a restart it is another")
	}
	if spared, err := e.Revoke(t.Context(), as(parley.RoleOrgAdmin), "ann"); err != nil || len(spared) != 0 {
		t.Errorf("%v %v", spared, err)
	}
	if r.Check(admin) == nil || open["admin"].Err() == nil {
		t.Error("an administrator cannot revoke another")
	}
}

func TestRevocationsAreForgottenWithTheLastTokenTheyConcern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := revocations(t, nil)
		revoke := func(i int) error {
			tenant := parley.TenantID(fmt.Sprint("t", i/maxOfTenant))
			return r.Revoke(t.Context(), Revocation{Tenant: tenant, Principal: parley.PrincipalID(fmt.Sprint("u", i)),
				Before: time.Now()}, parley.Audit{})
		}
		for i := range maxOfTenant {
			if err := revoke(i); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Revoke(t.Context(), Revocation{Tenant: "t0", Principal: "one-more", Before: time.Now()},
			parley.Audit{}); parley.CodeOf(err) != parley.CodeOverloaded {
			t.Errorf("one more of a tenant: %v", err)
		}
		for i := range maxRevocations {
			if err := revoke(i); err != nil {
				t.Fatal(err)
			}
		}
		if err := revoke(maxRevocations); parley.CodeOf(err) != parley.CodeOverloaded {
			t.Errorf("one more: %v", err)
		}
		if err := revoke(1); err != nil {
			t.Errorf("one that is there: %v", err)
		}
		time.Sleep(MaxTokenLife)
		if err := revoke(maxRevocations); err != nil || len(r.before) != 1 {
			t.Errorf("a year later: %v, %d kept", err, len(r.before))
		}
	})
}

func TestWatchingWhileRevoking(t *testing.T) {
	r := revocations(t, nil)
	var crowd sync.WaitGroup
	for i := range 8 {
		crowd.Go(func() {
			for n := range 200 {
				id := identity(parley.PrincipalID(fmt.Sprint("u", n%5)))
				id.Expires = time.Now().Add(time.Hour)
				id.Issued = time.Now().Add(-time.Minute)
				ctx, done := r.Watch(context.Background(), id)
				if i%2 == 0 {
					if err := r.Revoke(context.Background(), Revocation{Tenant: "acme", Principal: id.Principal.ID,
						Before: time.Now()}, parley.Audit{}); err != nil {
						t.Error(err)
					}
					<-ctx.Done()
				}
				done()
			}
		})
	}
	crowd.Wait()
	if len(r.watchers) != 0 {
		t.Errorf("%d principals are watched by nobody", len(r.watchers))
	}
}
