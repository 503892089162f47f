// Package server is the HTTP side of a Parley server: checks of every request,
// health, and shutdown.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"parley"
)

// Server serves HTTP from Start to Close.
type Server struct {
	serving
	mux      *http.ServeMux
	patterns []string
	options  Options
	draining atomic.Bool
	failed   chan error
}

// Options of a Server.
type Options struct {
	// Routes are the handlers besides the health checks, by pattern.
	Routes map[string]http.Handler
	// Upgrade handles WebSockets that clients open at /. If it is nil, there are none.
	Upgrade http.Handler
	// Page answers browsers that request /. If it is nil, they get a text.
	Page http.Handler
	// NotFound answers browsers that request an unknown address. If it is nil, they get a text.
	NotFound http.HandlerFunc
	// Admit reports whether a request is admitted. If it is not, Admit has
	// answered it.
	Admit func(http.ResponseWriter, *http.Request) bool
	// Connected and Changed are called for connections, like
	// http.Server.ConnContext and ConnState. They may be nil.
	Connected func(context.Context, net.Conn) context.Context
	Changed   func(net.Conn, http.ConnState)
	// Origins are the origins of web pages that browsers allow to use the server.
	Origins []string
	// Able returns an error if the server cannot accept messages now.
	Able func(context.Context) error
	// Differ lists the nodes that differ from this one. It may be nil.
	Differ func() string
	// Answered is called after every request, with the pattern of its route
	// (empty if there is none), its status and its duration. lasted is true for
	// streams and sockets. Answered may be nil.
	Answered func(route string, status int, took time.Duration, lasted bool)
}

// New returns a server for a listener, which the server then owns.
func New(l net.Listener, log *slog.Logger, o Options) *Server {
	s := &Server{mux: http.NewServeMux(), options: o, failed: make(chan error, 1)}
	s.listener = l
	s.http = &http.Server{
		Handler:           timed(s.observed(s.guarded(http.HandlerFunc(s.route)))),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       idleWithin,
		MaxHeaderBytes:    64 << 10,
		ConnContext:       o.Connected,
		ConnState:         o.Changed,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.handle("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, `{"status":"ok"}`)
	})
	s.handle("GET /api/health", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, `{"ok":true,"status":"ok"}`)
	})
	s.handle("GET /readyz", s.ready)
	s.handle(Root, s.root)
	for pattern, h := range o.Routes {
		s.handle(pattern, h.ServeHTTP)
	}
	return s
}

// route calls the handler of the route. If there is none, browsers get a page, and other clients a text.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if s.options.NotFound != nil && r.Method == http.MethodGet &&
		strings.Contains(r.Header.Get("Accept"), "text/html") {
		if _, pattern := s.mux.Handler(r); pattern == "" {
			w.Header().Add("Vary", "Accept")
			s.options.NotFound(w, r)
			return
		}
	}
	s.mux.ServeHTTP(w, r)
}

// Root is the pattern of /.
const Root = "GET /{$}"

func (s *Server) handle(pattern string, h http.HandlerFunc) {
	s.patterns = append(s.patterns, pattern)
	s.mux.Handle(pattern, h)
}

// root answers browsers with a page and other clients with a text. Clients that
// know only the address of the server can open a WebSocket here.
func (s *Server) root(w http.ResponseWriter, r *http.Request) {
	if s.options.Upgrade != nil && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		s.options.Upgrade.ServeHTTP(w, r)
		return
	}
	w.Header().Add("Vary", "Accept")
	if s.options.Page != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
		s.options.Page.ServeHTTP(w, r)
		return
	}
	welcome(w, r)
}

// Patterns lists the patterns of all routes.
func (s *Server) Patterns() []string { return s.patterns }

