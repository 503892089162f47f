package main

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"time"
)

// A part of a server is complete when it is made, and does nothing by itself until
// Start, if it has one: Start begins the background work. Close accepts no new
// work, lets current work end, cuts it when ctx ends, and returns when no goroutine
// of the part is left. Close may be called without Start, and several times. See
// docs/adr/0046-start-and-close.md.
type part interface {
	Close(ctx context.Context) error
}

type starter interface{ Start() }

// parts are all parts of a server. They are closed in the reverse order of their start.
type parts []struct {
	name string
	part
}

func (p *parts) add(name string, x part) {
	*p = append(*p, struct {
		name string
		part
	}{name, x})
}

// open adds a resource without background work, like a store. Its Close has no time
// limit, because its last writes must not be lost.
func (p *parts) open(name string, c io.Closer) { p.add(name, closerPart{c}) }

type closerPart struct{ io.Closer }

func (p closerPart) Close(context.Context) error { return p.Closer.Close() }

// pick removes parts by name and returns them in the order of the names. Some parts
// are optional, so a name may be missing.
func (p *parts) pick(names ...string) (picked parts) {
	for _, name := range names {
		for i, x := range *p {
			if x.name == name {
				picked = append(picked, x)
				*p = slices.Delete(*p, i, i+1)
				break
			}
		}
	}
	return picked
}

// ordered removes all parts and returns them in the order of their start. The parts of base outlive the parts of work,
// which use them.
func (p *parts) ordered() (base, work parts) {
	base, work = p.pick(baseParts...), p.pick(workParts...)
	if len(*p) > 0 {
		panic("no place in the order for " + (*p)[0].name) // happens in every test or never
	}
	return base, work
}

func (p parts) start() {
	for _, x := range p {
		if s, ok := x.part.(starter); ok {
			s.Start()
		}
	}
}

// close closes all parts, even if some of them fail. They share one time limit.
func (p parts) close(within time.Duration, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for _, x := range slices.Backward(p) {
		if err := x.Close(ctx); err != nil {
			log.Warn("a part of the server did not stop well", "part", x.name, "error", err)
		}
		log.Debug("part stopped", "part", x.name)
	}
}

// onClose is a part that only runs a function when the server stops.
type onClose func()

func (f onClose) Close(context.Context) error {
	f()
	return nil
}
