package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"parley"
	"parley/store/rules"
)

// An Option changes how a data folder is opened.
type Option func(*options)

type options struct {
	evidence string // a file that shows that the folder was in use; empty: Open may create the database
	release  string // of this program; see Release
	vault    rules.Vault
}

// MustExist makes Open refuse a folder whose database is missing, empty or
// without tables, instead of creating one. evidence is the name of the file in
// the folder that shows that there was a database.
func MustExist(evidence string) Option { return func(o *options) { o.evidence = evidence } }

// Release sets the release of this program. The database records it for each
// migration that this program applies.
func Release(name string) Option { return func(o *options) { o.release = name } }

// WithVault sets the vault that encrypts secrets. Open encrypts all stored
// secrets with the first key of the vault.
func WithVault(v rules.Vault) Option { return func(o *options) { o.vault = v } }

func optionsOf(list []Option) (o options) {
	for _, set := range list {
		set(&o)
	}
	return o
}

// checkExists must be called before SQLite opens the file: SQLite creates a
// missing file, and deletes a write-ahead log beside an empty one.
func (o options) checkExists(file string) error {
	info, err := statDatabase(file)
	switch {
	case err == nil && info.Size() > 0:
		return checkLog(file) // once the database is open, openUpToDate checks whether it has tables
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
		return &parley.Error{Code: parley.CodeUnavailable,
			Hint:    "keep a copy of " + file + "-wal, and then " + restoreHint(file),
			Message: fmt.Sprintf("The database %s is %s, and its write-ahead log %s-wal is not.", file, state, file)}
	}
	if o.evidence != "" {
		return Lost(filepath.Dir(file), state, o.evidence)
	}
	return nil
}

// statDatabase is os.Stat for a database. It refuses anything but a regular file: on a named pipe, SQLite would wait
// for a writer.
func statDatabase(file string) (fs.FileInfo, error) {
	info, err := os.Stat(file)
	if err != nil || info.Mode().IsRegular() {
		return info, err
	}
	return nil, &parley.Error{Code: parley.CodeInvalid,
		Message: fmt.Sprintf("The database %s is no file: its mode is %s.", file, info.Mode()),
		Hint:    "move it away and restore a backup, or name another data folder with --data"}
}

// Lost is the error for a folder that was in use, as the file evidence shows,
// but whose database is missing, empty or without tables.
func Lost(dir, state, evidence string) error {
	file := filepath.Join(dir, database)
	return &parley.Error{Code: parley.CodeUnavailable,
		Message: fmt.Sprintf("The database %s is %s, but %s shows that this data folder was in use.", file, state,
			evidence),
		Hint: restoreHint(file) + "; if the sessions are in PostgreSQL, name it with --database-url;" +
			" to start with an empty database on purpose, use parley serve --new"}
}

// restoreHint tells the operator how to restore a backup. The write-ahead log of the old database must be removed
// first: SQLite would write it into the restored database.
func restoreHint(file string) string {
	return fmt.Sprintf("restore the last file that parley backup made: %s && cp BACKUP %s && parley migrate "+
		"--restored --data %s", removeLog(file), file, filepath.Dir(file))
}

// removeLog is the shell command that removes the write-ahead log of a database.
func removeLog(file string) string { return fmt.Sprintf("rm -f %s-wal %s-shm", file, file) }

// checkLog refuses a database that has the write-ahead log of another database, because SQLite would write that log
// into it and damage it. checkLog recognizes the case of a copy made by parley backup: the copy is not in WAL mode
// until SQLite opens it for writing, but a database gets a log only after its header says WAL mode. So checkLog does
// not refuse the log of a server that crashed.
func checkLog(file string) error {
	log, err := os.Stat(file + "-wal")
	if err != nil || log.Size() == 0 {
		return nil
	}
	header := make([]byte, 20)
	f, err := os.Open(file)
	if err != nil {
		return nil // SQLite will report why the file cannot be read
	}
	defer f.Close()
	if _, err := io.ReadFull(f, header); err != nil || string(header[:16]) != "SQLite format 3\x00" {
		return nil
	}
	const rollback = 1 // journal mode in the file header; WAL mode is 2
	if header[18] != rollback || header[19] != rollback {
		return nil
	}
	return &parley.Error{Code: parley.CodeUnavailable,
		Message: fmt.Sprintf("The write-ahead log %s-wal does not belong to the database %s. It is of the database that "+
			"was there before, and would damage this one.", file, file),
		Hint: fmt.Sprintf("remove it with %s, and run parley migrate --restored --data %s", removeLog(file),
			filepath.Dir(file))}
}

// CheckLog refuses a database with the write-ahead log of another one, as Open does, but without opening it in SQLite.
// A process that has the database open must not call CheckLog: closing the file releases SQLite's locks on it.
func CheckLog(dir string) error { return checkLog(filepath.Join(dir, database)) }

// CheckRestored refuses a database restored from a backup if a write-ahead log lies beside it. Call it before SQLite
// opens the database, because SQLite then writes the log into it. A restored file has no log of its own. If the file is
// in WAL mode, the two files do not show whether they belong together.
func CheckRestored(dir, holder string) (err error) {
	file := filepath.Join(dir, database)
	if log, err := os.Stat(file + "-wal"); err != nil || log.Size() == 0 {
		return nil
	}
	lock, err := lockFolder(dir, holder) // if a server is running, the log belongs to its database
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := checkLog(file); err != nil {
		return err
	}
	if log, err := os.Stat(file + "-wal"); err != nil || log.Size() == 0 {
		return nil
	}
	return &parley.Error{Code: parley.CodeConflict,
		Message: fmt.Sprintf("Beside the restored database %s lies a write-ahead log, %s-wal. If it is of the database "+
			"that was there before, it would damage this one.", file, file),
		Hint: fmt.Sprintf("remove the log and copy the backup again: %s && cp BACKUP %s; then run this command again. Only "+
			"if you copied the log together with the database while no server ran, run parley migrate without --restored "+
			"first, which takes the log into the database", removeLog(file), file)}
}
