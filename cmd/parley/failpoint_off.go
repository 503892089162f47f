//go:build !failpoint

package main

import "time"

// withFailpoints is for tests that kill a server at a chosen write, built with the
// tag failpoint. See failpoint_on.go.
func withFailpoints(s store) store { return s }

// beneath is the store that was opened.
func beneath(s store) store { return s }

// now is the clock of the engine.
func now() time.Time { return time.Now() }
