package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"parley"
)

// health is what the store knows of its database without asking. A heartbeat
// that gets through heals everything, and while something is wrong the heart
// beats faster: so nobody's request has to find out.
type health struct {
	trouble atomic.Pointer[parley.Error] // why the last append or beat failed; nil: it did not
	refused atomic.Pointer[parley.Error] // why appends are refused without asking the database; nil: they are not
	poked   chan struct{}                // has the heart beat at once
}

// Ready does not ask: the heart does, all the time.
func (s *Store) Ready(context.Context) error {
	if why := s.trouble.Load(); why != nil {
		return why
	}
	return nil
}

// refusing is why nothing is to be appended now.
func (s *Store) refusing() error {
	if why := s.refused.Load(); why != nil {
		return why
	}
	return nil
}

func (s *Store) well() {
	s.trouble.Store(nil)
	s.refused.Store(nil)
}

// ill notes what went wrong. If the database did not answer, nobody else is to
// wait for it as long.
func (s *Store) ill(err error) {
	if s.trouble.Swap(unstorable(err)) == nil {
		s.poke()
	}
	if sqlState(err) == readOnly {
		s.pulse.Reset() // a session keeps what was the default when it began
	}
	if slow(err) {
		s.suspend(err)
	}
}

// suspend has appends refused, also those that wait, until the heart has beaten.
func (s *Store) suspend(err error) {
	why := unstorable(err)
	s.trouble.Store(why)
	if s.refused.Swap(why) == nil {
		s.poke()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for tenant, queue := range s.lanes {
		for _, w := range queue {
			w.err = why
			close(w.done)
		}
		s.lanes[tenant] = nil // its writer removes it
	}
}

func (s *Store) poke() {
	select {
	case s.poked <- struct{}{}:
	default: // it will
	}
}

// pause is how long to wait for the next beat.
func (s *Store) pause() time.Duration {
	if s.trouble.Load() != nil {
		return min(s.lease*3/10, s.timeout/10)
	}
	return s.lease * 3 / 10
}

const readOnly = "25006" // read_only_sql_transaction

// slow reports whether no answer came in time: the database hangs.
func slow(err error) bool {
	return pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)
}

// unstorable is what a batch that was not stored is answered with.
func unstorable(err error) *parley.Error {
	return &parley.Error{Code: parley.CodeUnavailable, Message: "The server cannot store anything right now.", Err: err,
		Hint: "see that PostgreSQL is up, can be reached, may be written to and has room; its own log says more"}
}
