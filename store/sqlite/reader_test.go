package sqlite

import (
	"context"
	"strings"
	"testing"

	"parley/store/storetest"
)

// TestReader: it sees what another process commits, and leaves no trace.
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
