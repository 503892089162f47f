package main

import (
	"fmt"
	"time"

	"parley/client"
)

type sessionsCommand struct {
	List   sessionsList   `cmd:"" default:"withargs" help:"List sessions, the most recently changed first (the default)."`
	Rename sessionsRename `cmd:"" help:"Give a session another title."`
	Delete sessionsDelete `cmd:"" help:"Delete sessions."`
}

type sessionsList struct {
	serverFlags
	listFlags
	Search  string `placeholder:"TEXT" help:"List sessions whose title contains this text."`
	Project string `placeholder:"DIR" help:"List the sessions of one project: its folder on the server, or its id."`
	All     bool   `help:"List the sessions of single connections, too."`
	Limit   int    `default:"50" help:"Maximum number of lines."`
}

func (*sessionsList) Help() string {
	return `Other commands take the id of a session, or its first characters.

Example:

  $ parley sessions --search tests
  $ parley log 3f0c0a52`
}

func (c *sessionsList) Run(p *program) error {
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	list, err := to.Sessions(p.ctx, client.SessionQuery{Search: c.Search, Project: c.Project, Transient: c.All,
		Limit: c.Limit})
	if err != nil {
		return err
	}
	rows := table{{"SESSION", "STATUS", "AGENT", "CHANGED", "TITLE"}}
	for _, s := range list {
		rows = append(rows, []string{string(s.ID), string(s.Status), s.Agent, ago(s.UpdatedAt, time.Now()),
			clip(s.Title, 60)})
	}
	return c.print(p, orEmpty(list), rows, "There are no sessions.")
}

type sessionsRename struct {
	serverFlags
	Session string `arg:"" help:"Session, by its id or the beginning of it."`
	Title   string `arg:"" help:"New title."`
}

func (c *sessionsRename) Run(p *program) error {
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	id, err := sessionNamed(p.ctx, to.Client, c.Session)
	if err == nil {
		_, err = to.Rename(p.ctx, id, c.Title)
	}
	return err
}

type sessionsDelete struct {
	serverFlags
	Sessions []string `arg:"" help:"Sessions, by their ids or the beginnings of them."`
}

func (c *sessionsDelete) Run(p *program) error {
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	for _, given := range c.Sessions {
		id, err := sessionNamed(p.ctx, to.Client, given)
		if err == nil {
			err = to.Delete(p.ctx, id)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "Deleted %s.\n", id)
	}
	return nil
}
