package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"parley"
	"parley/store/rules"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Versions returns has, the migration version of the database in a folder (0 if
// there is none), and knows, the version of this release. It changes nothing
// and does not need the folder's lock.
func Versions(ctx context.Context, dir string) (has, knows int64, err error) {
	if knows, err = known(); err != nil {
		return 0, 0, err
	}
	file := filepath.Join(dir, database)
	if _, err := statDatabase(file); errors.Is(err, fs.ErrNotExist) {
		return 0, knows, nil
	} else if err != nil {
		return 0, knows, noDatabase(dir, err)
	}
	db, err := open(file, readOnly, 1)
	if err != nil {
		return 0, knows, err
	}
	defer db.Close()
	has, err = version(ctx, db)
	return has, knows, unavailable(err)
}

// Migrate migrates the database in a folder to the version of this release. It
// creates a missing database. It holds the folder's lock meanwhile.
func Migrate(ctx context.Context, dir, holder string, options ...Option) (from, to int64, err error) {
	err = withExclusiveDB(ctx, dir, holder, optionsOf(options), func(_ *sql.DB, before int64) error {
		from = before
		to, err = known()
		return err
	})
	return from, to, err
}

// Renew gives the database in a folder a new epoch. Followers with a cursor of
// the old epoch get a resync. See port.Store.Epoch.
func Renew(ctx context.Context, dir, holder string) (epoch string, err error) {
	err = withExclusiveDB(ctx, dir, holder, options{}, func(db *sql.DB, _ int64) error {
		epoch = newEpoch()
		_, err := db.ExecContext(ctx, `UPDATE store SET epoch = ?`, epoch)
		return err
	})
	return epoch, err
}

// withExclusiveDB calls do with a database that is up to date and that no other process
// uses. do also gets the version that the database had before.
func withExclusiveDB(ctx context.Context, dir, holder string, o options, do func(*sql.DB, int64) error) (err error) {
	lock, err := lockFolder(dir, holder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	db, before, _, err := openUpToDate(ctx, filepath.Join(dir, database), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db, before)
}

// makePrivate makes the database readable only by its owner, whatever the mode
// of its folder. Files that SQLite creates beside it get the same mode.
func makePrivate(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, name := range []string{file, file + "-wal", file + "-shm"} {
		info, err := os.Stat(name)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = os.Chmod(name, 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// awaitWriters is how long to wait for another process that writes.
const awaitWriters = 5 * time.Second

// openUpToDate opens a database for writing, migrates it and gives it an epoch
// if it has none. before is the version it had.
func openUpToDate(ctx context.Context, file string, o options) (db *sql.DB, before int64, epoch string, err error) {
	if err := o.checkExists(file); err != nil {
		return nil, 0, "", err
	}
	if err := makePrivate(file); err != nil {
		return nil, 0, "", &parley.Error{Code: parley.CodeUnavailable, Message: "The database cannot be kept for its " +
			"owner alone.", Err: err,
			Hint: "see who owns the data folder and its files"}
	}
	db, err = open(file,
		fmt.Sprintf("_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(%d)"+
			"&_pragma=wal_autocheckpoint(%d)&_pragma=cache_size(-2000)", awaitWriters.Milliseconds(), checkpointPages),
		1)
	if err != nil {
		return nil, 0, "", err
	}
	defer func() {
		if err != nil {
			db.Close()
			db = nil
		}
	}()
	if before, err = version(ctx, db); err == nil && before == 0 && o.evidence != "" {
		return db, 0, "", Lost(filepath.Dir(file), "without tables", o.evidence)
	}
	if before, err = migrate(ctx, db, o.release); err != nil {
		if _, told := errors.AsType[*parley.Error](err); !told {
			err = &parley.Error{Code: parley.CodeUnavailable, Message: "The database cannot be brought up to date.",
				Err:  err,
				Hint: restoreHint(file) + "; or move it away to start anew"}
		}
		return db, before, "", err
	}
	epoch, err = readEpoch(ctx, db)
	return db, before, epoch, err
}

// migrate migrates a database to the version of this release and returns the
// version it had. It refuses a database that a newer release has migrated,
// because its tables may have another meaning.
func migrate(ctx context.Context, db *sql.DB, release string) (before int64, err error) {
	knows, err := known()
	if err != nil {
		return 0, err
	}
	if before, err = version(ctx, db); err != nil {
		return 0, err
	}
	if before > knows {
		return before, tooNew(ctx, db, before, knows)
	}
	if before == knows {
		return before, nil
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return before, err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		return before, err
	}
	// All migrations share one sync. Without a sync a crash may lose the last
	// of them, and the next start repeats those.
	if _, err := db.ExecContext(ctx, `PRAGMA synchronous = NORMAL`); err != nil {
		return before, err
	}
	if err = noteRelease(ctx, db, before, release); err == nil {
		_, err = p.Up(ctx)
	}
	if err == nil {
		err = noteRelease(ctx, db, before, release)
	}
	_, full := db.ExecContext(ctx, `PRAGMA synchronous = FULL`)
	return before, errors.Join(err, full)
}

// known is the version this release migrates to.
func known() (int64, error) { return rules.Latest(migrations, "migrations") }

// version is the migration version of a database.
func version(ctx context.Context, db *sql.DB) (v int64, err error) {
	if exists, err := hasTable(ctx, db, "goose_db_version"); err != nil || !exists {
		return 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v, err
}

// tooNew is the error for a database that a newer release has migrated.
func tooNew(ctx context.Context, db *sql.DB, has, knows int64) error {
	return rules.TooNew(has, knows, releaseOf(ctx, db, has))
}

func newEpoch() string { return strings.ToLower(rand.Text()[:10]) }

func readEpoch(ctx context.Context, db *sql.DB) (epoch string, err error) {
	err = db.QueryRowContext(ctx, `SELECT epoch FROM store`).Scan(&epoch)
	if errors.Is(err, sql.ErrNoRows) {
		epoch = newEpoch()
		_, err = db.ExecContext(ctx, `INSERT INTO store (epoch) VALUES (?)`, epoch)
	}
	return epoch, err
}
