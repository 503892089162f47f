package main

import (
	"testing"

	"parley/port"
	"parley/screen"
	"parley/setup"
)

// TestSecretsOfSetups checks that a header from an administrator is secret for that tenant only, and only if it looks
// like a secret.
func TestSecretsOfSetups(t *testing.T) {
	s := screen.New(nil, "off")
	entered := func(header, value string) setup.Value {
		return setup.Value{Setup: port.Setup{Tenant: "rival", Kind: port.SetupServer, Name: "x"},
			Plain: []byte(`{"url":"https://x.example","headers":{"` + header + `":"` + value + `"}}`)}
	}
	redactSetups(s)([]setup.Value{entered("X-A", "function_name"), entered("Authorization", "Bearer tok-12345678")})
	for _, c := range []struct {
		text         string
		rival, other bool
	}{{"call function_name", false, false}, {"it is tok-12345678", true, false}} {
		if got := s.HasSecret("rival", c.text); got != c.rival {
			t.Errorf("rival: %q: %v", c.text, got)
		}
		if got := s.HasSecret("default", c.text); got != c.other {
			t.Errorf("default: %q: %v", c.text, got)
		}
	}
}
