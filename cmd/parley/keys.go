package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"parley"
	"parley/config"
	"parley/store/postgres"
	"parley/store/rules"
	"parley/store/sqlite"
)

type keysCommand struct {
	List   keysListCommand   `cmd:"" help:"List the master keys that are given, and those that stored secrets need. The server may be running."`
	Rotate keysRotateCommand `cmd:"" help:"Encrypt all stored secrets with the first master key. May be interrupted and repeated."`
}

type keysListCommand struct{ config.Store }

// Help is printed below the usage.
func (*keysListCommand) Help() string {
	return `Keys are shown by their ids, which do not reveal them.

Example:

  $ parley keys list`
}

func (c *keysListCommand) Run(p *program) error {
	if err := c.Check(); err != nil {
		return err
	}
	vault, err := vaultOf(&c.Store)
	if err != nil {
		return err
	}
	needed, err := neededKeys(p.ctx, &c.Store)
	if err != nil {
		return err
	}
	for i, id := range vault.Keys() {
		use := "decrypts only"
		if i == 0 {
			use = "encrypts"
		}
		state := "not needed by stored secrets"
		if slices.Contains(needed, id) {
			state = "needed"
		}
		fmt.Fprintf(p.stdout, "%s  given, %s, %s\n", id, use, state)
	}
	for _, id := range needed {
		if !slices.Contains(vault.Keys(), id) {
			fmt.Fprintf(p.stdout, "%s  missing, needed\n", visible(id))
		}
	}
	if len(needed) == 0 {
		fmt.Fprintln(p.stdout, "No stored secret is encrypted with a master key.")
	}
	return nil
}

// neededKeys returns the ids of the master keys that encrypt stored secrets.
func neededKeys(ctx context.Context, s *config.Store) (ids []string, err error) {
	has, _, err := versions(ctx, s)
	if err != nil {
		return nil, err
	}
	var noted []rules.SecretKey
	switch {
	case has == 0:
	case s.DatabaseURL != "":
		noted, err = postgres.SecretKeys(ctx, string(s.DatabaseURL))
	default:
		noted, err = sqlite.SecretKeys(ctx, s.Data)
	}
	for _, k := range noted {
		ids = append(ids, k.ID)
	}
	if err != nil || s.ServerKey != "" {
		return ids, err
	}
	raw, err := os.ReadFile(keyFile(s))
	if id := rules.KeyOf(raw); id != "" && !slices.Contains(ids, id) {
		ids = append(ids, id)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return ids, err
}

type keysRotateCommand struct {
	config.Store
	Vacuum bool `help:"Write the SQLite file anew afterwards, so that no free part of it holds a secret that was deleted earlier. Needs as much room again."`
}

// Help is printed below the usage.
func (*keysRotateCommand) Help() string {
	return `Give the new key first and the earlier one after it. When the command is done, the earlier key is no longer
needed. On SQLite the server must be stopped; a server does the same when it starts.

Example:

  $ PARLEY_MASTER_KEY=NEW,EARLIER parley keys rotate`
}

func (c *keysRotateCommand) Run(p *program) error {
	if err := c.Check(); err != nil {
		return err
	}
	vault, err := vaultOf(&c.Store)
	if err != nil {
		return err
	}
	if c.Vacuum && c.DatabaseURL != "" {
		return errors.New("--vacuum is about SQLite; on PostgreSQL run VACUUM FULL webhooks as the owner of the table")
	}
	if len(vault.Keys()) == 0 {
		return &parley.Error{Code: parley.CodeInvalid, Message: "No master key is given.",
			Hint: "set PARLEY_MASTER_KEY or PARLEY_MASTER_KEY_FILE; make a key with openssl rand -hex 32"}
	}
	if err := haveDatabase(p.ctx, &c.Store, "nothing is encrypted"); err != nil {
		return err
	}
	before, err := neededKeys(p.ctx, &c.Store)
	if err != nil {
		return err
	}
	store, _, err := openStore(p.ctx, &c.Store, "rotating keys", false) // encrypts every secret again
	if err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	if c.Vacuum && c.DatabaseURL == "" {
		if err := sqlite.Vacuum(p.ctx, c.Data, holder("rotating keys")); err != nil {
			return err
		}
	}
	current := vault.Keys()[0]
	fmt.Fprintf(p.stdout, "All stored secrets are encrypted with the master key %s.\n", current)
	if before = slices.DeleteFunc(before, func(id string) bool { return id == current }); len(before) > 0 {
		fmt.Fprintf(p.stdout, "No longer needed: %s.\n", visible(strings.Join(before, ", ")))
	}
	return nil
}
