package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"parley/config"
	"parley/sandbox"
	"parley/workspace"
)

// newWorkspace opens the folder that agents work in. Hidden from agents and people
// are the data folder, the files of agents, the file of --config and the server's
// .env. Both can read skills, and neither tools nor commands can write them.
func newWorkspace(c *config.Settings, p config.Project) (*workspace.Workspace, error) {
	rules := workspace.Rules{Hidden: []workspace.Place{
		{Path: c.Data, Setting: "--data"},
		{Path: p.Agents, Setting: "--agents"},
		{Path: ".env", Setting: "the server's"},
	}}
	for _, other := range c.Projects { // the --agents folder of one may lie in another
		if other.Root != p.Root {
			rules.Hidden = append(rules.Hidden, workspace.Place{Path: other.Agents, Setting: "--agents"})
		}
	}
	if c.Config != "" {
		rules.Hidden = append(rules.Hidden, workspace.Place{Path: c.Config, Setting: "--config"})
	}
	for _, folder := range keptFolders(c, p) {
		rules.Kept = append(rules.Kept, workspace.Place{Path: folder, Setting: "the folder of skills"})
	}
	return workspace.Open(p.Root, rules)
}

// newSandbox returns the sandbox for commands of a project's agents. It hides all
// other projects.
func newSandbox(c *config.Settings, p config.Project, files *workspace.Workspace) (*sandbox.Sandbox, error) {
	o := sandbox.Options{Workspace: files.Root(), Hidden: []string{c.Data, p.Agents}, Secret: workspace.IsSecret}
	for _, other := range c.Projects {
		if other.Root != p.Root {
			o.Hidden = append(o.Hidden, other.Root, other.Agents)
		}
	}
	if c.Config != "" {
		o.Hidden = append(o.Hidden, c.Config)
	}
	for _, p := range files.Protected() {
		o.Protected = append(o.Protected, sandbox.Protected(p))
	}
	return sandbox.New(o)
}

// A sandboxProbe tests the sandboxes after the server has started. Commands
// that come earlier wait for the test.
type sandboxProbe struct {
	projects []*project
	log      *slog.Logger
	started  bool
	done     chan struct{}
}

func (p *sandboxProbe) Start() {
	p.started = true
	go func() {
		defer close(p.done)
		for i, at := range p.projects {
			if missing := at.commands.Missing(); missing != nil && i == 0 { // the other projects lack the same
				p.log.Warn("there is no sandbox: commands ask, and under full-auto are refused", "reason", missing)
			}
		}
	}()
}

// Close waits for a running probe until ctx ends. A probe that takes longer does no harm, and ends with the process.
func (p *sandboxProbe) Close(ctx context.Context) error {
	if p.started {
		select {
		case <-p.done:
		case <-ctx.Done():
		}
	}
	return nil
}

// keptFolders are the folders that only people may write, because agents must
// not change the instructions of agents.
func keptFolders(c *config.Settings, p config.Project) []string {
	return append(p.SkillFolders(c.Skills), filepath.Join(p.Root, ".parley"))
}
