package engine

import (
	"context"
	"slices"
	"time"

	"parley"
)

// Retention deletes what a tenant no longer wants to keep. It passes over what is still needed: sessions with an open
// run, with a timer or an effect that is owed, or under a legal hold.

const (
	// trimPause leaves the store to others between two parts of the work.
	trimPause = 20 * time.Millisecond
	// oldPage bounds how many sessions are deleted in one transaction.
	oldPage = 20
)

// retain carries out the rules of all tenants again and again. It ends when the engine is closed.
func (e *Engine) retain() {
	for {
		wait := time.Hour
		tenants, err := e.Store.Tenants(e.ctx)
		for _, tenant := range tenants {
			rules := e.Retention(tenant)
			if rules == (parley.Retention{}) || tenant == "" {
				continue
			}
			wait = min(wait, rules.Shortest()/4)
			var report parley.RetentionReport
			if report, err = e.retainTenant(e.ctx, tenant, "", false); err != nil {
				break
			}
			if report.Chunks+report.Sessions+report.Artifacts > 0 {
				e.Log.Info("old data was deleted", "tenant", tenant, "chunks", report.Chunks, "sessions",
					report.Sessions, "artifacts", report.Artifacts)
			}
			if report.Note != "" {
				e.Log.Warn("old data could not be deleted", "tenant", tenant, "reason", report.Note)
			}
		}
		if err != nil && e.ctx.Err() == nil {
			e.Log.Error("old data could not be deleted", "error", err)
		}
		if !sleep(e.ctx, wait) {
			return
		}
	}
}

// Retain carries out the rules of a tenant now, or says what they would delete. See parley.Door.
func (e *Engine) Retain(ctx context.Context, who parley.Principal, dry bool) (parley.RetentionReport, error) {
	if err := e.mayKeep(ctx, who); err != nil {
		return parley.RetentionReport{}, err
	}
	return e.retainTenant(ctx, who.Tenant, who.ID, dry)
}

// mayKeep permits what decides about everybody's data.
func (e *Engine) mayKeep(ctx context.Context, who parley.Principal) error {
	return e.permit(ctx, who, "", parley.ActWriteUsers, parley.Resource{Kind: parley.EverySession, Tenant: who.Tenant})
}

// A retainer carries out the rules of one tenant.
type retainer struct {
	*Engine
	tenant parley.TenantID
	rules  parley.Retention
	by     parley.PrincipalID // who asked for it; empty: the clock
	holds  parley.LegalHolds
	needed map[string]bool // artifacts; nil: not known yet
	report parley.RetentionReport
}

func (e *Engine) retainTenant(ctx context.Context, tenant parley.TenantID, by parley.PrincipalID, dry bool) (
	parley.RetentionReport, error) {
	x := &retainer{Engine: e, tenant: tenant, by: by, report: parley.RetentionReport{DryRun: dry,
		Kept: []parley.KeptSession{}}}
	if e.Retention != nil {
		x.rules = e.Retention(tenant)
	}
	var err error
	if x.holds, err = e.Store.Tenant(tenant).LegalHolds(ctx); err != nil {
		return x.report, err
	}
	for _, rule := range []struct {
		keep time.Duration
		do   func(context.Context, time.Time) error
	}{{x.rules.Transcripts, x.transcripts}, {x.rules.Chunks, x.chunks}, {x.rules.Artifacts, x.oldArtifacts}} {
		if rule.keep == 0 {
			continue
		}
		switch err := rule.do(ctx, e.Now().Add(-rule.keep)); {
		case parley.CodeOf(err) == parley.CodeForbidden && err != nil:
			x.report.Note = parley.MessageOf(err)
		case err != nil:
			return x.report, err
		}
	}
	return x.report, nil
}

// chunks deletes streamed chunks of finished answers.
func (x *retainer) chunks(ctx context.Context, before time.Time) error {
	if x.report.DryRun {
		n, err := x.Store.Tenant(x.tenant).OldChunks(ctx, before)
		x.report.Chunks = n
		return err
	}
	for {
		n, more, err := x.Store.Trim(ctx, func(tenant parley.TenantID) (t time.Time) {
			if tenant == x.tenant {
				t = before
			}
			return t
		}, x.Now())
		x.report.Chunks += n
		if err != nil || !more {
			return err
		}
		if !sleep(ctx, trimPause) {
			return ctx.Err()
		}
	}
}

// transcripts deletes whole sessions.
func (x *retainer) transcripts(ctx context.Context, before time.Time) error {
	for after := parley.SessionID(""); ; {
		page, err := x.Store.Tenant(x.tenant).Old(ctx, before, after, oldPage)
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].ID
		var old []parley.OldSession
		for _, s := range page {
			if reason := s.Needed(x.holds); reason != "" {
				x.report.Keep(s, reason)
				continue
			}
			old = append(old, s)
		}
		if err := x.delete(ctx, before, old); err != nil {
			return err
		}
	}
}

