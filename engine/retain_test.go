package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/checker"
	"parley/port"
)

// TestOldPiecesAreDeleted checks that after a while only whole texts are left.
// The session goes on from there as before, also after a restart.
func TestOldPiecesAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Retention = chunksFor(time.Hour) })
		id := r.open()
		r.say(id, "say one")
		whole := r.finished(id, 1)
		if len(all[parley.OutputAppended](whole)) == 0 {
			t.Fatal("there are no pieces to delete")
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if log := r.log(id); len(log) != len(whole) {
			t.Fatal("pieces were deleted too early")
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		log := r.log(id)
		if n := len(all[parley.OutputAppended](log)); n > 0 || !slices.Equal(texts(log), []string{"one"}) {
			t.Errorf("%d pieces are left, the texts are %q", n, texts(log))
		}
		for range 2 {
			r.restart(false)
			r.say(id, "say two")
			r.finished(id, len(all[parley.RunFinished](log))+1)
			log = r.log(id)
		}
		for _, err := range append(checker.CheckTrimmed(log), checker.Settled(log)...) {
			t.Error(err)
		}
	})
}

// chunksFor keeps only chunks for a limited time.
func chunksFor(d time.Duration) func(parley.TenantID) port.Retention {
	return func(parley.TenantID) port.Retention { return port.Retention{Chunks: d} }
}

// TestRetentionSkipsNeededSessions checks that a dry run deletes nothing and reports what retention would delete.
// Then old sessions are deleted, except those with an open run, a timer or a legal hold. A legal hold also prevents
// erasure.
func TestRetentionSkipsNeededSessions(t *testing.T) { onEveryStore(t, retentionPasses) }

