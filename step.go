package parley

import "time"

// A Step is something the outside world should be doing about a session. Each
// type stands in the file of its subject. Steps are comparable.
type Step interface{ step() }

// LogOn: the log can go on by itself. Hand Decide an Advance, once nothing of an
// ended run, turn or call is alive any more.
type LogOn struct{}

// WakeAt: ask Next again at this time.
type WakeAt struct{ At time.Time }

func (LogOn) step()  {}
func (WakeAt) step() {}
