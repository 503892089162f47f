package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// marksOfUsers checks that each user has separate marks, that lists can be filtered by them, and that they are deleted
// with the session.
func marksOfUsers(t *testing.T, f *fixture) {
	ctx := context.Background()
	yes, no := true, false
	lives := map[int]*life{}
	for i := 1; i <= 4; i++ {
		lives[i] = f.born(ID(i), "ann", t0.Add(time.Duration(i)*time.Minute), nil)
		lives[i].say("hello")
		lives[i].model()
	}
	f.append(port.Batch{Tenant: "rival", Marks: &port.MarkChange{User: "ann", Session: ID(1), Pinned: &yes}})
	set := func(user parley.PrincipalID, session int, change port.MarkChange) {
		t.Helper()
		change.User, change.Session = user, ID(session)
		f.append(port.Batch{Tenant: tenant, Marks: &change})
	}
	list := func(user parley.PrincipalID, q port.SessionQuery) string {
		t.Helper()
		q.Viewer, q.Limit = user, 10
		found, err := f.Tenant(tenant).Sessions(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, m := range found {
			said := fmt.Sprint(m.ID[len(m.ID)-1:])
			for _, mark := range []struct {
				is   bool
				sign string
			}{{m.Pinned, "p"}, {m.Archived, "a"}, {m.Unread, "u"}} {
				if mark.is {
					said += mark.sign
				}
			}
			one, err := f.Tenant(tenant).Marks(ctx, user, m.ID)
			if user != "" && (err != nil || one != m.Marks) {
				t.Errorf("%s: %+v, %v; the list has %+v", m.ID, one, err, m.Marks)
			}
			all = append(all, said)
		}
		slices.Sort(all)
		return fmt.Sprint(all)
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	check("nothing is marked", list("ann", port.SessionQuery{}), "[1 2 3 4]")
	set("ann", 1, port.MarkChange{Pinned: &yes, ReadAt: t0})
	set("ann", 2, port.MarkChange{Archived: &yes})
	set("ann", 3, port.MarkChange{ReadAt: t0.Add(time.Hour)})
	set("bob", 3, port.MarkChange{Pinned: &yes})
	set("bob", 9, port.MarkChange{Pinned: &yes}) // this session does not exist
	check("ann's", list("ann", port.SessionQuery{}), "[1pu 3 4]")
	check("ann's, all", list("ann", port.SessionQuery{Archived: port.AlsoArchived}), "[1pu 2a 3 4]")
	check("ann's archive", list("ann", port.SessionQuery{Archived: port.OnlyArchived}), "[2a]")
	check("ann's pinned", list("ann", port.SessionQuery{Pinned: true, Owner: "ann"}), "[1pu]")
	check("bob's", list("bob", port.SessionQuery{}), "[1 2 3p 4]")
	check("without a viewer", list("", port.SessionQuery{}), "[1 2 3 4]")

	// Fields that are not set do not change, and ReadAt never moves back.
	set("ann", 1, port.MarkChange{ReadAt: t0.Add(time.Hour)})
	set("ann", 1, port.MarkChange{ReadAt: t0.Add(time.Minute)})
	set("ann", 2, port.MarkChange{Archived: &no})
	check("read", list("ann", port.SessionQuery{}), "[1p 2 3 4]")
	lives[3].at = t0.Add(2 * time.Hour)
	lives[3].say("again")
	lives[3].model()
	check("a later answer", list("ann", port.SessionQuery{}), "[1p 2 3u 4]")
	f.reopen()
	check("after a restart", list("ann", port.SessionQuery{}), "[1p 2 3u 4]")

	ends := batch(ID(1), lives[1].state.Head, 0)
	ends.Events = []parley.Event{{Session: ID(1), Seq: ends.After + 1, Root: ID(1), At: t0, Body: parley.SessionDeleted{}}}
	ends.Summary.Head, ends.Summary.Deleted = ends.After+1, true
	f.mustAppend(ends)
	set("ann", 1, port.MarkChange{Pinned: &yes})
	if m, err := f.Tenant(tenant).Marks(ctx, "ann", ID(1)); err != nil || m != (port.Marks{}) {
		t.Errorf("of a deleted session: %+v, %v", m, err)
	}
}
