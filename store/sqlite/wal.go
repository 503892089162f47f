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

// The write-ahead log is copied into the database every checkpointPages pages,
// as far as readers allow. If it is larger than maxLog all the same, because there
// is always some reader, the writer waits for the readers of that moment and
// empties it: readers that come then read the database alone. A reader that lasts
// longer, like a backup, lets it grow until the next try.
const (
	checkpointPages = 1024    // 4 MiB
	maxLog          = 8 << 20 // bytes
	retryCheckpoint = time.Second
	awaitReaders    = 50 * time.Millisecond
)

// reserveSize is what a checkpoint of a log of maxLog may need at most. The
// reserve is room that is given up when the disk is full: the log is then copied
// into the database and emptied, and its room is free again. Without it, a log
// that fills a disk could never be copied.
const reserveSize = maxLog

// A reserve is a file that takes up room.
type reserve struct {
	name string
	held bool
}

const reserveFile = "parley.reserve"

// keep takes the room, if it leaves so many bytes.
func (r *reserve) keep(leaves uint64) {
	if info, err := os.Stat(r.name); err == nil && info.Size() == reserveSize {
		r.held = true // by an earlier process
	}
	if !r.held && room(filepath.Dir(r.name)) >= reserveSize+leaves {
		r.held = r.take(reserveSize)
	}
}

// keepRest takes what room there is, up to that of a whole reserve: a commit must
// not have what is kept to empty the log. A log that was just emptied needs less.
func (r *reserve) keepRest() {
	if r.keep(0); !r.held {
		r.take(min(reserveSize, room(filepath.Dir(r.name))))
	}
}

func (r *reserve) take(size uint64) bool {
	f, err := os.OpenFile(r.name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return false // there is none then, as before the first
	}
	if err = errors.Join(machine.Allocate(f, int64(size)), f.Close()); err != nil {
		r.giveUp()
	}
	return err == nil
}

func (r *reserve) giveUp() {
	_ = os.Remove(r.name) // what is not there needs no room
	r.held = false
}

// room is how many bytes a disk has left for the server.
func room(name string) uint64 {
	free, err := machine.Free(name)
	if err != nil {
		return 1 << 62 // the first write will tell
	}
	return free
}

// A logWatch is what the write goroutine knows of the write-ahead log.
type logWatch struct {
	at   time.Time // of the last look
	size int64     // then
}

// limitLog empties a write-ahead log that has become too large, and takes back
// the reserve if there is room again. It is called after a commit.
func (s *Store) limitLog() {
	size, now := s.logSize(), time.Now()
	later := now.Sub(s.watch.at) > retryCheckpoint
	if size > maxLog && (later || size > s.watch.size+maxLog/4) {
		_ = emptyLog(context.Background(), s.w.conn) // tried again later
		s.watch = logWatch{now, s.logSize()}
	}
	if later && !s.reserve.held {
		s.watch.at = now
		s.reserve.keep(2 * leastRoom) // so that the server is ready all the same
	}
}

// makeRoom gives up the reserve to empty the log, after a commit for which there
// was no room. It reports whether there may be some now.
func (s *Store) makeRoom(err error) bool {
	before := s.logSize()
	if primary(err) != sqlite3.SQLITE_FULL || before < leastRoom {
		return false
	}
	s.reserve.giveUp()
	err = emptyLog(context.Background(), s.w.conn)
	s.reserve.keepRest() // before the next commit takes it
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

// A connection is the one that writes, or a pool with that one alone.
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
