package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"parley"
	"parley/config"
	"parley/port"
	"parley/store/postgres"
	"parley/store/rules"
)

type importCommand struct {
	config.Store
	File   string           `arg:"" optional:"" type:"path" help:"File that parley export wrote (default: standard input)."`
	Tenant parley.TenantID  `placeholder:"T" help:"Tenant that gets the session (default: the default tenant)."`
	As     parley.SessionID `placeholder:"UUID" help:"New id of the session (default: the id in the file)."`
}

// Help is printed below the usage.
func (*importCommand) Help() string {
	return `Example:

  $ parley import session.jsonl --data /srv/parley`
}

// Run imports a session as one batch in one transaction, so that readers never
// see a part of it and a crash leaves nothing behind. The whole session is in
// memory meanwhile. With several batches, an unfinished import would have to be
// hidden from readers and removed after a crash.
func (c *importCommand) Run(p *program) (err error) {
	if c.Tenant == "" {
		c.Tenant = c.DefaultTenant
	}
	switch {
	case !c.Tenant.Valid():
		return fmt.Errorf("--tenant %s is no tenant id; use up to 63 of a-z, 0-9 and -, not beginning with -", c.Tenant)
	case c.As != "" && !c.As.Valid():
		return fmt.Errorf("--as %s is not a valid session id; use a UUID of version 4, in lower case", c.As)
	}
	f, err := c.read(p.stdin)
	if err != nil {
		return err
	}
	store, _, err := openStore(p.ctx, &c.Store, "importing a session", false, postgres.WithTimeout(importWithin))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := importSession(p.ctx, store, c.Tenant, f); err != nil {
		return err
	}
	if n, err := delivered(p.ctx, store.Tenant(c.Tenant), f); err != nil {
		fmt.Fprintf(p.stderr, "parley: the session is in, but clients without a cursor may be shown %d ended runs "+
			"again: %s\n", n, describe(err))
	}
	_, err = fmt.Fprintf(p.stdout, "Session %s of tenant %s: %d events, %s.\n", f.Session, c.Tenant, len(f.log),
		f.state.Status())
	return err
}

// importWithin limits the time of the transaction, during which other appends
// of the tenant wait.
const importWithin = time.Minute

func (c *importCommand) read(stdin io.Reader) (*sessionFile, error) {
	from, name := stdin, "standard input"
	if c.File != "" {
		file, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from, name = file, c.File
	}
	f, err := readSession(from)
	if err != nil {
		return nil, &parley.Error{Code: parley.CodeInvalid, Message: "Nothing was imported: " + name +
			" is not a session as parley export writes it.", Err: err}
	}
	if c.As != "" {
		f.rename(c.As)
	}
	return f, nil
}

// rename gives the session another id. Event bodies refer to parts of the
// session by seq only, so they stay as they are.
func (f *sessionFile) rename(id parley.SessionID) {
	f.Session, f.state.ID, f.state.Root = id, id, id
	for i := range f.log {
		f.log[i].Session, f.log[i].Root = id, id
	}
}

// importSession appends the session, its snapshot and its due entry, as the
// engine that wrote it would have left them. Open work is due, and the next
// server continues it as after a crash.
func importSession(ctx context.Context, store store, tenant parley.TenantID, f *sessionFile) error {
	f.state.Tenant = tenant
	b := port.Batch{Tenant: tenant, Session: f.Session, Epoch: 1, Events: f.log, Trimmed: true,
		Summary: port.SummaryOf(f.state), Parent: f.state.Parent,
		Leave: true}
	if snapshot, ok := f.state.Snapshot(); ok {
		b.Snapshot = &snapshot
	}
	if due, ok := f.state.Due(); ok {
		b.Due = &port.DueChange{Due: due}
	}
	taken := &parley.Error{Code: parley.CodeConflict,
		Message: fmt.Sprintf("Nothing was imported: there is a session %s of tenant %s already.", f.Session, tenant),
		Hint:    "give it another id with --as, or another tenant with --tenant"}
	switch _, err := store.Tenant(tenant).Session(ctx, f.Session); {
	case err == nil:
		return taken
	case parley.CodeOf(err) != parley.CodeNotFound:
		return err
	}
	for _, agent := range f.agents {
		if err := store.Define(ctx, tenant, agent); err != nil {
			return err
		}
	}
	switch res, err := store.Append(ctx, b); {
	case err != nil:
		return err
	case res.Fenced:
		return taken
	}
	return untold(ctx, store, tenant, f)
}

// untold settles the pending webhooks of the session as not to be delivered:
// the server that exported the session delivers them.
func untold(ctx context.Context, store store, tenant parley.TenantID, f *sessionFile) (err error) {
	for _, e := range f.log {
		if b, ok := e.Body.(parley.EffectEnqueued); ok && b.Type == parley.Webhook {
			due := port.HookDue{Tenant: tenant, Session: f.Session, Effect: e.Seq}
			err = errors.Join(err, store.SettleHook(ctx, due, rules.HookAtOnce,
				port.HookFate{Status: port.EffectGone, Why: "imported", At: e.At}))
		}
	}
	return err
}

// delivered completes the bookmarks of runs that have ended, because their
// clients are clients of the exporting server. It returns the number of these
// runs.
func delivered(ctx context.Context, logs port.TenantStore, f *sessionFile) (runs int, err error) {
	owed := map[parley.RunID]bool{}
	for _, e := range f.log {
		switch b := e.Body.(type) {
		case parley.EffectEnqueued:
			owed[e.Run] = owed[e.Run] || b.Type == parley.SendMessage
		case parley.RunFinished:
			if owed[e.Run] {
				runs++
				err = errors.Join(err, logs.Delivered(ctx, f.Session, e.At, e.Run))
			}
		}
	}
	return runs, err
}
