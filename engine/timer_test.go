package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
)

// forward enables autonomous messages.
func forward(c *Config) {
	c.Autonomy = parley.Autonomy{Enabled: true, MaxConsecutive: 3, CooldownMS: 15000, MaxFollowUps: 10}
}

// unaskedInputs returns the inputs that timers led to.
func unaskedInputs(log []parley.Event) (list []parley.InputReceived) {
	for _, in := range all[parley.InputReceived](log) {
		if in.Synthetic {
			list = append(list, in)
		}
	}
	return list
}

// TestAFollowUpComes checks that a follow-up comes at its time, to the second,
// although the session was unloaded meanwhile: the scheduler does not look for
// it before it is due.
func TestAFollowUpComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, forward)
		id := r.open()
		begin := time.Now()
		r.say(id, "call schedule_follow_up 7200 say here/ I am | say later")
		r.finished(id, 1)
		time.Sleep(time.Hour)
		if n := r.loaded(); n != 0 {
			t.Errorf("%d sessions are loaded while nothing goes on", n)
		}
		time.Sleep(time.Hour + time.Second)
		log := r.finished(id, 2)
		in := unaskedInputs(log)
		if len(in) != 1 || in[0].Content != "say here| I am" || in[0].Request != fmt.Sprintf("timer_autonomous_%d",
			begin.Add(2*time.Hour).Unix()) {
			t.Fatalf("%+v", in)
		}
		if got := texts(log); got[len(got)-1] != "here" {
			t.Errorf("it says %q", got)
		}
		if owed, err := r.Store.Tenant(acme).Undelivered(context.Background(), id, time.Time{}); err != nil ||
			len(owed) != 1 {
			t.Errorf("owed are %v, %v", owed, err)
		}
		r.check(id)
	})
}

// TestAFollowUpSurvivesRestarts checks that a follow-up comes once, however
// often the server was drained or cut off in between.
func TestAFollowUpSurvivesRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, forward)
		id := r.open()
		r.say(id, "call schedule_follow_up 600 say here | say later")
		r.finished(id, 1)
		for i := range 5 {
			r.restart(i%2 == 0)
			time.Sleep(time.Minute)
		}
		r.stop(true)
		time.Sleep(24 * time.Hour) // it is late
		r.start()
		r.finished(id, 2)
		r.restart(true)
		time.Sleep(time.Hour)
		if log := r.log(id); len(unaskedInputs(log)) != 1 || len(all[parley.RunFinished](log)) != 2 {
			t.Errorf("it came %d times", len(unaskedInputs(log)))
		}
		r.check(id)
	})
}

// TestFollowUpsOfUnavailableAgents checks that a follow-up does not come if
// autonomy was switched off, or the agent was stopped or removed, since it was
// set.
func TestFollowUpsOfUnavailableAgents(t *testing.T) {
	for want, change := range map[parley.TimerEnd]func(*rig){
		"disabled":          func(r *rig) { r.config.Autonomy = parley.Autonomy{} },
		parley.TimerNoAgent: func(r *rig) { r.config.Agents = noAgents{} },
		parley.TimerStopped: func(*rig) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, forward)
			id := r.open()
			r.say(id, "call schedule_follow_up 600 say here | say later")
			r.finished(id, 1)
			if change(r); want == parley.TimerStopped {
				r.do(parley.TenantSession, parley.StopAgent{Agent: "puppet"})
			}
			r.restart(false)
			time.Sleep(time.Hour)
			if got := all[parley.TimerCancelled](r.log(id)); len(got) != 1 || got[0].Why != want ||
				len(unaskedInputs(r.log(id))) != 0 {
				t.Errorf("%s: %+v\n%s", want, got, story(r.log(id)))
			}
			r.check(id)
		})
	}
}

type noAgents struct{}

func (noAgents) Agent(parley.TenantID, string) (parley.Agent, error) {
	return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There are no agents.")
}
func (noAgents) List(parley.TenantID) []parley.Agent { return nil }

// TestFollowUpsStopAtTheCap checks an agent that sets another follow-up every
// time. It sends three messages, at least fifteen seconds apart, and then waits
// for an answer: "agent sent a gazillion messages".
func TestFollowUpsStopAtTheCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, forward)
		id := r.open()
		r.do(id, parley.SubmitInput{Content: "call schedule_follow_up 5 call schedule_follow_up 5 say a/ say one; " +
			"call schedule_follow_up 20 say b; call schedule_follow_up 40 say c; call schedule_follow_up 60 say d; call schedule_follow_up 80 say e | say go"})
		time.Sleep(time.Hour)
		log := r.log(id)
		var last time.Time
		for _, f := range all[parley.TimerFired](log) {
			if gap := f.At.Sub(last); gap != 0 && gap < 15*time.Second { // timers of one message fire at the same time
				t.Errorf("%v after the one before", gap)
			}
			last = f.At
		}
		if n := len(unaskedInputs(log)); n != 3 {
			t.Errorf("%d messages came unasked\n%s", n, story(log))
		}
		r.check(id)
		r.say(id, "call schedule_follow_up 5 say again | say go on")
		time.Sleep(time.Minute)
		if n := len(unaskedInputs(r.log(id))); n != 4 {
			t.Errorf("after a message of a person %d came", n)
		}
	})
}

