package parley

import "time"

// A Backlog is how much waits in a store, of all tenants together, and for how
// long: for who operates it. It names nobody.
type Backlog struct {
	Due []DueDepth
}

// A DueDepth counts the sessions that are due for one reason, now or later.
type DueDepth struct {
	Reason string
	Held   int       // in the hands of a process
	Late   int       // due, and nobody has taken them
	Later  int       // will be due
	Since  time.Time // since when the first of those that are late is
}
