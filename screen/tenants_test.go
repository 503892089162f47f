package screen

import (
	"testing"

	"parley"
)

// TestSecretsOfATenant: a tenant's secrets are removed from text for that tenant, and from the log. Another tenant gets
// the text unchanged: otherwise it could find out the secrets, and its ordinary words could disappear.
func TestSecretsOfATenant(t *testing.T) {
	s := New(nil, "off", "of-the-server")
	s.Also(map[parley.TenantID][]string{"acme": {"of-acme-1234"}, "rival": {"function_name"}})
	const text = "of-the-server of-acme-1234 function_name"
	for tenant, want := range map[parley.TenantID]string{
		"acme":  "[redacted:own] [redacted:own] function_name",
		"rival": "[redacted:own] of-acme-1234 [redacted:own]",
		"third": "[redacted:own] of-acme-1234 function_name",
	} {
		f := s.Redactor(tenant)
		if got := f.Write(text) + f.Close(); got != want {
			t.Errorf("%s: %s", tenant, got)
		}
		if got := s.HasSecret(tenant, "call function_name"); got != (tenant == "rival") {
			t.Errorf("%s: HasSecret is %v", tenant, got)
		}
		if !s.HasSecret(tenant, "say of-the-server") {
			t.Errorf("%s: the server's own secret is none", tenant)
		}
	}
	f := s.LogRedactor()
	if got := f.Write(text) + f.Close(); got != "[redacted:own] [redacted:own] [redacted:own]" {
		t.Errorf("the log: %s", got)
	}
	s.Also(nil)
	f = s.LogRedactor()
	if got := f.Write(text) + f.Close(); got != "[redacted:own] of-acme-1234 function_name" || s.HasSecret("rival", text[14:]) {
		t.Errorf("after they were removed: %s", got)
	}
}
