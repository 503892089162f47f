package main

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/access"
	"parley/changes"
	"parley/config"
	"parley/dialect"
	"parley/engine"
	"parley/feed"
	"parley/metrics"
	"parley/port"
	"parley/provider"
	"parley/screen"
	"parley/store/rules"
)

// The parts of a server in the order of their start. They are closed in reverse
// order. First no new work begins, and runs reach a boundary or are cut. Then
// clients and webhooks get the last events, and clients are told to reconnect. The
// store is closed last.
var (
	baseParts = []string{"models", "model check", "listener", "profiles", "metrics", "sandbox", "store", "entrance",
		"setups", "remote agents", "nodes", "connections", "http", "mcp clients", "webhooks", "feed", "traces",
		"mcp servers"}
	workParts = []string{"engine", "files", "memory", "readiness"}
)

// A host is a complete server. None of its background work runs before start.
type host struct {
	base, work parts
	failed     <-chan error // receives an error if the server can no longer serve
	conns      *dialect.Conns
	drain      time.Duration
	facts      []any // to be logged when the server is ready
	banner     banner
	log        *slog.Logger
}

// startEarly starts do in a goroutine, and returns a function that waits for its end.
func startEarly(do func()) (wait func()) {
	var begun sync.WaitGroup
	begun.Go(do)
	return begun.Wait
}

// openChecked opens the store as a part, checks that the server's key is the one that the store was first served with,
// and continues the audit.
func openChecked(ctx context.Context, c *config.Settings, at net.Addr, made *parts, log *slog.Logger) (store, []byte,
	error) {
	s, key, err := openServerStore(ctx, c, at, log)
	if err != nil {
		return nil, nil, err
	}
	made.open("store", s)
	if err := checkKey(ctx, s, key); err != nil {
		return nil, nil, err
	}
	if err := sealAudit(ctx, s, rules.AuditKeyOf(key), log); err != nil {
		return nil, nil, err
	}
	return s, key, eachBegunErasure(ctx, s, func(tenant parley.TenantID, b port.BegunErasure) {
		log.Warn("an erasure has not ended; run parley erase --user again", "user", b.User, "tenant", tenant, "began",
			b.At.Format(time.RFC3339))
	})
}

// guardedStore is the store of all sessions, with the parts that control access and screen content.
type guardedStore struct {
	store    store
	key      []byte
	guard    *entrance
	sentinel *screen.Screen
}

// openSessions opens the store and the parts that guard it, and adds them to made.
func openSessions(ctx context.Context, c *config.Settings, at net.Addr, rule hookRules, projects []*project,
	made *parts, log *slog.Logger) (guardedStore, error) {
	store, key, err := openChecked(ctx, c, at, made, log)
	if err != nil {
		return guardedStore{}, err
	}
	guard, err := newEntrance(ctx, c, store, key, at, log)
	if err != nil {
		return guardedStore{}, err
	}
	made.add("entrance", guard)
	sentinel := screen.New(key, c.Sentinel, slices.Concat(ownSecrets(c, rule.env, key),
		rule.secrets(everyAgent(projects)), config.ProgramSecrets(everyAgent(projects), rule.env))...)
	return guardedStore{store, key, guard, sentinel}, nil
}

