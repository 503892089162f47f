package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley"
	"parley/access"
	"parley/config"
	"parley/dialect"
	"parley/dialect/agentchat"
	"parley/dialect/agentloop"
	"parley/dialect/debugconsole"
	"parley/dialect/eventbus"
	"parley/dialect/native"
	"parley/dialect/threadchat"
	"parley/engine"
	"parley/feed"
	"parley/metrics"
	"parley/provider"
	"parley/remote/frames"
	"parley/screen"
	"parley/server"
	"parley/store/postgres"
	"parley/tool"
	console "parley/web"
	"parley/webhook"
)

type serveCommand struct{ config.Serve }

// Run puts everything together. Each part is stopped after those that use it;
// this is the only place that knows all of them.
func (c *serveCommand) Run(p *program) error {
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills
	limiter := newLogLimiter(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: c.LogLevel}))
	defer limiter.Close()
	log := slog.New(limiter)

	if err := config.ReserveData(p.env, c.Workspace); err != nil {
		log.Warn("the default data folder cannot be made: start later servers with --data, too", "error", err)
	}

	if unused := config.UnusedData(p.env, c.Data); unused != "" {
		log.Warn("a second data folder is not used; choose it with --data, or remove it", "used", c.Data, "unused", unused)
	}

	// Agents, and what they can do.
	files, err := newWorkspace(&c.Settings)
	if err != nil {
		return err
	}
	agents, err := config.LoadAgents(files, c.Agents, c.DefaultTenant)
	if err != nil {
		return err
	}
	for _, note := range agents.Ignored() {
		log.Warn("agent file", "note", note)
	}
	tools := tool.New(files)
	commands, err := newSandbox(&c.Settings, files)
	if err != nil {
		return err
	}
	skills := newSkills(&c.Settings, files, tools, log)
	if missing := commands.Missing(); missing != nil {
		log.Warn("there is no sandbox: commands ask, and under full-auto are refused", "reason", missing)
	}
	tools.UseSandbox(commands)
	tools.KeepArtifacts(filepath.Join(c.Data, "artifacts"))
	hooks, err := newHooks(&c.Settings, p.env)
	if err != nil {
		return err
	}
	if err := agents.CheckWith(func(a parley.Agent) error { return cmp.Or(checkAgent(a, tools, c.ToolServers), hooks.check(a)) }); err != nil {
		return err
	}
	models := newModels(&c.Settings)
	defer models.Close()
	known := withModel{agents, models.Default()}
	for _, name := range modelsOf(known.List(c.DefaultTenant), c.Classifier) {
		if err := models.Check(name); err != nil {
			log.Warn("a model cannot be called", "error", err)
		}
	}
	if models.Default() == provider.Demo && c.OpenAIURL+c.AnthropicURL+c.GoogleURL != "" {
		log.Warn("a base URL is set and no model: the scripted demo answers; name a model of that server with MODEL")
	}
	numbers := metrics.New(version, time.Now)
	model := numbers.Model(provider.Patient(models, log))

	// The listener comes before the store: an address in use is found out
	// without touching anything.
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w (choose another address with --listen)", c.Listen, err)
	}
	defer listener.Close()
	listeners := []net.Listener{listener}
	if c.AdminListen != "" {
		admin, err := net.Listen("tcp", c.AdminListen)
		if err != nil {
			return fmt.Errorf("cannot listen on %s: %w (choose another address with --admin-listen)", c.AdminListen, err)
		}
		defer server.Admin(admin, log)()
		listeners = append(listeners, admin)
	}

	reading, stopMetrics, err := serveMetrics(&c.Settings, numbers, log)
	if err != nil {
		return err
	}
	defer stopMetrics()
	if reading != nil {
		listeners = append(listeners, reading)
	}

	// The log.
	store, key, err := openStore(ctx, &c.Store, "serving on "+listener.Addr().String(), c.New, postgres.WithFolder(c.Data))
	if err != nil {
		return err
	}
	if pg, ok := store.(*postgres.Store); ok && pg.Others() > 0 {
		log.Warn("another process uses this database, or died less than 10 s ago; one server per database is supported",
			"others", pg.Others())
	}
	store = withFailpoints(store)
	defer func() {
		if err := store.Close(); err != nil {
			log.Error("store was not closed well", "error", err)
		}
	}()
	kept := c.Data
	if c.DatabaseURL != "" {
		kept = "postgres" // the address may hold a password
	}
	if err := sealAudit(ctx, store, parley.AuditKeyOf(key), log); err != nil {
		return err
	}
	followers := feed.New(store)
	defer followers.Close()

	// Who may come in.
	guard, err := newEntrance(ctx, &c.Settings, store, listener.Addr(), log)
	if err != nil {
		return err
	}
	defer guard.Close()

	var classifier parley.Classifier
	if c.Classifier != "" {
		classifier = &screen.Classifier{Model: model, Name: c.Classifier}
	}

	sentinel := screen.New(key, c.Sentinel, append(ownSecrets(&c.Settings, p.env, key), hooks.secrets(agents.List(c.DefaultTenant))...)...)

	// Tools of others, which start when somebody has a use for them.
	outside, err := newToolServers(&c.Settings, commands, sentinel, log, listeners...)
	if err != nil {
		return err
	}
	defer outside.Close()
	tools.Join(outside)

	// Agents that run elsewhere.
	remotes := frames.New(frames.Options{Log: log})
	defer remotes.Close()
	keepRemotes(remotes, agents.List(c.DefaultTenant), c.DefaultTenant, log)

	// Webhooks that an earlier process has not told.
	if hooks.Sealer, err = webhook.NewSealer(key); err != nil {
		return err
	}
	telling := hooks.tell(&c.Settings, store, listener.Addr(), numbers, log)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	defer telling.Close(over)

	// The engine. What an earlier process left open goes on from here.
	door := engine.New(engine.Config{
		Store: numbers.Store(store), Feed: counted{followers, numbers, telling.Poke}, Access: access.Rules{}, Agents: agents, DefaultModel: models.Default(), Autonomy: c.Autonomy.Most(), Prompts: c.IdleLimits(),
		Model: model, Tools: numbers.Tools(tools), Remotes: remotes, Log: log, Now: time.Now, Idle: c.Idle, Keep: c.KeepPieces,
		Window:  func(model string) int { return provider.About(model).Window },
		Changes: newChanges(&c.Settings, files, log), Files: files, FileRead: guard.Record.ReadFile, Skills: skills, Home: c.DefaultTenant, Webhooks: hooks, Told: numbers.Delivered,
		Classifier: classifier, Refusals: guard.Record, Screen: sentinel,
	})

	known.Agents = door.Agents // with those that were made
	stopWatching := watchFiles(&c.Settings, files, agents, skills, remotes, door, log)
	defer stopWatching()

	// The dialects.
	conns := dialect.NewConns()
	web := server.New(log, server.Options{Admit: guard.admit, Connected: guard.Connected, Changed: guard.Changed,
		Origins: c.AllowOrigin, Able: store.Ready, Answered: numbers.Answered})
	bus, err := newEventBus(&c.Settings, known, models.Provider, listener.Addr())
	if err != nil {
		return err
	}
	own := native.Handler{
		Problems: agents.Problems, Files: agents, Access: access.Rules{}, Skills: skills, Servers: toolServers{door, outside}, Webhooks: door,
		Permissions: access.Permissions, Project: bus.Project,
		About: native.About{Version: version, Auth: c.Auth, Model: models.Default(), Demo: models.Provider(models.Default()) == "demo", OIDC: c.OIDCIssuer != ""},
	}
	served := routes(door, known, remotes, guard, conns, bus, own, log)
	for pattern, handler := range served {
		web.Handle(pattern, handler)
	}
	if pages := console.New(); pages != nil {
		for pattern, handler := range pages.Routes() {
			web.Handle(pattern, handler)
		}
		web.Page(pages)
	} else {
		log.Warn("this binary was built without the console; make build builds it")
	}
	watch(numbers, store, followers, door, conns)
	if c.Auth == "local" { // whose only principal may know everything
		web.Handle("GET /metrics", numbers.Handler())
	}
	web.Upgrade(served["GET /api/agentloop/ws"]) // its clients know the address of the server and no path
	web.Start(listener)
	log.Info("parley is ready", "address", "http://"+listener.Addr().String(), "sessions", kept, "agents", len(agents.List(c.DefaultTenant)), "model", models.Default(), "version", version, "pid", os.Getpid())

	select {
	case <-ctx.Done():
		err = nil
	case err = <-web.Failed():
	}

	// The end: nothing new comes in; runs reach a boundary or are cut; clients
	// see the last of it and are told to come back; then the files are closed.
	log.Info("stopping", "connections", conns.Open())
	stopWatching()
	web.Drain()
	drain, cancel := context.WithTimeout(context.Background(), c.Drain)
	defer cancel()
	if err := door.Close(drain); err != nil {
		log.Warn("stopping all the same", "error", err)
	}
	outside.Close() // nothing calls them any more
	followers.Close()
	last, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	telling.Close(last)
	web.Close(last) // first, so that no connection is made that nobody ends
	conns.Close(last)
	log.Info("stopped")
	return err
}

