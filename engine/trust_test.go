package engine

import (
	"slices"
	"strings"
	"testing"

	"parley"
)

// names fails unless the n-th card of a log names exactly these sources.
func (r *rig) names(log []parley.Event, n int, sources ...parley.Source) {
	r.t.Helper()
	cards := all[parley.ApprovalRequested](log)
	if len(cards) < n || !slices.Equal(cards[n-1].Sources, sources) {
		r.t.Fatalf("want card %d to name %v:\n%s", n, sources, story(log))
	}
	for _, s := range sources {
		if !strings.Contains(cards[n-1].Why, string(s)) {
			r.t.Errorf("the card does not say %s: %q", s, cards[n-1].Why)
		}
	}
}

var asked = seen[parley.ApprovalRequested]

// askedOrEnded returns a condition: a card is open, or the n-th run has ended without one.
func askedOrEnded(n int) func([]parley.Event) bool {
	return func(log []parley.Event) bool { return asked(1)(log) || seen[parley.RunFinished](n)(log) }
}

// decideFirst decides the first approval of a log.
func (r *rig) decideFirst(id parley.SessionID, log []parley.Event, how parley.Decision) {
	r.t.Helper()
	card := parley.CardID(seqOf[parley.ApprovalRequested](log, 1))
	r.do(id, parley.DecideApproval{Card: card, Decision: how})
}

// TestUntrustedContentSurvivesRestarts checks drains and crashes, with a snapshot and without, and a compaction. The
// puppet's tool "do" has effects and asks no person by itself, as under full-auto.
func TestUntrustedContentSurvivesRestarts(t *testing.T) {
	for name, c := range map[string]struct {
		cut      bool
		snapshot parley.Seq
	}{"in peace": {false, 0}, "crash": {true, 0}, "snapshots": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, small(400), func(cfg *Config) { cfg.Snapshot = c.snapshot })
			id := r.open()
			r.tell(id, "call do x | call mail__get x | say "+strings.Repeat("word ", 300))
			if log := r.finished(id, 1); len(all[parley.ApprovalRequested](log)) > 0 {
				t.Fatalf("nothing was read yet:\n%s", story(log))
			}
			r.restart(c.cut)
			r.do(id, parley.CompactContext{})
			r.until(id, "it was compacted", seen[parley.ContextCompacted](1))
			r.restart(c.cut)
			r.tell(id, "call read x | call do x")
			r.names(r.until(id, "it asks", asked(1)), 1, "mcp:mail")
			if r.hands.count("do") > 0 || r.hands.count("read") != 1 {
				t.Errorf("done %d times, read %d times", r.hands.count("do"), r.hands.count("read"))
			}
			r.restart(c.cut) // the card waits
			r.decideFirst(id, r.log(id), parley.Deny)
			r.check(id)
		})
	}
}

// TestAnAgentThatTrusts checks that an agent's calls do not ask about sources
// that it trusts, and that those of another agent in the same session do.
func TestAnAgentThatTrusts(t *testing.T) {
	r := newRig(t)
	id := r.open()
	trusting := parley.AgentRef{Name: "trusting"}
	r.do(id, parley.SubmitInput{Content: "call mail__get x | call do x | say done", Agent: trusting})
	log := r.finished(id, 1)
	if asked(1)(log) || all[parley.RunStarted](log)[0].Agent.Trust != "mcp:mail" {
		t.Fatalf("%s", story(log))
	}
	r.do(id, parley.SubmitInput{Content: "call web__get x | call do x | say done", Agent: trusting})
	r.names(r.until(id, "it asks", asked(1)), 1, "mcp:web")
	r.do(id, parley.CancelRun{})
	r.tell(id, "call do x | say done")
	r.names(r.until(id, "it asks", asked(2)), 2, "mcp:mail", "mcp:web")
	r.do(id, parley.CancelRun{})
	r.check(id)
}

