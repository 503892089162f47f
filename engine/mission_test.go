package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
)

// crew lists agents with an idle prompt, and knows the other agents by name
// only.
type crew struct {
	agents
	list []parley.Agent
}

func (c crew) List(parley.TenantID) []parley.Agent { return c.list }

func (c crew) Agent(tenant parley.TenantID, name string) (parley.Agent, error) {
	if i := slices.IndexFunc(c.list, func(a parley.Agent) bool { return a.Name == name }); i >= 0 {
		return c.list[i], nil
	}
	return c.agents.Agent(tenant, name)
}

var coder = parley.Agent{Name: "coder", Instructions: "obey", IdlePrompt: "go; say on it", IdleSeconds: 60}

// onMission allows three idle prompts for a coder and for other agents that have one.
func onMission(others ...parley.Agent) func(*Config) {
	return func(c *Config) {
		c.Agents = crew{list: append([]parley.Agent{coder, {Name: "silent", Instructions: "obey"}}, others...)}
		c.Autonomy = parley.Autonomy{Enabled: true}
		c.Prompts = port.IdleLimits{Interval: 30 * time.Second, Prompts: 3}
	}
}

// prompts lists the promised prompts with their time since a given one.
func (r *rig) prompts(since time.Time) string {
	var list []string
	for _, b := range all[parley.AgentPrompted](r.log(parley.TenantSession)) {
		list = append(list, fmt.Sprintf("%s %v:%d", b.Agent, b.At.Sub(since).Round(time.Second), b.Number))
	}
	return strings.Join(list, " ")
}

// idleSession returns the session of an agent under the last mission.
func (r *rig) idleSession(agent string) parley.SessionID {
	log := r.log(parley.TenantSession)
	return parley.IdleSession(parley.MissionID(seqOf[parley.MissionSet](log, len(all[parley.MissionSet](log)))), agent)
}

// prompted waits until n prompts were accepted or refused by their sessions.
func (r *rig) prompted(n int) {
	r.t.Helper()
	r.until(parley.TenantSession, fmt.Sprint(n, " prompts are settled"), seen[parley.PromptSettled](n))
}

// checkMission compares the promised prompts with the ones that sessions have accepted.
func (r *rig) checkMission() {
	r.t.Helper()
	r.check(parley.TenantSession)
	log := r.log(parley.TenantSession)
	refused, promised := map[parley.Seq]bool{}, map[parley.SessionID][]string{}
	for _, s := range all[parley.PromptSettled](log) {
		refused[s.Prompt] = s.Code != ""
	}
	for _, e := range log {
		if b, ok := e.Body.(parley.AgentPrompted); ok {
			promised[b.Session] = append(promised[b.Session], "")
			if !refused[e.Seq] {
				promised[b.Session] = append(promised[b.Session], fmt.Sprint(parley.IdleNamed, e.Seq))
			}
		}
	}
	for id, names := range promised {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
		var taken []string
		for _, in := range unaskedInputs(r.log(id)) {
			taken = append(taken, in.Request)
		}
		if !slices.Equal(names, taken) {
			r.t.Errorf("promised were %v, and taken %v\n%s", names, taken, story(log))
		}
		r.check(id)
	}
}

// TestIdleAgentsArePrompted checks that an idle agent is prompted at once, then
// a minute after each run. After three prompts without a message of a person it
// stops, until a person writes in its session.
func TestIdleAgentsArePrompted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, onMission(parley.Agent{Name: "hurried", Instructions: "obey", IdlePrompt: "x", IdleSeconds: 1}))
		time.Sleep(time.Hour)
		if n := r.loaded(); n != 0 {
			t.Errorf("%d sessions are loaded without a mission", n)
		}
		begin := time.Now()
		r.do(parley.TenantSession, parley.SetMission{Text: "tidy up"})
		time.Sleep(time.Hour)
		want := "coder 0s:1 hurried 0s:1 hurried 30s:2 coder 1m0s:2 hurried 1m0s:3 coder 2m0s:3"
		if got := r.prompts(begin); got != want {
			t.Errorf("prompted %s\nwant %s", got, want)
		}
		id := r.idleSession("coder")
		log := r.finished(id, 3)
		list, err := r.Missions(context.Background(), ann, "", 1)
		if err != nil || len(list) != 1 || len(list[0].Prompted) != 2 || list[0].Prompted[0].Session != id ||
			list[0].Prompted[0].Count != 3 {
			t.Errorf("%+v, %v", list, err)
		}
		m, err := r.Session(context.Background(), ann, id)
		if got := texts(log); err != nil || !slices.Equal(got, []string{"on it", "on it", "on it"}) ||
			m.Owner != "ann" || m.Title != "Mission: tidy up" || m.Transient {
			t.Errorf("%v, %+v, %v", got, m, err)
		}
		if in := unaskedInputs(
			log)[0]; in.Content != "[Mission] tidy up\n\n[Your standing instruction] go; say on it" ||
			in.Agent.Turns != 50 {
			t.Errorf("%+v", in)
		}
		spoke := time.Now()
		r.do(id, parley.SubmitInput{Content: "say thanks", Request: "thanks"})
		time.Sleep(2*time.Minute + time.Second)
		if got := r.prompts(spoke); !strings.HasSuffix(got, " coder 1m0s:1 coder 2m0s:2") {
			t.Errorf("after a word of a person: %s", got)
		}
		r.checkMission()
		r.stop(true)
		r.start()
	})
}

