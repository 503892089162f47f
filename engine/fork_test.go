package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

const forkID = parley.SessionID("7d1e8b0c-2f61-4f0e-9a35-6f1f0a9f5f10")

// TestAForkGoesOn checks that a fork goes on from the conversation of its source, also after the source was deleted and
// the server restarted.
func TestAForkGoesOn(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.say(id, "say one")
	first := r.until(id, "it ended", seen[parley.RunFinished](1))
	r.say(id, "say two")
	before := r.until(id, "it ended", seen[parley.RunFinished](2))
	r.do(forkID, parley.ForkSession{Source: id, At: first[len(first)-1].Seq})
	if after := r.log(id); len(after) != len(before) {
		t.Errorf("the source has %d events more", len(after)-len(before))
	}
	r.do(id, parley.DeleteSession{})
	r.restart(true)
	asked := r.asks()
	r.say(forkID, "say three")
	log := r.until(forkID, "it ended", seen[parley.RunFinished](1))
	want := []string{"user: say one", "assistant: one", "user: say three"}
	if got := outline((*asked)[0].Messages); !slices.Equal(got, want) {
		t.Errorf("the model read %q, want %q", got, want)
	}
	if forked, ok := log[1].Body.(parley.SessionForked); !ok || forked.Source != id ||
		forked.At != first[len(first)-1].Seq {
		t.Errorf("the fork begins with %+v", log[1].Body)
	}
	r.check(forkID)
	if rows := r.audited("session.forked"); len(rows) != 1 {
		t.Errorf("the audit has %v", rows)
	}
}

// TestRefusedForks checks that a fork needs permission to read the source, and an event that the source has. A refusal
// leaves no session.
func TestRefusedForks(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.say(id, "say one")
	head := r.until(id, "it ended", seen[parley.RunFinished](1))
	other := member("eve", parley.RoleStandardUser)
	for _, c := range []struct {
		who  port.Principal
		do   parley.ForkSession
		code parley.Code
	}{
		{other, parley.ForkSession{Source: id}, parley.CodeNotFound},
		{ann, parley.ForkSession{Source: "00000000-0000-4000-8000-00000000000a"}, parley.CodeNotFound},
		{ann, parley.ForkSession{Source: parley.TenantSession}, parley.CodeNotFound},
		{ann, parley.ForkSession{Source: id, At: parley.Seq(len(head) + 1)}, parley.CodeInvalid},
		{ann, parley.ForkSession{Source: id, At: -1}, parley.CodeInvalid},
		{ann, parley.ForkSession{Source: id, Sources: []parley.Source{"x"}}, parley.CodeInvalid},
	} {
		if code := r.as(c.who, forkID, c.do); code != c.code {
			t.Errorf("%+v: %q, want %s", c.do, code, c.code)
		}
	}
	if log := r.log(forkID); len(log) > 0 {
		t.Errorf("there is a session: %v", log)
	}
}

// TestACompactedFork checks that the conversation before a fork is compacted as a whole.
func TestACompactedFork(t *testing.T) {
	r := newRig(t, small(4000))
	id := r.open()
	for i := range 3 {
		r.tell(id, fmt.Sprintf("say %s %d", strings.Repeat("word ", 40), i))
		r.until(id, "it ended", seen[parley.RunFinished](i+1))
	}
	r.do(forkID, parley.ForkSession{Source: id})
	r.say(forkID, "say last")
	r.until(forkID, "it ended", seen[parley.RunFinished](1))
	r.do(forkID, parley.CompactContext{})
	r.until(forkID, "it was compacted", seen[parley.ContextCompacted](1))
	asked := r.asks()
	r.say(forkID, "say more")
	r.until(forkID, "it ended", seen[parley.RunFinished](2))
	got := outline((*asked)[0].Messages)
	if len(got) > 5 || !strings.HasPrefix(got[0], "user: This is a summary") {
		t.Errorf("the model read %q", got)
	}
}

// TestAForkRemembersSources checks that a fork does not launder content: untrusted sources of its source session still
// make calls ask.
func TestAForkRemembersSources(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.tell(id, "call mail__get x | say done")
	r.finished(id, 1)
	r.do(forkID, parley.ForkSession{Source: id})
	r.tell(forkID, "call do x | say done")
	r.names(r.until(forkID, "it asks", askedOrEnded(1)), 1, "mcp:mail")
	r.do(forkID, parley.CancelRun{})
	r.check(forkID)
}
