//go:build race && linux && (amd64 || arm64)

package sandbox

// The race detector needs more memory than any limit would allow.
const testMemory = 1 << 60