func retentionPasses(t *testing.T, open func() port.Store) {
	var late atomic.Int64
	removed := map[string]bool{}
	r := newRig(t, func(c *Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
		c.Artifacts = func(_ parley.TenantID, names map[string]bool) (int, error) {
			maps.Copy(removed, names)
			return len(names), nil
		}
		c.CardLife = 1000 * time.Hour
	})
	r.stop(true)
	r.reopen = open
	r.start()
	ctx, carol := context.Background(), member("carol", parley.RoleStandardUser)
	said := func(who port.Principal, text string) parley.SessionID {
		t.Helper()
		id := parley.SessionID(fmt.Sprintf("55555555-5555-4555-8555-%012x", sessions.Add(1)))
		if code := r.as(who, id, parley.SubmitInput{Open: true, Content: text}); code != "" {
			t.Fatal(code)
		}
		return id
	}
	artifact := strings.Repeat("A", 26) + ".txt"
	old, asks, heldSession, heldUser := said(ann, "say artifact://"+artifact), said(ann, "call write a | say done"),
		said(ann, "say held"), said(carol, "say of carol")
	r.until(asks, "it asks", seen[parley.ApprovalRequested](1))
	shared := strings.Repeat("B", 26) + ".txt"
	source := said(ann, "say artifact://"+shared)
	for _, id := range []parley.SessionID{old, source, heldSession, heldUser} {
		r.finished(id, 1)
	}
	hold := func(kind port.HoldKind, id string, release bool) {
		t.Helper()
		if _, err := r.Hold(ctx, ann, port.HoldChange{LegalHold: port.LegalHold{Kind: kind, ID: id,
			Reason: "Case 4711"}, Release: release}); err != nil {
			t.Fatal(err)
		}
	}
	hold(port.HoldSession, string(heldSession), false)
	hold(port.HoldUser, "carol", false)
	late.Store(int64(48 * time.Hour))
	recent := said(ann, "say recent")
	r.finished(recent, 1)
	fork := parley.SessionID(fmt.Sprintf("55555555-5555-4555-8555-%012x", sessions.Add(1)))
	if code := r.as(ann, fork, parley.ForkSession{Source: source}); code != "" {
		t.Fatal(code)
	}

	r.Retention = func(parley.TenantID) port.Retention { return port.Retention{Transcripts: 24 * time.Hour} }
	want := map[parley.SessionID]string{asks: "a run is open", heldSession: "Case 4711", heldUser: "Case 4711"}
	for _, dry := range []bool{true, false} {
		report, err := r.Retain(ctx, ann, dry)
		if err != nil || report.Sessions != 2 || report.Bytes == 0 || len(report.Kept) != len(want) ||
			report.Note != "" {
			t.Fatalf("%+v, %v", report, err)
		}
		for _, kept := range report.Kept {
			if reason := want[kept.Session]; reason == "" || !strings.Contains(kept.Reason, reason) {
				t.Errorf("%+v", kept)
			}
		}
		_, err = r.Session(ctx, ann, old)
		if gone := parley.CodeOf(err) == parley.CodeNotFound && err != nil; gone == dry || removed[artifact] == dry {
			t.Errorf("dry %t: %v, artifacts %v", dry, err, removed)
		}
	}
	if removed[shared] {
		t.Error("an artifact that a fork names is gone")
	}
	for _, id := range []parley.SessionID{asks, heldSession, heldUser, recent, fork} {
		if len(r.log(id)) == 0 {
			t.Errorf("%s is gone", id)
		}
	}
	rows, err := r.Audited(ctx, ann, port.AuditQuery{Action: "retention.applied", Limit: 10})
	if err != nil || len(rows) != 1 || !strings.Contains(string(rows[0].Metadata), string(old)) {
		t.Errorf("%+v, %v", rows, err)
	}

	for _, user := range []parley.PrincipalID{"carol", ann.ID} { // by user, and by session
		if _, err := r.Erase(ctx, ann, user); parley.CodeOf(err) != parley.CodeConflict ||
			!strings.Contains(parley.MessageOf(err), "Case 4711") {
			t.Errorf("%s: %v", user, err)
		}
	}
	if _, err := r.Hold(ctx, carol, port.HoldChange{LegalHold: port.LegalHold{Kind: port.HoldUser, ID: "carol"},
		Release: true}); parley.CodeOf(err) != parley.CodeForbidden {
		t.Errorf("carol has released the hold: %v", err)
	}
	hold(port.HoldUser, "carol", true)
	if report, err := r.Retain(ctx, ann, false); err != nil || report.Sessions != 1 || len(report.Kept) != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	r.do(asks, parley.DecideApproval{Card: parley.CardID(seqOf[parley.ApprovalRequested](r.log(asks), 1)),
		Decision: parley.AllowOnce})
	r.finished(asks, 1)
	r.check(asks)
}

// TestOldSkillArgumentsAreDeleted checks that retention deletes the definition of an agent with the arguments of a skill
// together with the last session that used it.
func TestOldSkillArgumentsAreDeleted(t *testing.T) {
	var late atomic.Int64
	r := newRig(t, func(c *Config) {
		c.Skills = newManual()
		c.Now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	})
	called := func(arguments string) (digest string) {
		t.Helper()
		id := r.open()
		r.say(id, "/greet "+arguments)
		return all[parley.RunStarted](r.finished(id, 1))[0].Agent.Digest
	}
	gone, shared := called("zanzibar"), called("timbuktu")
	late.Store(int64(48 * time.Hour))
	if called("timbuktu") != shared {
		t.Fatal("the same call has two definitions")
	}
	r.Retention = func(parley.TenantID) port.Retention { return port.Retention{Transcripts: 24 * time.Hour} }
	if report, err := r.Retain(t.Context(), ann, false); err != nil || report.Sessions != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	for digest, stays := range map[string]bool{gone: false, shared: true} {
		if agent, err := r.Store.Tenant(acme).Definition(t.Context(), digest); (err == nil) != stays {
			t.Errorf("%q is stored: %t, %v", agent.Instructions, !stays, err)
		}
	}
}
