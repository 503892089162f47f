package main

import (
	"context"
	"errors"
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
	"parley/dialect/eventbus"
	"parley/dialect/native"
	"parley/metrics"
	"parley/port"
	"parley/provider"
	"parley/sandbox"
	"parley/screen"
	"parley/server"
	"parley/store/postgres"
	"parley/tool"
	console "parley/web"
	"parley/workspace"
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
	h.base.close(lastWords, h.log)
	h.log.Info("stopped")
}

// lastWords is the time limit for sending the last events to clients and webhooks.
const lastWords = 3 * time.Second

// facts are logged when the server is ready.
func facts(c *config.Settings, at net.Addr, agents int, model string) []any {
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

// warnOfFolders warns of other data folders that a later start could use by
// mistake.
func warnOfFolders(c *config.Settings, env config.Lookup, log *slog.Logger) {
	if err := config.ReserveData(env, c.Workspace); err != nil {
		log.Warn("the default data folder cannot be made: start later servers with --data, too", "error", err)
	}
	if unused := config.UnusedData(env, c.Data); unused != "" {
		log.Warn("a second data folder is not used; choose it with --data, or remove it",
			"used", c.Data, "unused", unused)
	}
}

// openServed opens the store of a server, under its lock, and returns the server's
// key.
func openServed(ctx context.Context, c *config.Settings, at net.Addr, log *slog.Logger) (store, []byte, error) {
	purpose := servingOn + at.String()
	if c.ForACommand {
		purpose += forACommand
	}
	opened, key, err := openStore(ctx, &c.Store, purpose, c.New, postgres.WithFolder(c.Data))
	if err != nil {
		return nil, nil, err
	}
	if pg, ok := opened.(*postgres.Store); ok && len(pg.Others()) > 0 {
		log.Info("other nodes use this database, or died less than 10 s ago", "others", len(pg.Others()))
	}
	return withFailpoints(opened), key, nil
}

// newClassifier returns a classifier that judges messages with a model. It is nil
// if no model is configured for this.
func newClassifier(c *config.Settings, model port.Model) port.Classifier {
	if c.Classifier == "" {
		return nil
	}
	return &screen.Classifier{Model: model, Name: c.Classifier}
}

func newNative(
	c *config.Settings, s shared, projects []*project, models *provider.Models, bus *eventbus.Handler, cluster *nodes,
	setups *setups, rules hookRules,
) *native.Handler {
	var roots []string
	for _, p := range projects {
		roots = append(roots, p.about.Root)
	}
	return &native.Handler{Door: s.door, Agents: s.agents, Remotes: s.remotes, Guard: s.guard, Office: s.guard,
		Log: s.log, Files: filesOf(projects), Access: access.Rules{},
		Servers:  newPageServers(c, setups.Book, rules, s.door, projects, s.log),
		Webhooks: s.door, Keys: setups.keys(s.door), Permissions: access.Permissions,
		Nodes:     func() []native.Node { return cluster.list(s.door.Loaded(), roots) },
		NoPrompts: bus.NoPrompts, Models: bus.Models, About: func() native.About { return aboutServer(c, models) }}
}

func aboutServer(c *config.Settings, models *provider.Models) native.About {
	about := native.About{Version: version, Auth: c.Auth, Model: models.Default(),
		Demo: models.Provider(models.Default()) == "demo", OIDC: c.OIDCIssuer != ""}
	if c.Auth == "local" { // the only user is the operator
		about.Hint = demoHint(c, models)
	}
	return about
}

// newWeb serves the routes, and the console if it is part of the binary.
func newWeb(
	c *config.Settings, l net.Listener, r routes, guard *entrance, store store, cluster *nodes, m *metrics.Metrics,
	log *slog.Logger,
) *server.Server {
	o := server.Options{Routes: r.handlers, Upgrade: r.handlers[socketRoute], Admit: guard.admit,
		Connected: guard.Connected, Changed: guard.Changed, Origins: c.AllowOrigin, Able: store.Ready,
		Answered: m.Answered, Differ: cluster.differ}
	if pages := console.New(); pages != nil {
		for pattern, handler := range pages.Routes() {
			o.Routes[pattern] = handler
		}
		o.Page, o.NotFound = pages, pages.NotFound
	} else {
		log.Warn("this binary was built without the console; make build builds it")
	}
	if c.Auth == "local" { // the only principal is the operator
		o.Routes["GET /metrics"] = http.Handler(m.Handler())
	}
	return server.New(l, log, o)
}

// builtInTools returns the tools that agents may list. The tool skill is
// included even if there are no skills.
func builtInTools(files *workspace.Workspace, commands *sandbox.Sandbox) []string {
	names := []string{"skill"}
	box := tool.New(tool.Options{Files: files, Sandbox: commands})
	for _, spec := range box.Specs(parley.Agent{Autonomy: parley.Autonomy{Enabled: true}}) {
		names = append(names, spec.Name)
	}
	return names
}

// checkAgent rejects agents that name an unknown tool or MCP server.
func checkAgent(c *config.Settings, builtIn []string) config.AgentCheck {
	there, servers := slices.Clone(builtIn), c.ToolServers
	for _, s := range servers {
		there = append(there, s.Name+parley.ServerSeparator+"*")
	}
	return func(a parley.Agent) (key string, err error) {
		if a.Elsewhere() { // a remote agent has tools of its own
			return "command", c.CheckProgram(a)
		}
		for _, name := range a.Tools {
			if name != "*" && !slices.Contains(there, name) && !ofServer(servers, name) {
				return "tools", fmt.Errorf("agent %s: there is no tool %q; there are %s, or '*' for all",
					a.Name, name, strings.Join(there, ", "))
			}
		}
		for _, source := range a.Trust {
			name, ok := strings.CutPrefix(string(source), "mcp:")
			if ok && !slices.ContainsFunc(servers, func(s config.ToolServer) bool { return s.Name == name }) {
				return "trust", fmt.Errorf("agent %s: trust names %s, and no MCP server of that name is configured",
					a.Name, source)
			}
		}
		return "", nil
	}
}