// routes is everything that is served besides health.
func routes(door parley.Door, agents parley.Agents, remotes parley.Remotes, guard *entrance, conns *dialect.Conns, bus eventbus.Handler, own native.Handler, log *slog.Logger) map[string]http.Handler {
	all := map[string]http.Handler{
		"GET /api/chat/ws": &threadchat.Handler{Door: door, Guard: guard, Conns: conns, Log: log},
		"GET /ws":          &agentchat.Handler{Door: door, Guard: guard, Conns: conns, Log: log},

		"GET /api/agentloop/ws": &agentloop.Handler{Door: door, Guard: guard, Conns: conns, Log: log},
	}
	for pattern, handler := range (&debugconsole.Handler{Door: door, Agents: agents, Remotes: remotes, Guard: guard, Conns: conns, Log: log}).Routes() {
		all[pattern] = handler
	}
	var signIn *access.SignIn
	if guard != nil {
		signIn = guard.signIn
	}
	for pattern, handler := range signInRoutes(signIn) {
		all[pattern] = handler
	}
	own.Door, own.Agents, own.Remotes, own.Guard, own.Office, own.Log = door, agents, remotes, guard, guard, log
	for pattern, handler := range own.Routes() {
		all[pattern] = handler
	}
	bus.Door, bus.Agents, bus.Guard, bus.Conns, bus.Log = door, agents, guard, conns, log
	for pattern, handler := range bus.Routes() {
		all[pattern] = handler
	}
	return all
}

