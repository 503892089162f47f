package engine

import (
	"context"
	"strings"
	"testing"

	"parley"
)

// TestNextIsAskedOncePerChunk: asking Next tries what the log would do, so it is
// to be done once for everything that is taken in.
func TestNextIsAskedOncePerChunk(t *testing.T) {
	count := func(pairs int) (asked, chunks int) {
		r := newRig(t)
		id := r.open()
		// Thinking and text are not put together, so each is a chunk.
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
	asked, chunks := count(5)
	askedMore, moreChunks := count(105)
	if got, want := askedMore-asked, moreChunks-chunks; want != 200 || got != want {
		t.Errorf("for %d chunks more Next was asked %d times more", want, got)
	}
}
