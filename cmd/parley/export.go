package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"parley"
	"parley/config"
	"parley/dialect"
	"parley/port"
)

type exportCommand struct {
	config.Store
	Session parley.SessionID `arg:"" help:"Id of the session (a UUID)."`
	Tenant  parley.TenantID  `placeholder:"T" help:"Tenant of the session (default: the default tenant)."`
	Format  string           `enum:"jsonl,markdown,html" default:"jsonl" placeholder:"F" help:"jsonl: the session as parley import reads it. markdown or html: a document for people (default: jsonl)."`
	Output  string           `type:"path" placeholder:"FILE" help:"New file to write (default: standard output)."`
}

// Help is printed below the usage.
func (*exportCommand) Help() string {
	return `Example:

  $ parley export 3f0c0a52-5b1e-4b5e-9d3f-0c2a4a3f6d11 --output session.jsonl
  $ parley export 3f0c0a52-5b1e-4b5e-9d3f-0c2a4a3f6d11 --format html --output session.html`
}

func (c *exportCommand) Run(p *program) (err error) {
	if c.Tenant == "" {
		c.Tenant = c.DefaultTenant
	}
	if !c.Session.Valid() {
		return parley.Errorf(parley.CodeInvalid, "%q is not a valid session id; it is a UUID of version 4, in "+
			"lower case.",
			c.Session)
	}
	store, err := openReader(p.ctx, &c.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if _, err := store.Tenant(c.Tenant).Session(p.ctx, c.Session); err == nil { // else exportSession fails
		if err := recordCommand(p, &c.Store, c.Tenant, port.AuditSessionExported, "session", string(c.Session),
			map[string]any{}); err != nil {
			return err
		}
	}
	write := exportSession
	if c.Format != "jsonl" {
		write = exportDocument(c.Format)
	}
	if c.Output == "" {
		return write(p.ctx, store, c.Tenant, c.Session, p.stdout)
	}
	return writeWhole(c.Output, func(part string) error {
		// The file is readable by its owner only, because it contains the whole
		// session.
		f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(write(p.ctx, store, c.Tenant, c.Session, f), f.Close())
	})
}

// exportPage limits how many events are in memory at a time.
const exportPage = 500

// exportSession writes a session as it is now. Events that are appended
// meanwhile are left out, so the export ends at a commit.
func exportSession(ctx context.Context, store reader, tenant parley.TenantID, id parley.SessionID, to io.Writer) error {
	logs := store.Tenant(tenant)
	head, err := headOf(ctx, logs, tenant, id)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(to)
	if err := writeLine(w, header{Parley: fileKind, Version: fileVersion, Session: id, Tenant: tenant,
		Epoch: store.Epoch(), Head: head}); err != nil {
		return err
	}
	written := map[string]bool{}
	err = eachEvent(ctx, logs, id, head, func(e parley.Event) error {
		digest := agentOf(e.Body).Digest
		if digest == "" || written[digest] {
			return nil
		}
		written[digest] = true
		agent, err := logs.Definition(ctx, digest)
		if parley.CodeOf(err) == parley.CodeNotFound && err != nil {
			return nil // if the definition matters, import reports it
		}
		if err != nil {
			return err
		}
		return writeLine(w, definitionLine{&agent})
	})
	if err != nil {
		return err
	}
	if err := eachEvent(ctx, logs, id, head, func(e parley.Event) error { return writeLine(w, e) }); err != nil {
		return err
	}
	return w.Flush()
}

// exportDocument returns a function that writes a session in the format of the
// console's export.
func exportDocument(format string) func(context.Context, reader, parley.TenantID, parley.SessionID, io.Writer) error {
	return func(ctx context.Context, store reader, tenant parley.TenantID, id parley.SessionID, to io.Writer) error {
		logs := store.Tenant(tenant)
		head, err := headOf(ctx, logs, tenant, id)
		if err != nil {
			return err
		}
		var x dialect.Export
		if err := eachEvent(ctx, logs, id, head, x.Read); err != nil {
			return err
		}
		document, err := x.Document(ctx, format)
		if err == nil {
			_, err = to.Write(document)
		}
		return err
	}
}

// headOf returns the seq of the last event of a session.
func headOf(ctx context.Context, logs port.TenantStore, tenant parley.TenantID, id parley.SessionID) (parley.Seq,
	error) {
	st, err := logs.Session(ctx, id)
	if err != nil && parley.CodeOf(err) == parley.CodeNotFound {
		err = &parley.Error{Code: parley.CodeNotFound, Message: fmt.Sprintf("There is no session %s of tenant %s.", id,
			tenant), Hint: "see that --tenant, --data and --database-url are those of the server"}
	}
	return st.Summary.Head, err
}

// eachEvent calls do for every event of a log up to head. It reads one page at a
// time.
func eachEvent(ctx context.Context, logs port.TenantStore, id parley.SessionID, head parley.Seq,
	do func(parley.Event) error) error {
	for after := parley.Seq(0); after < head; {
		events, err := logs.Events(ctx, id, after, exportPage)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return &parley.Error{Code: parley.CodeCorrupt, Message: "A part of this session's log cannot be read.",
				Hint: "restore the session from a backup", Err: fmt.Errorf("session %s ends at seq %d, its row says %d",
					id, after, head)}
		}
		for _, e := range events {
			if after = e.Seq; after > head {
				return nil
			}
			if err := do(e); err != nil {
				return err
			}
		}
	}
	return nil
}
