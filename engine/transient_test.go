package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

// TestSessionsOfConnectionsGo checks that the session of a connection is
// deleted after a week without events, even if it is not loaded or the server
// was away. Other sessions stay, and so does one in which a person writes.
func TestSessionsOfConnectionsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		const day = 24 * time.Hour
		mine, theirs := parley.SessionID("22222222-2222-4222-8222-000000000001"),
			parley.SessionID("22222222-2222-4222-8222-000000000002")
		kept := r.open()
		r.say(kept, "say hello")
		for _, id := range []parley.SessionID{mine, theirs} {
			r.do(id, parley.SubmitInput{Content: "say hello", Open: true, Transient: true})
			r.finished(id, 1)
		}
		r.finished(kept, 1)
		deleted := func(id parley.SessionID) bool { return len(all[parley.SessionDeleted](r.log(id))) > 0 }

		time.Sleep(6 * day)
		r.say(theirs, "say still here")
		r.finished(theirs, 2)
		r.restart(true)
		time.Sleep(day - time.Minute)
		if deleted(mine) {
			t.Error("it is gone before a week has passed")
		}
		time.Sleep(2 * time.Minute)
		if !deleted(mine) {
			t.Error("it stays")
		}
		if deleted(theirs) || deleted(kept) {
			t.Error("one is gone in which somebody spoke, or that is no connection's")
		}
		r.stop(false)
		time.Sleep(30 * day)
		r.start()
		time.Sleep(time.Minute)
		if !deleted(theirs) {
			t.Error("what went by while the server was away stays")
		}
		if deleted(kept) {
			t.Error("it was no connection's")
		}
		for _, id := range []parley.SessionID{mine, theirs, kept} {
			r.check(id)
		}
	})
}
