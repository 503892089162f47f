package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"parley"
	"parley/port"
)

// health is what the store knows of its database without asking. While something
// is wrong, the appends that failed are rehearsed until they would succeed: so
// no request of a client has to find out. A heartbeat that gets through ends no
// trouble, because it needs less than an append does.
type health struct {
	trouble atomic.Pointer[trouble]
	refused atomic.Pointer[parley.Error] // why appends are refused without asking the database; nil: they are not
	poked   chan struct{}                // has the trouble be looked at at once
}

// trouble is why the last append, read or beat failed.
type trouble struct {
	err   *parley.Error
	group []*waiting // of one tenant, that was not stored; nil: something else failed
}

// Ready does not ask: rehearsals do, all the time.
func (s *Store) Ready(context.Context) error {
	if trouble := s.trouble.Load(); trouble != nil {
		return trouble.err
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

// ill notes what went wrong, and with which batches, if it was an append. If the
// database did not answer, nobody else is to wait for it as long.
func (s *Store) ill(err error, group []*waiting) {
	before := s.trouble.Load()
	if group == nil && before != nil {
		group = before.group // an append says more than a beat or a read
	}
	s.trouble.Store(&trouble{unstorable(err), group})
	if before == nil {
		s.poke()
	}
	if sqlState(err) == readOnly {
		s.pulse.Reset() // a session keeps what was the default when it began
	}
	if slow(err) {
		s.suspend(err)
	}
}

// heal ends trouble as soon as an append like the one that failed would succeed.
// It is a goroutine of its own: the heart must not wait for it.
func (s *Store) heal(ctx context.Context) {
	for {
		timer := time.NewTimer(s.pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-s.poked:
			timer.Stop()
		}
		found := s.trouble.Load()
		if found == nil {
			s.refused.Store(nil) // by an append that was slower to fail than the trouble to end
			continue
		}
		err := s.rehearse(ctx, found.group)
		switch {
		case err == nil:
			if s.trouble.CompareAndSwap(found, nil) {
				s.refused.Store(nil)
			}
		case ctx.Err() == nil:
			s.trouble.CompareAndSwap(found, &trouble{unstorable(err), found.group})
			// A lock that any append would wait for is as bad as a database that
			// does not answer; one on a tenant's own rows is not.
			if slow(err) || stuck(err) && stuck(s.rehearse(ctx, nil)) {
				s.suspend(err)
			}
		}
	}
}

// rehearse carries out every statement of a group, or of one that opens a
// session, and rolls back. Batches that could not be stored for reasons of their
// own, or are fenced by now, are no trouble of the database.
func (s *Store) rehearse(ctx context.Context, group []*waiting) error {
	if len(group) == 0 {
		group = anyGroup()
	}
	t := &transaction{store: s, group: group, rehearsal: true}
	if err := t.run(ctx); !unfit(err) {
		return err
	}
	return nil
}

// anyGroup opens a session of a tenant that cannot exist.
func anyGroup() []*waiting {
	const id = "rehearsal"
	at := time.Unix(0, 0)
	b := port.Batch{Tenant: "-", Session: id, Epoch: 1,
		Summary: port.Summary{ID: id, Root: id, Head: 1, OpenedAt: at, UpdatedAt: at},
		Events:  []parley.Event{{Session: id, Seq: 1, Root: id, At: at, Body: parley.SessionOpened{}}}}
	name, version, body, _ := parley.EncodeBody(b.Events[0].Body) // its fields are strings
	return []*waiting{{Batch: b, bodies: []stored{{name, version, body}}}}
}

// suspend has appends refused, also those that wait, until the trouble is over.
func (s *Store) suspend(err error) {
	why := unstorable(err)
	s.trouble.CompareAndSwap(nil, &trouble{err: why})
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

// pause is how long to wait for the next beat, or the next look at the trouble.
func (s *Store) pause() time.Duration {
	if s.trouble.Load() != nil {
		return min(s.lease/10, s.timeout/10)
	}
	return s.lease / 10
}

const readOnly = "25006" // read_only_sql_transaction

// slow reports whether no answer came in time: the database hangs.
func slow(err error) bool {
	return pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)
}

// stuck reports whether a statement waited for another's lock for too long.
func stuck(err error) bool {
	switch sqlState(err) {
	case "55P03", "57014": // lock_not_available, query_canceled
		return true
	}
	return false
}

// unstorable is what a batch that was not stored is answered with.
func unstorable(err error) *parley.Error {
	return &parley.Error{Code: parley.CodeUnavailable, Message: "The server cannot store anything right now.", Err: err,
		Hint: "see that PostgreSQL is up, can be reached, may be written to and has room; its own log says more"}
}
