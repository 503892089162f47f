package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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
		return nil, fmt.Errorf("%s does not hold a key of 32 bytes in hexadecimal; move it away to have one made", keyFile(s))
	}
	return key, nil
}

func keyFile(s *config.Store) string { return filepath.Join(s.Data, keyName) }

// ownSecrets are those that tools and models must not get hold of.
func ownSecrets(c *config.Settings, env config.Lookup, key []byte) []string {
	own := []string{string(c.JWTSecret), string(c.OIDCClientSecret), string(c.ServerKey), string(c.MetricsToken), hex.EncodeToString(key)}
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"} {
		value, _ := env(name)
		own = append(own, value)
	}
	for _, key := range c.Keys() { // of .env, which is not in the environment
		own = append(own, string(key))
	}
	for _, s := range c.ToolServers {
		own = append(own, s.Secrets()...)
	}
	if c.DatabaseURL != "" {
		if db, err := pgconn.ParseConfig(c.DatabaseURL); err == nil {
			own = append(own, db.Password, url.QueryEscape(db.Password), url.PathEscape(db.Password))
		}
	}
	return slices.DeleteFunc(own, func(s string) bool { return len(s) < 8 }) // shorter ones are words
}
