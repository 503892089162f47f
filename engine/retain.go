package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"parley"
	"parley/pacing"
	"parley/port"
)

// Retention deletes data that a tenant no longer wants to keep. It skips sessions that are still needed: those with an
// open run, a timer, an undelivered effect or a legal hold.

const (
	// trimPause is the time that other users of the store get between two parts of the work.
	trimPause = 20 * time.Millisecond
	// oldPage bounds how many sessions are deleted in one transaction.
	oldPage = 20
)

// retain applies the retention rules of all tenants again and again. It ends when the engine is closed.
func (e *Engine) retain() {
	for {
		wait := time.Hour
		tenants, err := e.Store.Tenants(e.ctx)
		for _, tenant := range tenants {
			rules := e.Retention(tenant)
			if tenant == "" { // the server's own audit chain; it has no sessions
				rules = port.Retention{Audit: rules.Audit}
			}
			if rules == (port.Retention{}) {
				continue
			}
			wait = min(wait, rules.Shortest()/4)
			var report port.RetentionReport
			if report, err = e.retainTenant(e.ctx, tenant, rules, "", false); err != nil {
				break
			}
			if report.Chunks+report.Sessions+report.Artifacts+report.Audit > 0 {
				e.Log.Info("old data was deleted", "tenant", tenant, "chunks", report.Chunks, "sessions",
					report.Sessions, "artifacts", report.Artifacts, "audit", report.Audit)
			}
			if report.Note != "" {
				e.Log.Warn("old data could not be deleted", "tenant", tenant, "reason", report.Note)
			}
		}
		if err != nil && e.ctx.Err() == nil {
			e.Log.Error("old data could not be deleted", "error", err)
		}
		e.Log.Debug("retention has run", "next", wait)
		if !pacing.Sleep(e.ctx, wait) {
			return
		}
	}
}

// Retain applies the retention rules of a tenant now, or reports what they would delete. See port.Door.
func (e *Engine) Retain(ctx context.Context, who port.Principal, dry bool) (port.RetentionReport, error) {
	if err := e.mayManageData(ctx, who); err != nil {
		return port.RetentionReport{}, err
	}
	var rules port.Retention
	if e.Retention != nil {
		rules = e.Retention(who.Tenant)
	}
	return e.retainTenant(ctx, who.Tenant, rules, who.ID, dry)
}

// mayManageData checks the permission to decide about the data of all users.
func (e *Engine) mayManageData(ctx context.Context, who port.Principal) error {
	return e.permit(ctx, who, "", parley.ActWriteUsers, port.Resource{Kind: port.EverySession, Tenant: who.Tenant})
}

// A retainer carries out the rules of one tenant.
type retainer struct {
	*Engine
	tenant parley.TenantID
	by     parley.PrincipalID // the principal that asked for it; empty: the regular retention
	holds  port.LegalHolds
	needed map[string]bool // artifacts of sessions with an open run or a hold; nil: not known yet
	// namedBy has, for each artifact and each personal definition, the roots of the sessions that name it; nil: not known
	// yet. gone are the sessions that were deleted since then.
	namedBy     map[string]map[parley.SessionID]bool
	read        parley.Position // up to which namedBy is known
	gone        map[parley.SessionID]bool
	definitions map[string]bool // whether they are personal, by digest
	report      port.RetentionReport
}

