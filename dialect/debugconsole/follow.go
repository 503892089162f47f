package debugconsole

import (
	"context"
	"sync"

	"parley"
	"parley/dialect"
	"parley/port"
)

// watch follows the tenant's session until the agent is stopped.
type watch struct {
	facts   port.Follower
	project string // project of the agent
	agent   string
	over    chan struct{} // closed when the watch has ended
	why     error         // the error that ended it; set before over is closed
}

// around makes a visit end when the agent is stopped.
func (w *watch) around(visit func(context.Context) (context.Context, context.CancelFunc)) func(context.Context) (
	context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, done := visit(ctx)
		ctx, stop := context.WithCancelCause(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { w.run(ctx, stop) })
		return ctx, func() {
			stop(nil)
			wg.Wait()
			done()
		}
	}
}

func (w *watch) run(ctx context.Context, stop context.CancelCauseFunc) {
	defer close(w.over)
	w.why = dialect.ReadUntil(ctx, w.facts, func(i *port.Item) bool {
		b, ok := i.Body.(parley.AgentStopped)
		return ok && b.Agent == w.agent && (b.Project == "" || b.Project == w.project)
	})
	if w.why == nil {
		stop(parley.Errorf(parley.CodeStopped, "agent is not running"))
	}
}

// Next waits until the watch has ended. A connection follows the watch until
// its own session opens.
func (w *watch) Next(ctx context.Context) ([]*port.Item, error) {
	select {
	case <-w.over:
		return nil, w.why
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close does nothing: the owner of facts closes it.
func (w *watch) Close() {}
