package postgres

import (
	"context"
	"encoding/json"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// maxGroup and maxBytes limit a commit: how long a batch waits for the others
// in its commit, and how much memory a group takes.
const (
	maxGroup = 256
	maxBytes = 4 << 20
)

// waiting is a batch that waits for its commit. The caller has encoded its
// bodies.
type waiting struct {
	port.Batch
	bodies []rules.Body
	agent  []byte
	size   int // total size of the encoded parts, in bytes

	result port.Appended
	err    error
	done   chan struct{}
}

// bytes returns the total size of the event bodies.
func (w *waiting) bytes() (n int64) {
	for _, b := range w.bodies {
		n += int64(len(b.JSON))
	}
	return n
}

func (s *Store) Append(ctx context.Context, b port.Batch) (port.Appended, error) {
	bodies, size, err := rules.EncodeBodies(b.Events)
	if err != nil {
		return port.Appended{}, err
	}
	w := &waiting{Batch: b, bodies: bodies, size: size, done: make(chan struct{})}
	if b.Agent != nil {
		if w.agent, err = json.Marshal(b.Agent); err != nil {
			return port.Appended{}, err
		}
		w.size += len(w.agent)
	}
	if b.Context != nil {
		w.size += len(b.Context.Text)
	}
	if err := s.refusing(); err != nil {
		return port.Appended{}, err
	}
	if err := s.takeSlot(ctx); err != nil {
		return port.Appended{}, err
	}
	defer func() { <-s.slots }()
	if err := s.enqueue(w); err != nil {
		return port.Appended{}, err
	}
	// The batch is queued: from here on only the outcome of its commit counts,
	// so ctx no longer matters.
	<-w.done
	return w.result, w.err
}

// takeSlot takes a slot for a batch. It heeds ctx only if no slot is free.
func (s *Store) takeSlot(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return parley.Errorf(parley.CodeUnavailable, "The server has too much to store right now; "+
			"try again in a moment.")
	}
}

// enqueue puts a batch into its tenant's lane. A lane has a writer as long as
// it has batches.
func (s *Store) enqueue(w *waiting) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return parley.Errorf(parley.CodeUnavailable, "The server is stopping.")
	}
	queue, busy := s.lanes[w.Tenant]
	s.lanes[w.Tenant] = append(queue, w)
	if !busy {
		s.writing.Go(func() { s.write(w.Tenant) })
	}
	return nil
}

// write commits the batches of a tenant's lane, group by group. Writers take
// turns after each group, so a busy tenant does not block others.
func (s *Store) write(tenant parley.TenantID) {
	for more := true; more; {
		s.writers <- struct{}{}
		group := s.next(tenant)
		if more = len(group) > 0; more {
			s.commit(group)
		}
		<-s.writers
	}
}

// next takes the next group out of a lane. If the lane is empty, next removes
// it, and the writer must return.
func (s *Store) next(tenant parley.TenantID) (group []*waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.lanes[tenant]
	if len(queue) == 0 {
		delete(s.lanes, tenant)
		return nil
	}
	n, size := 1, queue[0].size
	for n < len(queue) && n < maxGroup && size+queue[n].size <= maxBytes {
		size += queue[n].size
		n++
	}
	s.lanes[tenant] = queue[n:]
	return queue[:n]
}

// commit answers every batch of a group. If the group cannot be stored because
// of one batch, commit tries each batch alone, so that the others do not fail
// with it.
func (s *Store) commit(group []*waiting) {
	err := s.store(group)
	if unfit(err) && len(group) > 1 {
		for _, w := range group {
			s.commit([]*waiting{w})
		}
		return
	}
	if err != nil && !unfit(err) {
		s.ill(err, batchesOf(group))
	}
	for _, w := range group {
		if err != nil {
			w.result, w.err = port.Appended{}, unstorable(err)
		}
		close(w.done)
	}
}

// batchesOf copies the batches of a group. The originals are about to be
// answered.
func batchesOf(group []*waiting) (batches []*waiting) {
	for _, w := range group {
		batches = append(batches, &waiting{Batch: w.Batch, bodies: w.bodies, agent: w.agent})
	}
	return batches
}
