package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// commitTimeout is how long a commit may take; timeoutPerEvent is added for each event, and timeoutPerMB for each
// megabyte. If a commit takes longer, the disk counts as hung: waiting and new batches are
// refused until the commit ends.
const (
	commitTimeout   = 5 * time.Second
	timeoutPerEvent = 200 * time.Microsecond
	timeoutPerMB    = time.Second
)

func (w *queuedBatch) extraTime() time.Duration {
	return time.Duration(len(w.Events))*timeoutPerEvent + time.Duration(w.size)*timeoutPerMB/1e6
}

// health is the state of the store's disk.
type health struct {
	commitDeadline atomic.Pointer[time.Time] // deadline of the commit under way; nil: no commit
	trouble        atomic.Pointer[trouble]   // nil: appends work
	files          []*file                   // files that must not be moved or replaced

	observer atomic.Pointer[func(batches int, took time.Duration)] // nil: no observer
}

// trouble is the reason why a commit failed. Only a successful rehearsal of the
// failed batches clears it: a smaller commit, or one of another session, may
// succeed meanwhile.
type trouble struct {
	err     *parley.Error
	batches []*queuedBatch // the batches that were not stored; Ready rehearses them
}

// States of a batch. A batch leaves batchQueued once: either the writer takes it, or its caller times out and
// withdraws it.
const (
	batchQueued = iota
	batchTaken
	batchWithdrawn
)

func (w *queuedBatch) claim() bool {
	return w.state.CompareAndSwap(batchQueued, batchTaken) || w.state.Load() == batchTaken
}

// wait waits for the outcome of a queued batch. It gives up after its own
// timeout, or when the commit under way has taken too long.
func (s *Store) wait(w *queuedBatch) (port.Appended, error) {
	deadline := time.Now().Add(commitTimeout + w.extraTime())
	for time.Now().Before(deadline) && !s.hangs() {
		end := deadline
		if until := s.commitDeadline.Load(); until != nil && until.Before(end) {
			end = *until
		}
		select {
		case <-w.done:
			return w.result, w.err
		case <-time.After(time.Until(end) + time.Millisecond):
		}
	}
	if w.state.CompareAndSwap(batchQueued, batchWithdrawn) {
		return port.Appended{}, unstorable(errHangs)
	}
	return port.Appended{}, unstorable(fmt.Errorf("%w; what was being written may be stored later", errHangs))
}

var errHangs = fmt.Errorf("the disk has not answered for %v", commitTimeout)

// hangs reports whether a commit has been under way for too long.
func (s *Store) hangs() bool {
	until := s.commitDeadline.Load()
	return until != nil && time.Now().After(*until)
}

// commitOnce commits a group. It returns an error if the group was not stored.
func (s *Store) commitOnce(group []*queuedBatch) error {
	group = slices.DeleteFunc(slices.Clone(group), func(w *queuedBatch) bool { return !w.claim() })
	if len(group) == 0 {
		return nil
	}
	until := time.Now().Add(commitTimeout)
	for _, w := range group {
		until = until.Add(w.extraTime())
	}
	s.commitDeadline.Store(&until)
	defer s.commitDeadline.Store(nil)
	rehearsed := group[0].rehearses
	// Checked before the commit, so that nothing is written to a file that is
	// lost. Checked again after it, so that a commit to a lost file is not
	// acknowledged.
	err := s.checkFiles()
	if err == nil && rehearsed != nil {
		err = s.w.rehearse(rehearsed.batches)
	}
	if err == nil {
		start := time.Now()
		err = s.w.commit(group)
		if err != nil && s.makeRoom(err) {
			err = s.w.commit(group)
		}
		if tell := s.observer.Load(); tell != nil && err == nil {
			(*tell)(len(group), time.Since(start))
		}
		if err != nil && faulty(err) {
			s.overwriteFailed()
		}
	}
	if err == nil {
		if err = s.checkFiles(); err == nil {
			s.limitLog()
		}
	}
	switch bad := err != nil && (faulty(err) || damaged(err)); {
	case bad && rehearsed != nil:
		s.trouble.CompareAndSwap(rehearsed, &trouble{unstorable(err), rehearsed.batches})
	case bad:
		s.trouble.Store(&trouble{unstorable(err), batchesOf(group)})
	case err == nil && rehearsed != nil:
		s.trouble.CompareAndSwap(rehearsed, nil)
	}
	return err
}

