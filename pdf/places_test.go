package pdf

import (
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

// TestPlacesAreShared: one sender has one place, other senders need not wait for it, and a document that waits too long
// is refused.
func TestPlacesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces()
		leave, err := p.enter(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := p.enter(t.Context(), "ann"); parley.CodeOf(err) != parley.CodeLimited ||
			time.Since(begun) != patience {
			t.Fatalf("a second document of ann: %v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		bobs, err := p.enter(t.Context(), "bob")
		if err != nil || time.Since(begun) > 0 {
			t.Fatalf("bob: %v after %v", err, time.Since(begun))
		}
		if _, err := p.enter(t.Context(), "cid"); parley.CodeOf(err) != parley.CodeLimited {
			t.Fatalf("cid, while all places are taken: %v", err)
		}
		begun = time.Now()
		time.AfterFunc(time.Second, bobs)
		cids, err := p.enter(t.Context(), "cid")
		if err != nil || time.Since(begun) != time.Second {
			t.Fatalf("cid: %v after %v", err, time.Since(begun))
		}
		for range mostOfOne { // the first one holds the place
			go func() {
				if next, err := p.enter(t.Context(), "ann"); err == nil {
					next()
				}
			}()
		}
		synctest.Wait()
		begun = time.Now()
		if _, err := p.enter(t.Context(), "ann"); parley.CodeOf(err) != parley.CodeLimited || time.Since(begun) > 0 {
			t.Fatalf("one more than ann may have: %v after %v", err, time.Since(begun))
		}
		leave()
		cids()
		synctest.Wait()
		if p.all != 0 || len(p.senders) != 0 {
			t.Errorf("%d are left, of %d senders", p.all, len(p.senders))
		}
	})
}
