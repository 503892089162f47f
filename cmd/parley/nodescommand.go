package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"parley/client"
)

type nodesCommand struct {
	listFlags
}

func (*nodesCommand) Help() string {
	return `Example:

  $ parley nodes --server https://parley.example.com`
}

// Run lists the servers that share a database.
func (c *nodesCommand) Run(p *program) error {
	return listing[client.Node]{
		fetch: func(to *connection) ([]client.Node, error) {
			list, err := to.Nodes(p.ctx)
			if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusNotFound {
				return nil, fmt.Errorf("the server at %s does not list nodes; it is of an earlier version", to.Address())
			}
			return list, err
		},
		title: []string{"NODE", "ADDRESS", "VERSION", "SESSIONS", "SINCE", "NOTE"},
		row: func(n client.Node) []string {
			notes := []string{}
			if n.Draining {
				notes = append(notes, "stopping")
			}
			if len(n.Differs) > 0 {
				notes = append(notes, "differs in "+strings.Join(n.Differs, ", "))
			}
			return []string{n.ID, n.Address, n.Version, fmt.Sprint(n.Sessions), ago(n.Since, time.Now()),
				strings.Join(notes, "; ")}
		},
		none: "The server is alone.",
	}.show(p, c.listFlags)
}