// batchesOf copies the batches of a group. The originals are about to be answered.
func batchesOf(group []*queuedBatch) (batches []*queuedBatch) {
	for _, w := range group {
		if w.inTransaction == nil {
			batches = append(batches, &queuedBatch{Batch: w.Batch, bodies: w.bodies, agent: w.agent})
		}
	}
	return batches
}

// overwriteFailed overwrites what a failed commit left in the write-ahead log. If only the
// sync failed, the log holds the complete commit. If this process died now, the
// next process would recover that commit, although it was refused. The commit
// of a probe goes to the same place in the log. It does not matter whether this
// commit fails too: it only has to be written.
func (s *Store) overwriteFailed() { _ = s.w.commit([]*queuedBatch{probe()}) }

// probe returns the smallest possible commit: it changes a number that no code reads.
func probe() *queuedBatch {
	return &queuedBatch{done: make(chan struct{}), inTransaction: func(ctx context.Context, w *writer) error {
		_, err := w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", rand.Int32()))
		return err
	}}
}

// leastRoom is the free space, in bytes, that the server needs to be ready. On
// a full disk a small commit may still succeed.
const leastRoom = 1 << 20

// Ready reports whether appends work. It trusts the outcome of the last append.
// After a failed append, it rehearses that append and makes a small commit, so
// that a store without clients also notices when the trouble is over.
func (s *Store) Ready(ctx context.Context) error {
	if freeSpace(s.files[0].name) < leastRoom {
		return unstorable(errors.New("the disk has less than 1 MiB left"))
	}
	if err := s.checkFiles(); err != nil {
		return unstorable(err)
	}
	trouble := s.trouble.Load()
	if trouble == nil && !s.hangs() {
		return nil
	}
	w := probe()
	w.rehearses = trouble
	_, err := s.enqueueAndWait(ctx, w)
	return err
}

// rehearse executes every statement of the batches, and of another batch that
// opens a session, and rolls all of it back. It ignores batches that are fenced
// by now, or that fail for reasons other than the disk.
func (w *writer) rehearse(batches []*queuedBatch) error {
	ctx := context.Background()
	if _, err := w.begin.ExecContext(ctx); err != nil {
		return err
	}
	defer w.rollBack(ctx)
	clear(w.headsInUse)
	for _, b := range append(batches[:len(batches):len(batches)], openingBatch()) {
		b.result = port.Appended{}
		err := w.add(ctx, b)
		if err == nil {
			err = w.insertPending(ctx)
		}
		if err == nil {
			err = w.indexSaid(ctx)
		}
		if err != nil && (faulty(err) || damaged(err)) {
			return err
		}
		w.pending, w.texts, w.inserted = w.pending[:0], nil, nil
	}
	return nil
}

// openingBatch returns a batch that opens a session of a tenant that cannot exist.
func openingBatch() *queuedBatch {
	const id = "rehearsal"
	b := port.Batch{Tenant: "-", Session: id, Epoch: 1, Summary: port.Summary{ID: id, Root: id, Head: 1},
		Events: []parley.Event{{Session: id, Seq: 1, Root: id, Body: parley.SessionOpened{}}}}
	bodies, _, _ := rules.EncodeBodies(b.Events) // cannot fail: all fields are strings
	return &queuedBatch{Batch: b, bodies: bodies}
}

// faulty reports whether every batch would fail with err, not just this one.
func faulty(err error) bool {
	if errors.Is(err, errFileMoved) || errors.Is(err, errTruncated) {
		return true
	}
	switch primary(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL:
		return true
	}
	return false
}

func primary(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return sqlite3.SQLITE_OK
}

// unstorable is the answer to a batch that was not stored.
func unstorable(err error) *parley.Error {
	e := &parley.Error{Code: parley.CodeUnavailable, Message: "The server cannot store anything right now.", Err: err,
		Hint: "see that the disk of the data folder is writable and not full"}
	switch {
	case errors.Is(err, errFileMoved):
		e.Hint = "put the files of the data folder back as they were, or stop the server, restore them and start it again"
	case damaged(err):
		e.Code, e.Message, e.Hint = parley.CodeCorrupt, damagedMessage, damagedHint
	}
	return e
}

// damaged reports whether the database file itself is damaged. All tables exist before the first statement is prepared,
// so a missing table means that the file was truncated: SQLite reads an empty file as a database without tables.
func damaged(err error) bool {
	code := primary(err)
	return errors.Is(err, errTruncated) || code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB ||
		code == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no such table")
}

const (
	damagedMessage = "A part of the database cannot be read."
	damagedHint    = "stop the server, remove parley.db-wal and parley.db-shm, and restore parley.db from a backup; " +
		"PRAGMA integrity_check tells what is damaged"
)
