package server

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// An Aux is an HTTP server for the operator, on a listener of its own. Start and
// Close work as those of Server. If it fails, the process continues.
type Aux struct {
	serving
	what string
	log  *slog.Logger
}

func newAux(l net.Listener, h http.Handler, what string, log *slog.Logger) *Aux {
	return &Aux{what: what, log: log, serving: serving{listener: l,
		http: &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: idleWithin}}}
}

// Start begins to serve. It must be called at most once.
func (a *Aux) Start() {
	a.start(func(err error) { a.log.Error(a.what+" are no longer served", "error", err) })
}

// Close stops serving. It cuts open requests after a second or when ctx ends,
// because an operator can repeat them.
func (a *Aux) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = a.close(ctx) // cutting a request does no harm
	return nil
}

// NewMetrics serves metrics to clients with the token. Without a token it serves
// clients on this machine that use a loopback address or localhost as the host,
// which a page of another site cannot.
func NewMetrics(l net.Listener, metrics http.Handler, token string, log *slog.Logger) *Aux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		switch given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); {
		case token == "" && !byAddress(r.Host):
			answer(w, http.StatusForbidden, `{"error":"ask for these by the address of this machine"}`)
		case token != "" && (!ok || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1):
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, `{"error":"the token of PARLEY_METRICS_TOKEN is missing or another"}`)
		default:
			metrics.ServeHTTP(w, r)
		}
	})
	return newAux(l, mux, "metrics", log)
}

func byAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost"
}
