package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"parley"
	"parley/config"
	"parley/pacing"
	"parley/port"
)

// Commands that run next to the server are audited. Only the server appends to the
// chain, so a command leaves its record as a file in the data folder. The server
// reads these files when it starts, and every few seconds.

// A commandRecord is the content of one of these files.
type commandRecord struct {
	Tenant parley.TenantID `json:"tenant"`
	parley.Audit
}

const (
	inboxEvery = 2 * time.Second
	maxRecord  = 64 << 10
	viaCommand = "command" // the Source of these records
)

func inboxOf(s *config.Store) string { return filepath.Join(s.Data, "audit-inbox") }

// recordCommand records that a command is about to do something. If that is
// impossible, it fails. If there is no data of a server, as next to a restored
// copy, it prints a notice on standard error instead.
func recordCommand(p *program, s *config.Store, tenant parley.TenantID, action, resource, id string,
	more map[string]any) error {
	if by, err := user.Current(); err == nil {
		more["os_user"] = by.Username
	}
	r := commandRecord{tenant, parley.Audit{At: time.Now().UTC(), Action: action, Resource: resource, ID: id,
		Source: viaCommand, Metadata: parley.Metadata(more)}}
	switch {
	case exists(keyFile(s)) || exists(filepath.Join(s.Data, "parley.db")):
		return leaveRecord(inboxOf(s), r)
	case s.DatabaseURL != "" && s.ServerKey != "": // the server is on another machine
		store, _, err := openStore(p.ctx, s, "recording a command in the audit log", false)
		if err != nil {
			return err
		}
		_, err = store.Append(p.ctx, port.Batch{Tenant: r.Tenant, Audit: []parley.Audit{r.Audit}})
		return errors.Join(err, store.Close())
	}
	fmt.Fprintf(p.stderr, "parley: %s is not recorded in the audit log: %s is not the data folder of a server "+
		"(see --data)\n", action, s.Data)
	return nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func leaveRecord(folder string, r commandRecord) error {
	raw, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		name := filepath.Join(folder, rand.Text()+".json")
		err = writeWhole(name, func(part string) error { return os.WriteFile(part, raw, 0o600) })
	}
	if err != nil {
		return &parley.Error{Code: parley.CodeUnavailable, Err: err,
			Message: "The command cannot be recorded in the audit log, so it was not carried out.",
			Hint:    "run it as the user of the server, which can write to the data folder"}
	}
	return nil
}

// takeRecords appends the records that commands have left to the audit. A record's
// file is removed afterwards. If the server dies in between, the record is in the
// chain twice.
func takeRecords(ctx context.Context, folder string, store port.Store, log *slog.Logger) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name := filepath.Join(folder, e.Name())
		if !strings.HasSuffix(name, ".json") || !e.Type().IsRegular() {
			continue
		}
		var r commandRecord
		if info, err := e.Info(); err != nil || info.Size() > maxRecord {
			continue
		}
		raw, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil || !r.Tenant.Valid() || r.Action == "" || !json.Valid(r.Metadata) {
			log.Warn("an audit record that a command left cannot be read", "file", name, "error", err)
			continue
		}
		if _, err := store.Append(ctx, port.Batch{Tenant: r.Tenant, Audit: []parley.Audit{r.Audit}}); err != nil {
			return err
		}
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return err
}

// keepRecords calls takeRecords every few seconds until ctx ends.
func keepRecords(ctx context.Context, folder string, store port.Store, log *slog.Logger) {
	pacing.Every(ctx, inboxEvery, func() {
		if err := takeRecords(ctx, folder, store, log); err != nil && ctx.Err() == nil {
			log.Error("records of commands are not in the audit log yet", "folder", folder, "error", err)
		}
	})
}
