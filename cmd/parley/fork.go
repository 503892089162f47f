package main

import (
	"fmt"

	"parley"
	"parley/client"
)

type forkCommand struct {
	serverFlags
	Session string     `arg:"" help:"Session to fork, by its id or the beginning of it."`
	At      parley.Seq `placeholder:"SEQ" help:"Last event that counts, by the number that parley log prints (default: all events)."`
	Title   string     `placeholder:"TEXT" help:"Title of the new session (default: the title of the session)."`
	JSON    bool       `name:"json" help:"Print the new session as JSON, not its id alone."`
}

func (*forkCommand) Help() string {
	return `The new session begins with the conversation of the other one, which stays as it is.

Example:

  $ parley run --session $(parley fork 3f0c0a52 --at 40) "Try it without a database."`
}

// Run prints the id of the new session.
func (c *forkCommand) Run(p *program) error {
	return p.withSession(c.serverFlags, c.Session, func(to *connection, id parley.SessionID) error {
		s, err := to.Fork(p.ctx, id, client.Fork{At: c.At, Title: c.Title})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.stdout, s)
		}
		_, err = fmt.Fprintln(p.stdout, s.ID)
		return err
	})
}
