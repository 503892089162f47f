package main

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"time"
)

// A part of a server is whole when it is made, and then does nothing by itself. If
// it has a Start, background work begins there. Close takes nothing new, lets
// work that is under way end, cuts it when ctx ends, and returns when everything
// that the part has begun is gone. Close may come without Start, and again. See
// docs/adr/0046-start-and-close.md.
type part interface {
	Close(ctx context.Context) error
}

type starter interface{ Start() }

// parts are closed in the reverse order of their start.
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

// open adds something that is held open and runs nothing, like a store. Its Close
// has no time limit: what it writes last must not be lost.
func (p *parts) open(name string, c io.Closer) { p.add(name, held{c}) }

type held struct{ io.Closer }

func (h held) Close(context.Context) error { return h.Closer.Close() }

// pick takes parts out by name, in the order of the names. Some parts are optional,
// so a name may be missing.
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

// ordered takes all parts out, in the order in which they start. Parts of base outlive those that work needs.
func (p *parts) ordered() (base, work parts) {
	base, work = p.pick(baseParts...), p.pick(workParts...)
	if len(*p) > 0 {
		panic("no place in the order for " + (*p)[0].name) // in every test, or never
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

// close closes all parts, also after one has failed, within a time limit for all of
// them together.
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

// onClose is a part that only has something to do when the server stops.
type onClose func()

func (f onClose) Close(context.Context) error {
	f()
	return nil
}