// keepRemotes connects to the agents that run elsewhere.
func keepRemotes(pool *frames.Pool, agents []parley.Agent, tenant parley.TenantID, log *slog.Logger) {
	for _, a := range agents {
		network, at, err := parley.ParseAddress(a.Address)
		if err != nil || network != "tcp" {
			continue
		}
		host, _, _ := net.SplitHostPort(at)
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			log.Warn("what is said to an agent on another machine is neither encrypted nor authenticated; use a tunnel, or a network that is your own", "agent", a.Name, "address", a.Address)
		}
	}
	pool.Keep(tenant, agents)
}

// checkAgent finds what an agent asks for and this server does not have.
func checkAgent(a parley.Agent, tools *tool.Box, servers []config.ToolServer) error {
	if a.Address != "" {
		return nil // its tools are its own
	}
	there := []string{"skill"} // also while there are none
	for _, spec := range tools.Specs(parley.Agent{Autonomy: parley.Autonomy{Enabled: true}}) {
		if spec.Name != "skill" {
			there = append(there, spec.Name)
		}
	}
	for _, s := range servers {
		there = append(there, s.Name+parley.ServerSeparator+"*")
	}
	for _, name := range a.Tools {
		if name != "*" && !slices.Contains(there, name) && !ofServer(servers, name) {
			return fmt.Errorf("agent %s: there is no tool %q; there are %s, or '*' for all", a.Name, name, strings.Join(there, ", "))
		}
	}
	for _, source := range a.Trust {
		name, ok := strings.CutPrefix(string(source), "mcp:")
		if ok && !slices.ContainsFunc(servers, func(s config.ToolServer) bool { return s.Name == name }) {
			return fmt.Errorf("agent %s: trust names %s, and no MCP server of that name is configured", a.Name, source)
		}
	}
	return nil
}

// lastWords bounds how long clients may take to be told goodbye.
const lastWords = 3 * time.Second
