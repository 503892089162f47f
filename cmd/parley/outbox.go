package main

import (
	"cmp"
	"fmt"
	"text/tabwriter"
	"time"

	"parley"
	"parley/config"
)

type timersCommand struct {
	config.Store
	Tenant  parley.TenantID  `placeholder:"NAME" help:"Tenant (default: the default tenant)."`
	Session parley.SessionID `placeholder:"ID" help:"Show this session only."`
	Status  string           `default:"pending" enum:"pending,promoted,cancelled,all" help:"Status to show: pending, promoted (the timer has fired), cancelled or all."`
	Limit   int              `default:"100" help:"Maximum number of lines."`
}

// Run lists timers, also of a running server. What they say is shown to nobody
// who could not read the log anyway.
func (c *timersCommand) Run(p *program) error {
	store, err := openReader(p.ctx, &c.Store)
	if err != nil {
		return err
	}
	defer store.Close()
	q := parley.TimerQuery{Session: c.Session, Status: parley.TimerStatus(c.Status), Limit: c.Limit}
	if c.Status == "all" {
		q.Status = ""
	}
	list, err := store.Tenant(cmp.Or(c.Tenant, c.DefaultTenant)).Timers(p.ctx, q)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIMER\tSTATUS\tFIRES\tAGENT\tOWNER\tBY\tWHY\tREASON")
	for _, t := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.60q\n", t.ID, t.Status, t.FireAt.Format(time.RFC3339), t.Agent,
			t.Owner, t.By, t.Why, t.Reason)
	}
	return w.Flush()
}

type effectsCommand struct {
	config.Store
	Tenant  parley.TenantID  `placeholder:"NAME" help:"Tenant (default: the default tenant)."`
	Session parley.SessionID `placeholder:"ID" help:"Show this session only."`
	Status  string           `default:"all" enum:"pending,executing,completed,failed,cancelled,all" help:"Status to show: pending, executing, completed, failed, cancelled or all."`
	Limit   int              `default:"100" help:"Maximum number of lines."`
}

// Run lists effects, also of a running server.
func (c *effectsCommand) Run(p *program) error {
	store, err := openReader(p.ctx, &c.Store)
	if err != nil {
		return err
	}
	defer store.Close()
	q := parley.EffectQuery{Session: c.Session, Status: parley.EffectStatus(c.Status), Limit: c.Limit}
	if c.Status == "all" {
		q.Status = ""
	}
	list, err := store.Tenant(cmp.Or(c.Tenant, c.DefaultTenant)).Effects(p.ctx, q)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "EFFECT\tSTATUS\tTYPE\tREQUEST\tCREATED\tATTEMPTS\tOWNER\tWHY")
	for _, e := range list {
		request := e.Request
		if e.Hook != nil { // it answers none, and says who is told of what
			request = string(e.Hook.Event) + " to " + e.Hook.Target
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%q\t%s\t%d\t%s\t%s\n", e.ID, e.Status, e.Type, request,
			e.CreatedAt.Format(time.RFC3339), e.Attempts, e.Owner, e.Why)
	}
	return w.Flush()
}
