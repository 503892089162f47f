package engine

import "time"

// retain has the store delete pieces that were kept for long enough. It ends
// when the engine is closed.
func (e *Engine) retain() {
	for {
		deleted, more, err := e.Store.Trim(e.ctx, e.Now().Add(-e.Keep), e.Now())
		switch {
		case err != nil && e.ctx.Err() == nil:
			e.Log.Error("pieces of old outputs could not be deleted", "error", err)
		case deleted > 0:
			e.Log.Debug("pieces of old outputs were deleted", "events", deleted)
		}
		wait := min(e.Keep/4, time.Hour)
		if more && err == nil {
			wait = trimPause
		}
		select {
		case <-time.After(wait):
		case <-e.ctx.Done():
			return
		}
	}
}

// trimPause leaves the store to others between two parts of the work.
const trimPause = 20 * time.Millisecond
