package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// hooked opens a session of a tenant with a webhook, for which n deliveries are
// due.
func (f *fixture) hooked(tenant parley.TenantID, id parley.SessionID, target string, n int) {
	f.t.Helper()
	b := batch(id, 0, 2+n)
	b.Tenant, b.Events[1].Body = tenant, parley.RunStarted{}
	b.Webhook = &port.StoredWebhook{URL: "https://" + target + "/x", Sealed: []byte("sealed"),
		Hook: parley.Hook{Target: target, Needed: true}, At: t0}
	for i := range n {
		b.Events[2+i].Body = parley.EffectEnqueued{Type: parley.Webhook,
			Hook: &parley.HookPromise{Event: parley.HookNeeded, About: 2, Run: 2,
				HookRef: parley.HookRef{Hook: parley.Hook{Target: target}, Session: id}}}
	}
	f.mustAppend(b)
}

// owedHooks has the due webhooks of a store, as the dispatcher sees them.
type owedHooks struct {
	*fixture
	ctx context.Context
	port.HookStore
}

func (o *owedHooks) due(now time.Time, limit int, except ...string) ([]port.HookDue, time.Time) {
	o.t.Helper()
	list, next, err := o.DueHooks(o.ctx, now, port.HooksBusy{Targets: except}, limit)
	if err != nil {
		o.t.Fatal(err)
	}
	return list, next
}

// webhooksAreToldOnce checks that due deliveries of all tenants are found,
// soonest first. Only one caller can claim a delivery. It is due again when the
// claim has run out, but not after it was settled.
func webhooksAreToldOnce(t *testing.T, f *fixture) {
	f.hooked(tenant, ID(1), "a.example:443", 3)
	f.hooked("rival", ID(1), "b.example:443", 1)
	o, now := &owedHooks{f, context.Background(), f.Store.(port.HookStore)}, t0.Add(time.Hour)
	d := o.claimed(o.found(now), now)
	o.settled(d, now)
	o.areNoBookmarks(now)
}

// found checks the list of due deliveries, and returns one of them.
func (o *owedHooks) found(now time.Time) port.HookDue {
	t := o.t
	t.Helper()
	all, next := o.due(now, 10)
	if len(all) != 4 || !next.IsZero() {
		t.Fatalf("%+v, then %v", all, next)
	}
	for i, d := range all {
		if i > 0 && d.Next.Before(all[i-1].Next) {
			t.Error("not soonest first")
		}
	}
	d := all[slices.IndexFunc(all, func(d port.HookDue) bool { return d.Tenant == tenant && d.Effect == 3 })]
	if !d.Next.Equal(rules.HookAtOnce) || !d.Made.After(t0) || d.Attempts != 0 || d.Run != 2 || d.About != 2 ||
		d.Event != parley.HookNeeded || d.Effect != 3 || d.HookPromise.Session != ID(1) {
		t.Errorf("%+v", d)
	}
	if some, next := o.due(now, 2); len(some) != 2 || next.After(now) {
		t.Errorf("%+v, then %v", some, next)
	}
	if some, _ := o.due(now, 10, "a.example:443", "c.example:443"); len(some) != 1 || some[0].Tenant != "rival" {
		t.Errorf("%+v", some)
	}
	if some, _, err := o.DueHooks(o.ctx, now, port.HooksBusy{Tenants: []parley.TenantID{"nobody", tenant}},
		10); err != nil || len(some) != 1 || some[0].Tenant != "rival" {
		t.Errorf("%+v, %v", some, err)
	}
	// Events use the clock of their log, which was ahead of this one.
	if some, next := o.due(t0.Add(-24*time.Hour), 10); len(some) != 4 || !next.IsZero() {
		t.Errorf("%+v, then %v", some, next)
	}
	return d
}

