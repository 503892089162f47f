package server

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
)

// Admin serves profiles on a listener of its own, for who is on the machine. The
// function stops it.
func Admin(l net.Listener, log *slog.Logger) (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return aside(l, mux, "profiles", log)
}
