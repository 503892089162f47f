// Package sqlite stores logs in one SQLite file, for one process.
//
// One goroutine makes all writes over one connection with synchronous=FULL:
// what Append has acknowledged survives a loss of power. Batches that wait
// while a commit is under way go into the next one together, so the disk does
// one sync per commit, however many sessions are busy. Reads use a pool of
// their own and never wait for the writer.
//
// A lock on the data folder shows that no other process has it open. So leases
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
	lease string // names this process in the due table
	vault rules.Vault

	writeDB *sql.DB
	w       *writer
	read    *statements
	health

	reserve reserve  // used by the write goroutine only
	watch   logWatch // used by the write goroutine only

	queue  chan *queuedBatch
	mu     sync.RWMutex // held for reading during a send to queue
	closed bool         // guarded by mu
	done   chan struct{}
}

// freeLeases releases the leases of an earlier process. The folder lock shows
// that the process is dead.
const freeLeases = `UPDATE due SET lease = '' WHERE lease <> ''`

// Open opens the store in a folder and migrates it. If the folder does not
// exist, Open creates it. holder names this process in the error that another
// process gets while this one holds the lock.
func Open(ctx context.Context, dir, holder string, options ...Option) (_ *Store, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &parley.Error{Code: parley.CodeUnavailable, Message: "The data folder cannot be made.", Err: err,
			Hint: "choose another with --data, or make it writable"}
	}
	s := &Store{lease: rand.Text(), queue: make(chan *queuedBatch, 1024), done: make(chan struct{})}
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
	leaves := uint64(2 * leastRoom) // so that the server stays ready
	if freeSpace(dir) < leastRoom {
		s.reserve.giveUp() // otherwise a server on a full disk could not start
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
	_ = emptyLog(ctx, s.writeDB) // if the log cannot be emptied, the next write reports why
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

// database is the name of the database file in the data folder.
const database = "parley.db"

// readOnly has the options of all connections that do not write.
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

// Close commits the queued batches, then closes the files. It refuses later
// appends. It may be called more than once.
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
		// Move everything into one file, because an operator may copy only that
		// file. If a part cannot be moved, it stays in the log, where it is as
		// safe.
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
