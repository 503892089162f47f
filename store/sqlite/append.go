package sqlite

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"parley"
	"parley/port"
)

// maxGroup bounds a commit, and so the time a batch waits for its neighbours.
const maxGroup = 256

// waiting is a batch on its way into a commit, encoded by who brought it.
type waiting struct {
	port.Batch
	bodies []stored
	size   int64 // of the bodies, in bytes
	agent  []byte
	also   func(context.Context, *writer) error // instead of a batch
	alone  func() error                         // likewise, and in no transaction
	fate   atomic.Int32                         // waits, taken or withdrawn

	rehearses *trouble // rehearsed before the commit, which it has for itself; nil: nothing is

	result port.Appended
	err    error
	done   chan struct{}
}

type stored struct {
	name    string
	version int
	body    []byte
}

func (s *Store) Append(ctx context.Context, b port.Batch) (port.Appended, error) {
	w := &waiting{Batch: b, bodies: make([]stored, len(b.Events)), done: make(chan struct{})}
	for i, e := range b.Events {
		var err error
		if w.bodies[i].name, w.bodies[i].version, w.bodies[i].body, err = parley.EncodeBody(e.Body); err != nil {
			return port.Appended{}, err
		}
		w.size += int64(len(w.bodies[i].body))
	}
	if b.Agent != nil {
		var err error
		if w.agent, err = json.Marshal(b.Agent); err != nil {
			return port.Appended{}, err
		}
	}
	return s.put(ctx, w)
}

// put brings something into a commit and waits for it.
func (s *Store) put(ctx context.Context, w *waiting) (port.Appended, error) {
	if s.hangs() { // what is withdrawn still takes up a place in the queue
		return port.Appended{}, unstorable(errHangs)
	}
	if err := s.enqueue(ctx, w); err != nil {
		return port.Appended{}, err
	}
	// The commit is under way; only its outcome is the truth now, so ctx no
	// longer matters.
	return s.wait(w)
}

// also has the write goroutine do something that is no batch.
func (s *Store) also(ctx context.Context, do func(context.Context, *writer) error) error {
	_, err := s.put(ctx, &waiting{done: make(chan struct{}), also: do})
	return err
}

func (s *Store) enqueue(ctx context.Context, w *waiting) error {
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
	timer := time.NewTimer(patience)
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

// write is the only goroutine that writes. It ends when Close has closed the
// queue and every batch in it was answered.
func (s *Store) write() {
	defer close(s.done)
	for w := range s.queue {
		group := []*waiting{w}
		for w.rehearses == nil && w.alone == nil && len(group) < maxGroup {
			var ok bool
			select {
			case w, ok = <-s.queue:
			default:
			}
			if !ok {
				break
			}
			if w.rehearses != nil || w.alone != nil { // alone, after the others
				s.commit(group)
				group = nil
			}
			group = append(group, w)
		}
		s.commit(group)
	}
}

// commit answers every batch of the group. If one of them cannot be stored, each
// is tried alone, so that it does not take others with it.
func (s *Store) commit(group []*waiting) {
	if w := group[0]; w.alone != nil {
		if w.err = w.alone(); w.err != nil && parley.CodeOf(w.err) == parley.CodeInternal {
			w.err = unstorable(w.err)
		}
		close(w.done)
		return
	}
	err := s.try(group)
	if err != nil && len(group) > 1 && !faulty(err) {
		for _, w := range group {
			s.commit([]*waiting{w})
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
