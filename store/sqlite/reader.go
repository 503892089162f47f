package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"parley"
	"parley/port"
)

// A Reader reads a store that another process may be writing. It does not take
// the folder's lock and does not disturb that process.
type Reader struct{ s *Store }

// OpenReader opens the store in a folder for reading. The database must exist
// and be up to date.
func OpenReader(ctx context.Context, dir string) (*Reader, error) {
	db, err := openToRead(dir, readOnly, readConns)
	if err != nil {
		return nil, err
	}
	r := &Reader{&Store{read: newStatements(db), closed: true}} // closed, so that nothing can be appended
	if r.s.epoch, err = usable(ctx, db); err != nil {
		db.Close()
		return nil, err
	}
	return r, nil
}

// usable returns the epoch of a database. It returns an error unless the
// database has the tables of this release.
func usable(ctx context.Context, db *sql.DB) (epoch string, err error) {
	knows, err := known()
	if err != nil {
		return "", err
	}
	has, err := version(ctx, db)
	switch {
	case err != nil:
		return "", unavailable(err)
	case has > knows:
		return "", tooNew(ctx, db, has, knows)
	case has < knows:
		return "", &parley.Error{Code: parley.CodeUnavailable, Hint: "stop the server and run parley migrate, or use " +
			"the release that wrote it",
			Message: fmt.Sprintf("The database is of an older release: it has version %d, and this release reads "+
				"version %d.", has, knows)}
	}
	err = db.QueryRowContext(ctx, `SELECT epoch FROM store`).Scan(&epoch)
	return epoch, unavailable(err)
}

func openToRead(dir, options string, conns int) (*sql.DB, error) {
	file := filepath.Join(dir, database)
	if _, err := statDatabase(file); err != nil {
		return nil, noDatabase(dir, err)
	}
	return open(file, options, conns)
}

func noDatabase(dir string, err error) error {
	if _, ok := errors.AsType[*parley.Error](err); ok {
		return err
	}
	e := &parley.Error{Code: parley.CodeUnavailable, Message: "The data folder " + dir + " cannot be read.", Err: err,
		Hint: "see who may read it"}
	if errors.Is(err, fs.ErrNotExist) {
		e.Message, e.Hint = "There is no database in "+dir+".",
			"name the data folder of the server with --data, or its database with --database-url"
	}
	return e
}

func (r *Reader) Epoch() string                              { return r.s.epoch }
func (r *Reader) Tenant(id parley.TenantID) port.TenantStore { return r.s.Tenant(id) }
func (r *Reader) Tenants(ctx context.Context) ([]parley.TenantID, error) {
	return r.s.Tenants(ctx)
}
func (r *Reader) Close() error { return r.s.read.Close() }

const countDue = `SELECT count(*) FILTER (WHERE lease = '' AND at <= ?1), count(*) FILTER (WHERE lease <> ''),
	coalesce(min(at) FILTER (WHERE lease = '' AND at <= ?1), 0) FROM due`

// Due counts the due sessions that no process has leased, and returns since
// when the first of them is due. held counts the due sessions that a process
// has leased; that process may have died since.
func (r *Reader) Due(ctx context.Context, now time.Time) (free, held int, since time.Time, err error) {
	var first int64
	err = r.s.read.QueryRowContext(ctx, countDue, micros(now)).Scan(&free, &held, &first)
	return free, held, fromMicros(first), unavailable(err)
}

// Backup writes a consistent copy of the database in a folder to a file that
// must not exist. The copy shows one moment, even if the server writes
// meanwhile. After an error the file may exist in part.
func Backup(ctx context.Context, dir, file string) (err error) {
	db, err := openToRead(dir, "mode=ro&_pragma=busy_timeout(5000)", 1) // query_only also forbids VACUUM INTO
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// Created here, because SQLite would make the file readable by all users.
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err = db.ExecContext(ctx, `VACUUM INTO ?`, file); err != nil && writing(err) {
		return &parley.Error{Code: parley.CodeUnavailable, Message: "The backup cannot be written to " +
			filepath.Dir(file) + ".", Err: err,
			Hint: "make room there, or name a file on another disk"}
	}
	return unavailable(err)
}

// writing reports whether err comes from the written file, not from the database.
func writing(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	switch e.Code() {
	case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC,
		sqlite3.SQLITE_IOERR_TRUNCATE:
		return true
	}
	return primary(err) == sqlite3.SQLITE_FULL
}

// Integrity reads the whole database in a folder. It returns the size, and an
// error that names the damage, if there is any.
func Integrity(ctx context.Context, dir string) (bytes int64, err error) {
	db, err := openToRead(dir, readOnly, 1)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return sound(ctx, db)
}

// sessionsCutOff counts the sessions whose last event is missing.
const sessionsCutOff = `SELECT count(*) FROM sessions s WHERE deleted = 0 AND head > 0 AND NOT EXISTS (
	SELECT 1 FROM events e WHERE e.session = s.no AND e.seq = s.head)`

// VerifyBackup reads the whole of a file that Backup wrote. It checks that the pages are sound and that every log is
// complete up to its head. The file may be from an older release.
func VerifyBackup(ctx context.Context, file string) error {
	db, err := open(file, readOnly+"&immutable=1", 1) // the file has no writer
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := sound(ctx, db); err != nil {
		return err
	}
	var cut int64
	if err := db.QueryRowContext(ctx, sessionsCutOff).Scan(&cut); err != nil {
		return unavailable(err)
	}
	if cut > 0 {
		return failedCheck(ctx, fmt.Errorf("the last event of %d sessions is missing", cut))
	}
	return nil
}

// sound returns the size of a database, and an error that names the damage, if there is any.
func sound(ctx context.Context, db *sql.DB) (bytes int64, err error) {
	if err := db.QueryRowContext(ctx, `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(
		&bytes); err != nil {
		return 0, failedCheck(ctx, err)
	}
	rows, err := db.QueryContext(ctx, `PRAGMA quick_check(5)`)
	if err != nil {
		return bytes, failedCheck(ctx, err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return bytes, failedCheck(ctx, err)
		}
		if line != "ok" {
			found = append(found, line)
		}
	}
	if err := rows.Err(); err != nil {
		return bytes, failedCheck(ctx, err)
	}
	if len(found) > 0 {
		return bytes, failedCheck(ctx, errors.New(strings.Join(found, "; ")))
	}
	return bytes, nil
}

func failedCheck(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &parley.Error{Code: parley.CodeCorrupt, Message: "The database is damaged.", Err: err,
		Hint: "stop the server, remove parley.db-wal and parley.db-shm, and restore parley.db from a backup; see " +
			"docs/troubleshooting.md"}
}
