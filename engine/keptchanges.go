package engine

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/port"
)

// The contents that files had before a run are kept in the data folder, not in the store. They go with their session,
// when it is deleted, erased, or removed by retention. A sweep finds the contents of sessions that are gone. It needs
// no list of pending removals, so nothing stays behind if the server is killed in between.

// sweepEvery is the interval of sweeps that nothing on this node caused: another node may have deleted a session.
const sweepEvery = time.Hour

// sweepLoop sweeps at the start, after a session was deleted, and every sweepEvery. The deletion of a session alone
// leaves no artifacts to sweep.
func (e *Engine) sweepLoop() {
	for artifacts := true; ; {
		if err := e.sweep(e.ctx); err != nil && e.ctx.Err() == nil {
			e.Log.Error("contents of files before runs of deleted sessions could not be removed", "error", err)
		}
		if artifacts {
			if err := e.sweepAllArtifacts(e.ctx); err != nil && e.ctx.Err() == nil {
				e.Log.Error("artifacts of erased sessions could not be removed", "error", err)
			}
		}
		timer := time.NewTimer(sweepEvery)
		select {
		case <-timer.C:
			artifacts = true
		case <-e.sweeps:
			artifacts = false
		case <-e.ctx.Done():
		}
		timer.Stop()
		if e.ctx.Err() != nil {
			return
		}
	}
}

// sweepSoon makes sweepLoop sweep.
func (e *Engine) sweepSoon() {
	select {
	case e.sweeps <- struct{}{}:
	default:
	}
}

// sweep removes the contents that files had before runs of sessions that are gone.
func (e *Engine) sweep(ctx context.Context) error {
	if e.KeptChanges == nil {
		return nil
	}
	names, err := e.KeptChanges.Names()
	if err != nil {
		return err
	}
	var failed error
	held, known := map[parley.TenantID]port.LegalHolds{}, map[key]bool{}
	for _, name := range names {
		k, ok := sessionOfNote(name)
		if !ok {
			continue
		}
		goes, looked := known[k]
		if !looked {
			if goes, err = e.gone(ctx, k, held); err != nil {
				return errors.Join(failed, err)
			}
			known[k] = goes
		}
		if goes {
			failed = errors.Join(failed, e.KeptChanges.Forget(name))
		}
	}
	return failed
}

// gone reports whether a session is missing from the store, or it or its root session is deleted. A deleted session
// under a legal hold is not gone. held caches the legal holds of each tenant.
func (e *Engine) gone(ctx context.Context, k key, held map[parley.TenantID]port.LegalHolds) (bool, error) {
	logs := e.Store.Tenant(k.tenant)
	st, err := logs.Session(ctx, k.session)
	if parley.CodeOf(err) == parley.CodeNotFound && err != nil {
		return true, nil
	}
	if parley.CodeOf(err) == parley.CodeCorrupt && err != nil {
		return false, nil // a damaged session must not keep others from being erased
	}
	if err != nil {
		return false, err
	}
	deleted := st.Summary.Deleted
	if root := st.Summary.Root; !deleted && root != k.session && root != "" {
		above, err := logs.Session(ctx, root)
		if err != nil && parley.CodeOf(err) != parley.CodeNotFound {
			return false, err
		}
		deleted = err != nil || above.Summary.Deleted
	}
	if !deleted {
		return false, nil
	}
	holds, known := held[k.tenant]
	if !known {
		if holds, err = logs.LegalHolds(ctx); err != nil {
			return false, err
		}
		held[k.tenant] = holds
	}
	return holds.On(st.Summary.Root, st.Summary.Owner) == nil, nil
}

// sessionOfNote returns the session in a name that actor.noteName has made.
func sessionOfNote(name string) (key, bool) {
	rest, run, ok := cutLast(name)
	tenant, session, found := cutLast(rest)
	_, err := strconv.ParseUint(run, 10, 64)
	return key{parley.TenantID(tenant), parley.SessionID(session)}, ok && found && err == nil
}

func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndex(text, ".")
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}
