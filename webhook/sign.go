package webhook

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
)

// Secrets and signatures follow Standard Webhooks. A secret is "whsec_" and its
// bytes in base64. A signature is "v1," and the HMAC-SHA256 of
// id.timestamp.body.

const (
	secretPrefix = "whsec_"
	minSecret    = 24 // bytes, as the standard requires
	maxSecret    = 64
)

// key returns the bytes of a secret.
func key(secret string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if !strings.HasPrefix(secret, secretPrefix) || err != nil || len(raw) < minSecret || len(raw) > maxSecret {
		return nil, parley.Errorf(parley.CodeInvalid, "The secret of a webhook is %s and %d to %d bytes in base64; "+
			"leave it out to be given one.", secretPrefix, minSecret, maxSecret)
	}
	return raw, nil
}

// NewSecret returns a new random secret.
func NewSecret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // cannot fail
	return secretPrefix + base64.StdEncoding.EncodeToString(raw)
}

// sign returns the value of the header webhook-signature.
func sign(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// IDOf returns the id of a delivery, which is the same for all attempts. It
// includes the epoch, because a restored store may have another event under the
// same number. The receiver must not take that for the event that it already
// has.
func IDOf(epoch string, tenant parley.TenantID, session parley.SessionID, effect parley.Seq) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%d", epoch, tenant, session, effect))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// A Sealer encrypts secrets, so that they cannot be read from the database or a
// backup.
type Sealer struct{ aead cipher.AEAD }

// NewSealer returns a sealer with a key that is derived from the server's key.
func NewSealer(server []byte) (Sealer, error) {
	raw, err := hkdf.Key(sha256.New, server, nil, "parley webhook secrets", 32)
	if err != nil {
		return Sealer{}, err
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return Sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return Sealer{aead}, err
}

// place binds a sealed secret to its session: it cannot be opened for another
// session.
func place(tenant parley.TenantID, session parley.SessionID) []byte {
	return []byte(string(tenant) + "\n" + string(session))
}

// Seal checks and seals a secret. If the secret is empty, Seal creates one.
func (s Sealer) Seal(tenant parley.TenantID, session parley.SessionID, secret string) (plain string, sealed []byte,
	err error) {
	if secret == "" {
		secret = NewSecret()
	}
	raw, err := key(secret)
	if err != nil {
		return "", nil, err
	}
	return secret, s.aead.Seal(nil, nil, raw, place(tenant, session)), nil
}

var errSealed = errors.New("its secret was sealed by another server key; set the webhook again")

func (s Sealer) open(tenant parley.TenantID, session parley.SessionID, sealed []byte) ([]byte, error) {
	raw, err := s.aead.Open(nil, nil, sealed, place(tenant, session))
	if err != nil {
		return nil, errSealed
	}
	return raw, nil
}

// CheckSecret returns an error if a secret is invalid.
func CheckSecret(secret string) error {
	_, err := key(secret)
	return err
}
