package webhook

import (
	"strings"
	"testing"
	"time"
)

// TestSignatures uses a test vector of the standard.
func TestSignatures(t *testing.T) {
	raw, err := key(secretOfAgent)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1614265330, 0)
	if got := sign(raw, "msg_p5jXN8AQM9LWM0D4loKWxJek", at,
		[]byte(`{"test": 2432232314}`)); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
	for _, bad := range []string{"", "whsec_", "whsec_AAAA", "whsec_%%%", secretOfAgent[6:],
		"whsec_" + strings.Repeat("A", 200)} {
		if CheckSecret(bad) == nil {
			t.Errorf("%q is a secret", bad)
		}
	}
	if a, b := NewSecret(), NewSecret(); a == b || CheckSecret(a) != nil {
		t.Error(a, b)
	}
}

// TestSealedSecretsStayWhereTheyAre checks that a sealed secret cannot be opened for another session, tenant or server
// key, and that it does not contain the secret in clear.
func TestSealedSecretsStayWhereTheyAre(t *testing.T) {
	s, err := NewSealer([]byte("a server key of thirty-two bytes"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewSealer([]byte("another server key, as it may be"))
	if err != nil {
		t.Fatal(err)
	}
	_, sealed, err := s.Seal(acme, mine, secretOfAgent)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := key(secretOfAgent)
	if strings.Contains(string(sealed), string(raw)) {
		t.Error("it is there in the open")
	}
	if got, err := s.open(acme, mine, sealed); err != nil || string(got) != string(raw) {
		t.Error(got, err)
	}
	for _, fails := range []func() ([]byte, error){
		func() ([]byte, error) { return s.open(acme, id(2), sealed) },
		func() ([]byte, error) { return s.open("rival", mine, sealed) },
		func() ([]byte, error) { return other.open(acme, mine, sealed) },
		func() ([]byte, error) { return s.open(acme, mine, sealed[1:]) },
	} {
		if got, err := fails(); err == nil {
			t.Errorf("opened: %q", got)
		}
	}
}