// claimed claims a delivery from many goroutines, of which exactly one
// succeeds.
func (o *owedHooks) claimed(d port.HookDue, now time.Time) port.HookDue {
	t := o.t
	t.Helper()
	until := now.Add(time.Minute)
	won := make(chan time.Time, 10) // end of the claim; zero: another goroutine has it
	for i := range 10 {
		go func() {
			mine := until.Add(time.Duration(i) * time.Microsecond)
			ok, err := o.ClaimHook(o.ctx, d, now, mine)
			if err != nil {
				t.Error(err)
			}
			if !ok {
				mine = time.Time{}
			}
			won <- mine
		}()
	}
	claims, claimed := 0, d
	for range 10 {
		if end := <-won; !end.IsZero() {
			claims++
			claimed.Next = end
		}
	}
	d = claimed
	if claims != 1 {
		t.Fatalf("%d have claimed it", claims)
	}
	if some, next := o.due(now, 10); len(some) != 3 || !next.Equal(d.Next) {
		t.Errorf("%+v, then %v, want %v", some, next, d.Next)
	}
	if some, _ := o.due(d.Next, 10); len(some) != 4 || some[3].Attempts != 1 || some[3].Effect != d.Effect {
		t.Errorf("the claim does not run out: %+v", some)
	}
	return d
}

// settled checks that a caller that has lost the claim cannot settle it, except
// to report a completed delivery.
func (o *owedHooks) settled(d port.HookDue, now time.Time) {
	t := o.t
	t.Helper()
	settle := func(until time.Time, fate port.HookFate) {
		t.Helper()
		if err := o.SettleHook(o.ctx, d, until, fate); err != nil {
			t.Fatal(err)
		}
	}
	status := func() string {
		t.Helper()
		list, err := o.Tenant(d.Tenant).Effects(o.ctx, port.EffectQuery{Session: d.Session, Effect: d.Effect,
			Limit: 1})
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		return fmt.Sprint(list[0].Status, " ", list[0].Why, " ", list[0].Attempts, " ", list[0].Hook.Target)
	}
	settle(now.Add(time.Minute-time.Second), port.HookFate{Status: port.EffectFailed, Why: "late", At: now,
		Next: now})
	if got := status(); got != "executing  1 a.example:443" {
		t.Error(got)
	}
	again := now.Add(time.Hour)
	settle(d.Next, port.HookFate{Status: port.EffectPending, Why: "busy", At: now, Next: again})
	if got := status(); got != "pending busy 1 a.example:443" {
		t.Error(got)
	}
	if some, next := o.due(now, 10); len(some) != 3 || !next.Equal(again) {
		t.Errorf("%+v, then %v", some, next)
	}
	for _, c := range []struct {
		now    time.Time
		limit  int
		listed int
		next   time.Time
	}{
		{again.Add(-rules.HookFar), 10, 3, again},
		{again.Add(-rules.HookFar - time.Microsecond), 10, 4, time.Time{}}, // no delivery is postponed for so long
		{again.Add(-rules.HookFar - time.Microsecond), 3, 3, again.Add(-rules.HookFar - time.Microsecond)},
	} {
		if some, next := o.due(c.now, c.limit); len(some) != c.listed || !next.Equal(c.next) {
			t.Errorf("at %v: %+v, then %v; want %d, then %v", c.now, some, next, c.listed, c.next)
		}
	}
	settle(now.Add(time.Minute), port.HookFate{Status: port.EffectCompleted, At: now, Next: now})
	if got := status(); got != "completed  1 a.example:443" {
		t.Error(got)
	}
	if some, next := o.due(again, 10); len(some) != 3 || !next.IsZero() {
		t.Errorf("%+v, then %v", some, next)
	}
}

// areNoBookmarks checks that operations on bookmarks do not affect webhooks.
func (o *owedHooks) areNoBookmarks(now time.Time) {
	t, again := o.t, now.Add(time.Hour)
	t.Helper()
	if owed, err := o.Tenant(tenant).Undelivered(o.ctx, ID(1), t0.Add(-time.Hour)); err != nil || len(owed) != 0 {
		t.Errorf("%+v, %v", owed, err)
	}
	if err := o.Tenant(tenant).Delivered(o.ctx, ID(1), now, 2); err != nil {
		t.Fatal(err)
	}
	if done, err := o.Tenant(tenant).Expire(o.ctx, again, again); err != nil || done != (port.Expired{}) {
		t.Errorf("%+v, %v", done, err)
	}
	if some, _ := o.due(again, 10); len(some) != 3 {
		t.Errorf("who was shown a run was told by webhook: %+v", some)
	}
}

