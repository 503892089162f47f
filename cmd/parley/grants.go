package main

import (
	"fmt"
	"time"

	"parley"
)

type grantsCommand struct {
	List   grantsList   `cmd:"" default:"withargs" help:"List the calls that were allowed for the rest of a session (the default)."`
	Revoke grantsRevoke `cmd:"" help:"Revoke a grant: its calls ask again."`
}

type grantsList struct {
	listFlags
	Session string `arg:"" help:"Session, by its id or the beginning of it."`
}

func (*grantsList) Help() string {
	return `Example:

  $ parley grants 3f0c0a52
  $ parley grants revoke 3f0c0a52 17`
}

func (c *grantsList) Run(p *program) error {
	return listing[parley.GrantInfo]{
		fetch: func(to *connection) ([]parley.GrantInfo, error) {
			id, err := sessionNamed(p.ctx, to.Client, c.Session)
			if err != nil {
				return nil, err
			}
			return to.Grants(p.ctx, id)
		},
		title: []string{"GRANT", "SCOPE", "TOOL", "BY", "GRANTED", "TEXT"},
		row: func(g parley.GrantInfo) []string {
			return []string{g.ID, string(g.Scope), g.Tool, string(g.By), ago(g.At, time.Now()), clip(g.Text, 80)}
		},
		none: "There are no grants in this session.",
	}.show(p, c.listFlags)
}

type grantsRevoke struct {
	serverFlags
	Session string `arg:"" help:"Session, by its id or the beginning of it."`
	Grant   string `arg:"" help:"Id of the grant, as parley grants prints it."`
}

func (c *grantsRevoke) Run(p *program) error {
	return p.withSession(c.serverFlags, c.Session, func(to *connection, id parley.SessionID) error {
		if err := to.RevokeGrant(p.ctx, id, c.Grant); err != nil {
			return err
		}
		_, err := fmt.Fprintln(p.stdout, "Revoked.")
		return err
	})
}
