package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// A SecretDatabase is one database that the test opens many times.
type SecretDatabase struct {
	Open func(rules.Vault) (port.Store, error)
	// Beneath returns the database for Vault.Reseal, while no store is open.
	Beneath func(rules.Vault) (db rules.SecretStore, done func())
}

// MasterKey is one of several master keys, in hexadecimal.
func MasterKey(n int) string { return strings.Repeat(fmt.Sprintf("%02x", n), 32) }

// vaultOf returns a vault with master keys by number. The first one encrypts.
func vaultOf(t *testing.T, numbers ...int) rules.Vault {
	t.Helper()
	var keys []string
	for _, n := range numbers {
		keys = append(keys, MasterKey(n))
	}
	v, err := rules.NewVault(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// errCut stops Reseal in the middle, as the death of its process would.
var errCut = errors.New("cut off")

// A cutStore fails after a number of tenants.
type cutStore struct {
	rules.SecretStore
	left int
}

func (c *cutStore) ResealTenant(ctx context.Context, tenant parley.TenantID) error {
	if c.left--; c.left < 0 {
		return errCut
	}
	return c.SecretStore.ResealTenant(ctx, tenant)
}

func (c *cutStore) WholeKey(ctx context.Context, id string) error {
	if c.left <= 0 {
		return errCut
	}
	return c.SecretStore.WholeKey(ctx, id)
}

// SetWebhook opens session 1 of tenant acme with a webhook.
func SetWebhook(t *testing.T, s port.Store, url string) {
	t.Helper()
	b := batch(ID(1), 0, 1)
	b.Tenant = "acme"
	b.Webhook = &port.StoredWebhook{URL: url, Sealed: []byte("sealed"), Hook: parley.HookOf("a.example:443", nil), At: t0}
	(&fixture{t: t, Store: s}).mustAppend(b)
}

// Secrets checks three things about the secrets of webhooks. They are encrypted if a master key is given. They can be
// encrypted with another key, even if that is interrupted anywhere. A store that lacks a key is refused with an error
// that names the key.
func Secrets(t *testing.T, db SecretDatabase) {
	ctx := context.Background()
	tenants := []parley.TenantID{"acme", "rival", "third"}
	k1, k2, both := vaultOf(t, 1), vaultOf(t, 2), vaultOf(t, 2, 1)
	id1, id2 := k1.Keys()[0], k2.Keys()[0]

	// reads opens the database and checks that everything can be read.
	reads := func(v rules.Vault, more func(port.Store)) {
		t.Helper()
		s, err := db.Open(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, tenant := range tenants {
			h, ok, err := s.Tenant(tenant).Webhook(ctx, ID(1))
			if err != nil || !ok && more == nil || ok && (h.URL != "https://a.example/"+string(tenant) ||
				string(h.Sealed) != "sealed") {
				t.Errorf("tenant %s has %+v, %v, %v", tenant, h, ok, err)
			}
		}
		setups, err := s.Setups(ctx)
		if err != nil || more == nil && len(setups) != len(tenants) {
			t.Errorf("there are %d setups, %v", len(setups), err)
		}
		for _, one := range setups {
			if string(one.Sealed) != "key of "+string(one.Tenant) {
				t.Errorf("tenant %s has the setup %s", one.Tenant, one.Sealed)
			}
		}
		if more != nil {
			more(s)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	refuses := func(v rules.Vault, id string) {
		t.Helper()
		s, err := db.Open(v)
		if err == nil {
			s.Close()
		}
		if parley.CodeOf(err) != parley.CodeForbidden || !strings.Contains(parley.MessageOf(err), "key "+id+",") {
			t.Errorf("without the key %s: %v", id, err)
		}
	}
	cut := func(v rules.Vault, after int) {
		t.Helper()
		beneath, done := db.Beneath(v)
		defer done()
		if err := v.Reseal(ctx, &cutStore{beneath, after}); !errors.Is(err, errCut) {
			t.Fatalf("after %d tenants: %v", after, err)
		}
	}

	// Secrets that were stored without a key can be read, and are encrypted once there is a key.
	reads(rules.Vault{}, func(s port.Store) {
		f := &fixture{t: t, Store: s}
		for _, tenant := range tenants {
			b := batch(ID(1), 0, 1)
			b.Tenant = tenant
			b.Webhook = &port.StoredWebhook{URL: "https://a.example/" + string(tenant), Sealed: []byte("sealed"),
				Hook: parley.HookOf("a.example:443", nil), At: t0}
			f.mustAppend(b)
			f.mustAppend(port.Batch{Tenant: tenant, Setup: &port.Setup{Kind: port.SetupModel, Name: "openai",
				Sealed: []byte("key of " + tenant), By: "ann", At: t0}})
		}
	})
	reads(rules.Vault{}, nil)
	for after := range 4 { // the last time, only the final record is missing
		cut(k1, after)
		refuses(rules.Vault{}, id1)
		refuses(k2, id1)
	}
	reads(k1, nil)

	// The same with another key. Until it is done, both keys are needed.
	for after := range 4 {
		cut(both, after)
		refuses(k2, id1)
		refuses(k1, id2)
	}
	reads(both, nil)
	refuses(k1, id2)
	refuses(rules.Vault{}, id2)
	reads(k2, func(s port.Store) {
		hooks := s.(port.HookStore)
		for url, gone := range map[string]bool{"https://a.example/other": false, "https://a.example/acme": true} {
			if err := hooks.HookGone(ctx, "acme", ID(1), url, t0.Add(time.Hour)); err != nil {
				t.Error(err)
			}
			if h, _, err := s.Tenant("acme").Webhook(ctx, ID(1)); err != nil || gone && h.Gone.IsZero() {
				t.Errorf("%s: %+v, %v", url, h, err)
			}
		}
		agent := parley.SessionID("agent:helper")
		for range 2 {
			if err := hooks.HookGone(ctx, "acme", agent, "https://b.example/x", t0); err != nil {
				t.Error(err)
			}
		}
		if h, ok, err := s.Tenant("acme").Webhook(ctx, agent); err != nil || !ok || h.URL != "https://b.example/x" {
			t.Errorf("the webhook of an agent is %+v, %v, %v", h, ok, err)
		}
	})
}
