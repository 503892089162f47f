package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"parley"
	"parley/config"
	"parley/port"
)

// listRows prints the rows of a tenant that read writes, under a title with the names of their columns. It also works
// while a server runs.
func (p *program) listRows(database *config.Store, tenant parley.TenantID, title string,
	read func(logs port.TenantStore, w io.Writer) error) error {
	store, err := openReader(p.ctx, database)
	if err != nil {
		return err
	}
	defer store.Close()
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, title)
	if err := read(store.Tenant(cmp.Or(tenant, database.DefaultTenant)), w); err != nil {
		return err
	}
	return w.Flush()
}

type timersCommand struct {
	config.Store
	Tenant  parley.TenantID  `placeholder:"NAME" help:"Tenant (default: the default tenant)."`
	Session parley.SessionID `placeholder:"ID" help:"Show this session only."`
	Status  string           `default:"pending" enum:"pending,promoted,cancelled,all" help:"Status to show: pending, promoted (the timer has fired), cancelled or all."`
	Limit   int              `default:"100" help:"Maximum number of lines."`
}

// Help is printed below the usage.
func (*timersCommand) Help() string {
	return `Example:

  $ parley timers --status all`
}

// Run lists timers. Their reasons are shown, because people who can run this command can read the log as well.
func (c *timersCommand) Run(p *program) error {
	q := port.TimerQuery{Session: c.Session, Status: parley.TimerStatus(c.Status), Limit: c.Limit}
	if c.Status == "all" {
		q.Status = ""
	}
	const title = "TIMER\tSTATUS\tFIRES\tAGENT\tOWNER\tBY\tWHY\tREASON"
	return p.listRows(&c.Store, c.Tenant, title, func(logs port.TenantStore, w io.Writer) error {
		list, err := logs.Timers(p.ctx, q)
		for _, t := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.60q\n", t.ID, t.Status, t.FireAt.Format(time.RFC3339),
				t.Agent, t.Owner, t.By, t.Why, t.Reason)
		}
		return err
	})
}

type effectsCommand struct {
	config.Store
	Tenant  parley.TenantID  `placeholder:"NAME" help:"Tenant (default: the default tenant)."`
	Session parley.SessionID `placeholder:"ID" help:"Show this session only."`
	Status  string           `default:"all" enum:"pending,executing,completed,failed,cancelled,all" help:"Status to show: pending, executing, completed, failed, cancelled or all."`
	Limit   int              `default:"100" help:"Maximum number of lines."`
}

// Help is printed below the usage.
func (*effectsCommand) Help() string {
	return `Example:

  $ parley effects --status failed`
}

// Run lists effects.
func (c *effectsCommand) Run(p *program) error {
	q := port.EffectQuery{Session: c.Session, Status: port.EffectStatus(c.Status), Limit: c.Limit}
	if c.Status == "all" {
		q.Status = ""
	}
	const title = "EFFECT\tSTATUS\tTYPE\tREQUEST\tCREATED\tATTEMPTS\tOWNER\tWHY"
	return p.listRows(&c.Store, c.Tenant, title, func(logs port.TenantStore, w io.Writer) error {
		list, err := logs.Effects(p.ctx, q)
		for _, e := range list {
			request := e.Request
			if e.Hook != nil { // a webhook answers no input: show its target and event
				request = string(e.Hook.Event) + " to " + e.Hook.Target
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%q\t%s\t%d\t%s\t%s\n", e.ID, e.Status, e.Type, request,
				e.CreatedAt.Format(time.RFC3339), e.Attempts, e.Owner, e.Why)
		}
		return err
	})
}