// ready answers load balancers, which decide where to send clients. Whether to
// restart the process is another question, for /healthz: a restart would not
// help if, for example, the disk is full.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		answer(w, http.StatusServiceUnavailable, `{"status":"stopping"}`)
		return
	}
	if err := s.options.Able(r.Context()); err != nil {
		reason := map[string]string{"status": "unavailable", "reason": parley.MessageOf(err)}
		if e, ok := errors.AsType[*parley.Error](err); ok && e.Hint != "" {
			reason["hint"] = e.Hint
		}
		body, _ := json.Marshal(reason) // strings cannot fail
		answer(w, http.StatusServiceUnavailable, string(body))
		return
	}
	if s.options.Differ != nil {
		if differ := s.options.Differ(); differ != "" {
			body, _ := json.Marshal(map[string]string{"status": "ready", "differ": differ}) // strings cannot fail
			answer(w, http.StatusOK, string(body))
			return
		}
	}
	answer(w, http.StatusOK, `{"status":"ready"}`)
}

// welcome answers people who open the address in a browser without a console.
func welcome(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(`Parley is running. In a browser this address is its console.

  bin/parley chat                                   talk to an agent in a terminal
  GET /api/v1/sessions                              what was talked about
  GET /api/v1/sessions/{id}/log?follow=1            the log of a session, live
  ws  /api/chat/ws?threadId={a UUID of version 4}   thread chat
  ws  /ws                                           agent chat
  ws  /api/agentloop/ws, or / itself                agent loop
  ws  /api/v1/agents/{id}/ws                        debug console
  GET /api/events                                   event bus
`)) // the client has gone
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body + "\n")) // the client has gone
}

// Start begins to serve. It must be called at most once.
func (s *Server) Start() { s.start(func(err error) { s.failed <- err }) }

// Failed returns a channel that receives an error if serving ends before Close.
func (s *Server) Failed() <-chan error { return s.failed }

// Drain makes the server report that it is not ready. It still answers, so that
// new clients get a clear answer instead of a refused connection.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.http.SetKeepAlivesEnabled(false)
}

// Close stops listening, waits for open requests, and cuts them when ctx ends.
// Sockets no longer count as requests: dialect.Conns ends them.
func (s *Server) Close(ctx context.Context) error {
	s.Drain()
	if err := s.close(ctx); err != nil {
		return fmt.Errorf("requests were cut: %w", err)
	}
	return nil
}

// idleWithin is how long a connection without an open request is kept.
const idleWithin = 2 * time.Minute

// answerWithin is how long a client may take to read an answer.
const answerWithin = 30 * time.Second

// guarded runs before every route. It sets security headers, allows pages of the
// configured origins, and asks Admit.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if len(s.options.Origins) > 0 {
			h.Add("Vary", "Origin")
		}
		if origin := r.Header.Get("Origin"); slices.Contains(s.options.Origins, origin) {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", exposedHeaders)
			h.Set("Cross-Origin-Resource-Policy", "cross-origin")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
				h.Set("Access-Control-Allow-Headers", takenHeaders)
				h.Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		// Clients that do not read the answer are disconnected. Streams and sockets
		// set their own deadlines.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerWithin)) // where possible
		if s.options.Admit(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// Headers that pages of allowed origins may read and send: Parley's own, and those of the official clients of OpenAI,
// A2A and MCP.
const (
	exposedHeaders = "Parley-Epoch, Parley-Session, Retry-After, WWW-Authenticate, X-Session-Id, Mcp-Session-Id"
	takenHeaders   = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Session-Id, A2A-Version, " +
		"A2A-Extensions, Mcp-Session-Id, Mcp-Protocol-Version, OpenAI-Organization, OpenAI-Project, X-Stainless-Lang, " +
		"X-Stainless-Package-Version, X-Stainless-OS, X-Stainless-Arch, X-Stainless-Runtime, " +
		"X-Stainless-Runtime-Version, X-Stainless-Retry-Count, X-Stainless-Timeout, X-Stainless-Helper-Method, " +
		"X-Stainless-Poll-Helper"
)
