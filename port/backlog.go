package port

import "time"

// A Backlog counts pending work in a store, over all tenants, and says since
// when it waits. It is for the operator and contains no names.
type Backlog struct {
	Due     []DueDepth
	Cards   []Depth // open, by kind
	Effects []Depth // undelivered, by type
}

// Add adds a row as stores count it. For cards and effects, Held is the count.
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

// A Depth counts pending items of one kind.
type Depth struct {
	Kind  string
	Count int
	Since time.Time // of the oldest item
}

// A DueDepth counts the sessions with a due row for one reason.
type DueDepth struct {
	Reason string
	Held   int       // held by a process
	Late   int       // due, and not held by a process
	Later  int       // due in the future
	Since  time.Time // when the first late session became due
}
