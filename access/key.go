package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/golang-jwt/jwt/v5"
)

// A key verifies signatures by one algorithm.
type key struct {
	method   jwt.SigningMethod
	material any // what the method wants
	secret   bool
}

// onlyKey is a keySource of one key, whatever a token calls it.
type onlyKey key

func (k onlyKey) key(context.Context, string) (key, error) { return key(k), nil }

// keySet is a keySource of keys by their ids. A key without an id is that of
// tokens without one.
type keySet map[string]key

func (s keySet) key(_ context.Context, id string) (key, error) {
	k, ok := s[id]
	if !ok {
		return key{}, deny(TokenInvalid, "there is no key of that id")
	}
	return k, nil
}

// secretSizes are the least bytes of a secret: those of the hash.
var secretSizes = map[string]int{"HS256": 32, "HS384": 48, "HS512": 64}

func secretKey(alg string, secret []byte) (key, error) {
	least, ok := secretSizes[alg]
	if !ok {
		return key{}, errors.New("the algorithm is not one of a secret")
	}
	if len(secret) < least {
		return key{}, fmt.Errorf("the secret has %d bytes; %s needs at least %d, from a good source of chance", len(secret), alg, least)
	}
	return key{method: jwt.GetSigningMethod(alg), material: secret, secret: true}, nil
}

const maxKeys = 64

// parseKeySet reads a JWK set. Keys that cannot be used here are left out, and
// leftOut says why: sets have keys for other purposes. A set in which it is not
// clear what a token is to be verified by is an error: two keys of one id, or
// public keys beside secrets.
func parseKeySet(raw []byte) (set keySet, leftOut []error, err error) {
	doc, err := strictObject(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("the key set is %w", err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(doc["keys"], &list); err != nil || len(list) > maxKeys {
		return nil, nil, fmt.Errorf("the key set has no list of at most %d keys", maxKeys)
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
			return nil, leftOut, errors.New("the key set has two keys of one id")
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

var errOtherPurpose = errors.New("it is not for verifying signatures")

// parseKey reads a JWK. Its type, curve and alg say by which algorithm it
// verifies; RSA keys that do not say are for RS256.
func parseKey(raw []byte) (id string, k key, err error) {
	o, err := strictObject(raw)
	if err != nil {
		return "", key{}, err
	}
	var kty, alg, use string
	if !o.text("kid", &id) || len(id) > maxKeyID || !o.text("kty", &kty) || !o.text("alg", &alg) || !o.text("use", &use) {
		return "", key{}, errors.New("kid, kty, alg or use cannot be")
	}
	_, private := o["d"]
	_, hasOps := o["key_ops"]
	switch {
	case use != "" && use != "sig" || hasOps && !slices.Contains(o.list("key_ops"), "verify"):
		return id, key{}, errOtherPurpose
	case private:
		return id, key{}, errors.New("its private part is there for everybody to read")
	}
	switch kty {
	case "RSA":
		k, err = rsaKey(o, alg)
	case "EC":
		k, err = curveKey(o, alg)
	case "OKP":
		k, err = edwardsKey(o, alg)
	case "oct":
		var secret []byte
		if secret, err = o.bytes("k"); err == nil {
			k, err = secretKey(alg, secret)
		}
	default:
		err = errors.New("its type is not supported")
	}
	return id, k, err
}

// bytes reads base64url, which must be there.
func (o object) bytes(name string) ([]byte, error) {
	var s string
	if !o.text(name, &s) || s == "" {
		return nil, fmt.Errorf("%s is missing", name)
	}
	b, err := decodeBase64(s)
	if err != nil {
		return nil, fmt.Errorf("%s is not base64url", name)
	}
	return b, nil
}

func rsaKey(o object, alg string) (key, error) {
	if alg == "" {
		alg = "RS256"
	}
	if !slices.Contains([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, alg) {
		return key{}, errors.New("the algorithm is not one of RSA")
	}
	modulus, err := o.bytes("n")
	if err != nil {
		return key{}, err
	}
	exponent, err := o.bytes("e")
	if err != nil {
		return key{}, err
	}
	n, e := new(big.Int).SetBytes(modulus), new(big.Int).SetBytes(exponent)
	switch {
	case n.BitLen() < 2048 || n.BitLen() > 8192 || n.Bit(0) == 0:
		return key{}, errors.New("the modulus must be odd and have 2048 to 8192 bits")
	case e.BitLen() > 31 || e.Int64() < 3 || e.Bit(0) == 0:
		return key{}, errors.New("the exponent must be odd and from 3 to 2^31-1")
	case rocaWeak(n):
		return key{}, errors.New("it was made by a broken generator (ROCA) and can be factored")
	}
	method := jwt.GetSigningMethod(alg)
	if pss, ok := method.(*jwt.SigningMethodRSAPSS); ok {
		// The library takes salts of any length; the standard knows one.
		strict := *pss
		strict.VerifyOptions = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
		method = &strict
	}
	return key{method: method, material: &rsa.PublicKey{N: n, E: int(e.Int64())}}, nil
}

// rocaWeak knows moduli by CVE-2017-15361: their primes are k*M + 65537^a mod M,
// M being a product of small primes, so the modulus is a power of 65537 modulo
// each of them. Of other moduli about one in 2^27 is.
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

var curves = map[string]struct {
	curve elliptic.Curve
	alg   string
	size  int
}{
	"P-256": {elliptic.P256(), "ES256", 32},
	"P-384": {elliptic.P384(), "ES384", 48},
	"P-521": {elliptic.P521(), "ES512", 66},
}

func curveKey(o object, alg string) (key, error) {
	var crv string
	if !o.text("crv", &crv) {
		return key{}, errors.New("crv cannot be")
	}
	c, ok := curves[crv]
	if !ok || alg != "" && alg != c.alg {
		return key{}, errors.New("the curve is not supported, or not that of the algorithm")
	}
	x, errX := o.bytes("x")
	y, errY := o.bytes("y")
	if err := errors.Join(errX, errY); err != nil {
		return key{}, err
	}
	if len(x) != c.size || len(y) != c.size {
		return key{}, errors.New("x and y must be as long as the curve's field")
	}
	public, err := ecdsa.ParseUncompressedPublicKey(c.curve, slices.Concat([]byte{4}, x, y))
	if err != nil {
		return key{}, errors.New("the point is not on the curve")
	}
	return key{method: jwt.GetSigningMethod(c.alg), material: public}, nil
}

func edwardsKey(o object, alg string) (key, error) {
	var crv string
	if !o.text("crv", &crv) || crv != "Ed25519" || alg != "" && alg != "EdDSA" {
		return key{}, errors.New("of these keys only those of Ed25519 are supported")
	}
	x, err := o.bytes("x")
	if err != nil || len(x) != ed25519.PublicKeySize {
		return key{}, errors.New("x is not a public key of Ed25519")
	}
	return key{method: jwt.SigningMethodEdDSA, material: ed25519.PublicKey(x)}, nil
}
