package storetest

import (
	"context"
	"testing"
	"time"

	"parley/port"
)

// activityOfAgents checks that an agent is active while one of its runs is
// open, in any session, and that its last activity is the last end of a run.
func activityOfAgents(t *testing.T, f *fixture) {
	began := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	is := func(agent string, after time.Time, want port.Activity) {
		t.Helper()
		got, err := f.Store.Tenant(tenant).Activity(context.Background(), port.Project{}, agent, after)
		if err != nil || got.Open != want.Open || !got.Last.Equal(want.Last) {
			t.Errorf("%s: %+v, %v; want %+v", agent, got, err, want)
		}
	}
	long := began.Add(-time.Hour)
	is("helper", long, port.Activity{})
	first := f.born(ID(1), "ann", began, nil)
	first.say("one")
	is("helper", long, port.Activity{Open: true})
	is("helper", began.Add(time.Hour), port.Activity{Open: true}) // no matter when it began
	for _, other := range []string{"other", "a", "helper2"} {
		is(other, long, port.Activity{})
	}
	second := f.born(ID(2), "bob", began.Add(time.Minute), nil)
	second.say("two")
	second.model()
	ended := second.at
	is("helper", long, port.Activity{Open: true, Last: ended})
	first.model() // ends before the second one
	is("helper", long, port.Activity{Last: ended})
	is("a", long, port.Activity{})
	is("helper", ended, port.Activity{}) // no run began after that
	if got, err := f.Store.Tenant("rival").Activity(context.Background(), port.Project{},
		"helper", long); err != nil ||
		got != (port.Activity{}) {
		t.Errorf("another tenant's: %+v, %v", got, err)
	}
}
