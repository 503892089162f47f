package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"parley"
	"parley/pacing"
	"parley/port"
)

// Erase permanently deletes a user's sessions, and the user's words in the sessions of others. See port.Door and
// docs/keeping.md.
func (e *Engine) Erase(ctx context.Context, who port.Principal, user parley.PrincipalID) (report port.ErasureReport,
	err error) {
	if err := e.mayManageData(ctx, who); err != nil {
		return report, err
	}
	if !user.Valid() {
		return report, parley.Errorf(parley.CodeInvalid, "%.80q is no id of a user: an id has 1 to 256 bytes, and is "+
			"printable.", user)
	}
	end, err := e.erasures.begin(ctx, e.Now())
	if err != nil {
		return report, err
	}
	defer end()
	// If the store may not erase, it refuses here, before any session is ended.
	if err := e.Store.Erase(ctx, who.Tenant, port.Erasure{}); err != nil {
		return report, err
	}
	holds, err := e.freeToErase(ctx, who.Tenant, user)
	if err != nil {
		return report, err
	}
	x := &eraser{Engine: e, holds: holds, tenant: who.Tenant, user: user, sum: sha256.New(),
		artifacts: map[string]bool{}, kept: map[string]bool{}, definitions: map[string]bool{},
		defined: map[string]bool{}, titles: map[parley.SessionID]string{}}
	if err := x.findWords(ctx); err != nil { // all refusals come before anything is deleted
		return report, err
	}
	if err := x.recordBegin(ctx, who.ID); err != nil {
		return report, err
	}
	if err := x.deleteSessions(ctx); err != nil {
		return report, err
	}
	if err := x.hashSessions(ctx); err != nil {
		return report, err
	}
	x.report.User, x.report.Digest = user, hex.EncodeToString(x.sum.Sum(nil))
	x.report.Sessions, x.report.Replaced = len(x.sessions), len(x.replaced)
	for name := range x.kept {
		delete(x.artifacts, name)
	}
	x.report.Artifacts = len(x.artifacts)
	x.begun.Artifacts = slices.Sorted(maps.Keys(x.artifacts))
	definitions, err := x.personalDefinitions(ctx)
	if err != nil {
		return report, err
	}
	err = e.eraseRows(ctx, who.Tenant, port.Erasure{Sessions: x.sessions, Events: x.replaced, Titles: x.titles,
		Definitions: definitions, Read: x.read, User: user, Begun: &x.begun,
		Audit: []parley.Audit{x.report.Record(e.Now(), who.ID)}})
	if err != nil {
		return x.report, err
	}
	if e.Artifacts != nil { // last: if a legal hold came meanwhile, the store has refused, and the artifacts are kept
		if x.report.Artifacts, err = e.Artifacts(who.Tenant, x.artifacts); err != nil {
			return x.report, err
		}
	}
	if err := errors.Join(e.sweep(ctx), e.sweepArtifacts(ctx, who.Tenant)); err != nil {
		return x.report, err
	}
	e.Feed.Replaced(who.Tenant)
	if x.report.Rewritten, err = e.erasures.rewrite(ctx, e); err != nil {
		return x.report, err
	}
	return x.report, e.Store.Erase(ctx, who.Tenant, port.Erasure{Ended: user})
}

// recordBegin records durably that the erasure begins. It takes over the artifact names that an earlier, interrupted
// erasure of the user has left.
func (x *eraser) recordBegin(ctx context.Context, by parley.PrincipalID) error {
	cut, err := x.Store.Tenant(x.tenant).BegunErasures(ctx)
	if err != nil {
		return err
	}
	x.begun = port.BegunErasure{User: x.user, By: by, At: x.Now(), Artifacts: []string{}}
	for _, b := range cut {
		if b.User == x.user {
			x.begun.Artifacts = b.Artifacts
		}
	}
	for _, name := range x.begun.Artifacts {
		x.artifacts[name] = true
	}
	return x.Store.Erase(ctx, x.tenant, port.Erasure{Begun: &x.begun, Audit: []parley.Audit{x.begun.Record()}})
}

// rewriteShare is how many times as long as the last rewrite the next one has to wait. So rewrites block the database
// of a server for at most a twentieth of the time.
const rewriteShare = 20

// awaitRewrite is how long an erasure waits for its turn before it is refused.
const awaitRewrite = 10 * time.Second

// erasures run one at a time on this server, because each of them rewrites the database.
type erasures struct {
	busy  atomic.Bool // an erasure is under way, and alone uses after
	after time.Time   // when the next may begin
}

