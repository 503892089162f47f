// Package server is the HTTP side of a Parley: what every request passes, health,
// and shutdown.
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

// Options say what is served, to whom, and when.
type Options struct {
	// Routes are served besides health, each by its pattern.
	Routes map[string]http.Handler
	// Upgrade takes WebSockets that clients open at / itself; nil: none are taken.
	Upgrade http.Handler
	// Page answers browsers that ask for / itself; nil: they get a text.
	Page http.Handler
	// NotFound answers browsers that open an address without a route; nil: they get a text.
	NotFound http.HandlerFunc
	// Admit says whether a request is to be answered, and has answered it if
	// it is not.
	Admit func(http.ResponseWriter, *http.Request) bool
	// Connected and Changed hear of connections, as http.Server.ConnContext and
	// ConnState do; nil: nobody does.
	Connected func(context.Context, net.Conn) context.Context
	Changed   func(net.Conn, http.ConnState)
	// Origins are those of pages that browsers are to let use the server.
	Origins []string
	// Able says why there is no use in sending anything here; nil: there is.
	Able func(context.Context) error
	// Differ says which other nodes are not like this one; nil, or empty: none.
	Differ func() string
	// Answered hears of every request: the pattern of its route (empty: it had
	// none), its status, and how long it took. What lasted was a stream or is a
	// socket. Nil: nobody does.
	Answered func(route string, status int, took time.Duration, lasted bool)
}

// New makes a server for a listener, which the server owns from now on.
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

// route answers by the route of the address. People who mistyped an address get a page, programs a text.
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

// Root is the pattern of / itself.
const Root = "GET /{$}"

func (s *Server) handle(pattern string, h http.HandlerFunc) {
	s.patterns = append(s.patterns, pattern)
	s.mux.Handle(pattern, h)
}

// root answers browsers with a page and other clients with a text. Clients that
// know only the address of the server open a socket here.
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

// Patterns lists every route there is.
func (s *Server) Patterns() []string { return s.patterns }

// ready is for whoever decides where to send clients. Whether to start the
// process anew is another question, which /healthz answers: it would not help
// against a disk that is full.
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
		body, _ := json.Marshal(reason) // strings only
		answer(w, http.StatusServiceUnavailable, string(body))
		return
	}
	if s.options.Differ != nil {
		if differ := s.options.Differ(); differ != "" {
			body, _ := json.Marshal(map[string]string{"status": "ready", "differ": differ}) // strings only
			answer(w, http.StatusOK, string(body))
			return
		}
	}
	answer(w, http.StatusOK, `{"status":"ready"}`)
}

// welcome is for somebody who opens the address in a browser.
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
`)) // nobody left to tell
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body + "\n")) // nobody left to tell
}

// Start begins to serve. It is for once.
func (s *Server) Start() { s.start(func(err error) { s.failed <- err }) }

// Failed receives the error if serving ends before Close.
func (s *Server) Failed() <-chan error { return s.failed }

// Drain has the server say that it is not ready. It still answers, so that who
// comes now is told to come back rather than left guessing.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.http.SetKeepAlivesEnabled(false)
}

// Close stops listening, waits for the requests under way, and cuts them when ctx
// ends. Sockets are not requests any more: dialect.Conns ends them.
func (s *Server) Close(ctx context.Context) error {
	s.Drain()
	if err := s.close(ctx); err != nil {
		return fmt.Errorf("requests were cut: %w", err)
	}
	return nil
}

// idleWithin is how long a connection is kept on which no request is under way.
const idleWithin = 2 * time.Minute

// answerWithin is how long a client may take to be given an answer.
const answerWithin = 30 * time.Second

// guarded is what every request passes: headers that keep browsers from making
// more of an answer than it is, pages of other origins as far as they are named,
// and the question whether it is to be answered at all.
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
		// Who does not read what is answered is let go; streams, which last, and
		// sockets see to it themselves.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerWithin)) // where that can be done
		if s.options.Admit(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// Headers that pages of allowed origins may read, and may send: Parley's own, and those that the official clients of
// OpenAI, A2A and MCP use.
const (
	exposedHeaders = "Parley-Epoch, Parley-Session, Retry-After, WWW-Authenticate, X-Session-Id, Mcp-Session-Id"
	takenHeaders   = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Session-Id, A2A-Version, " +
		"A2A-Extensions, Mcp-Session-Id, Mcp-Protocol-Version, OpenAI-Organization, OpenAI-Project, X-Stainless-Lang, " +
		"X-Stainless-Package-Version, X-Stainless-OS, X-Stainless-Arch, X-Stainless-Runtime, " +
		"X-Stainless-Runtime-Version, X-Stainless-Retry-Count, X-Stainless-Timeout, X-Stainless-Helper-Method, " +
		"X-Stainless-Poll-Helper"
)
