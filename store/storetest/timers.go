package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley"
	"parley/port"
)

// timersAreRows checks that the timers of a log can be listed without reading the log.
func timersAreRows(t *testing.T, f *fixture) {
	ctx := context.Background()
	agent := parley.AgentRef{Name: "helper", Autonomy: parley.Autonomy{Enabled: true, MaxConsecutive: 3,
		CooldownMS: 15000, MaxFollowUps: 10}}
	l := f.born(ID(1), "ann", t0, nil)
	l.do(parley.SubmitInput{Content: "do it", Agent: agent})
	set := func(delay time.Duration, message string) parley.CallAsked {
		c := l.asks(parley.VerdictFollowUp)
		c.Verdict.FollowUp = parley.FollowUp{Delay: delay, Reason: "be\x1acause é", Message: message}
		return c
	}
	l.model(set(time.Minute, "one"), set(2*time.Hour, "two"), set(61*time.Second, "three\u2028"))
	run, at := l.state.Run.ID, l.at
	l.model()
	other := f.born(ID(2), "bob", t0, nil)
	other.do(parley.SubmitInput{Content: "do it", Agent: agent})
	other.model(set(time.Hour, ""))
	other.model()

	check := func(q port.TimerQuery, want ...string) []port.TimerInfo {
		t.Helper()
		q.Limit = 10
		list, err := f.Tenant(tenant).Timers(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range list {
			got = append(got, string(i.Owner)+" "+i.Message+" "+string(i.Status)+" "+string(i.Why))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v: %s", q, diff)
		}
		return list
	}
	f.reopen()
	all := check(port.TimerQuery{Status: parley.TimerPending}, "ann one pending ", "ann three\u2028 pending ",
		"bob  pending ", "ann two pending ")
	check(port.TimerQuery{}, "ann two pending ", "bob  pending ", "ann three\u2028 pending ", "ann one pending ")
	want := port.TimerInfo{ID: parley.Ref(ID(1), parley.Seq(all[0].Timer)), Session: ID(1), Timer: all[0].Timer,
		Run: run, Agent: "helper", Owner: "ann", By: "tool",
		Reason: "be\x1acause é", Message: "one", Status: parley.TimerPending, FireAt: at.Add(time.Minute),
		CreatedAt: at, UpdatedAt: at}
	if diff := cmp.Diff(want, all[0]); diff != "" {
		t.Error(diff)
	}
	check(port.TimerQuery{Owner: "bob"}, "bob  pending ")
	check(port.TimerQuery{Session: ID(1), Timer: all[1].Timer}, "ann three\u2028 pending ")
	check(port.TimerQuery{Session: ID(1), Timer: 99})
	check(port.TimerQuery{Session: ID(1), Status: parley.TimerGone})
	if list, err := f.Tenant("rival").Timers(ctx, port.TimerQuery{Limit: 10}); err != nil || len(list) > 0 {
		t.Errorf("of another tenant: %v, %v", list, err)
	}

	fire := func(id parley.TimerID) {
		t.Helper()
		l.take(parley.Command{Tenant: tenant, Session: ID(1), At: l.at, Do: parley.FireTimer{Timer: id, Agent: agent}})
	}
	l.at = all[0].FireAt
	fire(all[0].Timer)
	l.model()
	l.at = l.at.Add(time.Second)
	fire(all[1].Timer)
	check(port.TimerQuery{Session: ID(1)}, "ann two pending ", "ann three\u2028 pending cooldown",
		"ann one promoted ")
	l.do(parley.SubmitInput{Content: "more", Agent: agent, Deliver: true, Request: "r2"})
	check(port.TimerQuery{Session: ID(1)}, "ann two cancelled user_message", "ann three\u2028 cancelled user_message",
		"ann one promoted ")
	check(port.TimerQuery{Session: ID(1), Status: parley.TimerGone}, "ann two cancelled user_message",
		"ann three\u2028 cancelled user_message")

	// The same message cancelled the effect of the autonomous message, and no other.
	effects, err := f.Tenant(tenant).Effects(ctx, port.EffectQuery{Limit: 10})
	if err != nil || len(effects) != 2 {
		t.Fatalf("%+v, %v", effects, err)
	}
	if e := effects[0]; e.Status != port.EffectPending || e.Request != "r2" || e.Owner != "ann" || e.Attempts != 0 {
		t.Errorf("%+v", e)
	}
	if e := effects[1]; e.Status != port.EffectGone || e.Why != string("user_message") {
		t.Errorf("%+v", e)
	}
	l.do(parley.DeleteSession{})
	check(port.TimerQuery{}, "bob  pending ")
	if list, err := f.Tenant(tenant).Effects(ctx, port.EffectQuery{Limit: 10}); err != nil || len(list) > 0 {
		t.Errorf("of a deleted session: %v, %v", list, err)
	}
}

// owes opens a session whose run ended at the returned time, one second after its effect was created.
func (f *fixture) owes(id parley.SessionID, opened time.Time) (ended time.Time) {
	l := f.born(id, "ann", opened, nil)
	l.do(parley.SubmitInput{Content: "do it", Request: "r", Agent: parley.AgentRef{Name: "helper"}, Deliver: true})
	l.model()
	return l.at
}

// effect returns the only effect of a session.
func (f *fixture) effect(id parley.SessionID) port.EffectInfo {
	f.t.Helper()
	list, err := f.Tenant(tenant).Effects(context.Background(), port.EffectQuery{Session: id, Limit: 10})
	if err != nil || len(list) != 1 {
		f.t.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}

// effectsAreDeliveredOrFail checks that attempts are counted, and that an effect fails if no client fetches it.
func effectsAreDeliveredOrFail(t *testing.T, f *fixture) {
	ctx, effects := context.Background(), f.effect
	made := f.owes(ID(1), t0).Add(-time.Second)
	f.owes(ID(2), t0.Add(time.Hour))
	f.owes(ID(3), t0.Add(2*time.Hour))
	logs := f.Tenant(tenant)
	at, lease := t0.Add(5*time.Hour), t0.Add(5*time.Hour+time.Minute)
	first := effects(ID(1)).Effect
	for range 2 {
		if err := logs.Attempted(ctx, ID(1), first, at, lease); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []struct {
		tenant  parley.TenantID
		session parley.SessionID
		effect  parley.Seq
	}{{"rival", ID(1), first}, {tenant, ID(3), first + 1}, {tenant, ID(4), first}} {
		if err := f.Tenant(other.tenant).Attempted(ctx, other.session, other.effect, at, lease); err != nil {
			t.Fatal(err)
		}
		if err := f.Tenant(other.tenant).SetAside(ctx, other.session, other.effect, "no", at); err != nil {
			t.Fatal(err)
		}
	}
	if err := logs.Delivered(ctx, ID(2), at, 3); err != nil {
		t.Fatal(err)
	}
	if e := effects(ID(1)); e.Attempts != 2 || e.Status != port.EffectExecuting || !e.LastAttemptAt.Equal(at) ||
		!e.CreatedAt.Equal(made) {
		t.Errorf("%+v, made %v", e, made)
	}
	if owed, err := logs.Undelivered(ctx, ID(1), t0); err != nil || len(owed) != 1 ||
		owed[0] != (parley.Bookmark{Effect: first, Run: effects(ID(1)).Run, Attempts: 2, LastAttemptAt: at,
			CreatedAt: owed[0].CreatedAt}) || owed[0].CreatedAt.IsZero() {
		t.Errorf("what is executing is owed: %+v, %v", owed, err)
	}
	if e := effects(ID(2)); e.Attempts != 1 || e.Status != port.EffectCompleted || !e.LastAttemptAt.Equal(at) {
		t.Errorf("%+v", e)
	}
	if err := logs.Attempted(ctx, ID(2), effects(ID(2)).Effect, at, lease); err != nil ||
		effects(ID(2)).Status != port.EffectCompleted {
		t.Errorf("what was delivered is executing: %+v, %v", effects(ID(2)), err)
	}

	// An executing effect becomes pending again when its lease has run out, not before.
	f.reopen()
	logs = f.Tenant(tenant)
	for _, c := range []struct {
		at     time.Time
		status port.EffectStatus
		leased time.Time
	}{{lease.Add(-time.Microsecond), port.EffectExecuting, lease}, {lease, port.EffectPending, time.Time{}}} {
		done, err := logs.Expire(ctx, t0, c.at)
		if e := effects(ID(1)); err != nil || done != (port.Expired{Oldest: made, Leased: c.leased}) ||
			e.Status != c.status || e.Attempts != 2 {
			t.Errorf("at %v: %+v, %+v, %v", c.at, done, e, err)
		}
	}

	for _, c := range []struct {
		before time.Time
		failed int
		oldest time.Time
	}{
		{made.Add(-time.Microsecond), 0, made},
		{made, 1, made.Add(2 * time.Hour)},
		{made, 0, made.Add(2 * time.Hour)},
		{made.Add(3 * time.Hour), 1, time.Time{}},
	} {
		if done, err := logs.Expire(ctx, c.before, at); err != nil ||
			done != (port.Expired{Failed: c.failed, Oldest: c.oldest}) {
			t.Errorf("before %v: %+v, %v; want %+v", c.before, done, err, c)
		}
	}
	if done, err := f.Tenant("rival").Expire(ctx, at, at); err != nil || done != (port.Expired{}) {
		t.Errorf("of another tenant: %+v, %v", done, err)
	}
	if e := effects(ID(1)); e.Status != port.EffectFailed || e.Why != port.EffectExpired {
		t.Errorf("%+v", e)
	}
	if e := effects(ID(2)); e.Status != port.EffectCompleted {
		t.Errorf("%+v", e)
	}
	if err := logs.Delivered(ctx, ID(1), at, 3); err != nil || effects(ID(1)).Status != port.EffectFailed {
		t.Errorf("what has failed is delivered: %v", err)
	}
}

// effectsAreSetAside checks that an effect fails if it can never be delivered.
func effectsAreSetAside(t *testing.T, f *fixture) {
	ctx, logs, at := context.Background(), f.Tenant(tenant), t0.Add(5*time.Hour)
	f.owes(ID(5), t0)
	if err := logs.SetAside(ctx, ID(5), f.effect(ID(5)).Effect, port.EffectPoisoned, at); err != nil {
		t.Fatal(err)
	}
	if e := f.effect(ID(5)); e.Status != port.EffectFailed || e.Why != port.EffectPoisoned {
		t.Errorf("%+v", e)
	}
	one, err := logs.Effects(ctx, port.EffectQuery{Session: ID(5), Effect: f.effect(ID(5)).Effect, Limit: 10})
	none, err2 := logs.Effects(ctx, port.EffectQuery{Session: ID(5), Effect: 99, Limit: 10})
	if err != nil || err2 != nil || len(one) != 1 || len(none) != 0 {
		t.Errorf("%+v, %+v, %v, %v", one, none, err, err2)
	}
}
