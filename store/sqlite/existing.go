package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley"
	"parley/store/rules"
)

// An Option changes how a data folder is opened.
type Option func(*options)

type options struct {
	evidence string // name of a file that shows that the folder was in use; empty: the database may be created
	release  string // of this program; see Release
	vault    rules.Vault
}

// MustExist refuses a folder whose database is missing, empty or without
// tables, instead of creating one. evidence names the file in the folder that
// shows that there was a database.
func MustExist(evidence string) Option { return func(o *options) { o.evidence = evidence } }

// Release names the release of this program, which the database keeps for each
// migration that it applies.
func Release(name string) Option { return func(o *options) { o.release = name } }

// WithVault encrypts secrets. Open brings those that are stored under the first
// key of the vault.
func WithVault(v rules.Vault) Option { return func(o *options) { o.vault = v } }

func optionsOf(list []Option) (o options) {
	for _, set := range list {
		set(&o)
	}
	return o
}

// checkExists is called before SQLite sees the file: SQLite creates a missing
// one, and deletes a write-ahead log that lies beside an empty one.
func (o options) checkExists(file string) error {
	info, err := statDatabase(file)
	switch {
	case err == nil && info.Size() > 0:
		return nil // whether it has tables is known once it is open
	case parley.CodeOf(err) == parley.CodeInvalid && err != nil:
		return err
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return &parley.Error{Code: parley.CodeUnavailable, Message: "The database " + file + " cannot be read.",
			Err:  err,
			Hint: "see who owns the data folder and its files"}
	}
	state := "missing"
	if err == nil {
		state = "empty"
	}
	if log, err := os.Stat(file + "-wal"); err == nil && log.Size() > 0 {
		return &parley.Error{Code: parley.CodeUnavailable, Hint: restoreHint(file) + "; move " + file +
			"-wal away first",
			Message: fmt.Sprintf("The database %s is %s, and its write-ahead log %s-wal is not.", file, state, file)}
	}
	if o.evidence != "" {
		return Lost(filepath.Dir(file), state, o.evidence)
	}
	return nil
}

// statDatabase is os.Stat of a database. It refuses what is no file: SQLite would wait for what writes to a named pipe.
func statDatabase(file string) (fs.FileInfo, error) {
	info, err := os.Stat(file)
	if err != nil || info.Mode().IsRegular() {
		return info, err
	}
	return nil, &parley.Error{Code: parley.CodeInvalid,
		Message: fmt.Sprintf("The database %s is no file: its mode is %s.", file, info.Mode()),
		Hint:    "move it away and restore a backup, or name another data folder with --data"}
}

// Lost is the error for a folder that was in use, as a file in it shows, and
// whose database is missing, empty or without tables.
func Lost(dir, state, evidence string) error {
	file := filepath.Join(dir, database)
	return &parley.Error{Code: parley.CodeUnavailable,
		Message: fmt.Sprintf("The database %s is %s, but %s shows that this data folder was in use.", file, state,
			evidence),
		Hint: restoreHint(file) + "; if the sessions are in PostgreSQL, name it with --database-url;" +
			" to start with an empty database on purpose, use parley serve --new"}
}

func restoreHint(file string) string {
	return fmt.Sprintf("restore the last file that parley backup made: cp BACKUP %s && parley migrate --restored "+
		"--data %s",
		file, filepath.Dir(file))
}
