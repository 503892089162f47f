package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
)

// TestEffectsExpire checks that an effect that is not delivered within a day
// fails, and not a moment earlier. No client is shown it afterwards.
func TestEffectsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, forward)
		id := r.open()
		r.do(id, parley.SubmitInput{Content: "say hello", Deliver: true})
		r.finished(id, 1)
		effect := func() port.EffectInfo {
			t.Helper()
			list, err := r.Effects(context.Background(), ann, port.EffectQuery{Session: id})
			if err != nil || len(list) != 1 {
				t.Fatalf("%+v, %v", list, err)
			}
			return list[0]
		}
		from := func() int64 {
			t.Helper()
			c, err := r.Resume(context.Background(), ann, id)
			if err != nil {
				t.Fatal(err)
			}
			return c.After
		}
		owed := from()
		if e := effect(); e.Attempts != 1 || e.Status != port.EffectExecuting {
			t.Errorf("%+v", e)
		}
		time.Sleep(24*time.Hour - time.Minute)
		if e := effect(); e.Status != port.EffectPending || from() != owed {
			t.Errorf("%+v", e)
		}
		time.Sleep(2 * time.Minute)
		if e := effect(); e.Status != port.EffectFailed || e.Why != port.EffectExpired || e.Attempts != 2 ||
			from() == owed {
			t.Errorf("%+v", e)
		}
		if got := len(r.log(id)); int64(got) != from() {
			t.Errorf("a log of %d events is followed from %d", got, from())
		}
	})
}

// TestMessageWithdrawsUnseenFollowUps checks that a person's next message
// withdraws an autonomous message that no client was shown. It never withdraws
// an answer, however many messages follow.
func TestMessageWithdrawsUnseenFollowUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, forward)
		id := r.open()
		r.do(id, parley.SubmitInput{Content: "call schedule_follow_up 60 say here | say later", Request: "r1",
			Deliver: true})
		time.Sleep(2 * time.Minute)
		r.finished(id, 2)
		r.do(id, parley.SubmitInput{Content: "say answer", Request: "r2", Deliver: true})
		r.finished(id, 3)
		r.do(id, parley.SubmitInput{Content: "say more", Request: "r3", Deliver: true})
		r.finished(id, 4)
		list, err := r.Effects(context.Background(), ann, port.EffectQuery{Session: id})
		if err != nil || len(list) != 4 {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, e := range list {
			want := port.EffectPending
			if e.Request != "r1" && e.Request != "r2" && e.Request != "r3" {
				want = port.EffectGone
			}
			if e.Status != want {
				t.Errorf("%+v, want %s", e, want)
			}
		}
		r.check(id)
	})
}

// TestUndeliverableEffectsAreSetAside checks that an effect rests longer after each failed delivery and
// is then set aside. Later effects do not wait for it.
func TestUndeliverableEffectsAreSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, forward)
		id := r.open()
		comes := func() parley.RunID {
			t.Helper()
			c, err := r.Resume(context.Background(), ann, id)
			if err != nil {
				t.Fatal(err)
			}
			return parley.RunID(c.After + 1)
		}
		r.do(id, parley.SubmitInput{Content: "say poison", Request: "r1", Deliver: true})
		r.finished(id, 1)
		r.do(id, parley.SubmitInput{Content: "say good", Request: "r2", Deliver: true})
		r.finished(id, 2)
		list, err := r.Store.Tenant(acme).Undelivered(context.Background(), id, time.Time{})
		if err != nil || len(list) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		poison, good := list[0].Run, list[1].Run
		for i := range 256 {
			if got := comes(); got != poison {
				t.Fatalf("time %d begins at run %d", i, got)
			}
		}
		status := func() port.EffectStatus {
			t.Helper()
			one, err := r.Effects(context.Background(), ann, port.EffectQuery{Session: id, Effect: list[0].Effect})
			if err != nil || len(one) != 1 {
				t.Fatalf("%+v, %v", one, err)
			}
			return one[0].Status
		}
		if got := comes(); got != good || status() != port.EffectExecuting {
			t.Errorf("who comes once more begins at run %d, while it is %s", got, status())
		}
		if err := r.Delivered(context.Background(), ann, id, good); err != nil {
			t.Fatal(err)
		}
		tried := 256
		for start := time.Now(); status() != port.EffectFailed; time.Sleep(time.Second) {
			if comes() == poison {
				tried++
			}
			if time.Since(start) > 24*time.Hour {
				t.Fatal("it is tried for ever")
			}
		}
		one, _ := r.Effects(context.Background(), ann, port.EffectQuery{Session: id, Effect: list[0].Effect})
		if tried != 269 || one[0].Why != port.EffectPoisoned || one[0].Attempts != 269 {
			t.Errorf("tried %d times: %+v", tried, one[0])
		}
		if got := comes(); int(got) != len(r.log(id))+1 {
			t.Errorf("afterwards one begins at %d", got)
		}
	})
}

// TestALostClientStrandsNothing checks an effect whose client was lost. It
// stays executing for a minute, and is then pending again. It is owed all the
// while, also by another server.
func TestALostClientStrandsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, forward)
		id := r.open()
		r.do(id, parley.SubmitInput{Content: "say hello", Request: "r1", Deliver: true})
		r.finished(id, 1)
		resumes := func() int64 {
			t.Helper()
			c, err := r.Resume(context.Background(), ann, id)
			if err != nil {
				t.Fatal(err)
			}
			return c.After
		}
		is := func(want port.EffectStatus) {
			t.Helper()
			list, err := r.Effects(context.Background(), ann, port.EffectQuery{Session: id})
			if err != nil || len(list) != 1 || list[0].Status != want {
				t.Errorf("%+v, %v; want %s", list, err, want)
			}
		}
		is(port.EffectPending)
		from := resumes()
		is(port.EffectExecuting)
		r.restart(true)
		is(port.EffectExecuting)
		if resumes() != from {
			t.Error("it is not owed any more")
		}
		time.Sleep(parley.EffectLease + time.Second)
		is(port.EffectPending)
		if resumes() != from {
			t.Error("it is not owed any more")
		}
		time.Sleep(parley.EffectLease + time.Second)
		is(port.EffectPending)
	})
}

// TestABookmarkOfAnOpenRunDoesNotRest checks that clients that connect again and again
// during a run do not make its bookmark rest: its end cannot be delivered yet.
func TestABookmarkOfAnOpenRunDoesNotRest(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.do(id, parley.SubmitInput{Content: "hang", Request: "r1", Deliver: true})
	r.until(id, "a turn", func(log []parley.Event) bool { return len(all[parley.TurnStarted](log)) > 0 })
	for range 2 * 269 {
		if _, err := r.Resume(context.Background(), ann, id); err != nil {
			t.Fatal(err)
		}
	}
	list, err := r.Store.Tenant(acme).Undelivered(context.Background(), id, time.Time{})
	if err != nil || len(list) != 1 || list[0].Attempts != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	r.do(id, parley.CancelRun{})
	r.finished(id, 1)
}
