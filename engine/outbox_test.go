package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

// What nobody came for within a day has failed, and not a moment before; nobody
// is shown it afterwards.
func TestEffectsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, forward)
		id := r.open()
		r.do(id, parley.SubmitInput{Content: "say hello", Deliver: true})
		r.finished(id, 1)
		effect := func() parley.EffectInfo {
			t.Helper()
			list, err := r.Effects(context.Background(), ann, parley.EffectQuery{Session: id})
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
		if e := effect(); e.Attempts != 1 || e.Status != parley.EffectPending {
			t.Errorf("%+v", e)
		}
		time.Sleep(24*time.Hour - time.Minute)
		if e := effect(); e.Status != parley.EffectPending || from() != owed {
			t.Errorf("%+v", e)
		}
		time.Sleep(2 * time.Minute)
		if e := effect(); e.Status != parley.EffectFailed || e.Why != parley.EffectExpired || e.Attempts != 2 || from() == owed {
			t.Errorf("%+v", e)
		}
		if got := len(r.log(id)); int64(got) != from() {
			t.Errorf("a log of %d events is followed from %d", got, from())
		}
	})
}

// A message that came unasked and that nobody was shown is withdrawn by the next
// one of a person; an answer is not, however many follow.
func TestAMessageWithdrawsWhatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, forward)
		id := r.open()
		r.do(id, parley.SubmitInput{Content: "call schedule_follow_up 60 say here | say later", Request: "r1", Deliver: true})
		time.Sleep(2 * time.Minute)
		r.finished(id, 2)
		r.do(id, parley.SubmitInput{Content: "say answer", Request: "r2", Deliver: true})
		r.finished(id, 3)
		r.do(id, parley.SubmitInput{Content: "say more", Request: "r3", Deliver: true})
		r.finished(id, 4)
		list, err := r.Effects(context.Background(), ann, parley.EffectQuery{Session: id})
		if err != nil || len(list) != 4 {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, e := range list {
			want := parley.EffectPending
			if e.Request != "r1" && e.Request != "r2" && e.Request != "r3" {
				want = parley.EffectGone
			}
			if e.Status != want {
				t.Errorf("%+v, want %s", e, want)
			}
		}
		r.check(id)
	})
}