// TestActivityDelaysIdlePrompts checks that an agent's work for people delays
// its prompt, in any session, and also while it waits for a person.
func TestActivityDelaysIdlePrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, onMission())
		id := r.open()
		r.do(id, parley.SubmitInput{Content: "call ask x | say done", Agent: parley.AgentRef{Name: "coder"}})
		log := r.until(id, "somebody is asked", seen[parley.QuestionAsked](1))
		r.do(parley.TenantSession, parley.SetMission{Text: "tidy up"})
		time.Sleep(10*time.Minute + 30*time.Second)
		if got := r.prompts(time.Now()); got != "" {
			t.Errorf("while it waits: %s", got)
		}
		r.do(id, parley.AnswerQuestion{Card: parley.CardID(seqOf[parley.QuestionAsked](log, 1)),
			Answers: [][]string{{"x"}}})
		r.finished(id, 1)
		answered := time.Now()
		time.Sleep(time.Minute + time.Second)
		if got := r.prompts(answered); got != "coder 1m0s:1" {
			t.Errorf("afterwards: %s", got)
		}
		r.checkMission()
	})
}

// TestAgentsThatAreNotPrompted checks agents that are not prompted: a stopped one, one
// that does not talk to the user who set the mission, and one whose session is
// gone. Clearing the mission ends the prompts, and an open run ends by itself.
func TestAgentsThatAreNotPrompted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t,
			onMission(parley.Agent{Name: "aloof", Instructions: "obey", IdlePrompt: "x",
				Allow: &parley.AgentAllow{Roles: []parley.UserRole{parley.RoleOrgAdmin}}},
				parley.Agent{Name: "lazy", Instructions: "obey", IdlePrompt: "x"},
				parley.Agent{Name: "away", IdlePrompt: "x", Address: "tcp://127.0.0.1:1"}),
			func(c *Config) { c.Remotes = nobodyHome{} })
		release := make(chan struct{})
		r.hands.wait = release
		head := member("dora", parley.RoleDeptHead)
		prompt := "x; call wait x | say done"
		r.do(parley.TenantSession, parley.StopAgent{Agent: "lazy"})
		if code := r.as(head, parley.TenantSession,
			parley.SetMission{Text: "tidy up",
				Agents: []parley.MissionAgent{
					{Agent: "coder", IdleChoice: parley.IdleChoice{Prompt: &prompt}}}}); code != "" {
			t.Fatal(code)
		}
		id := r.idleSession("coder")
		r.prompted(1)
		r.until(id, "it works", seen[parley.ToolCallStarted](1))
		if code := r.as(head, parley.TenantSession, parley.ClearMission{}); code != "" {
			t.Fatal(code)
		}
		close(release)
		if log := r.finished(id, 1); all[parley.RunFinished](log)[0].Outcome != parley.Completed {
			t.Errorf("the run ended as %s", story(log))
		}
		time.Sleep(time.Hour)
		if got := r.prompts(time.Now().Add(-time.Hour)); got != "coder 0s:1" {
			t.Errorf("prompted %s", got)
		}
		if m, err := r.Session(context.Background(), head, id); err != nil || m.Owner != "dora" {
			t.Errorf("%+v, %v", m, err)
		}
		// Under a mission of an administrator all agents are prompted once they
		// are started. To delete or halt the session of an agent ends its
		// prompts.
		admin := member("olga", parley.RoleOrgAdmin)
		if code := r.as(admin, parley.TenantSession, parley.SetMission{Text: "tidy up"}); code != "" {
			t.Fatal(code)
		}
		r.prompted(3)
		r.until(r.idleSession("aloof"), "it is prompted", seen[parley.RunFinished](1))
		r.do(r.idleSession("aloof"), parley.DeleteSession{})
		r.do(parley.TenantSession, parley.StartAgent{Agent: "lazy"})
		r.prompted(4)
		r.until(r.idleSession("lazy"), "it is prompted", seen[parley.RunFinished](1))
		r.do(r.idleSession("lazy"), parley.HaltSession{})
		time.Sleep(time.Hour)
		if got := r.prompts(time.Now()); strings.Count(got, "aloof") != 1 || strings.Count(got, "lazy") != 1 ||
			strings.Count(got, "silent") != 0 || strings.Count(got, "away") != 0 {
			t.Errorf("prompted %s", got)
		}
		r.check(parley.TenantSession)
	})
}

// nobodyHome says of every remote agent that it cannot be reached.
type nobodyHome struct{}

