//go:build unix

package pdf

import "golang.org/x/sys/unix"

// limitMemory makes the process fail if it uses more.
func limitMemory() {
	most := &unix.Rlimit{Cur: memory, Max: memory}
	if unix.Setrlimit(unix.RLIMIT_DATA, most) != nil {
		unix.Exit(1)
	}
}
