package server

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
)

// NewAdmin serves Go profiles to clients on this machine that use a loopback
// address or localhost as the host. Other host names are refused, because a web
// page could use a name that resolves to this machine.
func NewAdmin(l net.Listener, log *slog.Logger) *Aux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return newAux(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !byAddress(r.Host) {
			answer(w, http.StatusForbidden, `{"error":"ask for these by the address of this machine"}`)
			return
		}
		mux.ServeHTTP(w, r)
	}), "profiles", log)
}
