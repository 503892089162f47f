package storetest

import (
	"context"
	"testing"
	"time"

	"parley"
)

// activityOfAgents: an agent is at work while one of its runs is open, in any
// session, and was last when the last of them ended.
func activityOfAgents(t *testing.T, f *fixture) {
	began := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	is := func(agent string, after time.Time, want parley.Activity) {
		t.Helper()
		got, err := f.Store.Tenant(tenant).Activity(context.Background(), parley.Project{}, agent, after)
		if err != nil || got.Open != want.Open || !got.Last.Equal(want.Last) {
			t.Errorf("%s: %+v, %v; want %+v", agent, got, err, want)
		}
	}
	long := began.Add(-time.Hour)
	is("helper", long, parley.Activity{})
	first := f.born(ID(1), "ann", began, nil)
	first.say("one")
	is("helper", long, parley.Activity{Open: true})
	is("helper", began.Add(time.Hour), parley.Activity{Open: true}) // whenever it began
	for _, other := range []string{"other", "a", "helper2"} {
		is(other, long, parley.Activity{})
	}
	second := f.born(ID(2), "bob", began.Add(time.Minute), nil)
	second.say("two")
	second.model()
	ended := second.at
	is("helper", long, parley.Activity{Open: true, Last: ended})
	first.model() // before the second one
	is("helper", long, parley.Activity{Last: ended})
	is("a", long, parley.Activity{})
	is("helper", ended, parley.Activity{}) // none began after that
	if got, err := f.Store.Tenant("rival").Activity(context.Background(), parley.Project{},
		"helper", long); err != nil ||
		got != (parley.Activity{}) {
		t.Errorf("another tenant's: %+v, %v", got, err)
	}
}
