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

// keyFile is the server's key in the data folder.
const keyFile = "parley.key"

// serverKey is what canaries are made of. It is not in the database, so that it
// is in no backup of it: given with --server-key, where several servers share a
// database, or kept in the data folder. It is made after the database is
// complete, never before: see existing.
func serverKey(c *config.Settings) ([]byte, error) {
	if c.ServerKey != "" {
		return []byte(c.ServerKey), nil
	}
	name := filepath.Join(c.Data, keyFile)
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		raw = make([]byte, 32)
		_, _ = rand.Read(raw) // does not fail
		raw = []byte(hex.EncodeToString(raw) + "\n")
		err = writeWhole(name, func(part string) error { return os.WriteFile(part, raw, 0o600) })
	}
	if err != nil {
		return nil, fmt.Errorf("the server's key cannot be kept: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(key) < 32 {
		return nil, fmt.Errorf("%s does not hold a key of 32 bytes in hexadecimal; move it away to have one made", name)
	}
	return key, nil
}

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
