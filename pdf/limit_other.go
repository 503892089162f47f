//go:build !unix

package pdf

import "runtime/debug"

// limitMemory has the process collect garbage before it uses more. Nothing ends it there but its time.
func limitMemory() { debug.SetMemoryLimit(memory) }
