package checker

import (
	"strings"
	"time"

	"parley"
)

// unasked is the state of timers and autonomous messages in a log.
type unasked struct {
	timers  map[parley.TimerID]parley.TimerSet // open
	set     parley.CallID                      // the call that set the last timer
	fired   []parley.TimerFired                // since the last input
	count   int                                // autonomous messages since a person wrote
	last    parley.TimerFired                  // of the previous message
	spoke   parley.Seq                         // the last message of a person
	owed    map[parley.Seq]bool                // autonomous effects that were not cancelled
	said    map[parley.InputID]bool            // synthetic inputs
	wanted  parley.RunID                       // the run that is being evaluated
	enabled parley.Autonomy                    // of the run
}

func newUnasked() unasked {
	return unasked{timers: map[parley.TimerID]parley.TimerSet{}, owed: map[parley.Seq]bool{},
		said: map[parley.InputID]bool{}}
}

// timerEvent checks timers and autonomous messages.
func (c *check) timerEvent(e parley.Event) {
	u := &c.unasked
	if _, more := e.Body.(parley.TimerFired); len(u.fired) > 0 && !more {
		in, ok := e.Body.(parley.InputReceived)
		c.must(ok && in.Synthetic, "a synthetic input must directly follow the timers that have fired")
	}
	switch b := e.Body.(type) {
	case parley.TimerSet:
		limits := b.Agent.Autonomy
		c.must(limits.Enabled, "autonomy is not enabled for the agent")
		c.must(c.run != 0 && c.turn != 0 && e.Run == c.run || c.run == 0 && b.By == "evaluator",
			"a timer must be set in a turn, or by the evaluator after a run; open are run %d and turn %d (0: none), "+
				"set by %q", c.run, c.turn, b.By)
		c.must(len(u.timers) < limits.MaxFollowUps && len(u.timers) < parley.MaxFollowUps, "%d timers wait "+
			"already, as many as the agent may have", len(u.timers))
		c.must(u.count < limits.MaxConsecutive, "%d autonomous messages followed each other already; at most %d may",
			u.count, limits.MaxConsecutive)
		c.must(!c.tainted && !c.foreign, "no timer may be set after flagged content")
		c.must(!parley.IsBlank(b.Reason), "the timer has no reason")
		u.timers[parley.TimerID(e.Seq)], u.set = b, b.Call
	case parley.TimerPostponed:
		t, ok := u.timers[b.Timer]
		c.must(ok && b.At.After(t.At), "timer %d must be open, and its new time be later", b.Timer)
		t.At = b.At
		u.timers[b.Timer] = t
	case parley.TimerFired:
		t, ok := u.timers[b.Timer]
		c.must(ok, "timer %d is not open", b.Timer)
		c.must(!b.At.Before(t.At), "timer %d fired at %v and is due at %v", b.Timer, b.At, t.At)
		c.must(c.run == 0 && len(c.waiting) == 0, "a timer must fire when no run is open and no input waits; open "+
			"is run %d (0: none), and %d inputs wait", c.run, len(c.waiting))
		c.must(!c.halted, "the session is halted, and no timer may fire")
		gap, since := time.Duration(t.Agent.Autonomy.CooldownMS)*time.Millisecond, b.At.Sub(u.last.At)
		c.must(u.last.Timer == 0 || since >= gap || since <= -gap, "the autonomous message follows the one "+
			"before after %v; expected at least %v", since, gap)
		c.must(b.Stamp > u.last.Stamp, "its stamp %d is not after the last stamp %d", b.Stamp, u.last.Stamp)
		c.must(len(u.fired) == 0 || u.fired[0].Stamp == b.Stamp, "timers that fire together must have the same stamp")
		c.must(u.count < t.Agent.Autonomy.MaxConsecutive, "%d autonomous messages followed each other already; "+
			"at most %d may", u.count, t.Agent.Autonomy.MaxConsecutive)
		u.fired = append(u.fired, b)
		delete(u.timers, b.Timer)
	case parley.TimerCancelled:
		_, ok := u.timers[b.Timer]
		c.must(ok, "timer %d is not open", b.Timer)
		delete(u.timers, b.Timer)
	case parley.InputReceived:
		fired := b.Synthetic && b.Mission == 0 // otherwise it is an idle prompt
		c.must(fired == (len(u.fired) > 0), "a follow-up, and no other input, must directly follow timers that "+
			"have fired; follow-up %t, %d timers fired", fired, len(u.fired))
		c.must(fired == strings.HasPrefix(b.Request, parley.FollowUpNamed), "the request of a follow-up, and "+
			"of no other input, must begin with %q; found %q", parley.FollowUpNamed, b.Request)
		if u.said[parley.InputID(e.Seq)] = b.Synthetic; b.Synthetic {
			u.count++
			if fired {
				u.last = u.fired[0]
			}
		} else {
			u.count, u.spoke = 0, e.Seq
		}
		u.fired, u.wanted = nil, 0
	case parley.RunStarted:
		for id := range u.timers {
			c.must(u.said[b.Input] || parley.Seq(id) > u.spoke, "timer %d was set before a person wrote, and "+
				"must be cancelled first", id)
		}
		for id := range u.owed {
			c.must(u.said[b.Input] || id > u.spoke, "autonomous effect %d was promised before a person "+
				"wrote, and must be cancelled first", id)
		}
		u.enabled = b.Agent.Autonomy
	case parley.RunFinished:
		u.wanted = 0
		room := len(u.timers) < min(u.enabled.MaxFollowUps, parley.MaxFollowUps) &&
			u.count < u.enabled.MaxConsecutive && len(c.waiting) == 0
		if b.Outcome == parley.Completed && u.enabled.Evaluator != "" && room && !c.tainted && !c.foreign {
			u.wanted = e.Run
		}
	case parley.FollowUpEvaluated:
		c.must(u.wanted == b.Run && b.Run != 0, "expected the evaluation of run %d (0: none), found that of run %d",
			u.wanted, b.Run)
		u.wanted = 0
	case parley.EffectEnqueued:
		if b.Autonomous {
			u.owed[e.Seq] = true
		}
	case parley.EffectCancelled:
		c.must(u.owed[b.Effect], "effect %d is not an open autonomous effect", b.Effect)
		delete(u.owed, b.Effect)
	case parley.SessionHalted, parley.SessionDeleted:
		c.must(len(u.timers) == 0, "%d timers must be cancelled first", len(u.timers))
		u.wanted = 0
	}
}
