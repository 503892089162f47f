package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"parley/machine"
)

// SQLite copies the write-ahead log into the database every checkpointPages pages, as far as readers allow. With
// constant readers the log may still grow beyond maxLog. The writer then waits for the present readers and empties the
// log; new readers read only the database. A longer reader, like a backup, lets the log grow until the next try.
const (
	checkpointPages = 1024    // 4 MiB
	maxLog          = 8 << 20 // bytes
	retryCheckpoint = time.Second
	awaitReaders    = 50 * time.Millisecond
)

// reserveSize is the most that a checkpoint of a log of maxLog bytes may need.
// The reserve is disk space that the store gives up when the disk is full: the
// log is then copied into the database and emptied, which frees its space.
// Without the reserve, a log that fills a disk could never be copied.
const reserveSize = maxLog

// A reserve is a file that reserves disk space.
type reserve struct {
	name string
	held bool
}

const reserveFile = "parley.reserve"

// keep allocates the reserve if at least so many bytes stay free.
func (r *reserve) keep(leaves uint64) {
	if info, err := os.Stat(r.name); err == nil && info.Size() == reserveSize {
		r.held = true // allocated by an earlier process
	}
	if !r.held && freeSpace(filepath.Dir(r.name)) >= reserveSize+leaves {
		r.held = r.take(reserveSize)
	}
}

// keepRest allocates the whole reserve, or else all the free space. Otherwise a
// commit would take the space that is needed to empty the log. A log that was
// just emptied needs less than a whole reserve.
func (r *reserve) keepRest() {
	if r.keep(0); !r.held {
		r.take(min(reserveSize, freeSpace(filepath.Dir(r.name))))
	}
}

func (r *reserve) take(size uint64) bool {
	f, err := os.OpenFile(r.name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return false // continue without a reserve, as before the first one
	}
	if err = errors.Join(machine.Allocate(f, int64(size)), f.Close()); err != nil {
		r.giveUp()
	}
	return err == nil
}

func (r *reserve) giveUp() {
	_ = os.Remove(r.name) // a missing file takes up no space
	r.held = false
}

// freeSpace returns the number of free bytes on the disk of a file.
func freeSpace(name string) uint64 {
	free, err := machine.Free(name)
	if err != nil {
		return 1 << 62 // let the first write fail
	}
	return free
}

// A logWatch is the last look of the write goroutine at the write-ahead log.
type logWatch struct {
	at   time.Time // time of the last look
	size int64     // size of the log at that time
}

// limitLog empties a write-ahead log that has become too large. If there is
// free space again, it also restores the reserve. It is called after a commit.
func (s *Store) limitLog() {
	size, now := s.logSize(), time.Now()
	later := now.Sub(s.watch.at) > retryCheckpoint
	if size > maxLog && (later || size > s.watch.size+maxLog/4) {
		_ = emptyLog(context.Background(), s.w.conn) // retried later
		s.watch = logWatch{now, s.logSize()}
	}
	if later && !s.reserve.held {
		s.watch.at = now
		s.reserve.keep(2 * leastRoom) // so that the server stays ready
	}
}

// makeRoom gives up the reserve to empty the log, after a commit that found the
// disk full. It reports whether the commit should be retried.
func (s *Store) makeRoom(err error) bool {
	before := s.logSize()
	if primary(err) != sqlite3.SQLITE_FULL || before < leastRoom {
		return false
	}
	s.reserve.giveUp()
	err = emptyLog(context.Background(), s.w.conn)
	s.reserve.keepRest() // before the next commit takes the space
	return err == nil && s.logSize() < before
}

func (s *Store) logSize() int64 {
	info, err := os.Stat(s.files[1].name)
	if err != nil {
		return 0
	}
	return info.Size()
}

var errReaders = errors.New("readers use the write-ahead log")

// A connection is the connection of the writer, or a pool that holds only that one.
type connection interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// emptyLog copies the log into the database and truncates it.
func emptyLog(ctx context.Context, conn connection) (err error) {
	wait := func(d time.Duration) error {
		_, err := conn.ExecContext(ctx, fmt.Sprint("PRAGMA busy_timeout = ", d.Milliseconds()))
		return err
	}
	if err := wait(awaitReaders); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, wait(awaitWriters)) }()
	var busy, frames, copied int
	if err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &copied); err != nil {
		return err
	}
	if busy != 0 {
		return errReaders
	}
	return nil
}
