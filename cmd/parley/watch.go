package main

import (
	"context"
	"log/slog"
	"time"

	"parley/config"
	"parley/engine"
	"parley/remote/frames"
	"parley/workspace"
)

// watchFiles has what files say of agents and skills take effect when they
// change. Without it they are as they were at the start.
func watchFiles(c *config.Settings, files *workspace.Workspace, agents *config.Agents, skills *config.Skills, remotes *frames.Pool, door *engine.Engine, log *slog.Logger) (stop func()) {
	stop, err := config.Watch(files, append(c.SkillFolders(), c.Agents), func() {
		before := agents.List(c.DefaultTenant)
		if err := agents.Reload(); err != nil {
			log.Warn("files of agents are wrong; what they last said stays", "problem", err)
		}
		skills.Reload()
		for _, problem := range skills.Problems(c.DefaultTenant) {
			log.Warn("a skill is left out", "problem", problem)
		}
		keepRemotes(remotes, agents.List(c.DefaultTenant), c.DefaultTenant, log)
		changed := engine.ChangedAgents(before, agents.List(c.DefaultTenant))
		for _, a := range changed {
			log.Info("an agent has changed", "agent", a.Name, "gone", a.Digest == "")
		}
		ctx, cancel := context.WithTimeout(context.Background(), changesTold)
		defer cancel()
		if err := door.AgentsChanged(ctx, c.DefaultTenant, changed); err != nil {
			log.Error("it could not be told that agents have changed", "error", err)
		}
	})
	if err != nil {
		log.Warn("files of agents and skills cannot be watched; restart the server when they change", "error", err)
		return func() {}
	}
	return stop
}

const changesTold = 5 * time.Second
