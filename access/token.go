package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/port"
)

const (
	maxToken  = 8 << 10
	maxKeyID  = 128
	maxRoles  = 32
	maxString = 256

	// leeway is how far the issuer's clock may be ahead. The end of a token has
	// no leeway: a connection ends at that moment and could not begin after it.
	leeway = 5 * time.Second

	// MaxTokenLife is how far in the future a token may expire. Revocations
	// must be kept for as long.
	MaxTokenLife = 366 * 24 * time.Hour
)

type Identity = port.Identity

// TokenConfig configures a Verifier. Exactly one of Secret and JWKSURL must be
// set.
type TokenConfig struct {
	Secret   string // of HS256, at least 32 bytes
	JWKSURL  string
	Issuer   string
	Audience string // empty: not checked
	Log      *slog.Logger
	Now      func() time.Time
}

// A Verifier verifies tokens. It is safe for concurrent use.
type Verifier struct {
	issuer, audience string
	now              func() time.Time
	keys             keySource
}

// keySource finds a key by its id. It must do nothing but look up the id: the
// id comes from a sender that is not authenticated yet.
type keySource interface {
	key(ctx context.Context, id string) (key, error)
}

func NewVerifier(c TokenConfig) (*Verifier, error) {
	v := &Verifier{issuer: c.Issuer, audience: c.Audience, now: c.Now}
	switch {
	case c.Issuer == "":
		return nil, fmt.Errorf("the issuer of tokens is missing")
	case (c.Secret == "") == (c.JWKSURL == ""):
		return nil, fmt.Errorf("configure either a secret or a JWKS URL to verify tokens")
	case c.Secret != "":
		k, err := secretKey("HS256", []byte(c.Secret))
		if err != nil {
			return nil, err
		}
		v.keys = onlyKey(k)
		return v, nil
	}
	keys, err := newJWKS(c)
	v.keys = keys
	return v, err
}

// Warm fetches the keys of a JWKS URL, so that a wrong address is noticed
// before the first request.
func (v *Verifier) Warm(ctx context.Context) error {
	if keys, ok := v.keys.(*jwks); ok {
		return keys.refresh(ctx, true)
	}
	return nil
}

// Verify returns the identity that a token proves. It fails with a *Denied, or
// with CodeUnavailable if no keys could be fetched.
func (v *Verifier) Verify(ctx context.Context, token string) (Identity, error) {
	payload, err := verifySignature(ctx, v.keys, token)
	if err != nil {
		return Identity{}, err
	}
	return v.identify(payload)
}

// verifySignature returns the payload of a JWS in compact form. The key determines
// the algorithm, and the token has to name the same one. Keys and certificates in
// the header are ignored. golang-jwt checks the signature; the checks in front of
// it are stricter than the parsers of golang-jwt and go-jose: see docs/adr/0047.
func verifySignature(ctx context.Context, keys keySource, token string) ([]byte, error) {
	if len(token) > maxToken {
		return nil, deny(TokenInvalid, "the token is too long")
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, deny(TokenInvalid, "the token is not a JWS in compact form")
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = decodeBase64(part); err != nil {
			return nil, deny(TokenInvalid, "the token is not base64url")
		}
	}
	header, err := strictObject(decoded[0])
	if err != nil {
		return nil, deny(TokenInvalid, "the header is "+err.Error())
	}
	var alg, id string
	if !header.text("alg", &alg) || alg == "" || !header.text("kid", &id) || len(id) > maxKeyID {
		return nil, deny(TokenInvalid, "alg of the header is missing, alg or kid is not a string, or kid is too long")
	}
	if _, ok := header["crit"]; ok {
		return nil, deny(TokenInvalid, "the header has critical extensions, and none is supported")
	}
	k, err := keys.key(ctx, id)
	if err != nil {
		return nil, err
	}
	if alg != k.method.Alg() {
		return nil, deny(TokenInvalid, "the algorithm of the token is not the algorithm of its key")
	}
	signed := token[:len(parts[0])+1+len(parts[1])]
	if err := k.method.Verify(signed, decoded[2], k.material); err != nil {
		return nil, deny(TokenInvalid, "the signature is wrong")
	}
	// Only two values of typ are access tokens. If the header has no typ, the
	// type claim decides.
	var typ string
	if !header.text("typ", &typ) {
		return nil, deny(TokenInvalid, "typ of the header is not a string")
	}
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "", "jwt", "at+jwt":
		return decoded[1], nil
	}
	return nil, deny(TokenType, "typ of the header is not JWT or at+JWT")
}