// begin refuses an erasure during another one, or too soon after it.
func (l *erasures) begin(ctx context.Context, now time.Time) (end func(), err error) {
	if !l.busy.CompareAndSwap(false, true) {
		return nil, parley.Errorf(parley.CodeLimited, "Another erasure is under way. Nothing was erased. Try again when "+
			"it has ended.")
	}
	end = func() { l.busy.Store(false) }
	wait := l.after.Sub(now)
	switch {
	case wait > awaitRewrite:
		err = &parley.Error{Code: parley.CodeLimited, RetryAfter: wait,
			Message: fmt.Sprintf("The database was just rewritten for another erasure. Nothing was erased. Try again in "+
				"%s.", wait.Round(time.Second))}
	case !pacing.Sleep(ctx, max(wait, 0)):
		err = ctx.Err()
	}
	if err != nil {
		end()
	}
	return end, err
}

// rewrite rewrites the database, and notes when the next erasure may begin.
func (l *erasures) rewrite(ctx context.Context, e *Engine) (bool, error) {
	began := e.Now()
	done, err := e.Store.Rewrite(ctx, false)
	if done {
		ended := e.Now()
		l.after = ended.Add(rewriteShare * ended.Sub(began))
	}
	return done, err
}

// freeToErase refuses to erase a user if a legal hold is on the user or on one of their sessions. It returns all holds.
func (e *Engine) freeToErase(ctx context.Context, tenant parley.TenantID, user parley.PrincipalID) (port.LegalHolds,
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

// heldError returns the refusal to erase data under a legal hold. It is nil if held is nil.
func heldError(held *port.LegalHold) error {
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
	begun     port.BegunErasure
	holds     port.LegalHolds
	sessions  []parley.SessionID
	replaced  []parley.Event
	titles    map[parley.SessionID]string // new titles of sessions of others
	artifacts map[string]bool             // names
	kept      map[string]bool             // names that sessions of others need, too
	// Digests of definitions of agents: those that erased events name, and those that other events name.
	definitions, defined map[string]bool
	read                 parley.Position // up to which defined is known
	sum                  hash.Hash
	report               port.ErasureReport
}

const erasePage = 500

// findWords finds the user's words in sessions of others, and the artifacts that those sessions need. It fails if such
// a session has an open run, because its state is in use.
func (x *eraser) findWords(ctx context.Context) error {
	logs := x.Store.Tenant(x.tenant)
	sessions, wrote := map[parley.SessionID]port.Stored{}, map[parley.SessionID]map[parley.Seq]parley.Event{}
	copies := map[parley.SessionID]*copiedWords{}
	for after := parley.Position(0); ; {
		page, err := logs.Tree(ctx, "", after, erasePage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].Position
		x.read = after
		for _, e := range page {
			if e.Session == parley.TenantSession {
				x.defined[definitionOf(e)] = true
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
			for _, name := range artifactsOf(e) {
				x.kept[name] = true
			}
			if e.By != x.user {
				x.defined[definitionOf(e)] = true
			}
			copied := copies[e.Session]
			if copied == nil {
				copied = &copiedWords{calls: map[parley.CallID]bool{}}
				copies[e.Session] = copied
			}
			body, had := copied.without(e, x.user)
			if e.By != x.user && !had {
				continue
			}
			if wrote[e.Session] == nil {
				if st.Summary.Run != 0 {
					return parley.Errorf(parley.CodeConflict, "The user has written in session %s of %s, in which a "+
						"run is open. Cancel it, or wait for its end, and try again. Nothing was erased.", e.Session,
						st.Summary.Owner)
				}
				if held := x.holds.On(st.Summary.Root, st.Summary.Owner); held != nil {
					return heldError(held)
				}
				wrote[e.Session] = map[parley.Seq]parley.Event{}
			}
			if had {
				x.hashEvent(e)
				e.Body = body
				x.replaced = append(x.replaced, e)
				wrote[e.Session][e.Seq] = e
			}
		}
	}
	for id, replaced := range wrote {
		if err := x.retitle(ctx, sessions[id].Summary, replaced); err != nil {
			return err
		}
	}
	return nil
}

// copiedWords finds, in the log of one session, the events of others into which the server has copied words of a user:
// the result of a call that the user denied with a note, or of a question that the user answered, the end of a run that
// the user halted with a reason, and the text of a plan that the user has edited.
type copiedWords struct {
	calls  map[parley.CallID]bool // whose result has words of the user
	plan   string                 // the text of the plan
	edited bool                   // by the user
}

// without returns the body of the next event without words of a user; false: it has none that can be removed.
func (c *copiedWords) without(e parley.Event, user parley.PrincipalID) (parley.EventBody, bool) {
	byUser := e.By == user
	switch b := e.Body.(type) {
	case parley.QuestionAnswered:
		c.calls[b.Call] = c.calls[b.Call] || byUser
	case parley.ApprovalDecided:
		c.calls[b.Call] = c.calls[b.Call] || byUser && b.Note != ""
	case parley.ToolCallFinished:
		// A client returns the result of a call that it carries out.
		returned := byUser && (b.Outcome == parley.CallSucceeded || b.Outcome == parley.CallFailed)
		return port.WithoutResult(b), c.calls[b.Call] || returned
	case parley.RunFinished:
		return port.WithoutHaltReason(b), byUser && b.Outcome == parley.Halted
	case parley.PlanChanged:
		if b.Text != c.plan {
			c.plan, c.edited = b.Text, byUser
		}
		return port.WithoutPlanText(b), c.edited && b.Text != ""
	}
	if byUser {
		return port.WithoutWords(e.Body)
	}
	return e.Body, false
}

// retitle finds the title that a session of another user gets without the erased user's words. A title that a model
// wrote was made from the first message, so it is erased if that message was the user's.
func (x *eraser) retitle(ctx context.Context, m port.Summary, replaced map[parley.Seq]parley.Event) error {
	log, err := x.Store.Tenant(x.tenant).EventsWithoutChunks(ctx, m.ID, 0)
	if err != nil {
		return err
	}
	state, first := parley.NewState(x.tenant, m.ID), parley.PrincipalID("")
	for _, e := range log {
		switch b := e.Body.(type) {
		case parley.InputReceived:
			first = cmp.Or(first, e.By)
		case parley.SessionRenamed:
			if b.Agent != "" && first == x.user {
				x.hashEvent(e)
				e.Body, _ = port.WithoutWords(b)
				x.replaced = append(x.replaced, e)
			}
		}
		if without, ok := replaced[e.Seq]; ok {
			e = without
		}
		state = parley.Fold(state, e)
	}
	if state.Title != m.Title {
		x.titles[m.ID] = state.Title
	}
	return nil
}

// deleteSessions deletes the user's sessions by the command that users have, and waits until none of their work is
// alive. A run may start sub-agents until its session is deleted, so deleteSessions then looks for their sessions.
func (x *eraser) deleteSessions(ctx context.Context) error {
	deleted := map[parley.SessionID]bool{}
	for first := true; ; first = false {
		owned, err := x.Store.Tenant(x.tenant).Owned(ctx, x.user)
		if err != nil {
			return err
		}
		before := len(deleted)
		for _, m := range owned {
			if m.ID == parley.TenantSession || deleted[m.ID] || !first && !deleted[m.Root] {
				continue
			}
			deleted[m.ID] = true
			x.sessions = append(x.sessions, m.ID)
			if err := x.deleteSession(ctx, m); err != nil {
				return err
			}
		}
		if len(deleted) == before {
			return nil
		}
	}
}

func (x *eraser) deleteSession(ctx context.Context, m port.Summary) error {
	k := key{x.tenant, m.ID}
	if m.Deleted && !x.hasLoaded(k) {
		return nil
	}
	if !m.Deleted {
		if err := x.submitInternal(ctx, x.tenant, m.ID, x.user, "", parley.DeleteSession{}); err != nil &&
			parley.CodeOf(err) != parley.CodeNotFound {
			return err
		}
	}
	return x.awaitRest(ctx, k)
}

// personalDefinitions returns the definitions that contain words of a person and that only erased events name.
func (x *eraser) personalDefinitions(ctx context.Context) (list []string, err error) {
	for _, digest := range slices.Sorted(maps.Keys(x.definitions)) {
		if digest == "" || x.defined[digest] {
			continue
		}
		personal, err := x.personal(ctx, x.tenant, digest)
		if err != nil {
			return nil, err
		}
		if personal {
			list = append(list, digest)
		}
	}
	return list, nil
}

// hashSessions counts and hashes the events that are about to be deleted.
func (x *eraser) hashSessions(ctx context.Context) error {
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
				x.hashEvent(e)
			}
			after = page[len(page)-1].Seq
		}
	}
	return nil
}

func (x *eraser) hashEvent(e parley.Event) {
	name, version, body, err := parley.EncodeBody(e.Body)
	if err != nil {
		return // it cannot be encoded, and is deleted all the same
	}
	fmt.Fprintf(x.sum, "%s %d %s %d %d\n%s\n", e.Session, e.Seq, name, version, len(body), body)
	x.report.Events++
	x.report.Bytes += int64(len(body))
	for _, name := range artifactsOf(e) {
		x.artifacts[name] = true
	}
	x.definitions[definitionOf(e)] = true
}
