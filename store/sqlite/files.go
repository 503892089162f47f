package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// A file is one of the files of the database.
type file struct {
	name string
	info os.FileInfo

	// header is set only for the database file. It stays open until SQLite has
	// closed the database: closing it earlier would release SQLite's locks on
	// the file.
	header *os.File
	size   atomic.Int64 // when last checked
}

// remember records the files of the store: the database and its write-ahead
// log.
func (s *Store) remember(database, log string) error {
	for _, name := range []string{database, log} {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		s.files = append(s.files, &file{name: name, info: info})
	}
	header, err := os.Open(database)
	if err != nil {
		return err
	}
	s.files[0].header = header
	s.files[0].size.Store(s.files[0].info.Size())
	return nil
}

// forget closes the header file. Call it only after SQLite has closed the
// database.
func (s *Store) forget() error {
	if len(s.files) == 0 || s.files[0].header == nil {
		return nil
	}
	return s.files[0].header.Close()
}

var (
	errFileMoved = errors.New("the database is not where it was")
	errTruncated = errors.New("the database file was truncated")
)

// checkFiles returns an error if the files of the store were moved, deleted or
// truncated. SQLite can still write to a deleted file that it has open, but all
// of it is lost afterwards. It can also write to a truncated file, because it
// has pages in memory.
func (s *Store) checkFiles() error {
	for _, f := range s.files {
		info, err := os.Stat(f.name)
		if err != nil {
			return fmt.Errorf("%w: %w", errFileMoved, err)
		}
		if !os.SameFile(f.info, info) {
			return fmt.Errorf("%w: %s is another file now", errFileMoved, f.name)
		}
		if f.header == nil {
			continue
		}
		if size := info.Size(); size < f.size.Load() && !f.holds(size) {
			return fmt.Errorf("%w: %s has %d bytes and had %d", errTruncated, f.name, size, f.size.Load())
		}
		f.size.Store(info.Size())
	}
	return nil
}

// holds reports whether the pages counted in the header fit into size bytes.
// SQLite shortens a file only in VACUUM, and then the header has the new count.
func (f *file) holds(size int64) bool {
	header := make([]byte, 32)
	if _, err := f.header.ReadAt(header, 0); err != nil {
		return false
	}
	page := int64(binary.BigEndian.Uint16(header[16:]))
	if page == 1 {
		page = 65536
	}
	return page*int64(binary.BigEndian.Uint32(header[28:])) <= size
}
