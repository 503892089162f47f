//go:build linux && (amd64 || arm64)

package sandbox

import "testing"

// TestKeptPlacesAreReadOnly: a command can read and run files in a kept place, and cannot
// change them.
func TestKeptPlacesAreReadOnly(t *testing.T) {
	each(t, func(b *bench) {
		b.box.protected = append(b.box.protected, Protected{"lib", false}, Protected{"absent", false})
		b.fail([]string{"write", b.workspace + "/lib/file"}, []string{"write", b.workspace + "/lib/new"},
			[]string{"open", b.workspace + "/lib/file"})
		if out := b.shell(0,
			"cat lib/file; mv lib other 2>/dev/null; echo changed >src/file"); out != "secret of file" {
			b.t.Errorf("%q", out)
		}
		if b.content(b.workspace+"/lib/file") != "secret of file" || b.content(b.workspace+"/src/file") != "changed\n" {
			b.t.Error("the wrong one was kept")
		}
	})
}