// decodeBase64 accepts only the canonical encoding of the bytes; the standard
// decoder skips line breaks.
func decodeBase64(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, base64.CorruptInputError(0)
	}
	return base64.RawURLEncoding.Strict().DecodeString(s)
}

// identify checks the claims of a token whose signature was verified.
func (v *Verifier) identify(payload []byte) (Identity, error) {
	claims, err := strictObject(payload)
	if err != nil {
		return Identity{}, deny(TokenInvalid, "the payload is "+err.Error())
	}
	var iss, typ, sub, tid string
	var id Identity
	now := v.now()
	if !claims.text("iss", &iss) || iss != v.issuer {
		return Identity{}, deny(TokenInvalid, "iss is not the expected issuer")
	}
	if v.audience != "" && !claims.names("aud", v.audience) {
		return Identity{}, deny(TokenInvalid, "aud does not name this server")
	}
	for _, name := range []string{"nbf", "iat"} {
		at, ok := claims.time(name)
		if !ok || at.After(now.Add(leeway)) {
			return Identity{}, deny(TokenInvalid, name+" is in the future, or not a whole number")
		}
		id.Issued = at // the last iteration is iat
	}
	id.Expires, _ = claims.time("exp")
	switch {
	case id.Expires.IsZero():
		return Identity{}, deny(TokenInvalid, "exp is missing, or not a whole number")
	case !id.Expires.After(now):
		return Identity{}, deny(TokenExpired, "")
	case id.Expires.After(now.Add(MaxTokenLife)):
		return Identity{}, deny(TokenInvalid, "exp is more than a year ahead")
	}
	if !claims.text("type", &typ) || typ != "access" {
		return Identity{}, deny(TokenType, "type is not access")
	}
	if !claims.text("sub", &sub) || !parley.PrincipalID(sub).Valid() {
		return Identity{}, deny(TokenInvalid, "sub is missing, too long or not printable")
	}
	if !claims.text("tid", &tid) || !parley.TenantID(tid).Valid() {
		return Identity{}, deny(TokenInvalid, "tid is not a valid tenant id")
	}
	names := claims.list("roles")
	if names == nil || len(names) > maxRoles {
		return Identity{}, deny(TokenInvalid, "roles is missing, too long or not a list of strings")
	}
	if !claims.text("jti", &id.TokenID) || len(id.TokenID) > maxString {
		return Identity{}, deny(TokenInvalid, "jti is not a string, or too long")
	}
	id.Roles = make([]parley.UserRole, 0, len(names))
	for _, name := range names {
		if role := parley.UserRole(name); role != parley.RoleLocal { // only local mode gives this role
			id.Roles = append(id.Roles, role)
		}
	}
	id.ID, id.Tenant = parley.PrincipalID(sub), parley.TenantID(tid)
	return id, nil
}

// object is a JSON object. Its keys are case-sensitive.
type object map[string]json.RawMessage

// text reads a string into *into. It leaves *into unchanged if the key is
// absent, and returns false for any other value.
func (o object) text(name string, into *string) bool {
	raw, ok := o[name]
	return !ok || len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, into) == nil
}

// time reads a number of seconds, and returns the zero time if the key is
// absent. It refuses fractions, exponents, and times that are not between 1970
// and the year 9999.
func (o object) time(name string) (time.Time, bool) {
	raw, ok := o[name]
	if !ok {
		return time.Time{}, true
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n <= 0 || n > 253402300799 { // the end of the year 9999
		return time.Time{}, false
	}
	return time.Unix(n, 0), true
}

// list reads a list of strings that are not empty; it returns nil for any other
// value.
func (o object) list(name string) []string {
	raw := o[name]
	var values []any
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &values) != nil {
		return nil
	}
	list := make([]string, 0, len(values))
	for _, value := range values {
		s, ok := value.(string)
		if !ok || s == "" || len(s) > maxString {
			return nil
		}
		list = append(list, s)
	}
	return list
}

// names reports whether a claim is the string want, or a list of strings that
// contains it.
func (o object) names(name, want string) bool {
	var s string
	if o.text(name, &s) {
		return s == want
	}
	return slices.Contains(o.list(name), want)
}
