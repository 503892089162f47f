package sqlite

import (
	"context"
	"testing"
)

// BenchmarkThere measures Store.there, which every commit calls twice.
func BenchmarkThere(b *testing.B) {
	s, err := Open(context.Background(), b.TempDir(), "a benchmark")
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if err := s.checkFiles(); err != nil {
			b.Fatal(err)
		}
	}
}
