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

// keyName is what the server's key is called in the data folder.
const keyName = "parley.key"

// serverKey is what canaries, sealed secrets and the audit are made with. It is
// not in the database, so that it is in no backup of it: given with --server-key,
// where several servers share a database, or kept in the data folder. If there is
// none yet, one is made, after the database is complete and never before: see
// existing.
func serverKey(s *config.Store) ([]byte, error) {
	key, current, err := readServerKey(s)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // does not fail
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

// findServerKey is serverKey for a command that must not make one.
func findServerKey(s *config.Store) ([]byte, error) {
	key, _, err := readServerKey(s)
	return key, err
}

// keyPlace is what the vault knows the server's key by.
const keyPlace = "server key"

// readServerKey also reports whether the key is stored as the settings want it:
// encrypted with the current master key, if there is one.
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
			fmt.Errorf("%s does not hold a key of 32 bytes in hexadecimal; move it away to have one made",
				keyFile(s))
	}
	return key, vault.Current(stored), nil
}

// writeServerKey replaces the file as a whole: a crash leaves the earlier one.
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

// vaultOf encrypts stored secrets with the master keys of the settings.
func vaultOf(s *config.Store) (rules.Vault, error) {
	keys, err := s.MasterKeys()
	if err != nil {
		return rules.Vault{}, err
	}
	return rules.NewVault(keys...)
}

func keyFile(s *config.Store) string { return filepath.Join(s.Data, keyName) }

// ownSecrets are the texts that tools and models must not see: those of the
// configuration, the key of the server, and the password of the database, which
// PostgreSQL also takes from its own variables and files.
func ownSecrets(c *config.Settings, env config.Lookup, key []byte) []string {
	own := append(config.Secrets(c, env), config.SecretForms(hex.EncodeToString(key))...)
	if keys, err := c.MasterKeys(); err == nil { // the settings were checked
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
