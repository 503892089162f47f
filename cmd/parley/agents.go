package main

import (
	"fmt"

	"parley/client"
)

type agentsCommand struct {
	List  agentsList  `cmd:"" default:"withargs" help:"List the agents of a project (the default). The first one is the default agent."`
	Show  agentsShow  `cmd:"" help:"Print the definition of an agent as JSON."`
	Start agentsStart `cmd:"" help:"Start an agent that was stopped."`
	Stop  agentsStop  `cmd:"" help:"Stop an agent: it takes no messages until it is started."`
}

type projectFlag struct {
	Project string `placeholder:"DIR" help:"Project of the agent: its folder on the server, or its id (default: the project of this folder, or the first)."`
}

type agentsList struct {
	listFlags
	projectFlag
}

func (*agentsList) Help() string {
	return `Example:

  $ parley agents
  $ parley agents show coder`
}

func (c *agentsList) Run(p *program) error {
	return listing[client.Agent]{
		fetch: func(to *connection) ([]client.Agent, error) {
			project, elsewhere, err := to.projectHere(p.ctx, c.Project)
			if err != nil {
				return nil, err
			}
			if elsewhere != "" {
				fmt.Fprintln(p.stderr, worksElsewhere(to.Address(), elsewhere))
			}
			return to.Agents(p.ctx, project)
		},
		title: []string{"AGENT", "STATUS", "MODEL", "DESCRIPTION"},
		row: func(a client.Agent) []string {
			about := a.Description
			if a.Problem != "" {
				about = "problem: " + a.Problem
			}
			return []string{a.Name, a.Status, a.Model, clip(about, 80)}
		},
		project: func(a client.Agent) string { return a.Project },
		none:    "There are no agents.",
	}.show(p, c.listFlags)
}

// agentFlags are the flags that select an agent.
type agentFlags struct {
	serverFlags
	projectFlag
	Agent string `arg:"" help:"Name of the agent."`
}

type agentsShow struct{ agentFlags }

func (c *agentsShow) Run(p *program) error {
	return c.within(p, func(to *connection, project string) error {
		a, err := to.Agent(p.ctx, project, c.Agent)
		if err != nil {
			return err
		}
		return printJSON(p.stdout, a)
	})
}

type agentsStart struct{ agentFlags }

func (c *agentsStart) Run(p *program) error { return c.set(p, true) }

type agentsStop struct{ agentFlags }

func (c *agentsStop) Run(p *program) error { return c.set(p, false) }

func (c *agentFlags) set(p *program, running bool) error {
	return c.within(p, func(to *connection, project string) error {
		a, err := to.SetAgent(p.ctx, project, c.Agent, running)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%s is %s.\n", a.Name, a.Status)
		return err
	})
}

// within connects to the server, and calls do with the project of the agent.
func (c *agentFlags) within(p *program, do func(to *connection, project string) error) error {
	return p.with(c.serverFlags, func(to *connection) error {
		project, _, err := to.projectHere(p.ctx, c.Project)
		if err != nil {
			return err
		}
		return do(to, project)
	})
}
