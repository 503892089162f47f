package port

import "time"

// A Backlog is how much waits in a store, of all tenants together, and for how
// long: for who operates it. It names nobody.
type Backlog struct {
	Due     []DueDepth
	Cards   []Depth // open, by kind
	Effects []Depth // owed, by type
}

// Add takes a row as stores count them: what waits, and, of cards and effects,
// how many under Held.
func (b *Backlog) Add(what string, d DueDepth) {
	switch what {
	case "due":
		b.Due = append(b.Due, d)
	case "card":
		b.Cards = append(b.Cards, Depth{d.Reason, d.Held, d.Since})
	case "effect":
		b.Effects = append(b.Effects, Depth{d.Reason, d.Held, d.Since})
	}
}

// A Depth counts what waits of one kind.
type Depth struct {
	Kind  string
	Count int
	Since time.Time // the first of them
}

// A DueDepth counts the sessions that are due for one reason, now or later.
type DueDepth struct {
	Reason string
	Held   int       // in the hands of a process
	Late   int       // due, and nobody has taken them
	Later  int       // will be due
	Since  time.Time // since when the first of those that are late is
}
