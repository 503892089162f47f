package server

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// aside serves a listener of its own, for who runs the server. The function stops
// it.
func aside(l net.Listener, h http.Handler, what string, log *slog.Logger) (stop func()) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error(what+" are no longer served", "error", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			_ = s.Close() // whoever reads now is cut
		}
		<-done
	}
}

// Metrics serves numbers to who has the token; without one, to who is on the
// machine and knows it by an address, as no page of another site does. The
// function stops it.
func Metrics(l net.Listener, numbers http.Handler, token string, log *slog.Logger) (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		switch given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); {
		case token == "" && !byAddress(r.Host):
			answer(w, http.StatusForbidden, `{"error":"ask for these by the address of this machine"}`)
		case token != "" && (!ok || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1):
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, `{"error":"the token of PARLEY_METRICS_TOKEN is missing or another"}`)
		default:
			numbers.ServeHTTP(w, r)
		}
	})
	return aside(l, mux, "metrics", log)
}

func byAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost"
}
