package storetest

import (
	"fmt"
	"io/fs"
	"regexp"
	"testing"

	"parley/store/rules"
)

// writesRows finds a statement that changes rows, at the beginning of a line.
var writesRows = regexp.MustCompile(`(?mi)^(UPDATE|INSERT INTO|DELETE FROM) `)

// Migrations checks that every migration of a store has the comment lines that parley upgrade-check shows.
func Migrations(t *testing.T, migrations fs.FS) {
	list, err := rules.Migrations(migrations, "migrations")
	if err != nil || len(list) == 0 {
		t.Fatalf("there are %d migrations, %v", len(list), err)
	}
	for _, m := range list {
		if err := m.Check(); err != nil {
			t.Error(err)
		}
		files, err := fs.Glob(migrations, fmt.Sprintf("migrations/%04d_*.sql", m.Version))
		if err != nil || len(files) != 1 {
			t.Fatalf("migration %d has the files %q, %v", m.Version, files, err)
		}
		text, err := fs.ReadFile(migrations, files[0])
		if err != nil {
			t.Fatal(err)
		}
		if m.Rows == "none" && writesRows.Match(text) {
			t.Errorf("migration %d says that it changes no rows, and has statements that do", m.Version)
		}
	}
}
