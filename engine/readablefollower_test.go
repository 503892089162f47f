package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"parley"
	"parley/access"
	"parley/port"
)

// shaky is a store that cannot read the owner of a session for some time.
type shaky struct {
	port.Store
	port.TenantStore
	down  int
	asked int
}

func (s *shaky) Tenant(parley.TenantID) port.TenantStore { return s }

func (s *shaky) Session(context.Context, parley.SessionID) (port.Stored, error) {
	if s.asked++; s.down > 0 {
		s.down--
		return port.Stored{}, parley.Errorf(parley.CodeUnavailable, "not now")
	}
	return port.Stored{Summary: port.Summary{Owner: "bob"}}, nil
}

type given struct{ pages [][]*port.Item }

func (g *given) Next(ctx context.Context) ([]*port.Item, error) {
	if len(g.pages) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	page := g.pages[0]
	g.pages = g.pages[1:]
	return page, nil
}

func (g *given) Close() {}

func sessionNo(n int) parley.SessionID {
	return parley.SessionID(fmt.Sprintf("33333333-3333-4333-8333-%012x", n))
}

func narrowedTo(id parley.PrincipalID, s *shaky, pages ...[]*port.Item) *readableFollower {
	e := &Engine{Config: Config{Store: s, Access: access.Rules{}}, ctx: context.Background()}
	return &readableFollower{Follower: &given{pages}, engine: e, who: member(id, parley.RoleStandardUser),
		mayRead: map[parley.SessionID]bool{}}
}

func event(session, seq int) *port.Item {
	return &port.Item{Event: parley.Event{Session: sessionNo(session), Seq: parley.Seq(seq),
		Body: parley.SessionReopened{}}}
}

// TestFollowerWaitsForTheOwnerLookup checks that a follower of readable sessions
// waits while the store is unavailable for a moment, and misses no event.
func TestFollowerWaitsForTheOwnerLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shaky{}
		f := narrowedTo("bob", s, []*port.Item{event(1, 1), event(2, 1), event(1, 2)}, []*port.Item{event(3, 1)})
		ctx, cancel := context.WithCancel(context.Background())
		var got []string
		for len(got) < 4 {
			s.down = 3
			items, err := f.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range items {
				got = append(got, fmt.Sprint(i.Session[35:], i.Seq))
			}
		}
		if fmt.Sprint(got) != "[11 21 12 31]" {
			t.Errorf("seen was %v", got)
		}
		cancel()
		if _, err := f.Next(ctx); err == nil {
			t.Error("it goes on without a context")
		}
	})
}

// TestFollowerCacheIsBounded checks that the cache of a follower is
// bounded, and that within this bound the store is asked once per session.
func TestFollowerCacheIsBounded(t *testing.T) {
	s, page := &shaky{}, []*port.Item{}
	for n := range maxReadable + 10 {
		page = append(page, event(n, 1), event(n, 2))
	}
	f := narrowedTo("eve", s, page)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if list, err := f.Next(ctx); err == nil {
		t.Errorf("eve was shown %d events of bob's", len(list))
	}
	if s.asked != maxReadable+10 || len(f.mayRead) > maxReadable {
		t.Errorf("asked %d times, remembers %d", s.asked, len(f.mayRead))
	}
}
