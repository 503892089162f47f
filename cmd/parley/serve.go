package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"parley/config"
	"parley/port"
	"parley/screen"
)

type serveCommand struct {
	config.Serve
	Open bool `var:"PARLEY_OPEN" default:"false" group:"Address" help:"Open the console in a browser when the server is ready."`
}

// Help is printed below the usage.
func (*serveCommand) Help() string {
	return `Every flag has a variable; a file .env is read, too. docs/configuration.md lists them.

Example:

  $ parley serve
  $ OPENAI_API_KEY=… parley serve --workspace ~/shop --listen 127.0.0.1:9000`
}

// Run serves until a signal ends it. A second signal kills the process.
func (c *serveCommand) Run(p *program) error {
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	limiter := newLogLimiter(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: c.LogLevel}))
	defer limiter.Close()
	h, err := build(ctx, &c.Settings, p.env, slog.New(limiter))
	if err != nil && ctx.Err() != nil { // the server was stopped; the database is not at fault
		return errors.New("the server was told to stop before it was ready")
	}
	if err != nil {
		return err
	}
	h.start()
	if isTerminal(p.stdout) {
		fmt.Fprint(p.stdout, h.banner) // for people; the log contains everything that matters
	}
	browsed := make(chan struct{})
	close(browsed)
	if c.Open {
		browsed = browse(ctx, h.banner.address, h.log)
	}
	select {
	case <-ctx.Done():
	case err = <-h.failed:
	}
	stop()
	h.stop()
	<-browsed
	return err
}

func (h *host) start() {
	h.base.start()
	h.work.start()
	h.log.Info("parley is ready", h.facts...)
}

func (h *host) stop() {
	h.log.Info("stopping", "connections", h.conns.Open())
	h.work.close(h.drain, h.log)
	h.base.close(stopTimeout, h.log)
	h.log.Info("stopped")
}

// stopTimeout is the time limit for sending the last events to clients and webhooks.
const stopTimeout = 3 * time.Second

// startupFacts are logged when the server is ready.
func startupFacts(c *config.Settings, at net.Addr, agents int, model string) []any {
	kept := c.Data
	if c.DatabaseURL != "" {
		kept = "postgres" // the address may hold a password
	}
	list := []any{"address", openAt(at)}
	if open := openAt(at); open != "http://"+at.String() {
		list = append(list, "listening", at.String())
	}
	return append(list, "sessions", kept, "agents", agents, "model", model, "version", version, "pid", os.Getpid())
}

// warnAboutDataFolders warns of other data folders that a later start could use by
// mistake.
func warnAboutDataFolders(c *config.Settings, env config.Lookup, log *slog.Logger) {
	if err := config.ReserveData(env, c.Workspace); err != nil {
		log.Warn("the default data folder cannot be made: start later servers with --data, too", "error", err)
	}
	if unused := config.UnusedData(env, c.Data); unused != "" {
		log.Warn("a second data folder is not used; choose it with --data, or remove it",
			"used", c.Data, "unused", unused)
	}
}

// newClassifier returns a classifier that judges messages with a model. It is nil
// if no model is configured for this.
func newClassifier(c *config.Settings, model port.Model) port.Classifier {
	if c.Classifier == "" {
		return nil
	}
	return &screen.Classifier{Model: model, Name: c.Classifier}
}
