//go:build linux && (amd64 || arm64)

package sandbox

import (
	"io"
	"testing"
)

// BenchmarkRun measures the overhead of running a command.
func BenchmarkRun(b *testing.B) {
	for _, r := range append(rungs, bare) {
		b.Run(string(r), func(b *testing.B) {
			if why := unusable(r); why != "" && r != bare {
				b.Skip(why)
			}
			box := &Sandbox{workspace: b.TempDir(), secret: isEnv, rung: r}
			for b.Loop() {
				if _, err := box.Run(b.Context(), Command{Argv: []string{"true"}, Dir: box.workspace,
					Output: io.Discard}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
