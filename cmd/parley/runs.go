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
	return listing[client.Run]{
		fetch: func(to *connection) ([]client.Run, error) {
			id, err := to.maybeSession(c.Session)
			if err != nil {
				return nil, err
			}
			return to.Runs(p.ctx, client.RunQuery{Session: id, Agent: c.Agent, Open: c.Open, Limit: c.Limit})
		},
		title:   []string{"RUN", "AGENT", "OUTCOME", "STARTED", "TOOK", "TOKENS", "COST"},
		row:     runRow,
		project: func(r client.Run) string { return r.Project },
		none:    "There are no runs.",
	}.show(p, c.listFlags)
}

func runRow(r client.Run) []string {
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
	return []string{r.ID, r.Agent, outcome, ago(r.StartedAt, time.Now()),
		end.Sub(r.StartedAt).Round(100 * time.Millisecond).String(), fmt.Sprint(r.Usage.Input + r.Usage.Output), cost}
}

type runsCancel struct {
	serverFlags
	Run_ string `arg:"" name:"run" help:"Id of the run, as parley runs prints it."`
}

func (c *runsCancel) Run(p *program) error {
	return p.with(c.serverFlags, func(to *connection) error {
		if _, err := to.CancelRun(p.ctx, c.Run_); err != nil {
			return err
		}
		_, err := fmt.Fprintln(p.stdout, "Cancelled.")
		return err
	})
}
