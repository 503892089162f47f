package main

import (
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/client"
	"parley/port"
)

type sessionsCommand struct {
	List   sessionsList   `cmd:"" default:"withargs" help:"List sessions, the most recently changed first (the default)."`
	Rename sessionsRename `cmd:"" help:"Give a session another title."`
	Mark   sessionsMark   `cmd:"" help:"Pin or archive sessions in your own list, or undo that."`
	Delete sessionsDelete `cmd:"" help:"Delete sessions."`
}

type sessionsList struct {
	listFlags
	Search  string `placeholder:"TEXT" help:"List sessions whose title contains this text."`
	Project string `placeholder:"DIR" help:"List the sessions of one project: its folder on the server, or its id."`
	All     bool   `help:"List the sessions of single connections, too."`

	Pinned   bool `help:"List the sessions that you have pinned."`
	Archived bool `help:"List the sessions that you have archived."`

	Limit int `default:"50" help:"Maximum number of lines."`
}

func (*sessionsList) Help() string {
	return `Other commands take the id of a session, or its first characters.

Example:

  $ parley sessions --search tests
  $ parley log 3f0c0a52`
}

func (c *sessionsList) Run(p *program) error {
	archived := port.NotArchived
	if c.Archived {
		archived = port.OnlyArchived
	}
	defaults := map[string]string{} // the default agent of each project
	return listing[port.Summary]{
		fetch: func(to *connection) ([]port.Summary, error) {
			list, err := to.Sessions(p.ctx, client.SessionQuery{Search: c.Search, Project: c.Project,
				Transient: c.All, Pinned: c.Pinned, Archived: archived, Limit: c.Limit})
			for _, s := range list {
				if _, known := defaults[s.Project]; known || s.Agent != "" || c.JSON {
					continue
				}
				defaults[s.Project] = ""
				if agents, err := to.Agents(p.ctx, s.Project); err == nil && len(agents) > 0 {
					// a removed project has no agents
					defaults[s.Project] = agents[0].Name
				}
			}
			return list, err
		},
		title: []string{"SESSION", "STATUS", "AGENT", "CHANGED", "MARKS", "TITLE"},
		row: func(s port.Summary) []string {
			agent := s.Agent
			if agent == "" {
				agent = defaults[s.Project]
			}
			return []string{string(s.ID), string(s.Status), agent, ago(s.UpdatedAt, time.Now()), marksInWords(s.Marks),
				clip(s.Title, 60)}
		},
		project: func(s port.Summary) string { return s.Project },
		none:    "There are no sessions.",
	}.show(p, c.listFlags)
}

// marksInWords lists the marks of a session.
func marksInWords(m port.Marks) string {
	var list []string
	for _, mark := range []struct {
		is   bool
		name string
	}{{m.Pinned, "pinned"}, {m.Archived, "archived"}, {m.Unread, "unread"}} {
		if mark.is {
			list = append(list, mark.name)
		}
	}
	return strings.Join(list, ",")
}

type sessionsMark struct {
	serverFlags
	Sessions []string `arg:"" help:"Sessions, by their ids or the beginnings of them."`
	Pin      *bool    `negatable:"" help:"Pin the sessions, or with --no-pin unpin them."`
	Archive  *bool    `negatable:"" help:"Archive the sessions, or with --no-archive take them out of the archive."`
}

func (c *sessionsMark) Run(p *program) error {
	if c.Pin == nil && c.Archive == nil {
		return parley.Errorf(parley.CodeInvalid, "Say --pin, --no-pin, --archive or --no-archive.")
	}
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	for _, given := range c.Sessions {
		id, err := sessionNamed(p.ctx, to.Client, given)
		if err == nil {
			_, err = to.Mark(p.ctx, id, client.MarkChange{Pinned: c.Pin, Archived: c.Archive})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type sessionsRename struct {
	serverFlags
	Session string `arg:"" help:"Session, by its id or the beginning of it."`
	Title   string `arg:"" help:"New title."`
}

func (c *sessionsRename) Run(p *program) error {
	return p.withSession(c.serverFlags, c.Session, func(to *connection, id parley.SessionID) error {
		_, err := to.Rename(p.ctx, id, c.Title)
		return err
	})
}

type sessionsDelete struct {
	serverFlags
	Sessions []string `arg:"" help:"Sessions, by their ids or the beginnings of them."`
}

func (c *sessionsDelete) Run(p *program) error {
	return p.with(c.serverFlags, func(to *connection) error {
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
	})
}
