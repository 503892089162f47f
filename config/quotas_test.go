package config

import (
	"strings"
	"testing"

	"parley"
	"parley/port"
)

func TestQuotas(t *testing.T) {
	inDir(t, map[string]string{"parley.yaml": `quotas:
  tenant: {sessions: 1000, tokens: 50000000, cost_usd: 100, storage_mb: 10}
  user: {tokens: 2000000, cost_usd: 0.25}
  tenants:
    acme:
      user: {tokens: 7}
    free: {}
`})
	got, err := parse([]string{"serve", "--config", "parley.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := port.Quotas{Tenant: port.Quota{Sessions: 1000, Tokens: 50_000_000, Micros: 100_000_000,
		Storage: 10 << 20},
		User: port.Quota{Tokens: 2_000_000, Micros: 250_000}}
	for tenant, want := range map[parley.TenantID]port.Quotas{"default": all, "other": all,
		"acme": {User: port.Quota{Tokens: 7}}, "free": {}} {
		if q := got.Quotas.Of(tenant); q != want {
			t.Errorf("%s: %+v, and not %+v", tenant, q, want)
		}
	}
	if !got.Quotas.Any() || (Quotas{}).Any() {
		t.Error("it is not known whether there are quotas")
	}
}

// TestBadQuotas checks that the server does not start, and that the message names
// the line and the key.
func TestBadQuotas(t *testing.T) {
	for text, want := range map[string]string{
		"quotas: 5\n":                                     "parley.yaml:1: quotas has tenant:, user: and tenants:",
		"quotas:\n  user: {tokens: 0}\n":                  "parley.yaml:2: quotas.user.tokens is 1 to",
		"quotas:\n  user: {tokens: -5}\n":                 "not -5; leave it out for no limit",
		"quotas:\n  user: {tokens: many}\n":               "parley.yaml:2: a whole number is wanted here",
		"quotas:\n  user: {cost_usd: 0}\n":                "quotas.user.cost_usd is more than 0",
		"quotas:\n  user: {cost_usd: .nan}\n":             "quotas.user.cost_usd is more than 0",
		"quotas:\n  user: {toekns: 5}\n":                  `parley.yaml:2: unknown field "toekns"`,
		"quotas:\n  tenants:\n    -x: {}\n":               "-x is no tenant id",
		"quotas:\n  tenants:\n    a: {users: {}}\n":       `unknown field "users"`,
		"quotas:\n  tenant: {storage_mb: 1.5}\n":          "parley.yaml:2: a whole number is wanted here",
		"quotas:\n  tenant: {sessions: 1e30}\n":           "parley.yaml:2:",
		"quotas:\n  tenant: {tokens: 9999999999999999}\n": "quotas.tenant.tokens is 1 to",
	} {
		inDir(t, map[string]string{"parley.yaml": text})
		if _, err := parse([]string{"serve", "--config", "parley.yaml"}, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
