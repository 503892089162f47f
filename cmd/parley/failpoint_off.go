//go:build !failpoint

package main

import "time"

// withFailpoints returns s unchanged. With the build tag failpoint it kills a
// server at a chosen write: see failpoint_on.go.
func withFailpoints(s store) store { return s }

// beneath returns the store without failpoints.
func beneath(s store) store { return s }

// now is the clock of the engine.
func now() time.Time { return time.Now() }