// build makes every part of a server, and is the only place that knows all of them.
// If it fails, it closes the parts that it has made.
func build(ctx context.Context, c *config.Settings, env config.Lookup, log *slog.Logger) (_ *host, err error) {
	var made parts
	defer func() {
		if err != nil {
			made.close(stopTimeout, log)
		}
	}()
	warnAboutDataFolders(c, env, log)
	rule, projects, err := loadProjects(c, env, log)
	if err != nil {
		return nil, err
	}
	made.add("sandbox", &sandboxProbe{projects: projects, log: log, done: make(chan struct{})})
	defer startEarly(screen.Prepare)() // while the store waits for the disk
	models := newModels(c)
	made.open("models", models)
	meter := metrics.New(version, time.Now)
	ports, err := listen(c, env, meter, &made, log)
	if err != nil {
		return nil, err
	}
	at := ports.main.Addr()
	sessions, err := openSessions(ctx, c, at, rule, projects, &made, log)
	if err != nil {
		return nil, err
	}
	store, key, guard, sentinel := sessions.store, sessions.key, sessions.guard, sessions.sentinel
	setups, err := openSetups(ctx, c, store, key, models, sentinel, log)
	if err != nil {
		return nil, err
	}
	made.add("setups", setups)

	// The connections of agents to the outside, and the webhooks.
	outside, err := equip(c, projects, sentinel, rule.Dial, log, ports.all...)
	if err != nil {
		return nil, err
	}
	made.add("mcp servers", outside)
	remotes := newRemoteAgents(projects, rule.env, log)
	made.add("remote agents", remotes)
	hooks, err := newHooks(c, rule, key, store, at, meter, log)
	if err != nil {
		return nil, err
	}
	made.add("webhooks", hooks.dispatcher)
	cluster, err := newNodes(c, store, key, at, projects, log)
	if err != nil {
		return nil, err
	}
	made.add("nodes", cluster)
	followers := feed.New(store)
	cluster.connect(followers, store)
	made.add("feed", followers)
	traces, err := newTraces(rule.env, store, models, at, &made, log)
	if err != nil {
		return nil, err
	}

	door := newEngine(c, engineDeps{sessions: sessions, projects: projects, models: models, remotes: remotes,
		hooks: hooks, cluster: cluster, feed: meteredFeed{followers, meter, traces, hooks.dispatcher.Poke}, meter: meter,
		log: log})
	made.add("engine", door)
	made.add("files", newWatchers(c, projects, remotes, door, log))
	made.add("memory", newIdleMemory())
	made.add("model check", newModelCheck(c, models, everyAgent(projects), log))

	// The dialects.
	conns := dialect.NewConns()
	made.add("connections", conns)
	s := handlerDeps{door: door, agents: door.Agents, remotes: remotes, guard: guard, conns: conns, log: log,
		public: c.Public(at.String()), bearer: c.Auth == "jwt"}
	r := newDialects(c, s, projects, models, at, cluster, setups, rule)
	store.Observe(meter.Committed)
	meter.Watch(metrics.Sources{Backlog: store.Backlog, Followers: followers.Followers, Sessions: door.Loaded,
		Bus:     busCounts(cluster.bus),
		Sockets: func() map[string]int { return r.sockets(conns.Sockets()) }})
	web := newWeb(c, ports.main, r, guard, store, cluster, meter, log)
	made.add("http", web)
	made.add("mcp clients", r.mcp)
	// From here on no new work begins, and all clients are told.
	made.add("readiness", onClose(func() { door.Drain(); web.Drain() }))
	base, work := made.ordered()
	return &host{base: base, work: work, failed: web.Failed(), conns: conns, drain: c.Drain, log: log,
		facts:  startupFacts(c, at, len(everyAgent(projects)), models.Default()),
		banner: newBanner(c, at, projects, models)}, nil
}

// engineDeps has the parts that the engine uses.
type engineDeps struct {
	sessions guardedStore
	projects []*project
	models   *provider.Models
	remotes  remoteAgents
	hooks    hooks
	cluster  *nodes
	feed     meteredFeed
	meter    *metrics.Metrics
	log      *slog.Logger
}

// newEngine makes the engine from the settings and these parts.
func newEngine(c *config.Settings, d engineDeps) *engine.Engine {
	model := d.meter.Model(provider.Patient(d.models, d.log))
	first, more := inEngine(d.projects, d.meter.Tools)
	return engine.New(engine.Config{Project: first, More: more,
		Store: d.meter.Store(d.sessions.store), Nodes: d.cluster.Nodes, Bus: d.cluster.port(), Node: d.cluster.mine,
		NodeKey: d.sessions.key, Feed: d.feed, Access: access.Rules{},
		DefaultModel: d.models.Default, Autonomy: c.Autonomy.Most(), Prompts: c.IdleLimits(),
		Model: model, Remotes: d.remotes, Log: d.log, Now: now,
		Quotas: quotasOf(c), MaxUsage: provider.Most, Cost: provider.Cost, QuotaReached: d.meter.QuotaReached,
		ReadPDF: readPDFs(), SeesPDF: d.models.SeesPDF,
		Titles:    titles(c.Titles, d.models),
		Artifacts: removeArtifacts(c, d.projects), OldArtifacts: oldArtifacts(c, d.projects), Retention: retentionOf(c),
		KeptChanges: changes.Kept{Data: c.Data}, Calls: c.ModelCalls,
		Idle: c.Idle, Window: func(model string) int { return provider.About(model).Window },
		FileRead: d.sessions.guard.Record.ReadFile, Webhooks: d.hooks, EffectDelivered: d.meter.Delivered,
		Classifier: newClassifier(c, model), Refusals: d.sessions.guard.Record, Screen: d.sessions.sentinel,
	})
}

// newDialects makes every wire protocol, and their routes.
func newDialects(c *config.Settings, s handlerDeps, projects []*project, models *provider.Models, at net.Addr,
	cluster *nodes, setups *setups, rule hookRules) routes {
	bus := newEventBus(c, s, models.Provider, at)
	bus.Models = provider.NewOffers(models, s.log, time.Now).List
	return newRoutes(s, bus, newNative(c, s, projects, models, bus, cluster, setups, rule))
}