// webhooksAreKept checks that a webhook stays until it is replaced or removed,
// or its session is deleted, and that it belongs to one tenant.
func webhooksAreKept(t *testing.T, f *fixture) {
	ctx, store := context.Background(), f.Store.(port.HookStore)
	get := func(tenant parley.TenantID, id parley.SessionID) string {
		t.Helper()
		h, ok, err := f.Tenant(tenant).Webhook(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(ok, " ", h.URL, " ", string(h.Sealed), " ", h.Hook.Events(), " ", h.At.Sub(t0), " ",
			!h.Gone.IsZero())
	}
	f.hooked(tenant, ID(1), "a.example:443", 0)
	f.hooked("rival", ID(1), "b.example:443", 0)
	if got := get(tenant, ID(1)); got != "true https://a.example:443/x sealed [person_needed] 0s false" {
		t.Error(got)
	}
	if err := store.HookGone(ctx, tenant, ID(1), "https://a.example:443/y", t0); err != nil ||
		get(tenant, ID(1)) != "true https://a.example:443/x sealed [person_needed] 0s false" {
		t.Error(err, get(tenant, ID(1)))
	}
	if err := store.HookGone(ctx, tenant, ID(1), "https://a.example:443/x", t0); err != nil ||
		get(tenant, ID(1)) != "true https://a.example:443/x sealed [person_needed] 0s true" {
		t.Error(err, get(tenant, ID(1)))
	}
	if err := store.HookGone(ctx, tenant, ID(9), "https://a.example:443/x", t0); err != nil {
		t.Error(err)
	}
	if h, ok, err := f.Tenant(tenant).Webhook(ctx, ID(9)); ok || err != nil {
		t.Errorf("a session that never had one has %+v, %v", h, err)
	}
	f.reopen()
	store = f.Store.(port.HookStore)
	set := batch(ID(1), 2, 1)
	set.Webhook = &port.StoredWebhook{URL: "https://c.example", Sealed: []byte("other"),
		Hook: parley.HookOf("c.example:443", nil), At: t0.Add(time.Hour)}
	f.mustAppend(set)
	if got := get(tenant, ID(1)); got != "true https://c.example other [run_finished person_needed] 1h0m0s false" {
		t.Error(got)
	}
	fenced := batch(ID(1), 2, 1)
	fenced.Webhook = &port.StoredWebhook{}
	if res := f.append(fenced); !res.Fenced ||
		get(tenant, ID(1)) != "true https://c.example other [run_finished person_needed] 1h0m0s false" {
		t.Error(res, get(tenant, ID(1)))
	}
	gone := batch(ID(1), 3, 1)
	gone.Events[0].Body = parley.SessionDeleted{}
	f.mustAppend(gone)
	if _, ok, err := f.Tenant(tenant).Webhook(ctx, ID(1)); ok || err != nil {
		t.Error("a deleted session has a webhook, ", err)
	}
	if got := get("rival", ID(1)); got != "true https://b.example:443/x sealed [person_needed] 0s false" {
		t.Error(got)
	}
	away := batch(ID(1), 2, 1)
	away.Tenant, away.Webhook = "rival", &port.StoredWebhook{}
	f.mustAppend(away)
	if _, ok, err := f.Tenant("rival").Webhook(ctx, ID(1)); ok || err != nil {
		t.Error("what was taken away is there, ", err)
	}
	// An agent's webhook is in its file. The store has a row only after the
	// receiver has answered "gone".
	for range 2 {
		if err := store.HookGone(ctx, tenant, port.AgentHook("coder"), "https://d.example",
			t0.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if h, ok, err := f.Tenant(tenant).Webhook(ctx, port.AgentHook("coder")); !ok || err != nil ||
		h.URL != "https://d.example" || !h.Gone.Equal(t0.Add(time.Hour)) {
		t.Errorf("%+v %v %v", h, ok, err)
	}
}
