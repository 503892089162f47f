package rules

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/port"
)

// A Vault encrypts values that a store must be able to read back and others must not read: the addresses and signing
// secrets of webhooks, values that were set up in the console, and the server's key. It has a ring of master keys. The
// first key encrypts; all of them decrypt, so that a key can be replaced while values of both are stored. A zero Vault
// has no keys and stores values as they are.
//
// A value is stored as text that names its key: vault:KEY:BASE64. AES-256-GCM binds it to its place.
type Vault struct{ ring []masterKey }

type masterKey struct {
	id   string
	aead cipher.AEAD
}

// NewVault takes master keys of 32 bytes each, in hexadecimal.
func NewVault(keys ...string) (v Vault, err error) {
	for _, text := range keys {
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) != 32 {
			return Vault{}, errors.New("a master key is 32 bytes in hexadecimal; make one with openssl rand -hex 32")
		}
		block, err := aes.NewCipher(raw)
		if err != nil {
			return Vault{}, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return Vault{}, err
		}
		sum := sha256.Sum256(append([]byte("parley: id of a master key\n"), raw...))
		id := hex.EncodeToString(sum[:4])
		if v.has(id) {
			return Vault{}, fmt.Errorf("the master key %s is given twice", id)
		}
		v.ring = append(v.ring, masterKey{id, aead})
	}
	return v, nil
}

// Keys returns the ids of the keys in the ring. The first one encrypts.
func (v Vault) Keys() (ids []string) {
	for _, k := range v.ring {
		ids = append(ids, k.id)
	}
	return ids
}

func (v Vault) has(id string) bool { return slices.Contains(v.Keys(), id) }

const sealedMark = "vault:"

// KeyOf returns the id of the key that a stored value is encrypted with; empty: it is not encrypted.
func KeyOf(stored []byte) string {
	rest, ok := strings.CutPrefix(string(stored), sealedMark)
	id, _, whole := strings.Cut(rest, ":")
	if !ok || !whole {
		return ""
	}
	return id
}

// Current reports whether a value is stored as this vault would store it.
func (v Vault) Current(stored []byte) bool {
	return len(v.ring) == 0 || len(stored) == 0 || KeyOf(stored) == v.ring[0].id
}

// Seal encrypts a value for its place.
func (v Vault) Seal(place string, plain []byte) []byte {
	if len(v.ring) == 0 || len(plain) == 0 {
		return plain
	}
	k := v.ring[0]
	return []byte(sealedMark + k.id + ":" + base64.RawStdEncoding.EncodeToString(k.aead.Seal(nil, nil, plain,
		[]byte(place))))
}

// Open decrypts a value. A value that is not encrypted is returned as it is.
func (v Vault) Open(place string, stored []byte) ([]byte, error) {
	id := KeyOf(stored)
	if id == "" {
		return stored, nil
	}
	i := slices.IndexFunc(v.ring, func(k masterKey) bool { return k.id == id })
	if i < 0 {
		return nil, v.Missing(id)
	}
	sealed, err := base64.RawStdEncoding.DecodeString(string(stored[len(sealedMark)+len(id)+1:]))
	if err != nil {
		return nil, damagedSecret(id, err)
	}
	plain, err := v.ring[i].aead.Open(nil, nil, sealed, []byte(place))
	if err != nil {
		return nil, damagedSecret(id, err)
	}
	return plain, nil
}

func damagedSecret(id string, err error) error {
	return &parley.Error{Code: parley.CodeCorrupt, Message: "A stored secret is damaged: the master key " + id +
		" does not open it.", Err: err, Hint: "restore it from a backup"}
}

// Missing returns the error for stored secrets whose key is not in the ring.
func (v Vault) Missing(id string) error {
	given := "no master key is given"
	if len(v.ring) > 0 {
		given = "only " + strings.Join(v.Keys(), ", ") + " is given"
	}
	return &parley.Error{Code: parley.CodeForbidden, Message: fmt.Sprintf(
		"Stored secrets are encrypted with the master key %s, and %s.", id, given),
		Hint: "give the key with PARLEY_MASTER_KEY or PARLEY_MASTER_KEY_FILE; parley keys list says which keys are needed"}
}

