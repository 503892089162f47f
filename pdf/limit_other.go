//go:build !unix

package pdf

import "runtime/debug"

// limitMemory makes the process collect garbage instead of using more. Only its time limit ends it.
func limitMemory() { debug.SetMemoryLimit(memory) }
