package parley

import "time"

// A Step is work that should be under way for a session. Each type is in the
// file of its subject. Steps are comparable.
type Step interface{ step() }

// LogOn is a step: the log can go on by itself. Give Decide an Advance, once
// nothing of an ended run, turn or call is alive any more.
type LogOn struct{}

// WakeAt is a step: call Next again at this time.
type WakeAt struct{ At time.Time }

func (LogOn) step()  {}
func (WakeAt) step() {}
