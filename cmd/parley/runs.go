package main

import (
	"fmt"
	"time"

	"parley/client"
)

type runsCommand struct {
	List   runsList   `cmd:"" default:"withargs" help:"List runs, the newest first (the default)."`
	Cancel runsCancel `cmd:"" help:"Cancel a run."`
}

type runsList struct {
	serverFlags
	listFlags
	Session string `placeholder:"ID" help:"List one session only, by its id or the beginning of it."`
	Agent   string `placeholder:"NAME" help:"List the runs of one agent."`
	Open    bool   `help:"List only runs that have not ended."`
	Limit   int    `default:"50" help:"Maximum number of lines."`
}

func (*runsList) Help() string {
	return `Example:

  $ parley runs --open
  $ parley runs cancel 3f0c0a52-….12`
}

func (c *runsList) Run(p *program) error {
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	q := client.RunQuery{Agent: c.Agent, Open: c.Open, Limit: c.Limit}
	if c.Session != "" {
		if q.Session, err = sessionNamed(p.ctx, to.Client, c.Session); err != nil {
			return err
		}
	}
	list, err := to.Runs(p.ctx, q)
	if err != nil {
		return err
	}
	rows := table{{"RUN", "AGENT", "OUTCOME", "STARTED", "TOOK", "TOKENS", "COST"}}
	for _, r := range list {
		outcome, end := string(r.Outcome), r.EndedAt
		if outcome == "" {
			outcome, end = "running", time.Now()
		}
		if r.Waiting {
			outcome = "waiting"
		}
		cost := ""
		if r.Usage.CostMicros > 0 {
			cost = dollars(r.Usage.CostMicros)
		}
		rows = append(rows, []string{r.ID, r.Agent, outcome, ago(r.StartedAt, time.Now()),
			end.Sub(r.StartedAt).Round(100 * time.Millisecond).String(), fmt.Sprint(r.Usage.Input + r.Usage.Output),
			cost})
	}
	return c.print(p, orEmpty(list), rows, "There are no runs.")
}

type runsCancel struct {
	serverFlags
	Run_ string `arg:"" name:"run" help:"Id of the run, as parley runs prints it."`
}

func (c *runsCancel) Run(p *program) error {
	to, err := p.connect(c.serverFlags)
	if err != nil {
		return err
	}
	defer to.close()
	if _, err := to.CancelRun(p.ctx, c.Run_); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, "Cancelled.")
	return err
}
