package main

import (
	"context"
	"errors"
	"fmt"

	"parley"
	"parley/config"
	"parley/port"
	"parley/tool"
)

// removeArtifacts returns a function that deletes artifacts of a tenant in every project.
func removeArtifacts(c *config.Settings, projects []*project) func(parley.TenantID, map[string]bool) (int, error) {
	return func(tenant parley.TenantID, names map[string]bool) (removed int, err error) {
		for _, p := range projects {
			n, failed := tool.RemoveArtifacts(p.folder(c, "artifacts"), tenant, names)
			removed, err = removed+n, errors.Join(err, failed)
		}
		return removed, err
	}
}

// eachBegunErasure calls do for every erasure that has begun and not ended.
func eachBegunErasure(ctx context.Context, s tenantStores, do func(parley.TenantID, port.BegunErasure)) error {
	tenants, err := s.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		begun, err := s.Tenant(tenant).BegunErasures(ctx)
		if err != nil {
			return err
		}
		for _, b := range begun {
			do(tenant, b)
		}
	}
	return nil
}

// tenantStores are the methods that eachBegunErasure needs; a store and a reader have both.
type tenantStores interface {
	Tenants(context.Context) ([]parley.TenantID, error)
	Tenant(parley.TenantID) port.TenantStore
}

type eraseCommand struct {
	User    eraseUser    `cmd:"" default:"withargs" help:"Erase the messages and sessions of a user, on a running server (the default). This cannot be undone."`
	Rewrite eraseRewrite `cmd:"" help:"Write the database anew, without deleted data. The server must be stopped."`
}

type eraseUser struct {
	listFlags
	Name string `name:"user" required:"" placeholder:"NAME" help:"Id of the user."`
}

func (*eraseUser) Help() string {
	return `The sessions of the user are deleted with all their rows and artifacts. In sessions of other users, messages and
answers of the user are replaced. The audit log keeps a proof without text. docs/keeping.md lists the exceptions.

Example:

  $ parley erase --user ann`
}

// Run tells a server to erase a user, and prints the proof.
func (c *eraseUser) Run(p *program) error {
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	r, err := to.Erase(p.ctx, parley.PrincipalID(c.Name))
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, r)
	}
	fmt.Fprintf(p.stdout, "%s: %d sessions, %d events (%s) and %d artifacts are erased; %d events of other "+
		"sessions are "+
		"replaced.\nProof in the audit log: user.erased, SHA-256 %s\n", visible(c.Name), r.Sessions, r.Events,
		size(uint64(r.Bytes)), r.Artifacts, r.Replaced, r.Digest)
	if !r.Rewritten {
		fmt.Fprintln(p.stdout, "Free space of the database may still hold deleted bytes. Stop the server and run: "+
			"parley "+
			"erase rewrite")
	}
	return nil
}

type eraseRewrite struct{ config.Store }

// Run rewrites a database that no server uses. On PostgreSQL, the role must own the tables.
func (c *eraseRewrite) Run(p *program) error {
	if err := haveDatabase(p.ctx, &c.Store, "nothing was rewritten"); err != nil {
		return err
	}
	opened, _, err := openStore(p.ctx, &c.Store, "rewriting the database", false)
	if err != nil {
		return err
	}
	_, err = opened.Rewrite(p.ctx, true)
	if err = errors.Join(err, opened.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, "The database is rewritten, without deleted data.")
	return err
}
