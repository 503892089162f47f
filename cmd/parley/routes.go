package main

import (
	"cmp"
	"log/slog"
	"net/http"

	"parley/access"
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
	"parley/port"
	"parley/server"
)

// shared contains the dependencies of several dialects' handlers.
type shared struct {
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

func newRoutes(s shared, bus *eventbus.Handler, own *native.Handler) routes {
	r := routes{handlers: map[string]http.Handler{}, dialects: map[string]string{}}
	threads := &threadchat.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Conns: s.conns, Log: s.log,
		Console: s.public}
	speak(r, "threadchat", map[string]http.Handler{"GET /api/chat/ws": threads})
	bus.ThreadChat = threads.Chat
	speak(r, "agentchat", map[string]http.Handler{
		"GET /ws": &agentchat.Handler{Door: s.door, Guard: s.guard, Conns: s.conns, Log: s.log, Console: s.public}})
	speak(r, "agentloop", map[string]http.Handler{
		socketRoute: &agentloop.Handler{Door: s.door, Guard: s.guard, Conns: s.conns, Log: s.log}})
	speak(r, "debugconsole", (&debugconsole.Handler{Door: s.door, Agents: s.agents, Remotes: s.remotes, Guard: s.guard,
		Conns: s.conns, Log: s.log}).Routes())
	speak(r, "a2a", (&a2a.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Log: s.log, Public: s.public,
		Version: version, Bearer: s.bearer}).Routes())
	r.mcp = &mcpserver.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Log: s.log, Console: s.public,
		Version: version}
	speak(r, "mcpserver", r.mcp.Routes())
	speak(r, "agui", (&agui.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Log: s.log}).Routes())
	speak(r, "aisdk", (&aisdk.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Log: s.log}).Routes())
	speak(r, "native", own.Routes())
	speak(r, "openai", (&openai.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Conns: s.conns, Log: s.log,
		Console: s.public}).Routes())
	speak(r, "native", apidoc.Routes())
	speak(r, "eventbus", bus.Routes())
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

// speak adds the routes of a dialect.
func speak[H http.Handler](r routes, dialect string, handlers map[string]H) {
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
