package engine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

// TestNextIsAskedOncePerChunk checks that Next is called once for each commit.
// The call is expensive, because it tries what the log would do.
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
		if err := r.Engine.Close(context.Background()); err != nil { // from now on only the test uses the actor
			t.Fatal(err)
		}
		return a.s.asks, len(all[parley.OutputAppended](log))
	}
	synctest.Test(t, func(t *testing.T) {
		asked, chunks := count(t, 5)
		askedMore, moreChunks := count(t, 105)
		// At the start and end of a run Next is called once more or not, depending on the order of events.
		const either = 2
		if got, want := askedMore-asked, moreChunks-chunks; want != 200 || got < want-either || got > want+either {
			t.Errorf("for %d chunks more Next was asked %d times more", want, got)
		}
	})
}
