package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// A model call of the puppet uses 3 tokens.
const perCall = 3

func quotaRig(t *testing.T, open func() port.Store, q port.Quotas, change ...func(*Config)) (*rig, *atomic.Int64) {
	var late atomic.Int64
	begun := time.Now()
	noon := begun.UTC().Truncate(24 * time.Hour).Add(12 * time.Hour) // no day ends during the test
	r := newRig(t, append(change, func(c *Config) {
		c.Quotas = func(parley.TenantID) port.Quotas { return q }
		c.MaxUsage = func(string, int64) parley.Usage { return parley.Usage{Input: perCall} }
		c.Now = func() time.Time { return noon.Add(time.Since(begun) + time.Duration(late.Load())) }
	})...)
	if open != nil {
		r.stop(true)
		r.reopen = open
		r.start()
	}
	return r, &late
}

func (r *rig) spent(t *testing.T) port.Spent {
	t.Helper()
	all, own, err := r.Store.Tenant(acme).Spent(context.Background(), port.Day(r.Now()), ann.ID, true)
	if err != nil || all != own { // ann is the only user
		t.Fatalf("%+v, %+v, %v", all, own, err)
	}
	return own
}

func TestQuotasHoldUnderConcurrentRuns(t *testing.T) { onEveryStore(t, quotasHold) }

func quotasHold(t *testing.T, open func() port.Store) {
	const runs, tokens = 50, 20
	r, _ := quotaRig(t, open, port.Quotas{User: port.Quota{Tokens: tokens}})
	started := make(chan struct{}) // no call ends before every run has begun
	r.puppet.seen = func(port.ModelRequest) { <-started }
	var ids []parley.SessionID
	for range runs {
		id := r.open()
		r.say(id, "call read a | call read b | say end")
		ids = append(ids, id)
	}
	close(started)
	for _, id := range ids {
		log := r.finished(id, 1)
		end := all[parley.RunFinished](log)[0]
		if end.Outcome == parley.Failed && (end.Code != parley.CodeQuota ||
			!strings.Contains(end.Message, "for tokens")) {
			t.Errorf("%+v", end)
		}
		r.check(id)
	}
	if used := r.spent(t); used.Input+used.Output >= tokens+perCall || used.Input+used.Output < tokens ||
		used.Calls*perCall != used.Input+used.Output || used.Sessions != runs {
		t.Errorf("%d tokens and one call more may be used, and %+v were", tokens, used)
	}
}

// TestQuotasHoldOnSeveralNodes checks that two nodes that call models at the same time use all of a quota, and exceed it
// by one call at most.
func TestQuotasHoldOnSeveralNodes(t *testing.T) {
	const runs, tokens = 25, 20
	started := make(chan struct{}) // no call ends before every run has begun
	c := newCluster(t, newBus(1))
	node := func() *rig {
		r := c.node(func(c *Config) {
			c.Quotas = func(parley.TenantID) port.Quotas {
				return port.Quotas{Tenant: port.Quota{Tokens: tokens}}
			}
			c.MaxUsage = func(string, int64) parley.Usage { return parley.Usage{Input: perCall} }
		})
		r.puppet.seen = func(port.ModelRequest) { <-started }
		return r
	}
	nodes, ids := []*rig{node(), node()}, map[parley.SessionID]*rig{}
	c.know(nodes...)
	for range runs {
		for _, r := range nodes {
			id := r.open()
			r.say(id, "call read a | call read b | say end")
			ids[id] = r
		}
	}
	close(started)
	for id, r := range ids {
		r.finished(id, 1)
	}
	used := nodes[0].spent(t)
	if n := used.Input + used.Output; n < tokens || n >= tokens+perCall || used.Calls*perCall != n {
		t.Errorf("%d tokens and one call more may be used, and %+v were", tokens, used)
	}
}

func TestSessionQuotaHoldsUnderConcurrency(t *testing.T) { onEveryStore(t, sessionQuotaHolds) }

