package main

import (
	"context"
	"io"

	"golang.org/x/sys/windows"
)

// Errors of the system that are explained to the operator.
const (
	errInUse = windows.WSAEADDRINUSE // of an address
	errPipe  = windows.ERROR_NO_DATA // the reader of the pipe has closed it
)

// untilClosed does not watch the pipe on Windows: a command finds out that its reader is gone when it writes.
func untilClosed(ctx context.Context, _ io.Writer) (context.Context, func()) { return ctx, func() {} }
