package server

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// observed reports the result of each request to Options.Answered.
func (s *Server) observed(next http.Handler) http.Handler {
	if s.options.Answered == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, seen := time.Now(), &seen{ResponseWriter: w}
		defer func() {
			if seen.status == 0 {
				seen.status = http.StatusOK // the default of net/http
			}
			s.options.Answered(r.Pattern, seen.status, time.Since(start), seen.lasted)
		}()
		next.ServeHTTP(seen, r)
	})
}

// seen is an answer that records its status. lasted is true if the answer is
// flushed in parts, or if the connection was hijacked.
type seen struct {
	http.ResponseWriter
	status int
	lasted bool
}

func (s *seen) WriteHeader(status int) {
	if s.status == 0 && status >= http.StatusOK { // ignore informational statuses
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *seen) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *seen) FlushError() error {
	s.lasted = true
	return http.NewResponseController(s.ResponseWriter).Flush()
}

func (s *seen) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(s.ResponseWriter).Hijack()
	if err == nil {
		s.status, s.lasted = http.StatusSwitchingProtocols, true
	}
	return conn, rw, err
}
