package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"parley"
)

// Erase deletes for good what a user has said: their sessions, and their words in the sessions of others. See
// parley.Door and docs/keeping.md.
func (e *Engine) Erase(ctx context.Context, who parley.Principal, user parley.PrincipalID) (report parley.ErasureReport,
	err error) {
	if err := e.mayKeep(ctx, who); err != nil {
		return report, err
	}
	if user == "" {
		return report, parley.Errorf(parley.CodeInvalid, "Say which user.")
	}
	// A store that may not erase says so before anything is ended.
	if err := e.Store.Erase(ctx, who.Tenant, parley.Erasure{}); err != nil {
		return report, err
	}
	holds, err := e.freeToErase(ctx, who.Tenant, user)
	if err != nil {
		return report, err
	}
	x := &eraser{Engine: e, holds: holds, tenant: who.Tenant, user: user, sum: sha256.New(),
		artifacts: map[string]bool{}, kept: map[string]bool{}}
	if err := x.others(ctx); err != nil { // what is refused is refused before anything is deleted
		return report, err
	}
	if err := x.end(ctx); err != nil {
		return report, err
	}
	if err := x.read(ctx); err != nil {
		return report, err
	}
	x.report.User, x.report.Digest = user, hex.EncodeToString(x.sum.Sum(nil))
	x.report.Sessions, x.report.Replaced = len(x.sessions), len(x.replaced)
	for name := range x.kept {
		delete(x.artifacts, name)
	}
	x.report.Artifacts = len(x.artifacts)
	err = e.Store.Erase(ctx, who.Tenant, parley.Erasure{Sessions: x.sessions, Events: x.replaced, User: user,
		Audit: []parley.Audit{x.report.Record(e.Now(), who.ID)}})
	if err != nil {
		return x.report, err
	}
	if e.Artifacts != nil { // last: what came under a legal hold meanwhile is kept
		if x.report.Artifacts, err = e.Artifacts(who.Tenant, x.artifacts); err != nil {
			return x.report, err
		}
	}
	for _, replaced := range x.replaced {
		e.Feed.Reread(who.Tenant, replaced.Session)
	}
	x.report.Rewritten, err = e.Store.Rewrite(ctx, false)
	return x.report, err
}

// freeToErase refuses to erase a user if a legal hold is on the user or on one of their sessions. It lists the holds.
func (e *Engine) freeToErase(ctx context.Context, tenant parley.TenantID, user parley.PrincipalID) (parley.LegalHolds,
	error) {
	logs := e.Store.Tenant(tenant)
	holds, err := logs.LegalHolds(ctx)
	if err != nil || len(holds) == 0 {
		return nil, err
	}
	owned, err := logs.Owned(ctx, user)
	if err != nil {
		return nil, err
	}
	held := holds.On("", user)
	for _, m := range owned {
		if held == nil {
			held = holds.On(m.Root, m.Owner)
		}
	}
	return holds, heldError(held)
}

// heldError refuses to erase what a hold covers; nil: none does.
func heldError(held *parley.LegalHold) error {
	if held == nil {
		return nil
	}
	return parley.Errorf(parley.CodeConflict, "There is %s. Nothing was erased. Release it first, if it no "+
		"longer holds.",
		held)
}

// An eraser is an erasure under way.
type eraser struct {
	*Engine
	tenant    parley.TenantID
	user      parley.PrincipalID
	holds     parley.LegalHolds
	sessions  []parley.SessionID
	replaced  []parley.Event
	artifacts map[string]bool // names
	kept      map[string]bool // names that sessions of others have too
	sum       hash.Hash
	report    parley.ErasureReport
}

const erasePage = 500

// others finds the user's words in sessions of others, and the artifacts that those sessions need. A session with an
// open run is in the way: its state is in use.
func (x *eraser) others(ctx context.Context) error {
	logs := x.Store.Tenant(x.tenant)
	sessions, wrote := map[parley.SessionID]parley.Stored{}, map[parley.SessionID]bool{}
	for after := parley.Position(0); ; {
		page, err := logs.Tree(ctx, "", after, erasePage)
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Position
		for _, e := range page {
			if e.Session == parley.TenantSession {
				continue
			}
			st, known := sessions[e.Session]
			if !known {
				if st, err = logs.Session(ctx, e.Session); err != nil {
					return err
				}
				sessions[e.Session] = st
			}
			if st.Summary.Owner == x.user {
				continue
			}
			addArtifactsOf(e, x.kept)
			if e.By != x.user {
				continue
			}
			if !wrote[e.Session] {
				if st.Summary.Run != 0 {
					return parley.Errorf(parley.CodeConflict, "The user has written in session %s of %s, in which a "+
						"run is "+
						"open. Cancel it, or wait for its end, and try again. Nothing was erased.", e.Session,
						st.Summary.Owner)
				}
				if held := x.holds.On(st.Summary.Root, st.Summary.Owner); held != nil {
					return heldError(held)
				}
				wrote[e.Session] = true
			}
			if body, had := parley.WithoutWords(e.Body); had {
				x.count(e)
				e.Body = body
				x.replaced = append(x.replaced, e)
			}
		}
	}
}

// end deletes the user's sessions as a user would, and waits until nothing of them is alive.
func (x *eraser) end(ctx context.Context) error {
	owned, err := x.Store.Tenant(x.tenant).Owned(ctx, x.user)
	if err != nil {
		return err
	}
	for _, m := range owned {
		if m.ID == parley.TenantSession {
			continue
		}
		x.sessions = append(x.sessions, m.ID)
		if m.Deleted {
			continue
		}
		if err := x.act(ctx, x.tenant, m.ID, x.user, "", parley.DeleteSession{}); err != nil &&
			parley.CodeOf(err) != parley.CodeNotFound {
			return err
		}
		if err := x.rest(ctx, key{x.tenant, m.ID}); err != nil {
			return err
		}
	}
	return nil
}

// read adds up what is about to be deleted.
func (x *eraser) read(ctx context.Context) error {
	for _, id := range x.sessions {
		for after := parley.Seq(0); ; {
			page, err := x.Store.Tenant(x.tenant).Events(ctx, id, after, erasePage)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				x.count(e)
			}
			after = page[len(page)-1].Seq
		}
	}
	return nil
}

func (x *eraser) count(e parley.Event) {
	name, version, body, err := parley.EncodeBody(e.Body)
	if err != nil {
		return // it cannot be read, and goes all the same
	}
	fmt.Fprintf(x.sum, "%s %d %s %d %d\n%s\n", e.Session, e.Seq, name, version, len(body), body)
	x.report.Events++
	x.report.Bytes += int64(len(body))
	addArtifactsOf(e, x.artifacts)
}
