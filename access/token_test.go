package access

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"parley"
	"parley/port"
)

const secret = "0123456789abcdef0123456789abcdef"

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// sign makes a token with exactly this header and payload.
func sign(t testing.TB, method jwt.SigningMethod, material any, header, payload string) string {
	t.Helper()
	text := encode(header) + "." + encode(payload)
	sig, err := method.Sign(text, material)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func hs256(t testing.TB, header, payload string) string {
	return sign(t, jwt.SigningMethodHS256, []byte(secret), header, payload)
}

// good returns claims that are accepted at start.
func good() map[string]any {
	return map[string]any{
		"iss": "parley", "sub": "ann", "tid": "acme", "roles": []parley.UserRole{parley.RoleStandardUser},
		"type": "access",
		"iat":  start.Unix(), "exp": start.Add(time.Hour).Unix(), "jti": "t-1",
	}
}

// with returns the JSON of good with one claim changed; nil removes it.
func with(name string, value any) string {
	claims := good()
	if claims[name] = value; value == nil {
		delete(claims, name)
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func verifier(t testing.TB, change ...func(*TokenConfig)) *Verifier {
	t.Helper()
	c := TokenConfig{Secret: secret, Issuer: "parley", Now: func() time.Time { return start }}
	for _, f := range change {
		f(&c)
	}
	v, err := NewVerifier(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTokens(t *testing.T) {
	const h = `{"alg":"HS256","typ":"JWT"}`
	number := func(s string) any { return json.RawMessage(s) }
	at := func(d time.Duration) any { return start.Add(d).Unix() }
	long := strings.Repeat("x", 300)
	many := make([]string, 33)
	for i := range many {
		many[i] = "r"
	}
	payload := with("", nil)
	for _, c := range []struct {
		name, token string
		want        Reason
	}{
		{"good", hs256(t, h, payload), ""},
		{"no typ", hs256(t, `{"alg":"HS256"}`, payload), ""},
		{"typ of RFC 9068", hs256(t, `{"alg":"HS256","typ":"application/at+JWT"}`, payload), ""},
		{"typ of something else", hs256(t, `{"alg":"HS256","typ":"logout+jwt"}`, payload), TokenType},
		{"typ a number", hs256(t, `{"alg":"HS256","typ":1}`, payload), TokenInvalid},

		// A02: no signature, however alg is spelled.
		{"none", sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, `{"alg":"none"}`, payload),
			TokenInvalid},
		{"None", encode(`{"alg":"None"}`) + "." + encode(payload) + ".", TokenInvalid},
		{"nOnE", encode(`{"alg":"nOnE"}`) + "." + encode(payload) + ".", TokenInvalid},
		{"empty signature", encode(h) + "." + encode(payload) + ".", TokenInvalid},
		{"none with a good signature", hs256(t, `{"alg":"none"}`, payload), TokenInvalid},
		{"no alg", hs256(t, `{"typ":"JWT"}`, payload), TokenInvalid},
		{"alg null", hs256(t, `{"alg":null}`, payload), TokenInvalid},
		{"another hash", sign(t, jwt.SigningMethodHS512, []byte(secret), `{"alg":"HS512"}`, payload), TokenInvalid},
		{"another secret", sign(t, jwt.SigningMethodHS256, []byte(secret+"x"), h, payload), TokenInvalid},

		// A04, A05, A06: the header.
		{"a kid", hs256(t, `{"alg":"HS256","kid":"../../dev/null"}`, payload), ""},
		{"a long kid", hs256(t, `{"alg":"HS256","kid":"`+long+`"}`, payload), TokenInvalid},
		{"a kid of 1 MB", hs256(t, `{"alg":"HS256","kid":"`+strings.Repeat("k", 1<<20)+`"}`, payload), TokenInvalid},
		{"a kid that is a list", hs256(t, `{"alg":"HS256","kid":["a"]}`, payload), TokenInvalid},
		{"own secret in the header", sign(t, jwt.SigningMethodHS256, []byte(long),
			`{"alg":"HS256","jwk":{"kty":"oct","k":"`+encode(long)+`"}}`, payload), TokenInvalid},
		{"crit", hs256(t, `{"alg":"HS256","crit":["exp"],"exp":1}`, payload), TokenInvalid},
		{"crit of b64", hs256(t, `{"alg":"HS256","crit":["b64"],"b64":true}`, payload), TokenInvalid},
		{"empty crit", hs256(t, `{"alg":"HS256","crit":[]}`, payload), TokenInvalid},
		{"alg twice", hs256(t, `{"alg":"HS256","alg":"HS256"}`, payload), TokenInvalid},
		{"header a list", hs256(t, `["HS256"]`, payload), TokenInvalid},
		{"header null", hs256(t, `null`, payload), TokenInvalid},
		{"header twice", hs256(t, h+h, payload), TokenInvalid},
		{"alg in capitals", hs256(t, `{"ALG":"HS256"}`, payload), TokenInvalid},

		// A07: exp.
		{"expires in a second", hs256(t, h, with("exp", at(time.Second))), ""},
		{"expires now", hs256(t, h, with("exp", at(0))), TokenExpired},
		{"expired", hs256(t, h, with("exp", at(-time.Second))), TokenExpired},
		{"expired and of another issuer", hs256(t, h, `{"iss":"x","exp":1}`), TokenInvalid},
		{"expired, with a wrong signature", hs256(t, h, with("exp", at(-time.Hour))) + "A", TokenInvalid},
		{"no exp", hs256(t, h, with("exp", nil)), TokenInvalid},
		{"exp text", hs256(t, h, with("exp", fmt.Sprint(at(time.Hour)))), TokenInvalid},
		{"exp a fraction", hs256(t, h, with("exp", number(fmt.Sprint(at(time.Hour), ".5")))), TokenInvalid},
		{"exp 1e400", hs256(t, h, with("exp", number("1e400"))), TokenInvalid},
		{"exp 9e9", hs256(t, h, with("exp", number("9e9"))), TokenInvalid},
		{"exp negative", hs256(t, h, with("exp", -1)), TokenInvalid},
		{"exp zero", hs256(t, h, with("exp", 0)), TokenInvalid},
		{"exp beyond int64", hs256(t, h, with("exp", number("99999999999999999999"))), TokenInvalid},
		{"exp null", hs256(t, h, with("exp", number("null"))), TokenInvalid},
		{"exp in a list", hs256(t, h, with("exp", []any{at(time.Hour)})), TokenInvalid},
		{"exp two years ahead", hs256(t, h, with("exp", at(2*MaxTokenLife))), TokenInvalid},
		{"EXP", hs256(t, h, strings.Replace(payload, `"exp"`, `"EXP"`, 1)), TokenInvalid},

		// A08: nbf and iat.
		{"nbf ahead, within leeway", hs256(t, h, with("nbf", at(leeway))), ""},
		{"nbf ahead", hs256(t, h, with("nbf", at(leeway+time.Second))), TokenInvalid},
		{"nbf text", hs256(t, h, with("nbf", "soon")), TokenInvalid},
		{"iat ahead, within leeway", hs256(t, h, with("iat", at(leeway))), ""},
		{"iat ahead", hs256(t, h, with("iat", at(leeway+time.Second))), TokenInvalid},
		{"no iat", hs256(t, h, with("iat", nil)), ""},

		// A09: iss; aud has a test of its own.
		{"another issuer", hs256(t, h, with("iss", "heimdall")), TokenInvalid},
		{"no issuer", hs256(t, h, with("iss", nil)), TokenInvalid},
		{"issuers", hs256(t, h, with("iss", []string{"parley"})), TokenInvalid},

		// A10: type.
		{"a refresh token", hs256(t, h, with("type", "refresh")), TokenType},
		{"an ID token", hs256(t, h, with("type", nil)), TokenType},
		{"type a list", hs256(t, h, with("type", []string{"access"})), TokenType},
		{"an expired refresh token", hs256(t, h, `{"iss":"parley","type":"refresh","exp":1}`), TokenExpired},

		// A11: tid.
		{"no tenant", hs256(t, h, with("tid", nil)), TokenInvalid},
		{"tenant empty", hs256(t, h, with("tid", "")), TokenInvalid},
		{"tenant in capitals", hs256(t, h, with("tid", "ACME")), TokenInvalid},
		{"tenants", hs256(t, h, with("tid", []string{"acme"})), TokenInvalid},
		{"tenant with a dot", hs256(t, h, with("tid", "a.b")), TokenInvalid},
		{"tenant and a line", hs256(t, h, with("tid", "acme\n")), TokenInvalid},

		// sub and roles.
		{"no sub", hs256(t, h, with("sub", nil)), TokenInvalid},
		{"sub empty", hs256(t, h, with("sub", "")), TokenInvalid},
		{"sub long", hs256(t, h, with("sub", long)), TokenInvalid},
		{"sub a number", hs256(t, h, with("sub", 1)), TokenInvalid},
		{"sub with a line break", hs256(t, h, with("sub", "ann\nbob")), TokenInvalid},
		{"sub with half a character", hs256(t, h, with("sub", number(`"ann\ud800"`))), TokenInvalid},
		{"sub written backwards", hs256(t, h, with("sub", "ann\u202e")), TokenInvalid},
		{"sub of another script", hs256(t, h, with("sub", "Анна 1")), ""},
		{"no roles", hs256(t, h, with("roles", nil)), TokenInvalid},
		{"roles null", hs256(t, h, with("roles", number("null"))), TokenInvalid},
		{"roles text", hs256(t, h, with("roles", "org_admin")), TokenInvalid},
		{"roles empty", hs256(t, h, with("roles", []string{})), ""},
		{"a role that is a number", hs256(t, h, with("roles", []any{1})), TokenInvalid},
		{"a role that is null", hs256(t, h, with("roles", []any{nil})), TokenInvalid},
		{"too many roles", hs256(t, h, with("roles", many)), TokenInvalid},
		{"jti a number", hs256(t, h, with("jti", 1)), TokenInvalid},

		// A12: repeated keys, at any depth.
		{"tid twice", hs256(t, h, strings.Replace(payload, `{`, `{"tid":"acme",`, 1)), TokenInvalid},
		{"tid twice, once escaped", hs256(t, h, strings.Replace(payload, `{`, `{"\u0074id":"acme",`, 1)), TokenInvalid},
		{"twice, deep inside", hs256(t, h, with("x", number(`[{"a":{"b":1,"b":1}}]`))), TokenInvalid},
		{"the same key at several places", hs256(t, h, with("x", number(`[{"a":{"a":"a"}},{"a":[]}]`))), ""},
		{"deep", hs256(t, h, with("x", number(strings.Repeat("[", 100)+strings.Repeat("]", 100)))), TokenInvalid},
		{"not UTF-8", hs256(t, h, strings.Replace(payload, `"ann"`, "\"ann\xff\"", 1)), TokenInvalid},
		{"payload not JSON", hs256(t, h, "foo"), TokenInvalid},
		{"payload null", hs256(t, h, "null"), TokenInvalid},

		// A13: other forms.
		{"empty", "", TokenInvalid},
		{"dots", "..", TokenInvalid},
		{"JSON serialization", `{"payload":"` + encode(payload) + `","signatures":[]}`, TokenInvalid},
		{"detached", encode(h) + ".." + strings.Split(hs256(t, h, payload), ".")[2], TokenInvalid},
		{"five parts", hs256(t, h, payload) + "..", TokenInvalid},
		{"nested", hs256(t, `{"alg":"HS256","cty":"JWT"}`, hs256(t, h, payload)), TokenInvalid},
		{"with a line break", strings.Replace(hs256(t, h, payload), ".", ".\n", 1), TokenInvalid},
		{"padded", hs256(t, h, payload) + "=", TokenInvalid},
		{"a space before", " " + hs256(t, h, payload), TokenInvalid},
		{"too long", hs256(t, h, with("x", strings.Repeat("x", maxToken))), TokenInvalid},
	} {
		id, err := verifier(t).Verify(t.Context(), c.token)
		if got := reasonOf(err); got != c.want {
			t.Errorf("%s: %q (%v), want %q", c.name, got, err, c.want)
		}
		if err != nil && id.Principal.ID != "" {
			t.Errorf("%s: refused, and yet %+v", c.name, id)
		}
		if err != nil && len(c.token) > 40 && strings.Contains(err.Error(), c.token[len(c.token)-20:]) {
			t.Errorf("%s: the error tells the token: %v", c.name, err)
		}
	}
	id, err := verifier(t).Verify(t.Context(), hs256(t, h, payload))
	if err != nil || id.Principal.ID != "ann" || id.Tenant != "acme" || id.Roles[0] != parley.RoleStandardUser ||
		id.TokenID != "t-1" ||
		!id.Issued.Equal(start) || !id.Expires.Equal(start.Add(time.Hour)) || id.Ticket {
		t.Errorf("%+v, %v", id, err)
	}
}

func TestAudience(t *testing.T) {
	for _, c := range []struct {
		want, aud any
		ok        bool
	}{
		{"", nil, true}, {"", "other", true}, {"", 1, true},
		{"us", "us", true}, {"us", []string{"them", "us"}, true},
		{"us", nil, false}, {"us", "them", false}, {"us", []string{"them"}, false}, {"us", []string{}, false},
		{"us", 1, false}, {"us", []any{"us", 1}, false}, {"us", "", false},
	} {
		v := verifier(t, func(tc *TokenConfig) { tc.Audience = c.want.(string) })
		if _, err := v.Verify(t.Context(), hs256(t, `{"alg":"HS256"}`, with("aud", c.aud))); (err == nil) != c.ok {
			t.Errorf("aud %v where %v is wanted: %v", c.aud, c.want, err)
		}
	}
}

// jwk returns a public key as a JWK.
func jwk(t testing.TB, id, alg string, public any) string {
	t.Helper()
	o := map[string]string{"kid": id, "use": "sig"}
	if alg != "" {
		o["alg"] = alg
	}
	raw := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	switch k := public.(type) {
	case *rsa.PublicKey:
		o["kty"], o["n"], o["e"] = "RSA", raw(k.N.Bytes()), raw(big.NewInt(int64(k.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		half := len(point) / 2
		o["kty"], o["crv"], o["x"], o["y"] = "EC", k.Params().Name, raw(point[1:1+half]), raw(point[1+half:])
	case ed25519.PublicKey:
		o["kty"], o["crv"], o["x"] = "OKP", "Ed25519", raw(k)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A03: every key with every algorithm, and public keys used as secrets.
func TestAnAlgorithmBelongsToItsKey(t *testing.T) {
	r := must(rsa.GenerateKey(rand.Reader, 2048))
	p256, p384, p521 := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)),
		must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	edPublic, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := []struct {
		id, alg string // as published
		is      jwt.SigningMethod
		private any
		public  any
	}{
		{"rsa", "", jwt.SigningMethodRS256, r, &r.PublicKey},
		{"rs512", "RS512", jwt.SigningMethodRS512, r, &r.PublicKey},
		{"ps256", "PS256", jwt.SigningMethodPS256, r, &r.PublicKey},
		{"p256", "", jwt.SigningMethodES256, p256, &p256.PublicKey},
		{"p384", "ES384", jwt.SigningMethodES384, p384, &p384.PublicKey},
		{"p521", "", jwt.SigningMethodES512, p521, &p521.PublicKey},
		{"ed", "EdDSA", jwt.SigningMethodEdDSA, ed, edPublic},
	}
	var published []string
	for _, k := range keys {
		published = append(published, jwk(t, k.id, k.alg, k.public))
	}
	set, leftOut, err := parseKeySet([]byte(`{"keys":[` + strings.Join(published, ",") + `]}`))
	if err != nil || len(leftOut) > 0 || len(set) != len(keys) {
		t.Fatal(set, leftOut, err)
	}
	v := &Verifier{issuer: "parley", now: func() time.Time { return start }, keys: set}
	payload := with("", nil)
	for _, k := range keys {
		for _, by := range keys {
			token := sign(t, by.is, by.private, fmt.Sprintf(`{"alg":%q,"kid":%q}`, by.is.Alg(), k.id), payload)
			_, err := v.Verify(t.Context(), token)
			if ok := err == nil; ok != (k.id == by.id) {
				t.Errorf("a token by %s under the key %s: %v", by.id, k.id, err)
			}
		}
		der := must(x509.MarshalPKIXPublicKey(k.public))
		for _, shared := range [][]byte{der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
			[]byte(jwk(t, k.id, k.alg, k.public))} {
			for _, alg := range []string{"HS256", k.is.Alg()} {
				token := sign(t, jwt.SigningMethodHS256, shared, fmt.Sprintf(`{"alg":%q,"kid":%q}`, alg, k.id), payload)
				if _, err := v.Verify(t.Context(), token); reasonOf(err) != TokenInvalid {
					t.Errorf("%s, signed as a secret with the public key of %s: %v", alg, k.id, err)
				}
			}
		}
	}
}

// TestASaltIsAsLongAsTheHash: RFC 7518 allows one length of the salt; libraries
// accept any.
func TestASaltIsAsLongAsTheHash(t *testing.T) {
	r := must(rsa.GenerateKey(rand.Reader, 2048))
	set, _, err := parseKeySet([]byte(`{"keys":[` + jwk(t, "", "PS256", &r.PublicKey) + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []int{0, 20, 31, 32, 33, 64} {
		by := *jwt.SigningMethodPS256
		by.Options = &rsa.PSSOptions{SaltLength: length}
		if length == 0 {
			by.Options.SaltLength = rsa.PSSSaltLengthAuto // as long as the key allows
		}
		token := sign(t, &by, r, `{"alg":"PS256"}`, with("", nil))
		if _, err := verifySignature(t.Context(), set, token); (err == nil) != (length == 32) {
			t.Errorf("a salt of %d bytes: %v", length, err)
		}
	}
}

func TestKeysThatAreNotUsed(t *testing.T) {
	p := &must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).PublicKey
	ok := jwk(t, "a", "", p)
	ofRSA := jwk(t, "a", "", &must(rsa.GenerateKey(rand.Reader, 2048)).PublicKey)
	for name, set := range map[string]string{
		"private part":  strings.Replace(ok, `{`, `{"d":"AA",`, 1),
		"no curve":      strings.Replace(ok, `"P-256"`, `"P-224"`, 1),
		"curve a list":  strings.Replace(ok, `"P-256"`, `["P-256"]`, 1),
		"short x":       strings.Replace(ok, `"x":"`, `"x":"AA","old":"`, 1),
		"encryption":    strings.Replace(ok, `"sig"`, `"enc"`, 1),
		"other ops":     strings.Replace(ok, `{`, `{"key_ops":["sign"],`, 1),
		"alg of RSA":    strings.Replace(ok, `{`, `{"alg":"RS256",`, 1),
		"alg none":      strings.Replace(ok, `{`, `{"alg":"none",`, 1),
		"unknown type":  `{"kty":"PQC","kid":"a"}`,
		"a text":        `"a"`,
		"short secret":  `{"kty":"oct","alg":"HS256","k":"AAAA"}`,
		"no alg":        `{"kty":"oct","k":"` + encode(secret) + `"}`,
		"Ed448":         `{"kty":"OKP","crv":"Ed448","x":"AAAA"}`,
		"short Ed25519": `{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`,
		"exponent 1":    strings.Replace(ofRSA, `"AQAB"`, `"AQ"`, 1),
		"exponent 2^72 + 65537, of which 64 bits are 65537": strings.Replace(ofRSA, `"AQAB"`, `"AQAAAAAAAAEAAQ"`, 1),
		"stray bits in base64url":                           strings.Replace(ofRSA, `"AQAB"`, `"AQABAR"`, 1),
		"a line break in base64url":                         strings.Replace(ofRSA, `"AQAB"`, `"AQ\nAB"`, 1),
	} {
		if got, leftOut, err := parseKeySet([]byte(`{"keys":[` + set + `]}`)); err != nil || len(got) != 0 ||
			len(leftOut) != 1 {
			t.Errorf("%s: %v %v %v", name, got, leftOut, err)
		}
	}
	for name, doc := range map[string]string{
		"no keys": `{}`, "keys no list": `{"keys":{}}`, "not JSON": `<html>`, "keys twice": `{"keys":[],"keys":[]}`,
		"too many":       `{"keys":[` + strings.Repeat("{},", maxKeys) + `{}]}`,
		"kty twice":      `{"keys":[` + strings.Replace(ok, `{`, `{"kty":"EC",`, 1) + `]}`,
		"two of one id":  `{"keys":[` + ok + `,` + ok + `]}`,
		"with a secret":  `{"keys":[` + ok + `,{"kty":"oct","alg":"HS256","kid":"s","k":"` + encode(secret) + `"}]}`,
		"one of no good": `{"keys":[` + ok + `,` + strings.Replace(ok, `"P-256"`, `"P-384"`, 1) + `]}`,
	} {
		if got, _, err := parseKeySet([]byte(doc)); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, member := range map[string]string{
		"a certificate that cannot be read": `"x5c":["AAAA"]`, "a thumbprint of another length": `"x5t":"AAAA"`,
		"an unknown member": `"x":1`,
	} {
		if got, leftOut, err := parseKeySet([]byte(`{"keys":[` + strings.Replace(ofRSA, `{`, `{`+member+`,`, 1) +
			`]}`)); len(got) != 1 {
			t.Errorf("a good key with %s: %v %v", name, leftOut, err)
		}
	}
	both := `{"keys":[` + ok + `,` + strings.Replace(ok, `"sig"`, `"enc"`, 1) + `]}`
	if got, _, err := parseKeySet([]byte(both)); err != nil || len(got) != 1 {
		t.Errorf("a key for encryption of the same id: %v, %v", got, err)
	}
}

func TestMint(t *testing.T) {
	claims := Claims{Issuer: "parley", Audience: "us", ID: "t-9", Issued: start, Expires: start.Add(time.Minute),
		Principal: port.Principal{ID: "ann", Tenant: "acme", Roles: []parley.UserRole{parley.RoleOrgAdmin}}}
	token, err := Mint(secret, claims)
	if err != nil {
		t.Fatal(err)
	}
	id, err := verifier(t, func(c *TokenConfig) { c.Audience = "us" }).Verify(t.Context(), token)
	if err != nil || id.Principal.ID != "ann" || id.TokenID != "t-9" || !id.Expires.Equal(claims.Expires) {
		t.Errorf("%+v, %v", id, err)
	}
	for name, change := range map[string]func(*Claims){
		"nobody": func(c *Claims) { c.Principal.ID = "" }, "no tenant": func(c *Claims) { c.Tenant = "A" },
		"over": func(c *Claims) { c.Expires = start }, "for ever": func(
			c *Claims) {
			c.Expires = start.Add(10 * MaxTokenLife)
		},
		"an empty role": func(c *Claims) { c.Roles = []parley.UserRole{""} }, "no issuer": func(
			c *Claims) {
			c.Issuer = ""
		},
	} {
		c := claims
		change(&c)
		if token, err := Mint(secret, c); err == nil {
			t.Errorf("%s: %s", name, token)
		}
	}
	if _, err := Mint(secret[:31], claims); err == nil || !strings.Contains(err.Error(), "31 bytes") ||
		strings.Contains(err.Error(), secret[:31]) {
		t.Errorf("a short secret: %v", err)
	}
}

func TestVerifierConfiguration(t *testing.T) {
	for name, c := range map[string]TokenConfig{
		"none": {Issuer: "parley"}, "both": {Issuer: "parley", Secret: secret, JWKSURL: "https://keys.example"},
		"short": {Issuer: "parley", Secret: secret[1:]}, "no issuer": {Secret: secret},
		"http":       {Issuer: "parley", JWKSURL: "http://keys.example"},
		"a file":     {Issuer: "parley", JWKSURL: "file:///etc/passwd"},
		"a password": {Issuer: "parley", JWKSURL: "https://a:b@keys.example"},
		"a name":     {Issuer: "parley", JWKSURL: "keys"},
	} {
		if _, err := NewVerifier(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzTokens: without the secret, no input is accepted, and no input causes a
// panic.
func FuzzTokens(f *testing.F) {
	const h = `{"alg":"HS256","typ":"JWT"}`
	valid := hs256(f, h, with("", nil))
	f.Add(valid)
	f.Add(encode(h) + "." + encode(with("", nil)) + ".")
	f.Add(encode(`{"alg":"none"}`) + "." + encode(with("", nil)) + ".")
	f.Add("..")
	v := verifier(f)
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := v.Verify(t.Context(), token); err == nil && token != valid {
			t.Errorf("accepted: %q", token)
		}
		// The same input as claims with a valid signature: nothing may panic,
		// and an accepted identity is valid.
		id, err := v.identify([]byte(token))
		if err == nil && (!id.Tenant.Valid() || !id.Principal.ID.Valid() || !id.Expires.After(start)) {
			t.Errorf("%q is %+v", token, id)
		}
		_, _, _ = parseKeySet([]byte(token))
	})
}
