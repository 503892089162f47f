package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/store/storetest"
)

// TestReader checks that a Reader sees the commits of another process and
// leaves no files behind.
func TestReader(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	if _, err := OpenReader(ctx, dir); err == nil || !strings.Contains(err.Error(), "no database") {
		t.Errorf("of an empty folder: %v", err)
	}
	s, err := Open(ctx, dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := OpenReader(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	storetest.ReaderSees(t, s, r)
}

// TestVerifyBackup checks that a copy with a lost event or a damaged page fails
// verification.
func TestVerifyBackup(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s, err := Open(ctx, dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := OpenReader(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	storetest.ReaderSees(t, s, r) // now there are events
	for name, harm := range map[string]func(file string){
		"": func(string) {},
		"the last event of 1 sessions is missing": func(file string) {
			db, err := open(file, "", 1)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(`DELETE FROM events WHERE no = (SELECT e.no FROM events e JOIN sessions s
				ON s.no = e.session AND s.head = e.seq LIMIT 1)`); err != nil {
				t.Fatal(err)
			}
		},
		"malformed": func(file string) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i := 4096; i < len(raw); i += 4096 { // the first bytes of every page but the first
				copy(raw[i:], "damaged")
			}
			if err := os.WriteFile(file, raw, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		file := filepath.Join(t.TempDir(), "copy.db")
		if err := Backup(ctx, dir, file); err != nil {
			t.Fatal(err)
		}
		harm(file)
		switch err := VerifyBackup(ctx, file); {
		case name == "" && err != nil:
			t.Errorf("a good copy: %v", err)
		case name != "" && (parley.CodeOf(err) != parley.CodeCorrupt || !strings.Contains(err.Error(), name)):
			t.Errorf("want %q, got %v", name, err)
		}
	}
}
