package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley"
	"parley/access"
	"parley/config"
	"parley/dialect"
	"parley/dialect/native"
	"parley/dialect/threadchat"
	"parley/engine"
	"parley/feed"
	"parley/provider/demo"
	"parley/server"
	"parley/store/postgres"
	"parley/store/sqlite"
	"parley/tool"
)

type serveCommand struct{ config.Serve }

// Run puts everything together. Each part is stopped after those that use it;
// this is the only place that knows all of them.
func (c *serveCommand) Run(p *program) error {
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: c.LogLevel}))

	// Agents, and what they can do.
	agents, err := config.LoadAgents(c.Agents, c.DefaultTenant)
	if err != nil {
		return err
	}
	for _, note := range agents.Ignored() {
		log.Warn("agent file", "note", note)
	}
	tools, err := tool.New(c.Workspace, c.Data)
	if err != nil {
		return err
	}
	if err := checkAgents(agents.List(c.DefaultTenant), tools); err != nil {
		return err
	}

	// The listener comes before the store: an address in use is found out
	// without touching anything.
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w (choose another address with --listen)", c.Listen, err)
	}
	defer listener.Close()

	// The log.
	store, kept, err := c.openStore(ctx, listener.Addr())
	if err != nil {
		return err
	}
	defer func() {
		if err := store.Close(); err != nil {
			log.Error("store was not closed well", "error", err)
		}
	}()
	followers := feed.New(store)
	defer followers.Close()

	// The engine. What an earlier process left open goes on from here.
	door := engine.New(engine.Config{
		Store: store, Feed: followers, Access: access.Rules{}, Agents: agents,
		Model: demo.New(), Tools: tools, Log: log, Now: time.Now, Idle: c.Idle,
	})

	// The dialects.
	conns := dialect.NewConns()
	local := access.Local(c.DefaultTenant)
	who := func(*http.Request) (parley.Principal, error) { return local, nil }
	web := server.New(log)
	web.Handle("GET /api/chat/ws", &threadchat.Handler{Door: door, Who: who, Conns: conns, Log: log})
	for pattern, handler := range (&native.Handler{Door: door, Agents: agents, Who: who, Log: log}).Routes() {
		web.Handle(pattern, handler)
	}
	web.Start(listener)
	log.Info("parley is ready", "address", "http://"+listener.Addr().String(), "sessions", kept, "agents", len(agents.List(c.DefaultTenant)), "model", "demo", "version", version, "pid", os.Getpid())

	select {
	case <-ctx.Done():
		err = nil
	case err = <-web.Failed():
	}

	// The end: nothing new comes in; runs reach a boundary or are cut; clients
	// see the last of it and are told to come back; then the files are closed.
	log.Info("stopping", "connections", conns.Open())
	web.Drain()
	drain, cancel := context.WithTimeout(context.Background(), c.Drain)
	defer cancel()
	if err := door.Close(drain); err != nil {
		log.Warn("stopping all the same", "error", err)
	}
	followers.Close()
	last, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	web.Close(last) // first, so that no connection is made that nobody ends
	conns.Close(last)
	log.Info("stopped")
	return err
}

// checkAgents finds what an agent asks for and this server does not have.
func checkAgents(agents []parley.Agent, tools *tool.Box) error {
	var there []string
	for _, spec := range tools.Specs(parley.Agent{}) {
		there = append(there, spec.Name)
	}
	for _, a := range agents {
		for _, name := range a.Tools {
			if name != "*" && !slices.Contains(there, name) {
				return fmt.Errorf("agent %s: there is no tool %q; there are %s, or '*' for all", a.Name, name, strings.Join(there, ", "))
			}
		}
		if a.Model != "" && a.Model != "demo" {
			return fmt.Errorf("agent %s: there is no model %q; this release has only the demo, so leave model out", a.Name, a.Model)
		}
	}
	return nil
}

// openStore opens where sessions are kept, and says in words what that is.
func (c *serveCommand) openStore(ctx context.Context, addr net.Addr) (parley.Store, string, error) {
	if c.DatabaseURL != "" {
		store, err := postgres.Open(ctx, c.DatabaseURL, postgres.WithConnections(c.DatabasePool))
		return store, "postgres", err
	}
	store, err := sqlite.Open(ctx, c.Data, fmt.Sprintf("process %d, serving on %s", os.Getpid(), addr))
	return store, c.Data, err
}

// lastWords bounds how long clients may take to be told goodbye.
const lastWords = 3 * time.Second
