package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// listsOfProjects checks that sessions, runs and the activity of agents are found by project. A session without a
// project belongs to the tenant's first one.
func listsOfProjects(t *testing.T, f *fixture) {
	ctx, began := context.Background(), time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	first, second := port.NewProject("/first", "first"), port.NewProject("/second\x00", "second")
	first.First = true
	for i, root := range []string{"", first.Root, second.Root} {
		l := &life{f: f, state: parley.NewState(tenant, ID(i+1)), at: began}
		l.append([]parley.Event{{Session: ID(i + 1), Seq: 1, Root: ID(i + 1), At: began, By: "ann",
			Body: parley.SessionOpened{Owner: "ann", Project: root}}})
		l.say("hello")
		if st, err := f.Store.Tenant(tenant).Session(ctx, ID(i+1)); err != nil || st.Summary.Project != root {
			t.Errorf("%+v, %v", st, err)
		}
		if i == 2 {
			l.model()
		}
	}
	logs := f.Store.Tenant(tenant)
	for _, c := range []struct {
		project port.Project
		want    []parley.SessionID
		open    bool
	}{
		{port.Project{}, []parley.SessionID{ID(1), ID(2), ID(3)}, true},
		{first, []parley.SessionID{ID(1), ID(2)}, true},
		{second, []parley.SessionID{ID(3)}, false},
		{port.NewProject("/third", ""), nil, false},
	} {
		var sessions, runs []parley.SessionID
		list, err := logs.Sessions(ctx, port.SessionQuery{Project: c.project, Limit: 10})
		for _, m := range list {
			sessions = append(sessions, m.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		found, err := logs.Runs(ctx, port.RunQuery{Project: c.project, Limit: 10})
		for _, r := range found {
			runs = append(runs, r.Session)
			if r.Session == ID(3) && r.Project != second.Root {
				t.Errorf("%+v", r)
			}
		}
		slices.Sort(sessions)
		slices.Sort(runs)
		if err != nil || !slices.Equal(sessions, c.want) || !slices.Equal(runs, c.want) {
			t.Errorf("%s: sessions %v, runs %v, %v", c.project.Root, sessions, runs, err)
		}
		if a, err := logs.Activity(ctx, c.project, "helper", began.Add(-time.Hour)); err != nil || a.Open != c.open {
			t.Errorf("%s: %+v, %v", c.project.Root, a, err)
		}
		if _, err := logs.Cards(ctx, port.CardQuery{Project: c.project, Limit: 10}); err != nil {
			t.Errorf("%s: %v", c.project.Root, err)
		}
	}
}
