package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
)

func TestARunFromEndToEnd(t *testing.T) {
	r := newRig(t)
	id := r.open()
	var asked port.ModelRequest
	r.puppet.seen = func(m port.ModelRequest) { asked = m }
	receipt := r.say(id, "say hello")
	log := r.finished(id, 1)
	if !slices.Equal(texts(log), []string{"hello"}) {
		t.Errorf("said %q", texts(log))
	}
	if receipt.First != 2 || receipt.Last != 5 {
		t.Errorf("receipt %+v: an input to an idle session starts its run in the same commit", receipt)
	}
	if asked.Instructions != "obey" || len(asked.Messages) != 1 || len(asked.Tools) != 2 {
		t.Errorf("the model was asked %+v", asked)
	}
	r.check(id)
}

// TestHistoryIsGivenToTheModel checks that the model gets the earlier
// conversation, also after a restart.
func TestHistoryIsGivenToTheModel(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.say(id, "say one")
	r.finished(id, 1)
	r.restart(false)
	var asked []string
	r.puppet.seen = func(m port.ModelRequest) {
		for _, m := range m.Messages {
			asked = append(asked, string(m.Role)+" "+m.Text)
		}
	}
	r.say(id, "say two")
	r.finished(id, 2)
	if want := []string{"user say one", "assistant one", "user say two"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestCommandsHaveOneEffect(t *testing.T) {
	r := newRig(t)
	id := r.open()
	send := func(content string) (port.Receipt, error) {
		return r.Submit(context.Background(), ann,
			parley.Command{ID: "c1", Session: id, Do: parley.SubmitInput{Content: content, Request: "r"}})
	}
	var wg sync.WaitGroup
	receipts := make([]port.Receipt, 10)
	for i := range receipts {
		wg.Go(func() {
			var err error
			if receipts[i], err = send("say hello"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	log := r.finished(id, 1)
	r.restart(true)
	again, err := send("say hello")
	if err != nil || !again.Repeated {
		t.Errorf("after a restart: %+v, %v", again, err)
	}
	for _, got := range append(receipts, again) {
		if got.First != 2 || got.Last != 5 {
			t.Errorf("receipt %+v", got)
		}
	}
	if n := len(all[parley.InputReceived](log)); n != 1 {
		t.Errorf("%d inputs", n)
	}
	if _, err := send("say something else"); parley.CodeOf(err) != parley.CodeConflict {
		t.Errorf("an id used again: %v", err)
	}
	bob := port.Principal{ID: "bob", Tenant: acme, Roles: ann.Roles}
	if _, err := r.Submit(context.Background(), bob,
		parley.Command{ID: "c1", Session: id, Do: parley.SubmitInput{Content: "say hello",
			Request: "r"}}); parley.CodeOf(err) != parley.CodeConflict {
		t.Errorf("another's id: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t)
	id := r.open()
	nobody := input("hello", parley.Queue)
	nobody.Agent.Name = "nobody"
	for _, c := range []struct {
		name string
		who  port.Principal
		id   parley.SessionID
		do   parley.CommandBody
		code parley.Code
	}{
		{"unknown agent", ann, id, nobody, parley.CodeNotFound},
		{"blank", ann, id, input(" ", parley.Queue), parley.CodeEmpty},
		{"too long", ann, id, input(strings.Repeat("x", 3<<20), parley.Queue), parley.CodeTooLarge},
		{"bad session", ann, "nonsense", input("hello", parley.Queue), parley.CodeInvalid},
		{"no such session", ann, "99999999-9999-4999-8999-999999999999", input("hello", parley.Queue),
			parley.CodeNotFound},
		{"no rights", port.Principal{ID: "eve", Tenant: acme}, id, input("hello", parley.Queue),
			parley.CodeForbidden},
		{"unknown role", port.Principal{ID: "eve", Tenant: acme, Roles: []parley.UserRole{"king"}}, id,
			input("hello", parley.Queue), parley.CodeForbidden},
		{"nobody", port.Principal{}, id, input("hello", parley.Queue), parley.CodeForbidden},
		{"no tenant", port.Principal{ID: "eve", Roles: ann.Roles}, id, input("hello", parley.Queue),
			parley.CodeForbidden},
		{"another tenant", port.Principal{ID: "eve", Tenant: "rival", Roles: ann.Roles}, id,
			input("hello", parley.Queue), parley.CodeNotFound},
	} {
		if _, err := r.Submit(context.Background(), c.who, parley.Command{Session: c.id, Do: c.do}); parley.CodeOf(
			err) != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
	if n := len(r.log(id)); n != 1 {
		t.Errorf("refusals left %d events", n-1)
	}
	for _, who := range []port.Principal{{ID: "eve", Tenant: acme}, {ID: "eve", Tenant: "rival", Roles: ann.Roles},
		{}} {
		if _, err := r.Follow(context.Background(), who, port.Scope{Session: id}, port.Beginning); err == nil {
			t.Errorf("%+v may follow", who)
		}
		if _, err := r.Session(context.Background(), who, id); err == nil {
			t.Errorf("%+v may look", who)
		}
		if list, err := r.Sessions(context.Background(), who, port.SessionQuery{}); err == nil && len(list) > 0 {
			t.Errorf("%+v may list", who)
		}
	}
}

func TestCursors(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.say(id, "say hello")
	log := r.finished(id, 1)
	ctx := context.Background()
	head := int64(len(log))
	for _, c := range []struct {
		from port.Cursor
		code parley.Code
	}{
		{port.Cursor{After: head}, ""}, {port.Cursor{Epoch: r.Epoch(), After: 3}, ""}, {port.Live, ""},
		{port.Cursor{After: head + 1}, parley.CodeResync}, {port.Cursor{After: -2}, parley.CodeResync},
		{port.Cursor{Epoch: "another", After: 1}, parley.CodeResync},
	} {
		for _, scope := range []port.Scope{{Session: id}, {Root: id}, {}} {
			f, err := r.Follow(ctx, ann, scope, c.from)
			if err == nil {
				f.Close()
			}
			if c.code == "" && err != nil || c.code != "" && parley.CodeOf(err) != c.code {
				t.Errorf("%+v from %+v: %v, want %q", scope, c.from, err, c.code)
			}
		}
	}
}

// TestCancelThenSilence lets a cancel race with the end of an answer, many
// times. Whichever comes first, no event of the run follows its end, and the
// next run starts only when the workers of the first have ended.
func TestCancelThenSilence(t *testing.T) {
	r := newRig(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			id := r.open()
			for i := range 5 {
				name := fmt.Sprint("say a; say b; say c; call read x | say d ", i)
				r.say(id, name)
				if _, err := r.try(id, parley.CancelRun{Request: name}); err != nil &&
					parley.CodeOf(err) != parley.CodeNotFound {
					t.Error(err)
				}
			}
			r.until(id, "all runs have ended", func(log []parley.Event) bool {
				return len(all[parley.RunFinished](log))+len(all[parley.InputWithdrawn](log)) == 5
			})
			r.check(id)
		})
	}
	wg.Wait()
}

func TestNextRunWaitsForTheLastOnesWorkers(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.say(id, "call hangdo x") // goes on a little after it is told to stop
	r.until(id, "the tool runs", seen[parley.ToolOutputAppended](1))
	r.say(id, "say next")
	r.do(id, parley.CancelRun{Request: "call hangdo x"})
	log := r.finished(id, 2)
	if late, next := seqOf[parley.LateResultNoted](log, 1), seqOf[parley.RunStarted](log, 2); late == 0 || late > next {
		t.Errorf("the next run started at %d, the old one's tool ended at %d", next, late)
	}
	r.check(id)
}

func TestAnswersOvertakeInputs(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.say(id, "say one; hang")
	r.until(id, "it hangs", seen[parley.OutputAppended](1))
	for i := range parley.MaxQueue {
		r.say(id, fmt.Sprint("say ", i))
	}
	if _, err := r.try(id, input("say too much", parley.Queue)); parley.CodeOf(err) != parley.CodeQueueFull {
		t.Errorf("one more: %v", err)
	}
	r.do(id, parley.CancelRun{Request: "say one; hang"})
	log := r.finished(id, 1+parley.MaxQueue)
	var want []string
	for i := range parley.MaxQueue {
		want = append(want, fmt.Sprint(i))
	}
	if got := texts(log)[1:]; !slices.Equal(got, want) {
		t.Errorf("answered %q", got)
	}
	r.check(id)
}

// TestFollowersSeeTheLog checks that the items of each follower add up to the
// log.
func TestFollowersSeeTheLog(t *testing.T) {
	r := newRig(t)
	id := r.open()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	follower, err := r.Follow(ctx, ann, port.Scope{Session: id}, port.Beginning)
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	r.say(id, "think a; say b; call read c | say d")
	var shown []parley.Event
	for len(all[parley.RunFinished](shown)) == 0 {
		items, err := follower.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			shown = append(shown, i.Event)
		}
	}
	if got, want := story(shown), story(r.log(id)); got != want {
		t.Errorf("shown\n%s\nstored\n%s", got, want)
	}
}

// TestClientsWithoutCursorGetTheAnswer checks that clients without a cursor are
// shown a run from its start until one of them was shown its end. This holds
// after a restart, too.
func TestClientsWithoutCursorGetTheAnswer(t *testing.T) {
	r := newRig(t)
	id := r.open()
	ctx := context.Background()
	resume := func() int64 {
		t.Helper()
		c, err := r.Resume(ctx, ann, id)
		if err != nil {
			t.Fatal(err)
		}
		return c.After
	}
	if got := resume(); got != 1 {
		t.Errorf("a new session is followed from %d", got)
	}
	owed := input("say one", parley.Queue)
	owed.Deliver = true
	r.do(id, owed)
	r.finished(id, 1)
	r.say(id, "say two") // by a client with a cursor
	log := r.finished(id, 2)
	first := int64(seqOf[parley.RunStarted](log, 1))
	r.restart(true)
	if got := resume(); got != first-1 {
		t.Errorf("followed from %d, the run that is owed starts at %d", got, first)
	}
	eve := port.Principal{ID: "eve", Tenant: acme}
	if err := r.Delivered(ctx, eve, id, parley.RunID(first)); err == nil {
		t.Error("somebody without rights took an answer away")
	}
	for range 2 {
		if err := r.Delivered(ctx, ann, id, parley.RunID(first)); err != nil {
			t.Error(err)
		}
	}
	if got := resume(); got != int64(len(log)) {
		t.Errorf("followed from %d, the head is %d", got, len(log))
	}
	r.say(id, "say three; hang")
	r.until(id, "it hangs", seen[parley.OutputAppended](3))
	if got := resume(); got != int64(seqOf[parley.RunStarted](r.log(id), 3))-1 {
		t.Errorf("followed from %d while a run goes on", got)
	}
}

func TestPanicsStayInTheirRun(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.say(id, "panic")
	r.say(id, "say still here")
	log := r.finished(id, 2)
	if end := all[parley.RunFinished](log)[0]; end.Outcome != parley.Failed || strings.Contains(end.Message, "puppet") {
		t.Errorf("%+v", end)
	}
	if !slices.Equal(texts(log), []string{"still here"}) {
		t.Errorf("%q", texts(log))
	}
}

// The tests below run in synctest: they wait for hours and take no time.

func TestCardsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.open()
		r.say(id, "call write x; call ask y | say pity")
		card[parley.ApprovalRequested](r, id, 1)
		synctest.Wait()
		time.Sleep(2 * time.Minute) // longer than an idle session stays loaded
		synctest.Wait()
		if n := r.loaded(); n != 0 {
			t.Fatalf("%d sessions are loaded though nothing goes on", n)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		log := r.log(id)
		if end := all[parley.RunFinished](log); len(end) != 1 || end[0].Outcome != parley.Completed {
			t.Fatalf("nobody answered, and the run did not go on:\n%s", story(log))
		}
		if d := all[parley.ApprovalDecided](log)[0]; d.Decision != "expired" {
			t.Errorf("%+v", d)
		}
		r.check(id)
	})
}

func TestIdleSessionsAreUnloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.open()
		for i := range 3 {
			r.say(id, "say hello")
			r.until(id, "it has ended", seen[parley.RunFinished](i+1))
			synctest.Wait()
			time.Sleep(59 * time.Second)
			if n := r.loaded(); n != 1 {
				t.Errorf("%d sessions are loaded before their time", n)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if n := r.loaded(); n != 0 {
				t.Errorf("%d sessions are loaded", n)
			}
		}
		r.check(id)
	})
}

func TestALastPieceIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.open()
		r.say(id, "say a;say b;say c;hang")
		synctest.Wait()
		got := ""
		for _, p := range all[parley.OutputAppended](r.log(id)) {
			got += p.Text
		}
		if got != "abc" {
			t.Errorf("shown %q while the model pauses", got)
		}
		r.do(id, parley.CancelRun{})
	})
}

func TestModelCallsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.open()
		r.puppet.busy = 2
		began := time.Now()
		r.say(id, "say hello")
		log := r.finished(id, 1)
		if waited := time.Since(began); waited < 1500*time.Millisecond || waited > 5*time.Second {
			t.Errorf("waited %v", waited)
		}
		if !slices.Equal(texts(log), []string{"hello"}) {
			t.Errorf("%q", texts(log))
		}
		r.puppet.busy = 3
		r.say(id, "say hello")
		if end := all[parley.RunFinished](r.finished(id, 2))[1]; end.Outcome != parley.Failed ||
			end.Message != "The puppet is busy." {
			t.Errorf("%+v", end)
		}
	})
}
