package main

import (
	"context"
	"io"

	"golang.org/x/sys/windows"
)

// Errors of the system that get an explanation for the operator.
const (
	errInUse = windows.WSAEADDRINUSE // the address is in use
	errPipe  = windows.ERROR_NO_DATA // the reader has closed the pipe
)

// untilClosed does not watch the pipe on Windows: the command notices that its reader is gone when it writes.
func untilClosed(ctx context.Context, _ io.Writer) (context.Context, func()) { return ctx, func() {} }
