package engine

import (
	"context"
	"testing"

	"parley"
	"parley/port"
)

// TestGrantsOutliveTheServer checks on every store that grants hold after a
// crash, and are listed for their owner only. A revoked grant stays revoked.
func TestGrantsOutliveTheServer(t *testing.T) { onEveryStore(t, grantsOn) }

func grantsOn(t *testing.T, open func() port.Store) {
	r := newRig(t)
	r.stop(true)
	r.reopen = open
	r.start()
	bob, eve := member("bob", parley.RoleStandardUser), member("eve", parley.RoleStandardUser)
	ctx, id := context.Background(), parley.SessionID("22222222-2222-4222-8222-00000000000b")
	say := func(content string) {
		t.Helper()
		if code := r.as(bob, id, parley.SubmitInput{Open: true, Content: content}); code != "" {
			t.Fatal(code)
		}
	}
	say("call write x")
	do := parley.DecideApproval{Card: card[parley.ApprovalRequested](r, id, 1), Decision: parley.AllowAlways}
	if code := r.as(bob, id, do); code != "" {
		t.Fatal(code)
	}
	r.finished(id, 1)
	r.restart(true)
	say("call write x")
	if log := r.finished(id, 2); len(all[parley.ApprovalRequested](log)) != 1 {
		t.Errorf("it was allowed for good:\n%s", story(log))
	}
	list, err := r.Grants(ctx, bob, id)
	if err != nil || len(list) != 1 || list[0].Tool != "write" || list[0].Text != `write "x"` || list[0].By != bob.ID ||
		list[0].Scope != "exact" {
		t.Fatalf("%v %+v", err, list)
	}
	grant := parley.RevokeGrant{Grant: parley.GrantID(seqOf[parley.ApprovalDecided](r.log(id), 1))}
	if _, err := r.Grants(ctx, eve, id); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("eve sees them: %v", err)
	}
	if code := r.as(eve, id, grant); code != parley.CodeNotFound {
		t.Errorf("eve revokes one: %v", code)
	}
	if code := r.as(bob, id, grant); code != "" {
		t.Error(code)
	}
	r.restart(true)
	if list, err := r.Grants(ctx, bob, id); err != nil || len(list) != 0 {
		t.Errorf("%v %+v", err, list)
	}
	say("call write x")
	r.until(id, "it asks again", seen[parley.ApprovalRequested](2))
}
