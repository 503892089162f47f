package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// A file is one that the database consists of.
type file struct {
	name string
	info os.FileInfo

	// Of the database alone, nil of others. It stays open until SQLite has closed
	// the database: closing it earlier would drop SQLite's locks on the file.
	header *os.File
	size   atomic.Int64 // the last that was seen
}

// remember notes which files are the database: the file itself and its log.
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

// forget is called when SQLite has closed the database.
func (s *Store) forget() error {
	if len(s.files) == 0 || s.files[0].header == nil {
		return nil
	}
	return s.files[0].header.Close()
}

var (
	errAway  = errors.New("the database is not where it was")
	errShort = errors.New("the database file was truncated")
)

// there finds out whether the files that are written to can still be found, and
// are whole. A file that was deleted can be written for as long as it is open,
// and all of it is lost then; so can one that was truncated, because SQLite has
// pages of it in memory.
func (s *Store) there() error {
	for _, f := range s.files {
		info, err := os.Stat(f.name)
		if err != nil {
			return fmt.Errorf("%w: %w", errAway, err)
		}
		if !os.SameFile(f.info, info) {
			return fmt.Errorf("%w: %s is another file now", errAway, f.name)
		}
		if f.header == nil {
			continue
		}
		if size := info.Size(); size < f.size.Load() && !f.holds(size) {
			return fmt.Errorf("%w: %s has %d bytes and had %d", errShort, f.name, size, f.size.Load())
		}
		f.size.Store(info.Size())
	}
	return nil
}

// holds reports whether all pages that the header counts fit into a size. SQLite
// shortens a file only in VACUUM, and then the header says so.
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
