package engine

import (
	"context"
	"sync/atomic"

	"parley"
)

// While an input is stored, memory holds several copies of it: as received, as
// an event, as JSON and in the store. So at most largeAtOnce large inputs are
// stored at the same time, and at most largeWaiting wait for that.
const (
	largeBytes   = 64 << 10
	largeAtOnce  = 16
	largeWaiting = 64
)

type largeInputs struct {
	places chan struct{}
	all    atomic.Int64 // large inputs that are stored or wait
}

var errTooManyLarge = parley.Errorf(parley.CodeOverloaded, "The server has too many large messages to store; try "+
	"again in a moment.")

// enter waits for a place if the command is a large input. The caller gives the
// place back by leave.
func (l *largeInputs) enter(ctx context.Context, do parley.CommandBody) (leave func(), err error) {
	in, ok := do.(parley.SubmitInput)
	size := len(in.Content)
	for _, i := range in.Images {
		size += len(i.Data)
	}
	if !ok || size < largeBytes {
		return func() {}, nil
	}
	if l.all.Add(1) > largeAtOnce+largeWaiting {
		l.all.Add(-1)
		return nil, errTooManyLarge
	}
	select {
	case l.places <- struct{}{}:
		return func() {
			<-l.places
			l.all.Add(-1)
		}, nil
	case <-ctx.Done():
		l.all.Add(-1)
		return nil, ctx.Err()
	}
}