// delete deletes sessions with their artifacts. If one of them is changed meanwhile, all are left for the next time.
func (x *retainer) delete(ctx context.Context, before time.Time, old []parley.OldSession) error {
	if len(old) == 0 {
		return nil
	}
	var ids []parley.SessionID
	var bytes int64
	for _, s := range old {
		ids, bytes = append(ids, s.Members...), bytes+s.Bytes
	}
	if !x.report.DryRun {
		names, err := x.artifactsOf(ctx, old)
		if err != nil {
			return err
		}
		err = x.Store.Erase(ctx, x.tenant, parley.Erasure{Sessions: ids, Before: before,
			Audit: []parley.Audit{parley.RetentionRecord(x.Now(), x.by, old, len(names))}})
		if parley.CodeOf(err) == parley.CodeConflict && err != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if x.Artifacts != nil {
			n, err := x.Artifacts(x.tenant, names)
			x.report.Artifacts += n
			if err != nil {
				return err
			}
		}
	}
	x.report.Sessions, x.report.Bytes = x.report.Sessions+len(old), x.report.Bytes+bytes
	if !x.report.DryRun && !sleep(ctx, trimPause) {
		return ctx.Err()
	}
	return nil
}

// artifactsOf are the names of the artifacts of sessions that no other session needs.
func (x *retainer) artifactsOf(ctx context.Context, sessions []parley.OldSession) (map[string]bool, error) {
	names := map[string]bool{}
	for _, s := range sessions {
		if err := x.addArtifacts(ctx, s.ID, names); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return names, nil
	}
	needed, err := x.neededArtifacts(ctx)
	for name := range needed {
		delete(names, name)
	}
	return names, err
}

// addArtifacts adds the names that are in the logs of a session and its sub-agents.
func (x *retainer) addArtifacts(ctx context.Context, root parley.SessionID, names map[string]bool) error {
	for after := parley.Position(0); ; {
		page, err := x.Store.Tenant(x.tenant).Tree(ctx, root, after, erasePage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			addArtifactsOf(e, names)
		}
		after = page[len(page)-1].Position
	}
}

// addArtifactsOf adds the names that an event has.
func addArtifactsOf(e parley.Event, names map[string]bool) {
	if _, _, body, err := parley.EncodeBody(e.Body); err == nil {
		for _, name := range parley.ArtifactsIn(string(body)) {
			names[name] = true
		}
	}
}

// maxOpenRuns bounds how many logs are read for the artifacts that open runs may still want.
const maxOpenRuns = 10000

// neededArtifacts are those of sessions with an open run, or under a legal hold.
func (x *retainer) neededArtifacts(ctx context.Context) (map[string]bool, error) {
	if x.needed != nil {
		return x.needed, nil
	}
	logs, roots := x.Store.Tenant(x.tenant), map[parley.SessionID]bool{}
	runs, err := logs.Runs(ctx, parley.RunQuery{Open: true, Limit: maxOpenRuns})
	if err != nil {
		return nil, err
	}
	if len(runs) == maxOpenRuns {
		return nil, parley.Errorf(parley.CodeForbidden, "Artifacts are kept, because more than %d runs are open.",
			maxOpenRuns)
	}
	for _, r := range runs {
		roots[r.Root] = true
	}
	for _, h := range x.holds {
		if h.Kind == parley.HoldSession {
			roots[parley.SessionID(h.ID)] = true
			continue
		}
		owned, err := logs.Owned(ctx, parley.PrincipalID(h.ID))
		if err != nil {
			return nil, err
		}
		for _, m := range owned {
			roots[m.Root] = true
		}
	}
	needed := map[string]bool{}
	for root := range roots {
		if err := x.addArtifacts(ctx, root, needed); err != nil {
			return nil, err
		}
	}
	x.needed = needed
	return needed, nil
}

// oldArtifacts deletes artifacts that no session needs.
func (x *retainer) oldArtifacts(ctx context.Context, before time.Time) error {
	if x.OldArtifacts == nil {
		return nil
	}
	needed, err := x.neededArtifacts(ctx)
	if err != nil {
		return err
	}
	n, err := x.OldArtifacts(x.tenant, before, needed, x.report.DryRun)
	x.report.Artifacts += n
	return err
}

// LegalHolds lists those of the tenant. See parley.Door.
func (e *Engine) LegalHolds(ctx context.Context, who parley.Principal) (parley.LegalHolds, error) {
	if err := e.mayKeep(ctx, who); err != nil {
		return nil, err
	}
	return e.Store.Tenant(who.Tenant).LegalHolds(ctx)
}

// Hold sets a legal hold, or releases it. See parley.Door.
func (e *Engine) Hold(ctx context.Context, who parley.Principal, change parley.HoldChange) (parley.LegalHold, error) {
	if err := e.mayKeep(ctx, who); err != nil {
		return change.LegalHold, err
	}
	change.By, change.At = who.ID, e.Now()
	if err := change.Check(); err != nil {
		return change.LegalHold, err
	}
	logs := e.Store.Tenant(who.Tenant)
	if change.Release {
		holds, err := logs.LegalHolds(ctx)
		if err != nil {
			return change.LegalHold, err
		}
		if !slices.ContainsFunc(holds, func(h parley.LegalHold) bool {
			return h.Kind == change.Kind && h.ID == change.ID
		}) {
			return change.LegalHold, parley.Errorf(parley.CodeNotFound, "There is no legal hold on this %s.",
				change.Kind)
		}
	} else if change.Kind == parley.HoldSession {
		st, err := logs.Session(ctx, parley.SessionID(change.ID))
		if err != nil {
			return change.LegalHold, err
		}
		change.ID = string(st.Summary.Root) // a sub-agent is kept with the session above it
	}
	_, err := e.Store.Append(ctx, parley.Batch{Tenant: who.Tenant, Hold: &change,
		Audit: []parley.Audit{change.Record()}})
	return change.LegalHold, err
}
