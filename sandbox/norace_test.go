//go:build !race && linux && (amd64 || arm64)

package sandbox

const testMemory = maxMemory
