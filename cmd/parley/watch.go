package main

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"parley"
	"parley/config"
	"parley/engine"
	"parley/port"
	"parley/remote/acp"
	"parley/remote/frames"
)

// remoteAgents calls the remote agents in files: over connections, which it keeps
// open, or as local programs.
type remoteAgents struct {
	*frames.Pool
	programs *acp.Programs
	projects []*project
	log      *slog.Logger
}

func newRemoteAgents(projects []*project, env config.Lookup, log *slog.Logger) remoteAgents {
	return remoteAgents{frames.New(frames.Options{Log: log}), newPrograms(projects, env, log), projects, log}
}

// Start connects to the remote agents that the files name now. It is called
// again after each change of the files.
func (r remoteAgents) Start() {
	kept := map[parley.TenantID]bool{}
	for _, p := range r.projects {
		if !kept[p.Tenant] {
			kept[p.Tenant] = true
			r.keep(p.Tenant, agentsOf(r.projects, p.Tenant))
		}
	}
}

func (r remoteAgents) keep(tenant parley.TenantID, agents []parley.Agent) {
	for _, a := range agents {
		network, at, err := port.ParseAddress(a.Address)
		if err != nil || network != "tcp" {
			continue
		}
		host, _, _ := net.SplitHostPort(at)
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			r.log.Warn("messages to an agent on another machine are neither encrypted nor authenticated; "+
				"use a tunnel, or a network of your own", "agent", a.Name, "address", a.Address)
		}
	}
	r.Keep(tenant, agents)
}

// newWatchers watches the files of every project, so that changes take effect.
func newWatchers(
	c *config.Settings, projects []*project, remotes remoteAgents, door *engine.Engine, log *slog.Logger,
) (list each[*config.Watcher]) {
	var changing sync.Mutex // held while remotes.Start runs
	for _, p := range projects {
		w, err := newWatcher(c, p, &changing, remotes, door, log)
		if err != nil {
			log.Warn("files of agents and skills cannot be watched; restart the server when they change",
				"project", p.Root, "error", err)
			continue
		}
		list = append(list, w)
	}
	return list
}

// newWatcher watches the files of a project's agents and skills, so that changes
// take effect. It returns an error if the files cannot be watched.
func newWatcher(
	c *config.Settings, p *project, changing *sync.Mutex, remotes remoteAgents, door *engine.Engine, log *slog.Logger,
) (*config.Watcher, error) {
	return config.NewWatcher(p.files, append(p.SkillFolders(c.Skills), p.Agents), func() {
		changing.Lock()
		defer changing.Unlock()
		before := p.agents.List(p.Tenant)
		if err := p.agents.Reload(); err != nil {
			log.Warn("files of agents are wrong; their last good definitions stay in effect", "problem", err)
		}
		p.skills.Reload()
		p.tellOfSkills(log)
		remotes.Start()
		changed := engine.ChangedAgents(before, p.agents.List(p.Tenant))
		for _, a := range changed {
			log.Info("an agent has changed", "agent", a.Name, "gone", a.Digest == "")
		}
		ctx, cancel := context.WithTimeout(context.Background(), tellChanges)
		defer cancel()
		if err := door.AgentsChanged(ctx, p.Tenant, changed); err != nil {
			log.Error("clients could not be told that agents have changed", "error", err)
		}
	})
}

// tellChanges is the time limit for notifying clients of changed agents.
const tellChanges = 5 * time.Second
