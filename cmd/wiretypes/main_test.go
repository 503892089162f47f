package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestConsoleTypesMatchWire checks that the console's generated types match the
// types that the server sends.
func TestConsoleTypesMatchWire(t *testing.T) {
	for name, want := range files() {
		got, err := os.ReadFile(filepath.Join("..", "..", "web", "src", "wire", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("web/src/wire/%s is not what the Go types say; write it again with: go generate ./web", name)
		}
	}
}
