package main

import (
	"fmt"
	"time"
)

type grantsCommand struct {
	List   grantsList   `cmd:"" default:"withargs" help:"List the calls that were allowed for the rest of a session (the default)."`
	Revoke grantsRevoke `cmd:"" help:"Revoke a grant: its calls ask again."`
}

type grantsList struct {
	serverFlags
	listFlags
	Session string `arg:"" help:"Session, by its id or the beginning of it."`
}

func (*grantsList) Help() string {
	return `Example:

  $ parley grants 3f0c0a52
  $ parley grants revoke 3f0c0a52 17`
}

func (c *grantsList) Run(p *program) error {
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	id, err := sessionNamed(p.ctx, to.Client, c.Session)
	if err != nil {
		return err
	}
	list, err := to.Grants(p.ctx, id)
	if err != nil {
		return err
	}
	rows := table{{"GRANT", "SCOPE", "TOOL", "BY", "GRANTED", "TEXT"}}
	for _, g := range list {
		rows = append(rows, []string{g.ID, string(g.Scope), g.Tool, string(g.By), ago(g.At, time.Now()),
			clip(g.Text, 80)})
	}
	return c.print(p, orEmpty(list), rows, "There are no grants in this session.")
}

type grantsRevoke struct {
	serverFlags
	Session string `arg:"" help:"Session, by its id or the beginning of it."`
	Grant   string `arg:"" help:"Id of the grant, as parley grants prints it."`
}

func (c *grantsRevoke) Run(p *program) error {
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	id, err := sessionNamed(p.ctx, to.Client, c.Session)
	if err == nil {
		err = to.RevokeGrant(p.ctx, id, c.Grant)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, "Revoked.")
	return err
}