func (nobodyHome) Ask(context.Context, port.RemoteRequest) (port.RemoteAnswer, error) {
	return nil, errors.New("asked all the same")
}
func (nobodyHome) Unreachable(parley.TenantID, parley.Agent) error { return errors.New("not there") }

// TestMissionsWhileAutonomyIsOff checks that without
// AUTONOMY_ENABLED no agent is prompted. Missions can be set all the same, and
// take effect when it is switched on.
func TestMissionsWhileAutonomyIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, onMission(), func(c *Config) { c.Autonomy = parley.Autonomy{} })
		r.do(parley.TenantSession, parley.SetMission{Text: "tidy up"})
		time.Sleep(time.Hour)
		if got := r.prompts(time.Now()); got != "" {
			t.Errorf("prompted %s", got)
		}
		asked := time.Now()
		if r.stop(false); time.Since(asked) > time.Second {
			t.Errorf("stopping took %v: it waited for who waits", time.Since(asked))
		}
		r.config.Autonomy.Enabled = true
		r.start()
		r.prompted(1)
		r.finished(r.idleSession("coder"), 1)
		r.checkMission()
	})
}

// TestIdlePromptsAreLateOnce checks that one prompt comes after an outage or a set clock, and no burst.
func TestIdlePromptsAreLateOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		r := newRig(t, onMission(), func(c *Config) {
			c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			c.Prompts.Prompts = 1000
		})
		begin := time.Now()
		r.do(parley.TenantSession, parley.SetMission{Text: "tidy up"})
		r.prompted(1)
		r.finished(r.idleSession("coder"), 1)
		for i := range 4 {
			r.stop(i%2 == 0)
			time.Sleep(5 * time.Hour)
			r.start()
			r.finished(r.idleSession("coder"), i+2)
			synctest.Wait()
		}
		if got := r.prompts(begin); got != "coder 0s:1 coder 5h0m0s:2 coder 10h0m0s:3 coder 15h0m0s:4 coder 20h0m0s:5" {
			t.Errorf("prompted %s", got)
		}
		ahead.Store(int64(-12 * time.Hour))
		time.Sleep(150 * time.Second) // it is noticed after a minute, and an interval later there is the next
		synctest.Wait()
		if n := len(all[parley.AgentPrompted](r.log(parley.TenantSession))); n != 6 {
			t.Errorf("%d prompts after the clock was set back", n)
		}
		ahead.Store(int64(12 * time.Hour))
		time.Sleep(90 * time.Second)
		synctest.Wait() // a prompt may be due at this very moment
		if n := len(all[parley.AgentPrompted](r.log(parley.TenantSession))); n < 7 || n > 8 {
			t.Errorf("%d prompts after it was set forth", n)
		}
		r.checkMission()
	})
}

var errDead = errors.New("the process is dead")

// TestAnIdlePromptIsTakenOnce kills the process after every commit of a prompt:
// the promise, the events of the session, and the settlement. The session
// accepts the prompt once.
func TestAnIdlePromptIsTakenOnce(t *testing.T) {
	onEveryStore(t, func(t *testing.T, reopen func() port.Store) {
		var dead atomic.Bool
		var left, ahead atomic.Int64
		store := &rough{
			append: func(port.Batch) error {
				if dead.Load() {
					return errDead
				}
				return nil
			},
			after: func(b port.Batch) error {
				if len(b.Events) == 0 || left.Add(-1) != 0 {
					return nil
				}
				dead.Store(true)
				return errDead // the commit is reported as failed
			}}
		r := newRig(t, onMission(), func(c *Config) {
			c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		})
		r.stop(true)
		r.reopen, r.config.Store = reopen, store
		for step := int64(1); ; step++ {
			left.Store(0)
			r.start()
			before := len(all[parley.AgentPrompted](r.log(parley.TenantSession)))
			ahead.Add(int64(time.Hour)) // the agent is idle again
			left.Store(1 + step)        // the first is the mission
			r.do(parley.TenantSession, parley.SetMission{Text: fmt.Sprint("step ", step)})
			id := r.idleSession("coder")
			settled := func(log []parley.Event) bool { return len(all[parley.PromptSettled](log)) > before }
			for !dead.Load() &&
				!(settled(r.log(parley.TenantSession)) && len(all[parley.RunFinished](r.log(id))) == 1) {
				time.Sleep(2 * time.Millisecond)
			}
			r.stop(true) // from here on every commit has been counted
			killed := dead.Load()
			dead.Store(false)
			left.Store(0)
			r.start()
			r.until(parley.TenantSession, "the prompt is settled", settled)
			r.finished(id, 1)
			r.restart(false)
			if n := len(unaskedInputs(r.log(id))); n != 1 {
				t.Errorf("killed at %d: it was taken %d times", step, n)
			}
			r.checkMission()
			r.do(parley.TenantSession, parley.ClearMission{})
			r.stop(true)
			if !killed {
				// Accepting, answering and settling the prompt take at least one commit each.
				if step < 4 {
					t.Errorf("there are only %d steps", step)
				}
				break
			}
		}
		r.config.Store = nil
		r.start()
	})
}
