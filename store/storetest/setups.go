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

func setupsAreKept(t *testing.T, f *fixture) {
	ctx := context.Background()
	put := func(tenant parley.TenantID, kind port.SetupKind, name, value string) {
		t.Helper()
		one := &port.Setup{Kind: kind, Name: name, By: "ann", At: t0}
		if value != "" {
			one.Sealed = []byte(value)
		}
		f.mustAppend(port.Batch{Tenant: tenant, Setup: one, Audit: []parley.Audit{record("model.key.set")}})
	}
	all := func() (list []string) {
		t.Helper()
		setups, err := f.Setups(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range setups {
			list = append(list, fmt.Sprintf("%s %s %s %s %s %v", s.Tenant, s.Kind, s.Name, s.Sealed, s.By, s.At.Sub(t0)))
		}
		return list
	}
	put("rival", port.SetupModel, "openai", "theirs")
	put(tenant, port.SetupModel, "openai", "one")
	put(tenant, port.SetupServer, "openai", "a server")
	put(tenant, port.SetupModel, "openai", "two")
	f.reopen()
	want := []string{"acme mcp openai a server ann 0s", "acme model openai two ann 0s", "rival model openai theirs ann 0s"}
	if got := all(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	put(tenant, port.SetupModel, "openai", "")
	put(tenant, port.SetupModel, "google", "") // this setup does not exist
	if got := all(); !slices.Equal(got, []string{want[0], want[2]}) {
		t.Errorf("%q", got)
	}
	if rows := f.chain(tenant); len(rows) != 5 {
		t.Errorf("there are %d records", len(rows))
	}
}

// session appends a session of a user at a given time.
func (f *fixture) session(n int, owner parley.PrincipalID, at time.Time, change func(*port.Batch)) {
	f.t.Helper()
	b := batch(ID(n), 0, 1)
	b.Tenant = tenant
	b.Summary = port.Summary{ID: ID(n), Root: ID(n), Owner: owner, Title: fmt.Sprint("T", n), Head: 1, OpenedAt: at,
		UpdatedAt: at}
	if change != nil {
		change(&b)
	}
	f.mustAppend(b)
}

func usersAreListed(t *testing.T, f *fixture) {
	ctx := context.Background()
	minute := func(n int) time.Time { return t0.Add(time.Duration(n) * time.Minute) }
	f.session(1, "bob", minute(1), nil)
	f.session(2, "bob", minute(2), nil)
	f.session(3, "bob", minute(3), func(b *port.Batch) { b.Summary.Root = ID(1) })      // session of a sub-agent
	f.session(4, "carl", minute(4), func(b *port.Batch) { b.Summary.Deleted = true })   // not counted
	f.session(5, "dora", minute(5), func(b *port.Batch) { b.Summary.Transient = true }) // not counted
	for i := range 300 {
		f.mustAppend(port.Batch{Tenant: tenant, Audit: []parley.Audit{{At: minute(10 + i), By: "zoe", Action: "a",
			Source: "http", Metadata: []byte(`{}`)}}})
	}
	f.mustAppend(port.Batch{Tenant: tenant, Audit: []parley.Audit{{At: minute(9), Action: "of the server",
		Source: "system", Metadata: []byte(`{}`)}}})
	f.mustAppend(port.Batch{Tenant: tenant, Audit: []parley.Audit{{At: minute(7), By: "carl", Action: "b",
		Source: "http", Metadata: []byte(`{}`)}}})
	f.mustAppend(port.Batch{Tenant: "rival", Audit: []parley.Audit{{At: minute(7), By: "eve", Action: "b",
		Source: "http", Metadata: []byte(`{}`)}}})
	var got []string
	for after := parley.PrincipalID(""); ; {
		page, err := f.Tenant(tenant).Users(ctx, after, 2)
		if err != nil || len(page) > 2 {
			t.Fatal(page, err)
		}
		for _, u := range page {
			got = append(got, fmt.Sprint(u.ID, " ", u.Conversations, " ", u.SeenAt.Sub(t0)))
			after = u.ID
		}
		if len(page) < 2 {
			break
		}
	}
	if want := []string{"bob 2 3m0s", "carl 0 7m0s", "zoe 0 5h9m0s"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func webhooksAreListed(t *testing.T, f *fixture) {
	hook := func(b *port.Batch) {
		b.Webhook = &port.StoredWebhook{URL: "https://a.example/" + b.Summary.Title, Sealed: []byte("sealed"),
			Hook: parley.HookOf("a.example:443", nil), At: t0}
	}
	f.session(1, "ann", t0, hook)
	f.session(2, "bob", t0, hook)
	f.session(3, "bob", t0, nil)
	f.session(4, "bob", t0, func(b *port.Batch) { hook(b); b.Summary.Deleted = true })
	f.session(5, "bob", t0, hook)
	f.hooked("rival", ID(6), "b.example:443", 0)
	for name, c := range map[string]struct {
		q    port.WebhookQuery
		want []string
	}{
		"all":  {port.WebhookQuery{Limit: 9}, []string{"T1", "T2", "T5"}},
		"page": {port.WebhookQuery{After: ID(1), Limit: 1}, []string{"T2"}},
		"own":  {port.WebhookQuery{Owner: "bob", Limit: 9}, []string{"T2", "T5"}},
	} {
		list, err := f.Tenant(tenant).Webhooks(context.Background(), c.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range list {
			got = append(got, w.Title)
			if w.URL != "https://a.example/"+w.Title || w.Secret != "" || w.Status != "active" || !w.SetAt.Equal(t0) {
				t.Errorf("%+v", w)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
