package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// health is the state of the database as last seen. After a failed append, the
// store rehearses that append until it would succeed, so that no client request
// has to probe the database. A successful heartbeat does not end the trouble,
// because it needs less than an append.
type health struct {
	trouble atomic.Pointer[trouble]
	refused atomic.Pointer[parley.Error] // why appends are refused without a query; nil: they are not
	poked   chan struct{}                // makes heal retry at once
}

// trouble is the reason why the last append, read or heartbeat failed.
type trouble struct {
	err   *parley.Error
	group []*waiting // the batches, of one tenant, that were not stored; nil: no append failed
}

// Ready does not query the database: rehearsals do, as long as there is
// trouble.
func (s *Store) Ready(context.Context) error {
	if trouble := s.trouble.Load(); trouble != nil {
		return trouble.err
	}
	return nil
}

// refusing returns the reason why appends are refused now, or nil.
func (s *Store) refusing() error {
	if why := s.refused.Load(); why != nil {
		return why
	}
	return nil
}

// ill records an error, and the batches if it came from an append. If the
// database did not answer, it also suspends appends, so that no other caller
// waits as long.
func (s *Store) ill(err error, group []*waiting) {
	before := s.trouble.Load()
	if group == nil && before != nil {
		group = before.group // a failed append is more telling than a failed beat or read
	}
	s.trouble.Store(&trouble{unstorable(err), group})
	if before == nil {
		s.poke()
	}
	if sqlState(err) == readOnly {
		s.pulse.Reset() // a connection keeps the defaults of the time it began
	}
	if slow(err) {
		s.suspend(err)
	}
}

// heal ends the trouble as soon as the failed append would succeed. It runs in
// its own goroutine, because the heartbeat must not wait for it.
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
			s.refused.Store(nil) // set by an append that failed after the trouble had ended
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
			// A lock that blocks every append is as bad as a database that does
			// not answer; a lock on the tenant's own rows is not.
			if slow(err) || stuck(err) && stuck(s.rehearse(ctx, nil)) {
				s.suspend(err)
			}
		}
	}
}

// rehearse executes every statement of a group and rolls back. Without a group,
// it uses one that opens a session. It ignores batches that are fenced by now,
// or that fail for reasons other than the database.
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

// anyGroup returns a batch that opens a session of a tenant that cannot exist.
func anyGroup() []*waiting {
	const id = "rehearsal"
	at := time.Unix(0, 0)
	b := port.Batch{Tenant: "-", Session: id, Epoch: 1,
		Summary: port.Summary{ID: id, Root: id, Head: 1, OpenedAt: at, UpdatedAt: at},
		Events:  []parley.Event{{Session: id, Seq: 1, Root: id, At: at, Body: parley.SessionOpened{}}}}
	bodies, _, _ := rules.EncodeBodies(b.Events) // cannot fail: all fields are strings
	return []*waiting{{Batch: b, bodies: bodies}}
}

// suspend refuses appends, including queued ones, until the trouble is over.
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
		s.lanes[tenant] = nil // the lane's writer removes it
	}
}

func (s *Store) poke() {
	select {
	case s.poked <- struct{}{}:
	default: // heal is already due to look
	}
}

// pause returns how long to wait until the next beat or rehearsal.
func (s *Store) pause() time.Duration {
	if s.trouble.Load() != nil {
		return min(s.lease/10, s.timeout/10)
	}
	return s.lease / 10
}

const readOnly = "25006" // read_only_sql_transaction

// slow reports whether the database did not answer in time.
func slow(err error) bool {
	return pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)
}

// stuck reports whether a statement waited too long for a lock of another
// transaction.
func stuck(err error) bool {
	switch sqlState(err) {
	case "55P03", "57014": // lock_not_available, query_canceled
		return true
	}
	return false
}

// unstorable is the answer to a batch that was not stored.
func unstorable(err error) *parley.Error {
	return &parley.Error{Code: parley.CodeUnavailable, Message: "The server cannot store anything right now.", Err: err,
		Hint: "see that PostgreSQL is up, can be reached, may be written to and has room; its own log says more"}
}
