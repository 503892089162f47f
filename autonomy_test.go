package parley_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/checker"
)

// TestTheEvaluator checks that the evaluator is asked after a completed run,
// unless the session would reject a follow-up. Its follow-up is like any other.
func TestTheEvaluator(t *testing.T) {
	judged := wanderer
	judged.Autonomy.Evaluator, judged.Autonomy.MaxFollowUps = "judge", 1
	wanted := func(a *tale) *parley.Evaluate {
		for _, s := range parley.Next(a.state, a.now) {
			if s, ok := s.(parley.Evaluate); ok {
				return &s
			}
		}
		return nil
	}
	begin := func() *tale {
		a := newTale(t)
		a.do(parley.SubmitInput{Content: "hello", Agent: judged})
		if wanted(a) != nil {
			t.Error("it is asked while the run goes on")
		}
		a.model(parley.ModelEnded{Stop: parley.StopEnd})
		if due, ok := a.state.Due(); !ok || due.Reason != "run" || wanted(a) == nil ||
			len(checker.Settled(a.log)) == 0 {
			t.Errorf("an evaluation is wanted, and it is due %+v, %v, settled %v", due, ok, checker.Settled(a.log))
		}
		return a
	}
	ended := func(a *tale, b parley.EvaluationEnded) {
		if err := a.take(parley.Report{At: a.now, Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	a := begin()
	run := wanted(a).Run
	ended(a, parley.EvaluationEnded{Run: run + 1, FollowUp: &parley.FollowUp{Delay: time.Minute,
		Reason: "of another run"}})
	ended(a, parley.EvaluationEnded{Run: run, FollowUp: &parley.FollowUp{Delay: time.Minute, Reason: "check in"},
		Usage: parley.Usage{Input: 3}})
	a.expect("RunFinished FollowUpEvaluated TimerSet")
	if s := last[parley.TimerSet](a); s.By != "evaluator" || s.Agent != judged {
		t.Errorf("%+v", s)
	}
	ended(a, parley.EvaluationEnded{Run: run, FollowUp: &parley.FollowUp{Delay: time.Minute, Reason: "once more"}})
	a.expect("FollowUpEvaluated TimerSet")
	a.sound()

	a = begin()
	ended(a, parley.EvaluationEnded{Run: wanted(a).Run, Code: parley.CodeModel, Message: "The model failed."})
	a.expect("RunFinished FollowUpEvaluated")
	a.sound()

	a = begin() // the follow-up breaks a limit
	ended(a, parley.EvaluationEnded{Run: wanted(a).Run, FollowUp: &parley.FollowUp{Delay: time.Millisecond,
		Reason: "soon"}})
	if e := last[parley.FollowUpEvaluated](a); e.Scheduled || !strings.Contains(e.Message, "from 1 second") {
		t.Errorf("%+v", e)
	}
	a.sound()

	a = begin() // a person writes meanwhile
	step := wanted(a)
	a.say("more")
	ended(a, parley.EvaluationEnded{Run: step.Run, FollowUp: &parley.FollowUp{Delay: time.Minute, Reason: "late"}})
	if a.model(parley.ModelEnded{Stop: parley.StopEnd}); count[parley.FollowUpEvaluated](a) != 0 {
		t.Error("a late evaluation was taken")
	}

	a = newTale(t) // there is no room for another follow-up
	a.do(parley.SubmitInput{Content: "hello", Agent: judged})
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{comesBack(time.Minute, "")}})
	if a.model(parley.ModelEnded{Stop: parley.StopEnd}); wanted(a) != nil {
		t.Error("it is asked in vain")
	}
	a.sound()
}

// TestAutonomyWithin checks that an agent can only narrow the server's limits.
func TestAutonomyWithin(t *testing.T) {
	server := parley.Autonomy{Enabled: true, MaxConsecutive: 3, CooldownMS: 15000, MaxFollowUps: 10}
	for _, c := range []struct{ agent, want parley.Autonomy }{
		{parley.Autonomy{}, parley.Autonomy{}},
		{parley.Autonomy{MaxConsecutive: 1}, parley.Autonomy{}},
		{parley.Autonomy{Enabled: true}, server},
		{parley.Autonomy{Enabled: true, MaxConsecutive: 100, CooldownMS: 1, MaxFollowUps: 100}, server},
		{parley.Autonomy{Enabled: true, MaxConsecutive: 1, CooldownMS: 60000, MaxFollowUps: 2, Evaluator: "m"},
			parley.Autonomy{Enabled: true, MaxConsecutive: 1, CooldownMS: 60000, MaxFollowUps: 2, Evaluator: "m"}},
	} {
		if got := c.agent.Within(server); got != c.want {
			t.Errorf("%+v is %+v, want %+v", c.agent, got, c.want)
		}
		if got := c.agent.Within(parley.Autonomy{MaxConsecutive: 3}); got != (parley.Autonomy{}) {
			t.Errorf("where the server has none: %+v", got)
		}
	}
}

func TestFollowUpsAreRefused(t *testing.T) {
	long := strings.Repeat("x", (4<<10)+1)
	none, few := wanderer, wanderer
	none.Autonomy, few.Autonomy.MaxFollowUps = parley.Autonomy{}, 1
	flagged := &parley.Finding{Verdict: parley.ScreenFlag, Reason: "pattern:x"}
	for _, c := range []struct {
		name  string
		in    parley.SubmitInput
		calls []parley.CallAsked
		want  string
	}{
		{"zero", parley.SubmitInput{}, []parley.CallAsked{comesBack(0, "")}, "from 1 second to 30 days"},
		{"negative", parley.SubmitInput{}, []parley.CallAsked{comesBack(-time.Hour, "")}, "from 1 second to 30 days"},
		{"enormous", parley.SubmitInput{}, []parley.CallAsked{comesBack(31*24*time.Hour, "")},
			"from 1 second to 30 days"},
		{"long", parley.SubmitInput{}, []parley.CallAsked{comesBack(time.Hour, long)}, "at most 4096 bytes"},
		{"disabled", parley.SubmitInput{Agent: none}, []parley.CallAsked{comesBack(time.Hour, "")},
			"autonomy is off for this agent"},
		{"flagged", parley.SubmitInput{Finding: flagged}, []parley.CallAsked{comesBack(time.Hour, "")}, "was flagged"},
		{"planning", parley.SubmitInput{Mode: parley.ModePlan}, []parley.CallAsked{comesBack(time.Hour, "")},
			"this run plans"},
		{"too many", parley.SubmitInput{Agent: few}, []parley.CallAsked{comesBack(time.Hour, ""),
			comesBack(time.Hour, "")}, "at most 1 follow-ups"},
		{"eleven", parley.SubmitInput{}, slices.Repeat([]parley.CallAsked{comesBack(time.Hour, "")}, 11),
			"at most 10 follow-ups"},
	} {
		a := newTale(t)
		if c.in.Content = "hello"; c.in.Agent.Name == "" {
			c.in.Agent = wanderer
		}
		a.do(c.in)
		a.model(parley.ModelEnded{Calls: c.calls})
		if b := last[parley.ToolCallBlocked](a); !strings.Contains(b.Reason, c.want) ||
			count[parley.ToolCallBlocked](a) != 1 || count[parley.TimerSet](a) != len(c.calls)-1 {
			t.Errorf("%s: %+v, %d set", c.name, b, count[parley.TimerSet](a))
		}
		a.model(parley.ModelEnded{Stop: parley.StopEnd})
		a.sound()
	}
}
