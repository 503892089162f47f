package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"parley/config"
	"parley/sandbox"
	"parley/workspace"
)

// newWorkspace opens the folder that agents work in. The data folder, the agents,
// the file of --config and the .env file that the server reads are hidden from
// agents and people; skills are read by both and written by neither tools nor
// commands.
func newWorkspace(c *config.Settings, p config.Project) (*workspace.Workspace, error) {
	rules := workspace.Rules{Hidden: []workspace.Place{
		{Path: c.Data, Setting: "--data"},
		{Path: p.Agents, Setting: "--agents"},
		{Path: ".env", Setting: "the server's"},
	}}
	for _, other := range c.Projects { // --agents of one may lie in another
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

// newSandbox is where the commands of a project's agents run. They see nothing of
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

// A sandboxProbe tries the sandboxes out once the server serves. Commands that
// come earlier wait for it.
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
			if missing := at.commands.Missing(); missing != nil && i == 0 { // the others miss the same
				p.log.Warn("there is no sandbox: commands ask, and under full-auto are refused", "reason", missing)
			}
		}
	}()
}

// Close waits for a probe that is under way. One that takes longer changes nothing, and ends with the process.
func (p *sandboxProbe) Close(ctx context.Context) error {
	if p.started {
		select {
		case <-p.done:
		case <-ctx.Done():
		}
	}
	return nil
}

// keptFolders are those that only people write: what agents are told is not for
// agents to say.
func keptFolders(c *config.Settings, p config.Project) []string {
	return append(p.SkillFolders(c.Skills), filepath.Join(p.Root, ".parley"))
}
