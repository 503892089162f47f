package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"

	"parley/bench"
	"parley/config"
	"parley/port"
)

type benchCommand struct {
	Run   benchRunCommand   `cmd:"" help:"Run scenarios against a server of its own, or against a running one, and print the figures."`
	Peers benchPeersCommand `cmd:"" help:"List the other servers that can be measured beside Parley, and whether they are installed."`
	Check benchCheckCommand `cmd:"" help:"Compare a report with the goals."`
	List  benchListCommand  `cmd:"" help:"List the scenarios."`
}

type benchRunCommand struct {
	Scenario    []string `default:"all" placeholder:"NAME,…" help:"Scenarios to run, or all (default: all). parley bench list shows them."`
	Server      string   `placeholder:"URL" help:"Address of a running server, such as http://127.0.0.1:8080. Its model must be the mock model of this command: start it with OPENAI_BASE_URL=http://ADDRESS/v1, where ADDRESS is that of --model-listen. Default: start a server for each scenario."`
	Token       string   `placeholder:"TEXT" help:"Access token, for a server with --auth jwt. Prefer the variable: other users of the machine can see flags. ($PARLEY_TOKEN)"`
	ModelListen string   `placeholder:"ADDRESS" help:"Address of the mock model (default: a free port of 127.0.0.1)."`
	Peer        []string `placeholder:"NAME,…" help:"Other servers to measure in the same run, or all (default: none). parley bench peers lists them."`
	PeerFolder  string   `type:"path" default:"bench/peers" placeholder:"DIR" help:"Folder with the scripts that install and start the other servers (default: bench/peers)."`
	Repeat      int      `default:"1" placeholder:"N" help:"Number of repeats; the figures are medians with their range (default: 1)."`
	N           int      `placeholder:"N" help:"Number of sessions or connections (default: that of the scenario)."`
	Rate        float64  `placeholder:"R" help:"Requests per second (default: that of the scenario)."`
	Store       string   `default:"sqlite" enum:"sqlite,postgres" help:"Store of the server: sqlite, or postgres in the database that --database names."`
	Database    string   `placeholder:"URL" help:"PostgreSQL database, for --store postgres, the scenario nodes, and to compare appends with plain inserts. With --store postgres each scenario gets a database of its own, so the user needs the right to create databases."`
	NATSURL     string   `name:"nats-url" placeholder:"URL" help:"NATS server, to measure several nodes with it (default: they are measured with PostgreSQL alone)."`
	Transport   string   `default:"ws" enum:"ws,sse" help:"Transport of the clients: ws (thread chat over WebSockets) or sse (the native log as server-sent events)."`
	JSON        string   `name:"json" type:"path" placeholder:"FILE" help:"Write the report to this file, for parley bench check."`
	HTML        string   `name:"html" type:"path" placeholder:"FILE" help:"Write a page with tables and plots to this file."`
	Short       bool     `help:"Use small numbers and check exactness only. The figures mean nothing then."`
	Folder      string   `type:"path" placeholder:"DIR" help:"Folder for the data of the servers, on the disk to be measured (default: the folder for temporary files)."`
}

// Run measures all scenarios, or stops at a signal, and prints the results so far.
// It fails if a scenario failed.
func (c *benchRunCommand) Run(p *program) error {
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := c.options(p)
	if err != nil {
		return err
	}
	report, err := bench.Run(ctx, o)
	if report == nil {
		return err
	}
	err = errors.Join(err, report.WriteTable(p.stdout))
	if c.JSON != "" {
		err = errors.Join(err, report.WriteJSON(c.JSON))
	}
	if c.HTML != "" {
		err = errors.Join(err, report.WriteHTML(c.HTML))
	}
	if failed := report.Problems(); len(failed) > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d results failed:\n  %s", len(failed), len(report.Results),
			strings.Join(failed, "\n  ")))
	}
	if ctx.Err() != nil && err == nil {
		err = &exitError{exitInterrupted, nil} // the table has the results so far
	}
	return err
}

