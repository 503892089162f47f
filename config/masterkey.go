package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// masterKey matches a master key.
var masterKey = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// MasterKeys returns the keys that encrypt stored secrets, the current one first.
// If there are none, stored secrets are not encrypted with a master key.
func (s *Store) MasterKeys() (keys []string, err error) {
	text, from := string(s.MasterKey), "--master-key"
	if s.MasterKeyFile != "" {
		if s.MasterKey != "" {
			return nil, errors.New("--master-key and --master-key-file are given; use one of them")
		}
		raw, err := os.ReadFile(s.MasterKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--master-key-file cannot be read: %w", err)
		}
		text, from = string(raw), "--master-key-file "+s.MasterKeyFile
		if strings.TrimSpace(text) == "" {
			return nil, fmt.Errorf("%s is empty; write a key into it with openssl rand -hex 32", from)
		}
	}
	for _, key := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		if !masterKey.MatchString(key) {
			return nil, fmt.Errorf("%s: key %d is not 32 bytes in hexadecimal; make one with openssl rand -hex 32",
				from,
				len(keys)+1)
		}
		keys = append(keys, strings.ToLower(key))
	}
	return keys, nil
}
