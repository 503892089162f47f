//go:build linux && (amd64 || arm64)

package sandbox

import (
	"io"
	"testing"
)

// BenchmarkRun is what a command costs before it does anything.
func BenchmarkRun(b *testing.B) {
	for _, k := range []kind{bubblewrap, landlock, bare} {
		b.Run(string(k), func(b *testing.B) {
			if _, err := available(k); err != nil && k != bare {
				b.Skip(err)
			}
			box := &Sandbox{workspace: b.TempDir(), kind: k}
			for b.Loop() {
				if _, err := box.Run(b.Context(), Command{Argv: []string{"true"}, Dir: box.workspace, Output: io.Discard}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
