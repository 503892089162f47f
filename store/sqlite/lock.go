package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley"
	"parley/machine"
)

// A folderLock is held by the one process that may write the database. The
// system releases it when that process dies, however it dies.
type folderLock struct {
	dir  *os.File // the locked folder
	file *os.File // names the process that holds the lock; also locked, because earlier releases lock only this file
}

// lockFolder locks a data folder. The lock is on the folder itself: a file in it
// can be deleted, and another process would then lock a new one.
func lockFolder(dir, holder string) (_ *folderLock, err error) {
	l := &folderLock{}
	defer func() {
		if err != nil {
			_ = l.Close() // the first error is the one to report
		}
	}()
	notWritable := func(err error) error {
		return &parley.Error{Code: parley.CodeUnavailable, Message: "The data folder cannot be written.", Err: err,
			Hint: "make it writable, or choose another with --data"}
	}
	if l.dir, err = os.Open(dir); err != nil {
		return nil, notWritable(err)
	}
	name := filepath.Join(dir, "parley.lock")
	if l.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, notWritable(err)
	}
	err = l.take()
	for end := time.Now().Add(orphanWithin); err != nil && isGone(name) && time.Now().Before(end); err = l.take() {
		time.Sleep(orphanWithin / 200)
	}
	if err != nil {
		first, _ := os.ReadFile(name)
		by := strings.TrimSpace(string(first))
		if by == "" {
			by = "another process"
		}
		return nil, &parley.Error{Code: parley.CodeUnavailable, Err: err,
			Message: fmt.Sprintf("The data folder %s is in use by %s.", dir, by),
			Hint:    "stop that server, or give this one another folder with --data"}
	}
	if err = l.file.Truncate(0); err == nil {
		_, err = l.file.WriteAt([]byte(holder+"\n"), 0)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// orphanWithin is how long a child of a killed process may still hold its lock.
const orphanWithin = 2 * time.Second

// isGone reports whether the process named in the lock file is dead. A child that it had just forked may still hold the
// lock.
func isGone(name string) bool {
	text, err := os.ReadFile(name)
	var pid int
	if _, scan := fmt.Sscanf(string(text), "process %d", &pid); err != nil || scan != nil || pid <= 0 {
		return false
	}
	return !machine.Alive(pid)
}

func (l *folderLock) take() error {
	err := machine.Lock(l.dir)
	if err != nil && !errors.Is(err, machine.ErrLocked) {
		err = nil // this file system cannot lock folders; the file is locked instead
	}
	if err == nil {
		err = machine.Lock(l.file)
	}
	return err
}

// Close unlocks the files before it closes them. A child that was just forked
// still has the files open, and with them the lock, until it executes its
// program.
func (l *folderLock) Close() error {
	var errs []error
	for _, f := range []*os.File{l.file, l.dir} {
		if f != nil {
			_ = machine.Unlock(f) // closing also unlocks, unless a child has the file open
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
