//go:build race && linux && (amd64 || arm64)

package sandbox

// The race detector takes more than any limit would let it.
const testMemory = 1 << 60
