package main

import (
	"context"
	"log/slog"
	"net"
	"time"

	"parley"
	"parley/config"
	"parley/engine"
	"parley/remote/frames"
)

// remoteAgents keeps connections to the agents of files that run elsewhere.
type remoteAgents struct {
	*frames.Pool
	agents *config.Agents
	tenant parley.TenantID
	log    *slog.Logger
}

func newRemoteAgents(c *config.Settings, agents *config.Agents, log *slog.Logger) remoteAgents {
	return remoteAgents{frames.New(frames.Options{Log: log}), agents, c.DefaultTenant, log}
}

// Start connects to the agents that the files name now. It is for whenever the
// files have changed, too.
func (r remoteAgents) Start() {
	agents := r.agents.List(r.tenant)
	for _, a := range agents {
		network, at, err := parley.ParseAddress(a.Address)
		if err != nil || network != "tcp" {
			continue
		}
		host, _, _ := net.SplitHostPort(at)
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			r.log.Warn("messages to an agent on another machine are neither encrypted nor authenticated; "+
				"use a tunnel, or a network of your own", "agent", a.Name, "address", a.Address)
		}
	}
	r.Keep(r.tenant, agents)
}

// newWatcher has changes of the files of agents and skills take effect. If files
// cannot be watched, it logs the error.
func newWatcher(
	c *config.Settings, p project, remotes remoteAgents, door *engine.Engine, log *slog.Logger,
) (*config.Watcher, error) {
	w, err := config.NewWatcher(p.files, append(c.SkillFolders(), c.Agents), func() {
		before := p.agents.List(c.DefaultTenant)
		if err := p.agents.Reload(); err != nil {
			log.Warn("files of agents are wrong; their last good definitions stay in effect", "problem", err)
		}
		p.skills.Reload()
		for _, problem := range p.skills.Problems(c.DefaultTenant) {
			log.Warn("a skill is left out", "problem", problem)
		}
		remotes.Start()
		changed := engine.ChangedAgents(before, p.agents.List(c.DefaultTenant))
		for _, a := range changed {
			log.Info("an agent has changed", "agent", a.Name, "gone", a.Digest == "")
		}
		ctx, cancel := context.WithTimeout(context.Background(), tellChanges)
		defer cancel()
		if err := door.AgentsChanged(ctx, c.DefaultTenant, changed); err != nil {
			log.Error("clients could not be told that agents have changed", "error", err)
		}
	})
	if err != nil {
		log.Warn("files of agents and skills cannot be watched; restart the server when they change", "error", err)
	}
	return w, err
}

// tellChanges is how long it may take to tell clients of changed agents.
const tellChanges = 5 * time.Second