func sessionQuotaHolds(t *testing.T, open func() port.Store) {
	r, _ := quotaRig(t, open, port.Quotas{Tenant: port.Quota{Sessions: 3}})
	var opened atomic.Int64
	var wg sync.WaitGroup
	for range 12 {
		id := parley.SessionID(fmt.Sprintf("33333333-3333-4333-8333-%012x", sessions.Add(1)))
		wg.Go(func() {
			_, err := r.try(id, parley.OpenSession{})
			switch {
			case err == nil:
				opened.Add(1)
			case parley.CodeOf(err) != parley.CodeQuota:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if used := r.spent(t); opened.Load() != 3 || used.Sessions != 3 {
		t.Errorf("%d were opened, and %+v used", opened.Load(), used)
	}
}

// TestAnswersAreAcceptedOverAQuota checks that over a quota a card can still be answered, and an accepted input stays
// in the conversation.
func TestAnswersAreAcceptedOverAQuota(t *testing.T) {
	r, late := quotaRig(t, nil, port.Quotas{User: port.Quota{Tokens: 2 * perCall}})
	id, other := r.open(), r.open()
	r.say(id, "call write a | say done")
	card := parley.CardID(seqOf[parley.ApprovalRequested](r.until(id, "it asks", seen[parley.ApprovalRequested](1)), 1))
	r.do(id, parley.SubmitInput{Content: "say later", Request: "later"}) // waits for the run
	r.say(other, "say hello")
	r.finished(other, 1)

	// The quota is used up.
	head := len(r.log(other))
	_, err := r.try(other, parley.SubmitInput{Content: "say more"})
	if parley.CodeOf(err) != parley.CodeQuota || !strings.Contains(parley.MessageOf(err), "renews at") {
		t.Errorf("%v", err)
	}
	if now := len(r.log(other)); now != head {
		t.Errorf("a refused input has left %d events", now-head)
	}
	r.restart(false)
	if _, err := r.try(other, parley.SubmitInput{Content: "say more"}); parley.CodeOf(err) != parley.CodeQuota {
		t.Errorf("after a restart: %v", err)
	}

	r.do(id, parley.DecideApproval{Card: card, Decision: parley.AllowOnce})
	log := r.finished(id, 2)
	if done := all[parley.ToolCallFinished](log); len(done) != 1 || done[0].Outcome != parley.CallSucceeded {
		t.Errorf("%+v", done)
	}
	for _, end := range all[parley.RunFinished](log) {
		if end.Outcome != parley.Failed || end.Code != parley.CodeQuota {
			t.Errorf("%+v", end)
		}
	}
	if calls := r.puppet.called(); calls != 0 { // since the restart, while the quota is used up
		t.Errorf("%d model calls were made", calls)
	}
	if adopted := all[parley.InputAdopted](log); len(adopted) != 2 {
		t.Errorf("%+v", adopted)
	}
	r.check(id)

	// The next day.
	var told []parley.Message
	r.puppet.seen = func(q port.ModelRequest) { told = q.Messages }
	late.Store(int64(24 * time.Hour))
	r.say(id, "say again")
	if end := all[parley.RunFinished](r.finished(id, 3))[2]; end.Outcome != parley.Completed {
		t.Errorf("%+v", end)
	}
	var said []string
	for _, m := range told {
		said = append(said, m.Text)
	}
	if all := strings.Join(said, "\n"); !strings.Contains(all, "say later") || !strings.Contains(all, "say again") {
		t.Errorf("the model was told %q", all)
	}
}

// TestAuxiliaryCallsCount checks that model calls about a conversation count like its turns.
func TestAuxiliaryCallsCount(t *testing.T) {
	var reached atomic.Int64
	r, _ := quotaRig(t, nil, port.Quotas{User: port.Quota{Tokens: 2 * perCall}}, func(c *Config) {
		c.QuotaReached = func(of, what string) {
			if of == "user" && what == "tokens" {
				reached.Add(1)
			}
		}
	})
	id := r.open()
	r.say(id, "call write a | say done")
	card := parley.CardID(seqOf[parley.ApprovalRequested](r.until(id, "it asks", seen[parley.ApprovalRequested](1)), 1))
	r.do(id, parley.ExplainApproval{Card: card})
	r.until(id, "it is explained", seen[parley.ApprovalExplained](1))
	if used := r.spent(t); used.Calls != 2 || used.Input+used.Output != 2*perCall {
		t.Errorf("%+v", used)
	}
	r.do(id, parley.ExplainApproval{Card: card})
	log := r.until(id, "it is not explained", seen[parley.ApprovalExplained](2))
	if text := all[parley.ApprovalExplained](log)[1].Text; !strings.Contains(text, "quota") {
		t.Errorf("%q", text)
	}
	if reached.Load() == 0 {
		t.Error("metrics do not hear of the quota")
	}
}

// TestCancelledCallsCount checks that a user cannot use more than a quota by cancelling runs before the model reports
// the usage of its calls, or by calls that fail after their first output.
func TestCancelledCallsCount(t *testing.T) { onEveryStore(t, cancelledCallsCount) }

func cancelledCallsCount(t *testing.T, open func() port.Store) {
	r, _ := quotaRig(t, open, port.Quotas{User: port.Quota{Tokens: 100}})
	id := r.open()
	for n := 1; ; n++ {
		before := r.spent(t)
		text := "say " + strings.Repeat("x", 60) + "; hang"
		if n == 2 {
			text = "say " + strings.Repeat("x", 60) + "; fail"
		}
		if _, err := r.try(id, parley.SubmitInput{Content: text}); err != nil {
			if parley.CodeOf(err) != parley.CodeQuota || before.Input+before.Output < 100 || n < 3 {
				t.Errorf("after %d runs with %+v: %v", n-1, before, err)
			}
			break
		}
		r.until(id, "it speaks", seen[parley.OutputAppended](n))
		if n != 2 {
			r.do(id, parley.CancelRun{})
		}
		r.finished(id, n)
		await(t, "the call is counted", func() bool {
			after := r.spent(t)
			return after.Output-before.Output >= 15 && after.Calls > before.Calls
		})
	}
	r.check(id)
}

// TestAQuotaHoldsAnUncountedModel checks that usage that a vendor does not report is estimated by length, for titles
// too.
func TestAQuotaHoldsAnUncountedModel(t *testing.T) {
	r, _ := quotaRig(t, nil, port.Quotas{User: port.Quota{Tokens: 400}}, titling, func(c *Config) {
		c.Cost = func(_ string, u parley.Usage) int64 { return u.Input + u.Output }
	})
	r.puppet.uncounted = true
	id := r.open()
	r.do(id, parley.SubmitInput{Content: "say " + strings.Repeat("word ", 100)})
	log := r.until(id, "it has a title", seen[parley.SessionRenamed](1))
	turn, title := all[parley.TurnFinished](log)[0].Usage, all[parley.SessionRenamed](log)[0].Usage
	for what, u := range map[string]parley.Usage{"the turn": turn, "the title": title} {
		if !u.Estimated || u.Input == 0 || u.CostMicros != u.Input+u.Output {
			t.Errorf("%s: %+v", what, u)
		}
	}
	if turn.Output < 100 || turn.Output > 200 {
		t.Errorf("500 letters are %d tokens", turn.Output)
	}
	if used := r.spent(t); used.Calls != 2 || used.Input+used.Output != turn.Input+turn.Output+title.Input+title.Output {
		t.Errorf("%+v", used)
	}
	if code := r.as(ann, id, parley.SubmitInput{Content: "say more"}); code != parley.CodeQuota {
		t.Errorf("the quota is used up, and the answer is %q", code)
	}
}
