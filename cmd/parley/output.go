package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeWhole creates a file that appears only when it is complete and durable,
// so that an interrupted backup leaves no partial file. write gets the name of
// a file that does not exist yet.
func writeWhole(file string, write func(part string) error) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already; name a file that is not", file)
	}
	part := file + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := write(part)
	if err == nil {
		err = finish(part, file)
	}
	if err != nil {
		_ = os.Remove(part) // only the first error is reported
	}
	return err
}

func finish(part, file string) error {
	if err := syncFile(part); err != nil {
		return err
	}
	if err := os.Rename(part, file); err != nil {
		return err
	}
	return syncFile(filepath.Dir(file))
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
