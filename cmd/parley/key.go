package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"

	"parley"
	"parley/config"
	"parley/store/rules"
)

// keyName is the name of the file with the server's key in the data folder.
const keyName = "parley.key"

// serverKey returns the key from which canaries, sealed secrets and the audit are
// made. It is not in the database, so backups do not contain it: servers that share
// a database get it with --server-key, others keep it in the data folder. If there
// is none yet, serverKey creates one. That must happen after the database is
// complete: see existing.
func serverKey(s *config.Store) ([]byte, error) {
	key, current, err := readServerKey(s)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		current, err = false, nil
	}
	if err == nil && !current {
		err = writeServerKey(s, key)
	}
	if _, told := errors.AsType[*parley.Error](err); err != nil && !told {
		err = fmt.Errorf("the server's key cannot be kept: %w", err)
	}
	return key, err
}

// findServerKey is like serverKey, but does not create a key.
func findServerKey(s *config.Store) ([]byte, error) {
	key, _, err := readServerKey(s)
	return key, err
}

// keyPlace is the name under which the vault seals the server's key.
const keyPlace = "server key"

// readServerKey returns the server's key. current reports whether the key is
// stored as the settings require: encrypted with the current master key, if
// there is one.
func readServerKey(s *config.Store) (key []byte, current bool, err error) {
	if s.ServerKey != "" {
		return []byte(s.ServerKey), true, nil
	}
	raw, err := os.ReadFile(keyFile(s))
	if err != nil {
		return nil, false, err
	}
	vault, err := vaultOf(s)
	if err != nil {
		return nil, false, err
	}
	stored := bytes.TrimSpace(raw)
	plain, err := vault.Open(keyPlace, stored)
	if err != nil {
		return nil, false, err
	}
	key, err = hex.DecodeString(string(plain))
	if err != nil || len(key) < 32 {
		return nil, false,
			fmt.Errorf("%s does not hold a key of 32 bytes in hexadecimal; restore it from a backup, or, if the "+
				"folder has no sessions yet, remove it: the server makes a new key", keyFile(s))
	}
	return key, vault.Current(stored), nil
}

// writeServerKey replaces the file atomically: after a crash the earlier one is
// intact.
func writeServerKey(s *config.Store, key []byte) error {
	vault, err := vaultOf(s)
	if err != nil {
		return err
	}
	part := keyFile(s) + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := append(vault.Seal(keyPlace, []byte(hex.EncodeToString(key))), '\n')
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	return finish(part, keyFile(s))
}

// vaultOf returns a vault that encrypts stored secrets with the master keys of the
// settings.
func vaultOf(s *config.Store) (rules.Vault, error) {
	keys, err := s.MasterKeys()
	if err != nil {
		return rules.Vault{}, err
	}
	return rules.NewVault(keys...)
}

func keyFile(s *config.Store) string { return filepath.Join(s.Data, keyName) }

// ownSecrets are the texts that tools and models must not see: the secrets of
// the configuration, the server's key, and the password of the database, which
// may also come from PostgreSQL's own variables and files.
func ownSecrets(c *config.Settings, env config.Lookup, key []byte) []string {
	own := append(config.Secrets(c, env), config.SecretForms(hex.EncodeToString(key))...)
	if keys, err := c.MasterKeys(); err == nil { // the settings are already valid
		for _, key := range keys {
			own = append(own, config.SecretForms(key)...)
		}
	}
	if c.DatabaseURL != "" {
		if db, err := pgconn.ParseConfig(string(c.DatabaseURL)); err == nil {
			own = append(own, config.SecretForms(db.Password)...)
		}
	}
	return own
}
