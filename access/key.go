package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// A key verifies signatures by one algorithm.
type key struct {
	method   jwt.SigningMethod
	material any // the key as the method expects it
	secret   bool
}

// onlyKey is a keySource with one key, which it returns for every id.
type onlyKey key

func (k onlyKey) key(context.Context, string) (key, error) { return key(k), nil }

// keySet is a keySource of keys by id. A key without an id is for tokens
// without one.
type keySet map[string]key

func (s keySet) key(_ context.Context, id string) (key, error) {
	k, ok := s[id]
	if !ok {
		return key{}, deny(TokenInvalid, "no key has the id that the token names")
	}
	return k, nil
}

// secretSizes are the minimum sizes of secrets in bytes: the size of the hash.
var secretSizes = map[string]int{"HS256": 32, "HS384": 48, "HS512": 64}

func secretKey(alg string, secret []byte) (key, error) {
	least, ok := secretSizes[alg]
	if !ok {
		return key{}, errors.New("alg is not an algorithm for secrets: HS256, HS384 or HS512")
	}
	if len(secret) < least {
		return key{}, fmt.Errorf("the secret has %d bytes; %s needs at least %d, from a random source",
			len(secret), alg, least)
	}
	return key{method: jwt.GetSigningMethod(alg), material: secret, secret: true}, nil
}

const maxKeys = 64

// parseKeySet reads a JWK set. Sets also have keys for other purposes: it
// leaves out keys that cannot be used here, and leftOut says why. It refuses an
// ambiguous set: one in which two keys have the same id, or that mixes secrets
// with public keys.
func parseKeySet(raw []byte) (set keySet, leftOut []error, err error) {
	doc, err := strictObject(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("the key set is %w", err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(doc["keys"], &list); err != nil || len(list) > maxKeys {
		return nil, nil, fmt.Errorf("the key set needs a list of at most %d keys under keys", maxKeys)
	}
	set = keySet{}
	ids := map[string]bool{}
	secrets := 0
	for i, raw := range list {
		id, k, err := parseKey(raw)
		if err != nil {
			leftOut = append(leftOut, fmt.Errorf("key %d: %w", i+1, err))
		}
		if errors.Is(err, errOtherPurpose) {
			continue
		}
		if ids[id] {
			return nil, leftOut, errors.New("two keys of the key set have the same id")
		}
		ids[id] = true
		if err != nil {
			continue
		}
		set[id] = k
		if k.secret {
			secrets++
		}
	}
	if secrets > 0 && secrets < len(set) {
		return nil, leftOut, errors.New("the key set mixes secrets with public keys")
	}
	return set, leftOut, nil
}

var errOtherPurpose = errors.New("the key is not for verifying signatures")

// parseKey reads a JWK with go-jose. The type, curve and alg of the key determine the one algorithm that it verifies;
// RSA keys without an alg are for RS256.
//
// It is stricter than go-jose, which accepts keys for another use, private keys, base64url with line breaks or stray
// bits, RSA keys of any size, RSA exponents cut to 64 bits, keys of the broken ROCA generator, Ed25519 keys of any
// length, an alg that does not belong to the key, and short secrets. Certificates are not passed to go-jose: it would
// reject a good key for a bad certificate. See docs/adr/0047.
func parseKey(raw []byte) (id string, k key, err error) {
	o, err := strictObject(raw)
	if err != nil {
		return "", key{}, err
	}
	var kty, alg, use string
	if !o.text("kid", &id) || len(id) > maxKeyID || !o.text("kty", &kty) || !o.text("alg", &alg) ||
		!o.text("use", &use) {
		return "", key{}, errors.New("kid, kty, alg or use is not a string, or kid is too long")
	}
	_, private := o["d"]
	_, hasOps := o["key_ops"]
	switch {
	case use != "" && use != "sig" || hasOps && !slices.Contains(o.list("key_ops"), "verify"):
		return id, key{}, errOtherPurpose
	case private:
		return id, key{}, errors.New("the key set publishes its private part")
	}
	k, err = o.key(kty, alg)
	return id, k, err
}

// keyMembers names the members that hold the bytes of a key, by key type.
var keyMembers = map[string][]string{"RSA": {"n", "e"}, "EC": {"x", "y"}, "OKP": {"x"}, "oct": {"k"}}

func (o object) key(kty, alg string) (key, error) {
	members, last := object{"kty": o["kty"]}, []byte(nil)
	if kty == "EC" || kty == "OKP" {
		members["crv"] = o["crv"]
	}
	for _, name := range keyMembers[kty] {
		var text string
		var err error
		if !o.text(name, &text) || text == "" {
			return key{}, fmt.Errorf("%s is missing", name)
		}
		if last, err = decodeBase64(text); err != nil {
			return key{}, fmt.Errorf("%s is not base64url", name)
		}
		members[name] = o[name]
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return key{}, err
	}
	var parsed jose.JSONWebKey
	if err := parsed.UnmarshalJSON(raw); err != nil {
		return key{}, err
	}
	var algs []string // the first is the default
	switch k := parsed.Key.(type) {
	case []byte:
		return secretKey(alg, k)
	case *rsa.PublicKey:
		algs = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
		err = checkRSA(k.N, new(big.Int).SetBytes(last))
	case *ecdsa.PublicKey:
		algs = []string{map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[k.Params().Name]}
	case ed25519.PublicKey:
		if algs = []string{"EdDSA"}; len(last) != ed25519.PublicKeySize {
			err = fmt.Errorf("the Ed25519 key has %d bytes instead of %d", len(last), ed25519.PublicKeySize)
		}
	}
	switch {
	case err != nil:
		return key{}, err
	case alg == "":
		alg = algs[0]
	case !slices.Contains(algs, alg):
		return key{}, fmt.Errorf("alg is %.20q; this key is for %s", alg, strings.Join(algs, ", "))
	}
	method := jwt.GetSigningMethod(alg)
	if pss, ok := method.(*jwt.SigningMethodRSAPSS); ok {
		// golang-jwt and go-jose accept salts of any length; RFC 7518 allows one.
		strict := *pss
		strict.VerifyOptions = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
		method = &strict
	}
	return key{method: method, material: parsed.Key}, nil
}

func checkRSA(n, e *big.Int) error {
	switch {
	case n.BitLen() < 2048 || n.BitLen() > 8192 || n.Bit(0) == 0:
		return errors.New("the RSA modulus must be odd and have 2048 to 8192 bits")
	case e.BitLen() > 31 || e.Int64() < 3 || e.Bit(0) == 0:
		return errors.New("the RSA exponent must be odd and from 3 to 2^31-1")
	case rocaWeak(n):
		return errors.New("a broken generator (ROCA) made the RSA key, so it can be factored")
	}
	return nil
}

// rocaWeak recognizes moduli of CVE-2017-15361: their primes are k*M + 65537^a
// mod M, where M is a product of small primes. So the modulus is a power of 65537
// modulo each small prime. About one in 2^27 other moduli is, too.
func rocaWeak(n *big.Int) bool {
	for _, p := range []int64{
		3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
		101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
	} {
		residue := new(big.Int).Mod(n, big.NewInt(p)).Int64()
		power, found := int64(1), false
		for range p {
			found = found || power == residue
			power = power * 65537 % p
		}
		if !found {
			return false
		}
	}
	return true
}
