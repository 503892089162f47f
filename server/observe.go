package server

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// observed says what became of each request.
func (s *Server) observed(next http.Handler) http.Handler {
	if s.options.Answered == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, seen := time.Now(), &seen{ResponseWriter: w}
		defer func() {
			if seen.status == 0 {
				seen.status = http.StatusOK // as net/http does
			}
			s.options.Answered(r.Pattern, seen.status, time.Since(start), seen.lasted)
		}()
		next.ServeHTTP(seen, r)
	})
}

// seen is an answer whose status is noted. It lasts if it is sent piece by piece,
// or is no answer any more but a connection.
type seen struct {
	http.ResponseWriter
	status int
	lasted bool
}

func (s *seen) WriteHeader(status int) {
	if s.status == 0 && status >= http.StatusOK { // others only announce one
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
