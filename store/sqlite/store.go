// Package sqlite keeps logs in one SQLite file, for one process.
//
// Everything is written by one goroutine over one connection with
// synchronous=FULL: what Append has answered survives the loss of power. Batches
// that wait while a commit is under way go into the next one together, so a
// commit costs the disk once however many sessions are busy. Reads use a pool
// of their own and never wait for the writer.
//
// A lock on the data folder shows that no other process has it open, so leases
// that an earlier process left behind are void.
package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the driver

	"parley"
	"parley/store/rules"
)

// Store is a port.Store.
type Store struct {
	lock  *folderLock
	epoch string
	lease string // names this process in due rows
	vault rules.Vault

	writeDB *sql.DB
	w       *writer
	read    *statements
	health

	reserve reserve  // of the write goroutine
	watch   logWatch // of the write goroutine

	queue  chan *waiting
	mu     sync.RWMutex // held for reading while something is put into queue
	closed bool         // guarded by mu
	done   chan struct{}
}

// freeLeases takes back what an earlier process held: the lock shows that it is
// gone.
const freeLeases = `UPDATE due SET lease = '' WHERE lease <> ''`

// Open opens the store in a folder, which it creates if need be, and migrates
// it. holder describes this process to another that finds the folder locked.
func Open(ctx context.Context, dir, holder string, options ...Option) (_ *Store, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &parley.Error{Code: parley.CodeUnavailable, Message: "The data folder cannot be made.", Err: err,
			Hint: "choose another with --data, or make it writable"}
	}
	s := &Store{lease: rand.Text(), queue: make(chan *waiting, 1024), done: make(chan struct{})}
	if s.lock, err = lockFolder(dir, holder); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.closeFiles()
		}
	}()

	file := filepath.Join(dir, database)
	s.reserve = reserve{name: filepath.Join(dir, reserveFile)}
	leaves := uint64(2 * leastRoom) // so that the server is ready all the same
	if room(dir) < leastRoom {
		s.reserve.giveUp() // or a server on a full disk could not even start
		leaves = leastRoom / 2
	}
	o := optionsOf(options)
	if s.writeDB, _, s.epoch, err = openUpToDate(ctx, file, o); err != nil {
		return nil, err
	}
	s.vault = o.vault
	if err := s.vault.Reseal(ctx, secrets{s.writeDB, s.vault}); err != nil {
		return nil, unavailable(err)
	}
	_ = emptyLog(ctx, s.writeDB) // what keeps it from being emptied shows itself in the next write
	s.reserve.keep(leaves)
	for _, free := range []string{freeLeases, freeHooks} {
		if _, err := s.writeDB.ExecContext(ctx, free); err != nil {
			return nil, unstorable(err)
		}
	}
	if s.w, err = newWriter(ctx, s.writeDB, s.lease); err != nil {
		return nil, err
	}
	s.w.vault = s.vault
	if err := s.remember(file, file+"-wal"); err != nil {
		return nil, err
	}
	reads, err := open(file, readOnly, readConns)
	if err != nil {
		return nil, err
	}
	s.read = newStatements(reads)
	go s.write()
	return s, nil
}

// database is the name of the file in the data folder.
const database = "parley.db"

// readOnly are the options of every connection that does not write.
const readOnly = "mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(5000)&_pragma=cache_size(-500)"

func open(file, options string, conns int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?"+options)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

func (s *Store) Epoch() string { return s.epoch }

// Close lets the batches in hand be committed, then closes the files. Appends
// that come later are refused. It may be called more than once.
func (s *Store) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.queue)
	}
	s.mu.Unlock()
	<-s.done
	return s.closeFiles()
}

func (s *Store) closeFiles() error {
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.w != nil {
		// Everything into one file: somebody may copy just that. What cannot
		// be moved stays in the other, and is as safe there.
		_, _ = s.w.conn.ExecContext(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`)
		errs = append(errs, s.w.close())
		s.w = nil
	}
	if s.writeDB != nil {
		errs = append(errs, s.writeDB.Close())
	}
	errs = append(errs, s.forget())
	errs = append(errs, s.lock.Close())
	if err := errors.Join(errs...); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
