package main

import (
	"path/filepath"

	"parley/config"
	"parley/sandbox"
	"parley/workspace"
)

// newWorkspace opens the folder that agents work in. The data folder, the agents,
// the file of --config and the .env file that the server reads are hidden from
// agents and people; skills are read by both and written by neither tools nor
// commands.
func newWorkspace(c *config.Settings) (*workspace.Workspace, error) {
	rules := workspace.Rules{Hidden: []workspace.Place{
		{Path: c.Data, Setting: "--data"},
		{Path: c.Agents, Setting: "--agents"},
		{Path: ".env", Setting: "the server's"},
	}}
	if c.Config != "" {
		rules.Hidden = append(rules.Hidden, workspace.Place{Path: c.Config, Setting: "--config"})
	}
	for _, folder := range keptFolders(c) {
		rules.Kept = append(rules.Kept, workspace.Place{Path: folder, Setting: "the folder of skills"})
	}
	return workspace.Open(c.Workspace, rules)
}

// newSandbox is where the commands of agents run.
func newSandbox(c *config.Settings, files *workspace.Workspace) (*sandbox.Sandbox, error) {
	o := sandbox.Options{Workspace: files.Root(), Hidden: []string{c.Data, c.Agents}, Secret: workspace.IsSecret}
	if c.Config != "" {
		o.Hidden = append(o.Hidden, c.Config)
	}
	for _, p := range files.Protected() {
		o.Protected = append(o.Protected, sandbox.Protected(p))
	}
	return sandbox.New(o)
}

// keptFolders are those that only people write: what agents are told is not for
// agents to say.
func keptFolders(c *config.Settings) []string {
	return append(c.SkillFolders(), filepath.Join(c.Workspace, ".parley"))
}
