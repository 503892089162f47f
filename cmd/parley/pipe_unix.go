//go:build unix

package main

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Errors of the system that get an explanation for the operator.
const (
	errInUse = unix.EADDRINUSE // the address is in use
	errPipe  = unix.EPIPE      // the reader has closed the pipe
)

// untilClosed returns a context that also ends when the reader of a pipe has closed it. A command that writes rarely
// would otherwise notice late. end stops the watch.
func untilClosed(ctx context.Context, stream io.Writer) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	f, ok := stream.(*os.File)
	if !ok {
		return ctx, func() { cancel(nil) }
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			watched := []unix.PollFd{{Fd: int32(f.Fd())}} // poll always reports errors
			if n, err := unix.Poll(watched, 200); err != nil && err != unix.EINTR {
				return
			} else if n > 0 && watched[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				cancel(&exitError{exitPipe, nil})
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}
