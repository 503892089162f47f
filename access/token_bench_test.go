package access

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// BenchmarkVerify verifies one good token for each kind of key, claims included.
func BenchmarkVerify(b *testing.B) {
	r, p := must(rsa.GenerateKey(rand.Reader, 2048)), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	edPublic, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range []struct {
		method  jwt.SigningMethod
		private any
		jwk     string
	}{
		{jwt.SigningMethodHS256, []byte(secret), `{"kty":"oct","alg":"HS256","kid":"a","k":"` + encode(secret) + `"}`},
		{jwt.SigningMethodRS256, r, jwk(b, "a", "RS256", &r.PublicKey)},
		{jwt.SigningMethodPS256, r, jwk(b, "a", "PS256", &r.PublicKey)},
		{jwt.SigningMethodES256, p, jwk(b, "a", "ES256", &p.PublicKey)},
		{jwt.SigningMethodEdDSA, ed, jwk(b, "a", "EdDSA", edPublic)},
	} {
		set, _, err := parseKeySet([]byte(`{"keys":[` + k.jwk + `]}`))
		if err != nil {
			b.Fatal(err)
		}
		v := &Verifier{issuer: "parley", now: func() time.Time { return start }, keys: set}
		header := fmt.Sprintf(`{"alg":%q,"kid":"a","typ":"JWT"}`, k.method.Alg())
		token := sign(b, k.method, k.private, header, with("", nil))
		b.Run(k.method.Alg(), func(b *testing.B) {
			for b.Loop() {
				if _, err := v.Verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
