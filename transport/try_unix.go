//go:build unix

package transport

import "syscall"

// tryWrite writes what a socket takes at once. It returns 0 if it takes nothing, or cannot be written.
func tryWrite(fd uintptr, b []byte) int {
	for {
		n, err := syscall.Write(int(fd), b)
		if err != syscall.EINTR {
			return max(n, 0)
		}
	}
}