func (c *benchRunCommand) options(p *program) (o bench.Options, err error) {
	if c.Token == "" {
		c.Token, _ = p.env("PARLEY_TOKEN")
	}
	if err := c.checkNumbers(); err != nil {
		return o, err
	}
	for flag, file := range map[string]string{"--json": c.JSON, "--html": c.HTML} {
		if err := checkFolderOf(flag, file); err != nil {
			return o, err
		}
	}
	if c.Store == "postgres" && c.Database == "" {
		return o, errors.New("--store postgres needs --database with the URL of a database")
	}
	address, ok := strings.CutPrefix(strings.TrimSuffix(c.Server, "/"), "http://")
	if c.Server != "" && (!ok || strings.Contains(address, "/")) {
		return o, fmt.Errorf("--server %s is not supported; write it like http://127.0.0.1:8080, without https and "+
			"without a path", c.Server)
	}
	if c.Server != "" && c.ModelListen == "" {
		return o, errors.New("--server needs --model-listen ADDRESS, and a server that was started with PROVIDER=openai " +
			"MODEL=bench OPENAI_API_KEY=bench OPENAI_BASE_URL=http://ADDRESS/v1")
	}
	program, err := os.Executable()
	if err != nil {
		return o, err
	}
	return bench.Options{Scenarios: c.Scenario, Server: address, Token: c.Token, ModelListen: c.ModelListen,
		Peers: c.Peer, PeerFolder: c.PeerFolder, Repeat: c.Repeat, N: c.N, Rate: c.Rate, Transport: c.Transport,
		Short: c.Short, Folder: c.Folder, Store: c.Store, Postgres: c.Database, NATS: c.NATSURL, Program: program,
		Version: version, Open: openBenchStore, Progress: p.stderr}, nil
}

func (c *benchRunCommand) checkNumbers() error {
	switch {
	case c.Repeat < 1:
		return fmt.Errorf("--repeat %d is too few; use at least 1", c.Repeat)
	case c.N < 0:
		return fmt.Errorf("--n %d is negative", c.N)
	case c.Rate < 0:
		return fmt.Errorf("--rate %g is negative", c.Rate)
	}
	return nil
}

// checkFolderOf finds a missing folder before a measurement of an hour and not after it.
func checkFolderOf(flag, file string) error {
	if file == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return fmt.Errorf("%s %s: %w; make the folder, or name another file", flag, file, err)
	}
	return nil
}

// openBenchStore opens the store of a data folder, or of a database if one is
// named.
func openBenchStore(ctx context.Context, data, database string) (port.Store, error) {
	opened, _, err := openStore(ctx, &config.Store{Data: data, DatabaseURL: config.SecretURL(database),
		DatabasePool:  16,
		DefaultTenant: "default"}, "measuring", true)
	return opened, err
}

type benchPeersCommand struct {
	Name       []string `arg:"" optional:"" help:"Names of servers (default: all)."`
	Install    bool     `help:"Install them first, into the user's cache folder. This needs npm, Go and the network."`
	PeerFolder string   `type:"path" default:"bench/peers" placeholder:"DIR" help:"Folder with the scripts that install and start the other servers (default: bench/peers)."`
}

func (c *benchPeersCommand) Run(p *program) error {
	if len(c.Name) == 0 {
		c.Name = []string{"all"}
	}
	list, err := bench.Peers(p.ctx, c.PeerFolder, c.Name, c.Install)
	if err != nil {
		return err
	}
	tab := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	for _, s := range list {
		state := "installed"
		if s.Missing != "" {
			state = "missing: " + s.Missing
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\n", s.Name, s.About, state)
	}
	return tab.Flush()
}

type benchCheckCommand struct {
	File     string `arg:"" type:"path" help:"Report that parley bench run --json wrote."`
	All      bool   `help:"List the goals that were not measured, too."`
	Markdown string `type:"path" placeholder:"FILE" help:"Also write a page with all tables to this file, and its plots into the folder images/bench beside it."`
}

// Run fails if events were lost, duplicated or out of order. A missed goal is no
// failure, because it depends on the machine.
func (c *benchCheckCommand) Run(p *program) error {
	if err := checkFolderOf("--markdown", c.Markdown); err != nil {
		return err
	}
	report, err := bench.ReadReport(c.File)
	if err != nil {
		return err
	}
	if err := report.WriteCheck(p.stdout, c.All); err != nil {
		return err
	}
	if c.Markdown != "" {
		if err := report.WriteMarkdown(c.Markdown, "images/bench"); err != nil {
			return err
		}
	}
	if failed := report.Problems(); len(failed) > 0 {
		return fmt.Errorf("%d of %d results failed:\n  %s", len(failed), len(report.Results),
			strings.Join(failed, "\n  "))
	}
	return nil
}

type benchListCommand struct{}

func (benchListCommand) Run(p *program) error {
	tab := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	for _, s := range bench.Scenarios() {
		fmt.Fprintf(tab, "%s\t%s\n", s[0], s[1])
	}
	return tab.Flush()
}
