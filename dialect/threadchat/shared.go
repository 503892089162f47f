package threadchat

import (
	"slices"

	"parley/dialect"
	"parley/port"
)

// A projection is what an event means to connections with equal views. They share it.
type projection struct {
	before, after *View
	frames        [][]byte
	bye           *dialect.Goodbye
}

// projected returns the projection of an item for a view, which other connections may have made.
func projected(v *View, i *port.Item) *projection {
	fits := func(made any) bool {
		p, ok := made.(*projection)
		return ok && (p.before == v || p.before.equals(v))
	}
	return i.Share(fits, func() any { return project(v, i) }).(*projection)
}

func project(v *View, i *port.Item) *projection {
	after, frames := Project(*v, i.Event)
	p := &projection{before: v, after: &after}
	for _, f := range frames {
		if f.Close != nil {
			p.bye = f.Close
			break
		}
		p.frames = append(p.frames, dialect.Encode(f.Body))
	}
	p.frames = slices.Clip(p.frames) // connections append to it
	return p
}

// equals reports whether two views show every event in the same way. It may be wrong about views with open cards, and
// takes them for different.
func (v *View) equals(o *View) bool {
	return v.run == o.run && v.Shape == o.Shape && v.Thread == o.Thread && v.Notices == o.Notices &&
		v.text == o.text && v.agent == o.agent && v.began.Equal(o.began) && v.said == o.said &&
		slices.Equal(v.requests, o.requests) && !v.hasCards() && !o.hasCards()
}

func (v *View) hasCards() bool { return len(v.lost) > 0 || !v.below.Empty() }
