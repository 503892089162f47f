package storetest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// usageIsAddedUp checks the usage of users by day, and their stored bytes.
func usageIsAddedUp(t *testing.T, f *fixture) {
	ctx, day := context.Background(), 24*time.Hour
	work := func(n int, owner parley.PrincipalID, at time.Time, calls int) {
		l := f.born(ID(n), owner, at, nil)
		for range calls {
			l.say("")
			l.model()
		}
	}
	work(1, "ann", t0, 2)
	work(2, "bob", t0, 1)
	work(3, "ann", t0.Add(day), 1)
	f.born(ID(4), "ann", t0.Add(day), &parley.Origin{Session: ID(3), Run: 3, Call: 4, Depth: 1}) // does not count
	f.born(parley.TenantSession, "ann", t0.Add(day), nil)                                        // nor does this

	each := parley.Usage{Input: 3, Output: 2, Cached: 1}
	row := func(user parley.PrincipalID, at time.Time, calls int64) port.UsageRow {
		r := port.UsageRow{User: user, Day: port.Day(at), Spent: port.Spent{Sessions: 1, Calls: calls}}
		for range calls {
			r.Usage = r.Usage.Plus(each)
		}
		return r
	}
	all := []port.UsageRow{row("ann", t0.Add(day), 1), row("ann", t0, 2), row("bob", t0, 1)}
	for _, test := range []struct {
		query port.UsageQuery
		want  []port.UsageRow
	}{
		{port.UsageQuery{First: port.Day(t0), Last: port.Day(t0.Add(day)), Limit: 10}, all},
		{port.UsageQuery{First: port.Day(t0), Last: port.Day(t0.Add(day)), Limit: 2}, all[:2]},
		{port.UsageQuery{First: port.Day(t0), Last: port.Day(t0), Limit: 10}, all[1:]},
		{port.UsageQuery{User: "bob", First: port.Day(t0), Last: port.Day(t0.Add(day)), Limit: 10}, all[2:]},
	} {
		got, err := f.Tenant(tenant).Usage(ctx, test.query)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%+v: %v\n got %+v\nwant %+v", test.query, err, got, test.want)
		}
	}

	logged := map[parley.PrincipalID]int64{}
	for n, owner := range map[int]parley.PrincipalID{1: "ann", 2: "bob", 3: "ann", 4: "ann"} {
		logged[owner] += f.logged(ID(n))
	}
	logged["ann"] += f.logged(parley.TenantSession)
	stored, err := f.Tenant(tenant).Storage(ctx)
	if err != nil || !reflect.DeepEqual(stored, logged) {
		t.Errorf("%v are stored, and are said to be %v; %v", logged, stored, err)
	}
	whole, own, err := f.Tenant(tenant).Spent(ctx, port.Day(t0), "ann", true)
	want := all[1].Spent
	want.Storage = logged["ann"]
	if err != nil || own != want || whole.Calls != 3 || whole.Sessions != 2 ||
		whole.Storage != logged["ann"]+logged["bob"] {
		t.Errorf("%v: %+v of %+v, and not %+v", err, own, whole, want)
	}
	if whole, own, err := f.Tenant("other").Spent(ctx, port.Day(t0), "ann", true); err != nil ||
		whole != (port.Spent{}) || own != (port.Spent{}) {
		t.Errorf("another tenant has used %+v, %v", whole, err)
	}
}

// logged returns the size of a log in bytes.
func (f *fixture) logged(id parley.SessionID) (n int64) {
	f.t.Helper()
	log, err := f.Tenant(tenant).Events(context.Background(), id, 0, 1<<20)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range log {
		_, _, body, err := parley.EncodeBody(e.Body)
		if err != nil {
			f.t.Fatal(err)
		}
		n += int64(len(body))
	}
	return n
}