// hookPlace returns the place of a webhook's value.
func hookPlace(tenant parley.TenantID, session parley.SessionID, column string) string {
	return fmt.Sprintf("webhooks\n%s\n%s\n%s", tenant, session, column)
}

// SealHook returns a webhook as a store keeps it.
func (v Vault) SealHook(tenant parley.TenantID, session parley.SessionID, h port.StoredWebhook) port.StoredWebhook {
	h.URL = string(v.Seal(hookPlace(tenant, session, "url"), []byte(h.URL)))
	h.Sealed = v.Seal(hookPlace(tenant, session, "secret"), h.Sealed)
	return h
}

// OpenHook returns the webhook that a store has kept.
func (v Vault) OpenHook(tenant parley.TenantID, session parley.SessionID, h port.StoredWebhook) (
	port.StoredWebhook, error) {
	url, err := v.Open(hookPlace(tenant, session, "url"), []byte(h.URL))
	if err != nil {
		return h, err
	}
	h.URL = string(url)
	h.Sealed, err = v.Open(hookPlace(tenant, session, "secret"), h.Sealed)
	return h, err
}

// setupPlace returns the place of a setup's value.
func setupPlace(s port.Setup) string {
	return fmt.Sprintf("setups\n%s\n%s\n%s", s.Tenant, s.Kind, s.Name)
}

// SealSetup returns a setup as a store keeps it.
func (v Vault) SealSetup(s port.Setup) port.Setup {
	s.Sealed = v.Seal(setupPlace(s), s.Sealed)
	return s
}

// OpenSetup returns the setup that a store has kept.
func (v Vault) OpenSetup(s port.Setup) (_ port.Setup, err error) {
	s.Sealed, err = v.Open(setupPlace(s), s.Sealed)
	return s, err
}

// ResealSetups calls update with each setup that the current key does not encrypt, encrypted with it.
func (v Vault) ResealSetups(list []port.Setup, update func(port.Setup) error) error {
	for _, s := range list {
		if v.Current(s.Sealed) {
			continue
		}
		plain, err := v.OpenSetup(s)
		if err == nil {
			err = update(v.SealSetup(plain))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A SecretKey is a master key that values in a database may be encrypted with.
type SecretKey struct {
	ID    string
	Whole bool // every secret in the database is encrypted with this key
}

// A SecretStore is the part of a database that Reseal uses.
type SecretStore interface {
	// SecretKeys returns the keys that were noted.
	SecretKeys(context.Context) ([]SecretKey, error)
	// NoteKey notes a key before anything is encrypted with it.
	NoteKey(ctx context.Context, id string) error
	// ResealTenant encrypts everything of a tenant again, in one transaction.
	ResealTenant(context.Context, parley.TenantID) error
	// WholeKey notes that everything is encrypted with this key, and forgets the others.
	WholeKey(ctx context.Context, id string) error
	SecretTenants(context.Context) ([]parley.TenantID, error)
}

// Reseal encrypts the secrets of a database with the first key of the ring: those that are not encrypted, and those of
// another key. It may be interrupted anywhere and be repeated. It refuses a database that needs a key which is not in
// the ring. Without a key it changes nothing.
func (v Vault) Reseal(ctx context.Context, db SecretStore) error {
	noted, err := db.SecretKeys(ctx)
	if err != nil {
		return err
	}
	for _, k := range noted {
		if !v.has(k.ID) {
			return v.Missing(k.ID)
		}
	}
	// While several keys are given, a server that still encrypts with the earlier one may have stored a value since.
	if len(v.ring) == 0 || len(v.ring) == 1 && len(noted) == 1 && noted[0] == (SecretKey{v.ring[0].id, true}) {
		return nil
	}
	if err := db.NoteKey(ctx, v.ring[0].id); err != nil {
		return err
	}
	tenants, err := db.SecretTenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		if err := db.ResealTenant(ctx, tenant); err != nil {
			return err
		}
	}
	return db.WholeKey(ctx, v.ring[0].id)
}
