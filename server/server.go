// Package server is the HTTP side of a Parley: what every request passes,
// health, and an end in good order.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"parley"
)

// Server serves HTTP until it is closed.
type Server struct {
	mux      *http.ServeMux
	http     *http.Server
	log      *slog.Logger
	draining atomic.Bool
	served   chan error
}

// New makes a server with health routes and nothing else.
func New(log *slog.Logger) *Server {
	s := &Server{mux: http.NewServeMux(), log: log, served: make(chan error, 1)}
	s.http = &http.Server{
		Handler:           s.local(s.mux),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, `{"status":"ok"}`) })
	s.mux.HandleFunc("GET /api/health", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, `{"ok":true,"status":"ok"}`) })
	s.mux.HandleFunc("GET /readyz", s.ready)
	s.mux.HandleFunc("GET /{$}", welcome)
	return s
}

// Handle adds a route.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		answer(w, http.StatusServiceUnavailable, `{"status":"stopping"}`)
		return
	}
	answer(w, http.StatusOK, `{"status":"ready"}`)
}

// welcome is for somebody who opens the address in a browser.
func welcome(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(`Parley is running.

  bin/parley chat                                   talk to an agent in a terminal
  GET /api/v1/sessions                              what was talked about
  GET /api/v1/sessions/{id}/log?follow=1            the log of a session, live
  ws  /api/chat/ws?threadId={a UUID of version 4}   thread chat
`)) // nobody left to tell
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body + "\n")) // nobody left to tell
}

// Start serves a listener, which it closes, on a goroutine that Close waits for.
// Failed tells if it ends by itself.
func (s *Server) Start(l net.Listener) {
	go func() {
		err := s.http.Serve(l)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		s.served <- err
	}()
}

// Failed is sent to when serving ends, with what ended it.
func (s *Server) Failed() <-chan error { return s.served }

// Drain has the server say that it is not ready. It still answers, so that who
// comes now is told to come back rather than left guessing.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.http.SetKeepAlivesEnabled(false)
}

// Close stops listening and waits for the requests under way, until ctx ends.
// Sockets are not requests any more; whoever accepted them ends them.
func (s *Server) Close(ctx context.Context) {
	s.Drain()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("requests were cut", "error", err)
		_ = s.http.Close() // nothing is left to be done about it
	}
}

// local keeps other sites out of local mode. A page anywhere can have a browser
// send requests to this machine; it cannot hide that they come from that page,
// nor, having a name of its own resolve here, under which name they were sent.
func (s *Server) local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		switch origin := r.Header.Get("Origin"); {
		case !loopback(r.Host):
			refuse(w, parley.Errorf(parley.CodeForbidden, "This server answers to localhost only, not to %q.", r.Host))
		case origin != "" && !loopbackOrigin(origin):
			refuse(w, parley.Errorf(parley.CodeForbidden, "Pages of %q may not use this server.", origin))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, err error) {
	http.Error(w, parley.MessageOf(err), http.StatusForbidden)
}

func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && loopback(u.Host)
}

func loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}
