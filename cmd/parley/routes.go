package main

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"

	"parley/access"
	"parley/config"
	"parley/dialect"
	"parley/dialect/a2a"
	"parley/dialect/agentchat"
	"parley/dialect/agentloop"
	"parley/dialect/agui"
	"parley/dialect/aisdk"
	"parley/dialect/apidoc"
	"parley/dialect/debugconsole"
	"parley/dialect/eventbus"
	"parley/dialect/mcpserver"
	"parley/dialect/native"
	"parley/dialect/openai"
	"parley/dialect/threadchat"
	"parley/engine"
	"parley/metrics"
	"parley/port"
	"parley/provider"
	"parley/server"
	console "parley/web"
)

// handlerDeps contains the dependencies of several dialects' handlers.
type handlerDeps struct {
	door    *engine.Engine
	agents  port.ProjectAgents
	remotes port.Remotes
	guard   *entrance
	conns   *dialect.Conns
	log     *slog.Logger
	public  string // the server's address for browsers; empty: unknown
	bearer  bool   // requests need a token
}

// routes are all routes besides the health checks: the handler of each pattern, and
// its dialect.
type routes struct {
	handlers map[string]http.Handler
	dialects map[string]string // by pattern
	mcp      *mcpserver.Handler
}

// socketRoute is also served at the root, for clients that know the address of the
// server and no path.
const socketRoute = "GET /api/agentloop/ws"

func newRoutes(s handlerDeps, bus *eventbus.Handler, own *native.Handler) routes {
	r := routes{handlers: map[string]http.Handler{}, dialects: map[string]string{}}
	threads := &threadchat.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Conns: s.conns, Log: s.log,
		Console: s.public}
	addRoutes(r, "threadchat", map[string]http.Handler{"GET /api/chat/ws": threads})
	bus.ThreadChat = threads.Chat
	addRoutes(r, "agentchat", map[string]http.Handler{
		"GET /ws": &agentchat.Handler{Door: s.door, Guard: s.guard, Conns: s.conns, Log: s.log, Console: s.public}})
	addRoutes(r, "agentloop", map[string]http.Handler{
		socketRoute: &agentloop.Handler{Door: s.door, Guard: s.guard, Conns: s.conns, Log: s.log}})
	addRoutes(r, "debugconsole", (&debugconsole.Handler{Door: s.door, Agents: s.agents, Remotes: s.remotes, Guard: s.guard,
		Conns: s.conns, Log: s.log}).Routes())
	addRoutes(r, "a2a", (&a2a.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Log: s.log, Public: s.public,
		Version: version, Bearer: s.bearer}).Routes())
	r.mcp = &mcpserver.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Log: s.log, Console: s.public,
		Version: version}
	addRoutes(r, "mcpserver", r.mcp.Routes())
	addRoutes(r, "agui", (&agui.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Log: s.log}).Routes())
	addRoutes(r, "aisdk", (&aisdk.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Log: s.log}).Routes())
	addRoutes(r, "native", own.Routes())
	addRoutes(r, "openai", (&openai.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Conns: s.conns, Log: s.log,
		Console: s.public}).Routes())
	addRoutes(r, "native", apidoc.Routes())
	addRoutes(r, "eventbus", bus.Routes())
	r.dialects[server.Root] = r.dialects[socketRoute]
	var signIn *access.SignIn
	var cookies *access.Cookies
	if s.guard != nil {
		signIn, cookies = s.guard.signIn, s.guard.cookies
	}
	for pattern, handler := range signInRoutes(signIn, cookies) {
		r.handlers[pattern] = handler
	}
	return r
}

// addRoutes adds the routes of a dialect.
func addRoutes[H http.Handler](r routes, dialect string, handlers map[string]H) {
	for pattern, handler := range handlers {
		r.handlers[pattern], r.dialects[pattern] = handler, dialect
	}
}

// sockets adds up the open sockets of each dialect, given those of each route.
// A route without a dialect counts under its own pattern.
func (r routes) sockets(open map[string]int) map[string]int {
	by := map[string]int{}
	for _, dialect := range r.dialects {
		by[dialect] = 0
	}
	for pattern, n := range open {
		by[cmp.Or(r.dialects[pattern], pattern)] += n
	}
	return by
}

func newNative(
	c *config.Settings, s handlerDeps, projects []*project, models *provider.Models, bus *eventbus.Handler,
	cluster *nodes, setups *setups, rules hookRules,
) *native.Handler {
	var roots []string
	for _, p := range projects {
		roots = append(roots, p.about.Root)
	}
	return &native.Handler{Door: s.door, Agents: s.agents, Remotes: s.remotes, Guard: s.guard, Credentials: s.guard,
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
