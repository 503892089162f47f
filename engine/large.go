package engine

import (
	"context"
	"sync/atomic"

	"parley"
)

// While it is stored, an input is in memory several times: as it came, as an event,
// as JSON and in the store. So only a few large ones are stored at the same time,
// and only so many more wait for that.
const (
	largeBytes   = 64 << 10
	largeAtOnce  = 16
	largeWaiting = 64
)

type largeInputs struct {
	places chan struct{}
	all    atomic.Int64 // that are stored or wait
}

var errTooManyLarge = parley.Errorf(parley.CodeOverloaded, "The server has too many large messages to store; try "+
	"again in a moment.")

// enter waits for a place. The caller gives it back by leave.
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
