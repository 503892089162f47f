package main

import (
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/config"
	"parley/port"
	"parley/tool"
)

// retentionOf returns the retention rules of each tenant, or nil if everything is
// kept.
func retentionOf(c *config.Settings) func(parley.TenantID) port.Retention {
	if !c.Retention.Any() {
		return nil
	}
	return c.Retention.Of
}

// oldArtifacts returns a function that deletes old artifacts of a tenant in every
// project.
func oldArtifacts(c *config.Settings, projects []*project) func(parley.TenantID, time.Time, map[string]bool, bool) (int,
	error) {
	return func(tenant parley.TenantID, before time.Time, keep map[string]bool, dry bool) (removed int, err error) {
		for _, p := range projects {
			n, failed := tool.RemoveOldArtifacts(p.folder(c, "artifacts"), tenant, before, keep, dry)
			removed, err = removed+n, errors.Join(err, failed)
		}
		return removed, err
	}
}

type retainCommand struct {
	listFlags
	DryRun bool `help:"Print how much data is old enough, and delete nothing."`
}

func (*retainCommand) Help() string {
	return `The server does this by itself, at least every hour. The rules are those of the key retention in the file of
--config. Sessions with an open run, with a timer or a webhook that is owed, or under a legal hold are kept and listed.

Example:

  $ parley retain --dry-run`
}

// Run tells a server to apply its retention rules.
func (c *retainCommand) Run(p *program) error {
	return p.with(c.serverFlags, func(to *connection) error {
		r, err := to.Retain(p.ctx, c.DryRun)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.stdout, r)
		}
		verb := "Deleted"
		if r.DryRun {
			verb = "Would be deleted"
		}
		fmt.Fprintf(p.stdout, "%s: %d sessions (%s), %d chunks, %d artifacts, %d audit records.\n", verb,
			r.Sessions, size(uint64(r.Bytes)), r.Chunks, r.Artifacts, r.Audit)
		if r.Note != "" {
			fmt.Fprintln(p.stdout, visible(r.Note))
		}
		if len(r.Kept) == 0 {
			return nil
		}
		rows := table{{"KEPT", "OWNER", "REASON"}}
		for _, k := range r.Kept {
			rows = append(rows, []string{string(k.Session), string(k.Owner), k.Reason}) // no session: the audit
		}
		if r.More > 0 {
			rows = append(rows, []string{fmt.Sprintf("and %d more", r.More), "", ""})
		}
		return c.print(p, nil, rows, "")
	})
}

type holdCommand struct {
	listFlags
	Session string `placeholder:"ID" help:"Session to hold, with its sub-agents."`
	User    string `placeholder:"NAME" help:"User whose sessions to hold."`
	Reason  string `placeholder:"TEXT" help:"Reason of the hold."`
	Release bool   `help:"Release the hold."`
}

func (*holdCommand) Help() string {
	return `A legal hold keeps a session, or all sessions of a user, from retention and erasure. Without --session and
--user the holds of the tenant are listed.

Example:

  $ parley hold --user ann --reason "Case 4711"
  $ parley hold --user ann --release`
}

// Run lists holds, or changes one.
func (c *holdCommand) Run(p *program) error {
	if c.Session == "" && c.User == "" {
		if c.Reason != "" || c.Release {
			return &parley.Error{Code: parley.CodeInvalid, Message: "Name a session or a user.",
				Hint: "see parley hold --help"}
		}
		return listing[port.LegalHold]{
			fetch: func(to *connection) ([]port.LegalHold, error) { return to.LegalHolds(p.ctx) },
			title: []string{"KIND", "ID", "SINCE", "BY", "REASON"},
			row: func(h port.LegalHold) []string {
				return []string{string(h.Kind), h.ID, h.At.Local().Format(time.DateTime), string(h.By), h.Reason}
			},
			none: "There are no legal holds.",
		}.show(p, c.listFlags)
	}
	if c.Session != "" && c.User != "" {
		return &parley.Error{Code: parley.CodeInvalid, Message: "Name a session or a user, not both.",
			Hint: "see parley hold --help"}
	}
	change := port.HoldChange{LegalHold: port.LegalHold{Kind: port.HoldUser, ID: c.User, Reason: c.Reason},
		Release: c.Release}
	if c.Session != "" {
		change.Kind, change.ID = port.HoldSession, c.Session
	}
	return p.with(c.serverFlags, func(to *connection) error {
		held, err := to.Hold(p.ctx, change)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return printJSON(p.stdout, held)
		case c.Release:
			_, err = fmt.Fprintf(p.stdout, "The legal hold on %s %s is released.\n", held.Kind, visible(held.ID))
		default:
			_, err = fmt.Fprintf(p.stdout, "There is a legal hold on %s %s.\n", held.Kind, visible(held.ID))
		}
		return err
	})
}
