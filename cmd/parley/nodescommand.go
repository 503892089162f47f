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
	serverFlags
	listFlags
}

func (*nodesCommand) Help() string {
	return `Example:

  $ parley nodes --server https://parley.example.com`
}

// Run lists the servers that share a database.
func (c *nodesCommand) Run(p *program) error {
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	list, err := to.Nodes(p.ctx)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusNotFound {
		return fmt.Errorf("the server at %s does not list nodes; it is of an earlier version", to.Address())
	}
	if err != nil {
		return err
	}
	rows := table{{"NODE", "ADDRESS", "VERSION", "SESSIONS", "SINCE", "NOTE"}}
	for _, n := range list {
		notes := []string{}
		if n.Draining {
			notes = append(notes, "stopping")
		}
		if len(n.Differs) > 0 {
			notes = append(notes, "differs in "+strings.Join(n.Differs, ", "))
		}
		rows = append(rows, []string{n.ID, n.Address, n.Version, fmt.Sprint(n.Sessions), ago(n.Since, time.Now()),
			strings.Join(notes, "; ")})
	}
	return c.print(p, orEmpty(list), rows, "The server is alone.")
}