// TestAFollowUpAndAClockThatJumps checks that a clock that is set forward and
// back makes a follow-up early or late, but not double.
func TestAFollowUpAndAClockThatJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		r := newRig(t, forward,
			func(c *Config) { c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) } })
		id := r.open()
		r.say(id, "call schedule_follow_up 7200 say early; call schedule_follow_up 10800 say late | say later")
		r.finished(id, 1)
		ahead.Store(int64(150 * time.Minute))
		time.Sleep(2 * time.Minute) // the scheduler looks at the clock
		log := r.finished(id, 2)
		if in := unaskedInputs(log); len(in) != 1 || in[0].Content != "say early" {
			t.Errorf("%+v", in)
		}
		ahead.Store(0)
		time.Sleep(2 * time.Hour)
		if n := len(unaskedInputs(r.log(id))); n != 1 {
			t.Errorf("%d came while the clock was back", n)
		}
		time.Sleep(2 * time.Hour)
		if in := unaskedInputs(r.log(id)); len(in) != 2 || in[1].Content != "say late" {
			t.Errorf("%+v", in)
		}
		r.check(id)
	})
}

// TestTimerCommandPermissions checks that a client cannot fire a timer, and that only
// principals that may talk to the session can cancel it.
func TestTimerCommandPermissions(t *testing.T) {
	r := newRig(t, forward)
	id := r.open()
	r.say(id, "call schedule_follow_up 600 say here | say later")
	log := r.finished(id, 1)
	timer := parley.TimerID(seqOf[parley.TimerSet](log, 1))
	if _, err := r.try(id, parley.FireTimer{Timer: timer}); parley.CodeOf(err) != parley.CodeInvalid {
		t.Errorf("fired from outside: %v", err)
	}
	bob := port.Principal{ID: "bob", Tenant: acme, Roles: []parley.UserRole{"standard_user"}}
	if _, err := r.Submit(context.Background(), bob,
		parley.Command{Session: id, Do: parley.CancelTimer{Timer: timer}}); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("taken back by somebody else: %v", err)
	}
	r.do(id, parley.CancelTimer{Timer: timer})
	if _, err := r.try(id, parley.CancelTimer{Timer: timer}); parley.CodeOf(err) != parley.CodeClosed {
		t.Errorf("taken back twice: %v", err)
	}
}

// TestEvaluations checks that the evaluator is called once a run has ended. An
// invalid answer means no.
func TestEvaluations(t *testing.T) {
	good := `{"shouldSchedule":true,"delaySeconds":60,"followUpType":"check_in","reason":"to be polite","suggestedMessage":"say how are you"}`
	for _, c := range []struct {
		says, message string // the message of the timer; empty: there is no timer
		code          parley.Code
	}{
		{good, "say how are you", ""},
		{"```json\n" + good + "\n```", "say how are you", ""},
		{`{"shouldSchedule":true,"delaySeconds":60,"followUpType":"task_incomplete","reason":"r"}`,
			followUpPrompts["task_incomplete"], ""},
		{`{"shouldSchedule":false,"reason":"all is said"}`, "", ""},
		{`{"shouldSchedule":true,"delaySeconds":5,"followUpType":"check_in"}`, "", parley.CodeModel},
		{`{"shouldSchedule":true,"delaySeconds":4000,"followUpType":"check_in"}`, "", parley.CodeModel},
		{`{"shouldSchedule":true,"delaySeconds":60,"followUpType":"spam"}`, "", parley.CodeModel},
		{"I would rather not say.", "", parley.CodeModel},
		{"hang", "", parley.CodeModel},
		{"panic", "", parley.CodeInternal},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, forward)
			r.puppet.judges(c.says)
			id := r.open()
			r.do(id, parley.SubmitInput{Content: "say hello", Agent: parley.AgentRef{Name: "judged"}})
			time.Sleep(evaluateWithin)
			log := r.until(id, "it was evaluated", seen[parley.FollowUpEvaluated](1))
			if e := all[parley.FollowUpEvaluated](log)[0]; e.Code != c.code || e.Scheduled != (c.message != "") {
				t.Errorf("%q: %+v", c.says, e)
			}
			r.puppet.judges(`{"shouldSchedule":false}`)
			time.Sleep(2 * time.Minute)
			got := ""
			for _, in := range unaskedInputs(r.log(id)) {
				got += in.Content
			}
			if got != c.message {
				t.Errorf("%q: the timer says %q, want %q", c.says, got, c.message)
			}
			r.check(id)
		})
	}
}

// TestAnEvaluationHoldsNothingUp checks that a person's message does not wait
// for an evaluation, which is dropped.
func TestAnEvaluationHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, forward)
		r.puppet.judges("hang")
		id := r.open()
		r.do(id, parley.SubmitInput{Content: "say hello", Agent: parley.AgentRef{Name: "judged"}})
		r.finished(id, 1)
		synctest.Wait()
		before := time.Now()
		r.say(id, "say more")
		r.finished(id, 2)
		if took := time.Since(before); took > time.Second {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Hour)
		if n := len(all[parley.FollowUpEvaluated](r.log(id))); n != 0 {
			t.Errorf("%d evaluations", n)
		}
		r.check(id)
	})
}
