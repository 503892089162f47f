package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"parley/config"
)

// keyName is what the server's key is called in the data folder.
const keyName = "parley.key"

// serverKey is what canaries, sealed secrets and the audit are made with. It is
// not in the database, so that it is in no backup of it: given with --server-key,
// where several servers share a database, or kept in the data folder. If there is
// none yet, one is made, after the database is complete and never before: see
// existing.
func serverKey(s *config.Store) ([]byte, error) {
	key, err := findServerKey(s)
	if errors.Is(err, fs.ErrNotExist) {
		made := make([]byte, 32)
		_, _ = rand.Read(made) // does not fail
		text := []byte(hex.EncodeToString(made) + "\n")
		err = writeWhole(keyFile(s), func(part string) error { return os.WriteFile(part, text, 0o600) })
		key = made
	}
	if err != nil {
		return nil, fmt.Errorf("the server's key cannot be kept: %w", err)
	}
	return key, nil
}

// findServerKey is serverKey for a command that must not make one.
func findServerKey(s *config.Store) ([]byte, error) {
	if s.ServerKey != "" {
		return []byte(s.ServerKey), nil
	}
	raw, err := os.ReadFile(keyFile(s))
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(key) < 32 {
		return nil, fmt.Errorf("%s does not hold a key of 32 bytes in hexadecimal; move it away to have one made",
			keyFile(s))
	}
	return key, nil
}

func keyFile(s *config.Store) string { return filepath.Join(s.Data, keyName) }

// ownSecrets are the texts that tools and models must not see: those of the
// configuration, the key of the server, and the password of the database, which
// PostgreSQL also takes from its own variables and files.
func ownSecrets(c *config.Settings, env config.Lookup, key []byte) []string {
	own := append(config.Secrets(c, env), config.SecretForms(hex.EncodeToString(key))...)
	if c.DatabaseURL != "" {
		if db, err := pgconn.ParseConfig(string(c.DatabaseURL)); err == nil {
			own = append(own, config.SecretForms(db.Password)...)
		}
	}
	return own
}