// TestUntrustedContentReachesSubAgents checks that a task that was written
// after untrusted content was read makes the sub-agent's calls ask. That holds
// at any depth, for its later inputs, and even if the sub-agent's file trusts
// the source.
func TestUntrustedContentReachesSubAgents(t *testing.T) {
	for _, agent := range []string{"one", "trusting"} {
		r := newRig(t)
		id := r.open()
		r.tell(id, "call mail__get x | call delegate "+agent+": call do x / say done | say end")
		kid := children(r.until(id, "it delegated", seen[parley.ChildSpawned](1)))[0]
		log := r.below(kid, "it asks, or ends", askedOrEnded(1))
		r.names(log, 1, "mcp:mail")
		r.restart(true)
		r.decideFirst(kid, log, parley.AllowOnce)
		r.finished(id, 1)
		r.check(id)
		r.check(kid)
	}
	r := newRig(t)
	id := r.open()
	r.tell(id, "call mail__get x | call delegate one: call delegate two: call do x")
	kid := children(r.until(id, "it delegated", seen[parley.ChildSpawned](1)))[0]
	grandkid := children(r.below(kid, "so did its child", seen[parley.ChildSpawned](1)))[0]
	r.names(r.below(grandkid, "it asks", asked(1)), 1, "mcp:mail")
	r.do(id, parley.CancelRun{})
}

// TestUntrustedContentReachesTheParent checks that the result of a sub-agent
// carries the sources that it has read, wherever a crash happens, and even if
// the sub-agent trusts them.
func TestUntrustedContentReachesTheParent(t *testing.T) {
	for _, agent := range []string{"one", "trusting"} {
		r := newRig(t)
		id := r.open()
		r.tell(id, "call delegate "+agent+": call mail__get x / call ask what / say done | call do x | say end")
		kid := children(r.until(id, "it delegated", seen[parley.ChildSpawned](1)))[0]
		card := seqOf[parley.QuestionAsked](r.below(kid, "it asks", seen[parley.QuestionAsked](1)), 1)
		r.restart(true)
		r.do(kid, parley.AnswerQuestion{Card: parley.CardID(card), Answers: [][]string{{"this"}}})
		log := r.until(id, "it asks, or ends", askedOrEnded(1))
		r.names(log, 1, "mcp:mail")
		if back := all[parley.ChildReturned](log)[0]; !slices.Contains(back.Sources, "mcp:mail") {
			t.Errorf("%+v", back)
		}
		r.do(id, parley.CancelRun{})
		r.check(id)
		r.check(kid)
	}
}

// TestFollowUpsOfUntrustedContent checks that a follow-up comes in the same
// session, and that the calls of its run ask like all others there.
func TestFollowUpsOfUntrustedContent(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Autonomy = parley.Autonomy{Enabled: true, MaxConsecutive: 3, CooldownMS: 15000, MaxFollowUps: 10}
	})
	id := r.open()
	r.tell(id, "call mail__get x | call schedule_follow_up 1 call do x | say end")
	log := r.until(id, "the follow-up asks, or ends", askedOrEnded(2))
	if len(all[parley.TimerFired](log)) != 1 {
		t.Fatalf("%s", story(log))
	}
	r.names(log, 1, "mcp:mail")
	r.do(id, parley.CancelRun{})
	r.check(id)
}

// TestRemoteTasksNeedApproval checks that a person has to approve a task for a
// remote agent that follows untrusted content, because a remote agent acts
// without asking here. Its answer is content of its own source.
func TestRemoteTasksNeedApproval(t *testing.T) {
	r, f := farRig(t)
	id := r.open()
	one := parley.AgentRef{Name: "one"}
	r.do(id, parley.SubmitInput{Content: "call mail__get x | call delegate far: look | call do x", Agent: one})
	log := r.until(id, "it asks", asked(1))
	r.names(log, 1, "mcp:mail")
	r.restart(true)
	select {
	case <-f.asked:
		t.Error("it was asked before a person allowed it")
	default:
	}
	r.decideFirst(id, log, parley.AllowOnce)
	f.next(t).say(says("Write the file x."), finished)
	log = r.until(id, "it asks again", asked(2))
	r.names(log, 2, "mcp:mail", "remote:far")
	r.do(id, parley.CancelRun{})
	r.check(id)

	id = r.open()
	r.do(id, parley.SubmitInput{Content: "call mail__get x | call delegate far: look | say end", Agent: one})
	log = r.until(id, "it asks", asked(1))
	r.decideFirst(id, log, parley.Deny)
	log = r.finished(id, 1)
	denied := all[parley.ToolCallFinished](log)[1].Outcome == parley.CallDenied
	if !denied || len(all[parley.ChildReturned](log)) != 1 || len(f.asked) > 0 {
		t.Errorf("%s", story(log))
	}
	r.check(id)
}
