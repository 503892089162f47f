package engine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

// TestNextIsAskedOncePerChunk: asking Next tries what the log would do, so it is
// to be done once for everything that is taken in.
func TestNextIsAskedOncePerChunk(t *testing.T) {
	count := func(t *testing.T, pairs int) (asked, chunks int) {
		r := newRig(t)
		id := r.open()
		r.puppet.pace = time.Millisecond // commits take no time here, so each is a chunk
		r.do(id, parley.SubmitInput{Content: strings.Repeat("think a; say b;", pairs) + "say end"})
		log := r.finished(id, 1)
		r.mu.Lock()
		a := r.actors[key{acme, id}]
		r.mu.Unlock()
		if err := r.Engine.Close(context.Background()); err != nil { // from now on nothing else uses the actor
			t.Fatal(err)
		}
		return a.s.asked, len(all[parley.OutputAppended](log))
	}
	synctest.Test(t, func(t *testing.T) {
		asked, chunks := count(t, 5)
		askedMore, moreChunks := count(t, 105)
		// When a run begins and ends, Next is asked once more or not, depending on what comes first.
		const either = 2
		if got, want := askedMore-asked, moreChunks-chunks; want != 200 || got < want-either || got > want+either {
			t.Errorf("for %d chunks more Next was asked %d times more", want, got)
		}
	})
}
