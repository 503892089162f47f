package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/checker"
)

// TestOldPiecesAreDeleted: after a while only the whole texts are left, and the
// session goes on from there as if nothing had happened, also after a restart.
func TestOldPiecesAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Keep = time.Hour })
		id := r.open()
		r.say(id, "say one")
		whole := r.finished(id, 1)
		if len(all[parley.OutputAppended](whole)) == 0 {
			t.Fatal("there are no pieces to delete")
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if log := r.log(id); len(log) != len(whole) {
			t.Fatal("pieces were deleted too early")
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		log := r.log(id)
		if n := len(all[parley.OutputAppended](log)); n > 0 || !slices.Equal(texts(log), []string{"one"}) {
			t.Errorf("%d pieces are left, the texts are %q", n, texts(log))
		}
		for range 2 {
			r.restart(false)
			r.say(id, "say two")
			r.finished(id, len(all[parley.RunFinished](log))+1)
			log = r.log(id)
		}
		for _, err := range append(checker.CheckTrimmed(log), checker.Settled(log)...) {
			t.Error(err)
		}
	})
}
