package rules

import (
	"bytes"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

func vaultWith(t *testing.T, keys ...string) Vault {
	t.Helper()
	v, err := NewVault(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestASecretHasItsPlace checks that an encrypted value of one webhook does not open as a value of another webhook or
// of another column.
func TestASecretHasItsPlace(t *testing.T) {
	v := vaultWith(t, strings.Repeat("ab", 32))
	h := port.StoredWebhook{URL: "https://a.example", Sealed: []byte("secret")}
	kept := v.SealHook("acme", "1", h)
	if got, err := v.OpenHook("acme", "1", kept); err != nil || got.URL != h.URL || !bytes.Equal(got.Sealed, h.Sealed) {
		t.Errorf("%+v, %v", got, err)
	}
	if again := v.SealHook("acme", "1", h); again.URL == kept.URL {
		t.Error("two encryptions of one address are equal")
	}
	swapped := port.StoredWebhook{URL: string(kept.Sealed), Sealed: []byte(kept.URL)}
	for what, open := range map[string]func() error{
		"another tenant":  func() error { _, err := v.OpenHook("rival", "1", kept); return err },
		"another session": func() error { _, err := v.OpenHook("acme", "2", kept); return err },
		"another column":  func() error { _, err := v.OpenHook("acme", "1", swapped); return err },
	} {
		if err := open(); parley.CodeOf(err) != parley.CodeCorrupt {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestValuesThatAreNotEncrypted checks that a value that was stored without a key can be read with one, and that empty
// values stay empty.
func TestValuesThatAreNotEncrypted(t *testing.T) {
	v := vaultWith(t, strings.Repeat("ab", 32))
	for _, plain := range []string{"", "https://a.example", "vault", "vault:", "vault:x"} {
		if got, err := v.Open("here", []byte(plain)); err != nil || string(got) != plain {
			t.Errorf("%q is read as %q, %v", plain, got, err)
		}
	}
	if got := v.Seal("here", nil); len(got) > 0 || !v.Current(nil) {
		t.Errorf("nothing is stored as %q", got)
	}
	if got := (Vault{}).Seal("here", []byte("x")); string(got) != "x" {
		t.Errorf("without a key x is stored as %q", got)
	}
	for _, bad := range []string{"", "ab", strings.Repeat("zz", 32), strings.Repeat("ab", 33)} {
		if _, err := NewVault(bad); err == nil {
			t.Errorf("%q is taken for a key", bad)
		}
	}
	if _, err := NewVault(strings.Repeat("ab", 32), strings.Repeat("ab", 32)); err == nil {
		t.Error("a key that is given twice is accepted")
	}
}
