package sqlite

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// maxGroup is the maximum number of batches in a commit. It limits how long a
// batch waits for the others in its commit.
const maxGroup = 256

// queuedBatch is a batch in the queue of the write goroutine. The caller has
// encoded its bodies.
type queuedBatch struct {
	port.Batch
	bodies             []rules.Body
	size               int64 // total size of the bodies, in bytes
	agent              []byte
	inTransaction      func(context.Context, *writer) error // runs in the transaction instead of a batch
	outsideTransaction func() error                         // runs instead of a batch, outside any transaction
	state              atomic.Int32                         // batchQueued, batchTaken or batchWithdrawn

	rehearses *trouble // the batches to rehearse before this commit, which then has no other batch; nil: none

	result port.Appended
	err    error
	done   chan struct{}
}

func (s *Store) Append(ctx context.Context, b port.Batch) (port.Appended, error) {
	bodies, size, err := rules.EncodeBodies(b.Events)
	if err != nil {
		return port.Appended{}, err
	}
	w := &queuedBatch{Batch: b, bodies: bodies, size: int64(size), done: make(chan struct{})}
	if b.Agent != nil {
		if w.agent, err = json.Marshal(b.Agent); err != nil {
			return port.Appended{}, err
		}
	}
	return s.enqueueAndWait(ctx, w)
}

// enqueueAndWait queues w for the write goroutine and waits until it is committed.
func (s *Store) enqueueAndWait(ctx context.Context, w *queuedBatch) (port.Appended, error) {
	if s.hangs() { // a withdrawn batch still takes up a place in the queue
		return port.Appended{}, unstorable(errHangs)
	}
	if err := s.enqueue(ctx, w); err != nil {
		return port.Appended{}, err
	}
	// The batch is queued: from here on only the outcome of its commit counts,
	// so ctx no longer matters.
	return s.wait(w)
}

// inTransaction makes the write goroutine call do within a transaction.
func (s *Store) inTransaction(ctx context.Context, do func(context.Context, *writer) error) error {
	_, err := s.enqueueAndWait(ctx, &queuedBatch{done: make(chan struct{}), inTransaction: do})
	return err
}

func (s *Store) enqueue(ctx context.Context, w *queuedBatch) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return parley.Errorf(parley.CodeUnavailable, "The server is stopping.")
	}
	select {
	case s.queue <- w:
		return nil
	default:
	}
	timer := time.NewTimer(commitTimeout)
	defer timer.Stop()
	select {
	case s.queue <- w:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return unstorable(errHangs)
	}
}

// write runs in the only goroutine that writes. It returns when Close has
// closed the queue and every batch in it is answered.
func (s *Store) write() {
	defer close(s.done)
	for w := range s.queue {
		group := []*queuedBatch{w}
		for w.rehearses == nil && w.outsideTransaction == nil && len(group) < maxGroup {
			var ok bool
			select {
			case w, ok = <-s.queue:
			default:
			}
			if !ok {
				break
			}
			if w.rehearses != nil || w.outsideTransaction != nil { // commits alone, after the batches before it
				s.commit(group)
				group = nil
			}
			group = append(group, w)
		}
		s.commit(group)
	}
}

// commit answers every batch of the group. If the group cannot be stored
// because of one batch, commit tries each batch alone, so that the others do
// not fail with it.
func (s *Store) commit(group []*queuedBatch) {
	if w := group[0]; w.outsideTransaction != nil {
		if w.err = w.outsideTransaction(); w.err != nil && parley.CodeOf(w.err) == parley.CodeInternal {
			w.err = unstorable(w.err)
		}
		close(w.done)
		return
	}
	err := s.commitOnce(group)
	if err != nil && len(group) > 1 && !faulty(err) {
		for _, w := range group {
			s.commit([]*queuedBatch{w})
		}
		return
	}
	for _, w := range group {
		if err != nil {
			w.result, w.err = port.Appended{}, unstorable(err)
		}
		close(w.done)
	}
}