func (e *Engine) retainTenant(ctx context.Context, tenant parley.TenantID, rules port.Retention,
	by parley.PrincipalID, dry bool) (port.RetentionReport, error) {
	x := &retainer{Engine: e, tenant: tenant, by: by, report: port.RetentionReport{DryRun: dry,
		Kept: []port.KeptSession{}}, gone: map[parley.SessionID]bool{}, definitions: map[string]bool{"": false}}
	var err error
	if x.holds, err = e.Store.Tenant(tenant).LegalHolds(ctx); err != nil {
		return x.report, err
	}
	for _, rule := range []struct {
		keep time.Duration
		do   func(context.Context, time.Time) error
	}{{rules.Transcripts, x.transcripts}, {rules.Chunks, x.chunks}, {rules.Artifacts, x.oldArtifacts},
		{rules.Audit, x.audit}} {
		if rule.keep == 0 {
			continue
		}
		switch err := rule.do(ctx, e.Now().Add(-rule.keep)); {
		case err == nil:
		case parley.CodeOf(err) == parley.CodeForbidden, parley.CodeOf(err) == parley.CodeCorrupt:
			x.report.Note = parley.MessageOf(err)
		default:
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
		if !pacing.Sleep(ctx, trimPause) {
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
		var old []port.OldSession
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
func (x *retainer) delete(ctx context.Context, before time.Time, old []port.OldSession) error {
	if len(old) == 0 {
		return nil
	}
	var ids []parley.SessionID
	var bytes int64
	for _, s := range old {
		ids, bytes = append(ids, s.Members...), bytes+s.Bytes
	}
	if !x.report.DryRun {
		names, definitions, err := x.namesOf(ctx, old)
		if err != nil {
			return err
		}
		err = x.eraseRows(ctx, x.tenant, port.Erasure{Sessions: ids, Before: before, Definitions: definitions,
			Read: x.read, Audit: []parley.Audit{port.RetentionRecord(x.Now(), x.by, old, len(names))}})
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
		if err := x.sweep(ctx); err != nil {
			return err
		}
	}
	x.report.Sessions, x.report.Bytes = x.report.Sessions+len(old), x.report.Bytes+bytes
	if !x.report.DryRun && !pacing.Sleep(ctx, trimPause) {
		return ctx.Err()
	}
	return nil
}

// namesOf returns the names of the sessions' artifacts, and the digests of their personal definitions, that no other
// session needs.
func (x *retainer) namesOf(ctx context.Context, sessions []port.OldSession) (artifacts map[string]bool,
	definitions []string, err error) {
	artifacts, digests := map[string]bool{}, map[string]bool{}
	for _, s := range sessions {
		if err := x.eachEvent(ctx, x.tenant, s.ID, func(e parley.Event) error {
			for _, name := range artifactsOf(e) {
				artifacts[name] = true
			}
			personal, err := x.isPersonal(ctx, definitionOf(e))
			if personal {
				digests[definitionOf(e)] = true
			}
			return err
		}); err != nil {
			return nil, nil, err
		}
	}
	if len(artifacts)+len(digests) == 0 {
		return artifacts, nil, nil
	}
	if err := x.findNames(ctx); err != nil {
		return nil, nil, err
	}
	for _, s := range sessions {
		x.gone[s.ID] = true
	}
	needed := func(name string, _ bool) bool {
		for root := range x.namedBy[name] {
			if !x.gone[root] {
				return true
			}
		}
		return false
	}
	maps.DeleteFunc(artifacts, needed)
	maps.DeleteFunc(digests, needed)
	return artifacts, slices.Sorted(maps.Keys(digests)), nil
}

// isPersonal is Engine.personal, which reads each definition once.
func (x *retainer) isPersonal(ctx context.Context, digest string) (bool, error) {
	personal, known := x.definitions[digest]
	if known {
		return personal, nil
	}
	personal, err := x.personal(ctx, x.tenant, digest)
	if err == nil {
		x.definitions[digest] = personal
	}
	return personal, err
}

// findNames finds which sessions name which artifacts and personal definitions: a fork names the artifacts of the
// session that it was made of.
func (x *retainer) findNames(ctx context.Context) error {
	if x.namedBy != nil {
		return nil
	}
	namedBy := map[string]map[parley.SessionID]bool{}
	err := x.eachEvent(ctx, x.tenant, "", func(e parley.Event) error {
		x.read = e.Position
		names := artifactsOf(e)
		personal, err := x.isPersonal(ctx, definitionOf(e))
		if personal {
			names = append(names, definitionOf(e))
		}
		for _, name := range names {
			if namedBy[name] == nil {
				namedBy[name] = map[parley.SessionID]bool{}
			}
			namedBy[name][e.Root] = true
		}
		return err
	})
	if err == nil {
		x.namedBy = namedBy
	}
	return err
}

// addArtifacts adds the names of the artifacts in the logs of a session and its sub-agents.
func (x *retainer) addArtifacts(ctx context.Context, root parley.SessionID, names map[string]bool) error {
	return x.eachArtifact(ctx, x.tenant, root, func(name string) { names[name] = true })
}

// maxOpenRuns bounds how many logs are read for the artifacts that open runs may still need.
const maxOpenRuns = 10000

// neededArtifacts returns the names of the artifacts of sessions with an open run, or under a legal hold.
func (x *retainer) neededArtifacts(ctx context.Context) (map[string]bool, error) {
	if x.needed != nil {
		return x.needed, nil
	}
	logs, roots := x.Store.Tenant(x.tenant), map[parley.SessionID]bool{}
	runs, err := logs.Runs(ctx, port.RunQuery{Open: true, Limit: maxOpenRuns})
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
		if h.Kind == port.HoldSession {
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

// oldArtifacts deletes old artifacts, except those that neededArtifacts returns.
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

// audit deletes the oldest records of the audit. It cuts at midnight, so that there is one cut a day at most.
func (x *retainer) audit(ctx context.Context, before time.Time) error {
	before = before.UTC().Truncate(24 * time.Hour)
	if len(x.holds) > 0 { // any record may be about held data, and a chain can only be cut at its beginning
		x.report.Kept = append(x.report.Kept, port.KeptSession{Reason: "the audit: " + x.holds[0].String()})
		return nil
	}
	if x.report.DryRun {
		n, err := x.Store.Tenant(x.tenant).OldAudit(ctx, before)
		x.report.Audit = n
		return err
	}
	for {
		n, more, err := x.Store.TrimAudit(ctx, x.tenant, before, x.by, x.Now())
		x.report.Audit += n
		if parley.CodeOf(err) == parley.CodeConflict && err != nil { // a hold was set meanwhile
			return nil
		}
		if err != nil || !more {
			return err
		}
		if !pacing.Sleep(ctx, trimPause) {
			return ctx.Err()
		}
	}
}

// LegalHolds lists the legal holds of the tenant. See port.Door.
func (e *Engine) LegalHolds(ctx context.Context, who port.Principal) (port.LegalHolds, error) {
	if err := e.mayManageData(ctx, who); err != nil {
		return nil, err
	}
	return e.Store.Tenant(who.Tenant).LegalHolds(ctx)
}

// Hold sets a legal hold, or releases it. See port.Door.
func (e *Engine) Hold(ctx context.Context, who port.Principal, change port.HoldChange) (port.LegalHold, error) {
	if err := e.mayManageData(ctx, who); err != nil {
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
		if !slices.ContainsFunc(holds, func(h port.LegalHold) bool {
			return h.Kind == change.Kind && h.ID == change.ID
		}) {
			return change.LegalHold, parley.Errorf(parley.CodeNotFound, "There is no legal hold on this %s.",
				change.Kind)
		}
	} else if change.Kind == port.HoldSession {
		st, err := logs.Session(ctx, parley.SessionID(change.ID))
		if err != nil {
			return change.LegalHold, err
		}
		change.ID = string(st.Summary.Root) // a sub-agent is kept with the session above it
	}
	_, err := e.Store.Append(ctx, port.Batch{Tenant: who.Tenant, Hold: &change,
		Audit: []parley.Audit{change.Record()}})
	return change.LegalHold, err
}
