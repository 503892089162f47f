package main

import (
	"context"
	"log/slog"
	"time"

	"parley"
	"parley/access"
	"parley/config"
	"parley/dialect"
	"parley/engine"
	"parley/feed"
	"parley/metrics"
	"parley/provider"
	"parley/sandbox"
	"parley/screen"
	"parley/store/rules"
	"parley/workspace"
)

// A project is the folder that agents work in, and what the operator's files define.
type project struct {
	files    *workspace.Workspace
	commands *sandbox.Sandbox
	skills   *config.Skills
	agents   *config.Agents
	hooks    hookRules
}

func loadProject(c *config.Settings, env config.Lookup, log *slog.Logger) (p project, err error) {
	if p.files, err = newWorkspace(c); err != nil {
		return p, err
	}
	if p.commands, err = newSandbox(c, p.files); err != nil {
		return p, err
	}
	if missing := p.commands.Missing(); missing != nil {
		log.Warn("there is no sandbox: commands ask, and under full-auto are refused", "reason", missing)
	}
	if p.hooks, err = newHookRules(c, env); err != nil {
		return p, err
	}
	check := checkAgent(builtInTools(p.files, p.commands), c.ToolServers)
	if p.agents, err = config.LoadAgents(p.files, c.Agents, c.DefaultTenant, func(a parley.Agent) (string, error) {
		if key, err := check(a); err != nil {
			return key, err
		}
		return "webhook", p.hooks.check(a)
	}); err != nil {
		return p, err
	}
	for _, note := range p.agents.Ignored() {
		log.Warn("agent file", "note", note)
	}
	p.skills = newSkills(c, p.files, log)
	return p, nil
}

// The parts of a server in the order of their start. They are closed in reverse:
// first nothing new begins and runs reach a boundary or are cut; then clients and
// webhooks get the last of it, and clients are told to come back; then the store
// is closed.
var (
	baseParts = []string{"models", "listener", "profiles", "metrics", "store", "entrance", "remote agents",
		"connections", "http", "webhooks", "feed", "mcp servers"}
	workParts = []string{"engine", "files", "readiness"}
)

// A host is a server that is whole. Nothing of it runs before start.
type host struct {
	base, work parts
	failed     <-chan error // receives an error if the server can no longer serve
	conns      *dialect.Conns
	drain      time.Duration
	facts      []any // to be logged when the server is ready
	banner     banner
	log        *slog.Logger
}

// build makes every part of a server, and is the only place that knows all of them.
// If it fails, it closes those that it has made.
func build(ctx context.Context, c *config.Settings, env config.Lookup, log *slog.Logger) (_ *host, err error) {
	var made parts
	defer func() {
		if err != nil {
			made.close(lastWords, log)
		}
	}()
	warnOfFolders(c, env, log)
	p, err := loadProject(c, env, log)
	if err != nil {
		return nil, err
	}
	models := newModels(c)
	made.open("models", models)
	meter := metrics.New(version, time.Now)
	ports, err := listen(c, env, meter, &made, log)
	if err != nil {
		return nil, err
	}
	at := ports.main.Addr()

	// Where sessions are kept, and who may use them.
	store, key, err := openServed(ctx, c, at, log)
	if err != nil {
		return nil, err
	}
	made.open("store", store)
	if err := sealAudit(ctx, store, rules.AuditKeyOf(key), log); err != nil {
		return nil, err
	}
	guard, err := newEntrance(ctx, c, store, at, log)
	if err != nil {
		return nil, err
	}
	made.add("entrance", guard)
	secrets := append(ownSecrets(c, p.hooks.env, key), p.hooks.secrets(p.agents.List(c.DefaultTenant))...)
	sentinel := screen.New(key, c.Sentinel, secrets...)

	// What agents reach outside, and what is told outside.
	outside, err := newToolServers(c, p.commands, sentinel, log, ports.all...)
	if err != nil {
		return nil, err
	}
	made.add("mcp servers", outside)
	remotes := newRemoteAgents(c, p.agents, log)
	made.add("remote agents", remotes)
	hooks, err := newHooks(p.hooks, key)
	if err != nil {
		return nil, err
	}
	dispatcher := hooks.newDispatcher(c, store, at, meter, log)
	made.add("webhooks", dispatcher)
	followers := feed.New(store)
	made.add("feed", followers)

	model := meter.Model(provider.Patient(models, log))
	door := engine.New(engine.Config{
		Store: meter.Store(store), Feed: meteredFeed{followers, meter, dispatcher.Poke}, Access: access.Rules{},
		Agents: p.agents, DefaultModel: models.Default(), Autonomy: c.Autonomy.Most(), Prompts: c.IdleLimits(),
		Model: model, Tools: meter.Tools(newToolbox(c, p, outside)), Remotes: remotes, Log: log, Now: time.Now,
		Idle: c.Idle, Keep: c.KeepPieces, Window: func(model string) int { return provider.About(model).Window },
		Changes: newChanges(c, p.files, log), Files: p.files, FileRead: guard.Record.ReadFile, Skills: p.skills,
		Home: c.DefaultTenant, Webhooks: hooks, Told: meter.Delivered,
		Classifier: newClassifier(c, model), Refusals: guard.Record, Screen: sentinel,
	})
	made.add("engine", door)
	if w, err := newWatcher(c, p, remotes, door, log); err == nil {
		made.add("files", w)
	}
	warnOfModels(c, models, door.Agents.List(c.DefaultTenant), log)

	// The dialects.
	conns := dialect.NewConns()
	made.add("connections", conns)
	s := shared{door, door.Agents, remotes, guard, conns, log}
	bus, err := newEventBus(c, s, models.Provider, at)
	if err != nil {
		return nil, err
	}
	bus.Models = provider.NewOffers(models, log, time.Now).List
	r := newRoutes(s, bus, newNative(c, s, p, models, toolServers{door, outside}, bus))
	store.Observe(meter.Committed)
	meter.Watch(metrics.Sources{Backlog: store.Backlog, Followers: followers.Followers, Sessions: door.Loaded,
		Sockets: func() map[string]int { return r.sockets(conns.Sockets()) }})
	web := newWeb(c, ports.main, r, guard, store, meter, log)
	made.add("http", web)
	made.add("readiness", onClose(func() { // from the same moment on nothing new begins, and everybody is told
		door.Drain()
		web.Drain()
	}))
	agents := p.agents.List(c.DefaultTenant)
	h := &host{base: made.pick(baseParts...), work: made.pick(workParts...), failed: web.Failed(), conns: conns,
		drain: c.Drain, log: log, facts: facts(c, at, len(agents), models.Default()),
		banner: newBanner(c, at, agents, models)}
	if len(made) > 0 {
		panic("no place in the order for " + made[0].name) // in every test, or never
	}
	return h, nil
}
