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
	serverFlags
	listFlags
	projectFlag
}

func (*agentsList) Help() string {
	return `Example:

  $ parley agents
  $ parley agents show coder`
}

func (c *agentsList) Run(p *program) error {
	to, project, err := p.connectIn(c.serverFlags, c.Project)
	if err != nil {
		return err
	}
	defer to.close()
	list, err := to.Agents(p.ctx, project)
	if err != nil {
		return err
	}
	rows := table{{"AGENT", "STATUS", "MODEL", "DESCRIPTION"}}
	for _, a := range list {
		about := a.Description
		if a.Problem != "" {
			about = "problem: " + a.Problem
		}
		rows = append(rows, []string{a.Name, a.Status, a.Model, clip(about, 80)})
	}
	return c.print(p, orEmpty(list), rows, "There are no agents.")
}

type agentsShow struct {
	serverFlags
	projectFlag
	Agent string `arg:"" help:"Name of the agent."`
}

func (c *agentsShow) Run(p *program) error {
	to, project, err := p.connectIn(c.serverFlags, c.Project)
	if err != nil {
		return err
	}
	defer to.close()
	a, err := to.Agent(p.ctx, project, c.Agent)
	if err != nil {
		return err
	}
	return printJSON(p.stdout, a)
}

type agentsStart struct {
	serverFlags
	projectFlag
	Agent string `arg:"" help:"Name of the agent."`
}

func (c *agentsStart) Run(p *program) error {
	return p.setAgent(c.serverFlags, c.Project, c.Agent, true)
}

type agentsStop struct {
	serverFlags
	projectFlag
	Agent string `arg:"" help:"Name of the agent."`
}

func (c *agentsStop) Run(p *program) error {
	return p.setAgent(c.serverFlags, c.Project, c.Agent, false)
}

func (p *program) setAgent(f serverFlags, project, name string, running bool) error {
	to, project, err := p.connectIn(f, project)
	if err != nil {
		return err
	}
	defer to.close()
	var a client.Agent
	if a, err = to.SetAgent(p.ctx, project, name, running); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s is %s.\n", a.Name, a.Status)
	return err
}

// connectIn is connect, with the project that is meant.
func (p *program) connectIn(f serverFlags, given string) (to *connection, project string, err error) {
	if to, err = p.connect(f); err != nil {
		return nil, "", err
	}
	project, _, err = to.projectHere(p.ctx, given)
	if err != nil {
		to.close()
	}
	return to, project, err
}
