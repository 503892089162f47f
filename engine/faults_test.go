package engine

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/access"
	"parley/port"
)

// rough is a store with injected faults.
type rough struct {
	port.Store
	append  func(port.Batch) error // before it is committed
	after   func(port.Batch) error // after it was committed
	spoken  func() error
	context func() error
	looks   atomic.Int64 // calls of DueBefore
}

func (s *rough) Append(ctx context.Context, b port.Batch) (port.Appended, error) {
	if s.append != nil {
		if err := s.append(b); err != nil {
			return port.Appended{}, err
		}
	}
	res, err := s.Store.Append(ctx, b)
	if err == nil && s.after != nil {
		if err := s.after(b); err != nil {
			return port.Appended{}, err
		}
	}
	return res, err
}

func (s *rough) DueBefore(ctx context.Context, now time.Time, limit int) ([]port.DueSession, time.Time, error) {
	s.looks.Add(1)
	return s.Store.DueBefore(ctx, now, limit)
}

func (s *rough) Tenant(id parley.TenantID) port.TenantStore {
	return roughTenant{s.Store.Tenant(id), s}
}

type roughTenant struct {
	port.TenantStore
	s *rough
}

func (t roughTenant) Context(ctx context.Context, agent string, user parley.PrincipalID) (port.UserContext, bool,
	error) {
	if t.s.context != nil {
		return port.UserContext{}, false, t.s.context()
	}
	return t.TenantStore.Context(ctx, agent, user)
}

func (t roughTenant) EventsWithoutChunks(ctx context.Context, id parley.SessionID, after parley.Seq) (
	[]parley.Event, error) {
	if t.s.spoken != nil {
		if err := t.s.spoken(); err != nil {
			return nil, err
		}
	}
	return t.TenantStore.EventsWithoutChunks(ctx, id, after)
}

var errDisk = parley.Errorf(parley.CodeUnavailable, "The disk is full.")

func has[T parley.EventBody](b port.Batch) bool { return len(all[T](b.Events)) > 0 }

// harm changes the database behind the server's back.
func (r *rig) harm(statement string) {
	r.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(r.dir, "parley.db"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		r.t.Fatal(err)
	}
}

// TestSessionsThatCannotBeWrittenWait checks that sessions that cannot be written wait
// for their own retries, and do not hide other due sessions.
func TestSessionsThatCannotBeWrittenWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &rough{}
		var bad sync.Map
		store.append = func(b port.Batch) error {
			if _, ok := bad.Load(b.Session); ok {
				return errDisk
			}
			return nil
		}
		r := newRig(t, func(c *Config) { c.Store, c.Retry = store, time.Minute })
		var ids []parley.SessionID
		for range 2 * wakeAtOnce { // their cards expire at the same time
			id := r.open()
			ids = append(ids, id)
			r.say(id, "call write x | say pity")
			card[parley.ApprovalRequested](r, id, 1)
		}
		time.Sleep(time.Hour)
		for _, id := range ids[:len(ids)*3/4] {
			bad.Store(id, true)
		}
		time.Sleep(23*time.Hour - 10*time.Minute)
		synctest.Wait()
		before := store.looks.Load()
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if looks := store.looks.Load() - before; looks > 20*5 {
			t.Errorf("looked %d times in 20 minutes", looks)
		}
		for i, id := range ids {
			_, isBad := bad.Load(id)
			if done := len(all[parley.RunFinished](r.log(id))) > 0; done == isBad {
				t.Errorf("session %d: bad %v, done %v", i, isBad, done)
			}
		}
		bad.Clear()
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, id := range ids {
			if len(all[parley.RunFinished](r.log(id))) == 0 {
				t.Errorf("session %d did not go on when the disk was well again", i)
			}
			r.check(id)
		}
	})
}

// TestDrainLeavesNoCallUnknown stops the server while the start of a
// call is being committed. The call is carried out and does not end as unknown.
func TestDrainLeavesNoCallUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		committing, goOn := make(chan struct{}), make(chan struct{})
		store := &rough{}
		store.append = func(b port.Batch) error {
			if has[parley.ToolCallStarted](b) {
				close(committing)
				<-goOn
			}
			return nil
		}
		r := newRig(t, func(c *Config) { c.Store = store })
		id := r.open()
		r.say(id, "call do x | say done")
		<-committing
		stopped := make(chan struct{})
		go func() {
			r.stop(false)
			close(stopped)
		}()
		synctest.Wait()
		close(goOn)
		<-stopped
		store.append = nil
		r.start()
		log := r.finished(id, 1)
		if f := all[parley.ToolCallFinished](log)[0]; f.Outcome != parley.CallSucceeded {
			t.Errorf("%+v", f)
		}
	})
}

// TestCommittedEventsAreShown checks that followers get committed events, even
// if the commit was reported as failed.
func TestCommittedEventsAreShown(t *testing.T) {
	store := &rough{}
	r := newRig(t, func(c *Config) { c.Store, c.Retry = store, 10*time.Millisecond })
	id := r.open()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, scope := range []port.Scope{{Session: id}, {}} {
		f, err := r.Follow(ctx, ann, scope, port.Beginning)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		read := func() parley.EventBody {
			items, err := f.Next(ctx)
			if err != nil {
				t.Fatalf("%+v: %v", scope, err)
			}
			return items[len(items)-1].Body
		}
		read()
		r.do(id, parley.RenameSession{Title: fmt.Sprint("before ", scope.Session)})
		read()
		var failed atomic.Bool
		store.after = func(b port.Batch) error {
			if has[parley.SessionRenamed](b) && !failed.Swap(true) {
				return errDisk
			}
			return nil
		}
		want := fmt.Sprint("after ", scope.Session)
		if _, err := r.try(id, parley.RenameSession{Title: want}); err == nil {
			t.Error("the error was swallowed")
		}
		if got := read(); got != (parley.SessionRenamed{Title: want}) {
			t.Errorf("shown was %+v", got)
		}
	}
}

func TestAFailedReadIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &rough{}
		r := newRig(t, func(c *Config) { c.Store = store })
		id := r.open()
		r.restart(false) // a session that is loaded is not read
		var failed atomic.Bool
		store.spoken = func() error {
			if !failed.Swap(true) {
				return errDisk
			}
			return nil
		}
		r.say(id, "say hello")
		if end := all[parley.RunFinished](r.finished(id, 1))[0]; end.Outcome != parley.Completed {
			t.Errorf("%+v", end)
		}
		if !failed.Load() {
			t.Error("nothing was read")
		}
	})
}

// TestTextIsStoredAsShown checks a model that splits characters and outputs
// invalid UTF-8.
func TestTextIsStoredAsShown(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.puppet.says = []port.ModelChunk{{Text: "a\xe2"}, {Text: "\x82"}, {Text: "\xac b"}, {Text: "\xff"},
		{Thinking: "\xf0\x9f"}, {Text: "\x98\x80"},
		{Call: &parley.MessageCall{Name: "do", Arguments: "\"\xff\""}}}
	r.do(id, parley.SubmitInput{Content: "x"})
	r.until(id, "a call was judged", seen[parley.ToolCallBlocked](1))
	r.do(id, parley.CancelRun{})
	r.check(id)
	all := ""
	for _, text := range texts(r.log(id)) {
		all += text
	}
	if !strings.HasPrefix(all, "a€ b\uFFFD") {
		t.Errorf("%q", all)
	}
	if n := r.hands.count("do"); n != 0 {
		t.Errorf("what cannot be stored was run %d times", n)
	}
}

func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.open()
		r.hands.wait = make(chan struct{})
		r.say(id, "call wait x | say done") // a tool that ignores the cancellation
		r.until(id, "the tool runs", seen[parley.ToolCallStarted](1))
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := r.Engine.Close(ctx); err == nil {
			t.Error("nothing is said about it")
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("it took %v", took)
		}
		close(r.hands.wait)
	})
}

// TestClocksThatJump checks a machine that slept, or whose clock was set.
func TestClocksThatJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		r := newRig(t,
			func(c *Config) { c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) } })
		id := r.open()
		r.say(id, "call write x | say pity")
		card[parley.ApprovalRequested](r, id, 1)
		time.Sleep(10 * time.Minute)
		ahead.Store(int64(25 * time.Hour))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(all[parley.RunFinished](r.log(id))) == 0 {
			t.Error("the card expired an hour ago, and nobody noticed")
		}
	})
}

func TestCommandsThatChangeNothingHaveReceipts(t *testing.T) {
	r := newRig(t)
	id := r.open()
	rename := func(key parley.CommandID, title string) (port.Receipt, error) {
		return r.Submit(context.Background(), ann,
			parley.Command{ID: key, Session: id, Do: parley.RenameSession{Title: title}})
	}
	for key, title := range map[parley.CommandID]string{"k0": "a"} {
		if _, err := rename(key, title); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := rename("k1", "a"); err != nil || got.First != 0 { // it has that title already
		t.Fatal(got, err)
	}
	if _, err := rename("k2", "b"); err != nil {
		t.Fatal(err)
	}
	if got, err := rename("k1", "a"); err != nil || !got.Repeated {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := rename("k1", "c"); parley.CodeOf(err) != parley.CodeConflict {
		t.Errorf("%v", err)
	}
	if m, err := r.Session(context.Background(), ann, id); err != nil || m.Title != "b" {
		t.Errorf("a repeat changed the title to %q, %v", m.Title, err)
	}
}

func TestProgressAfterTheEnd(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.hands.late = make(chan port.Progress, 1)
	r.say(id, "call talk x | say done")
	r.finished(id, 1)
	(<-r.hands.late)(parley.Stdout, "too late") // is dropped, and harms nothing
	r.check(id)
}

func TestDamagedRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &rough{}
		r := newRig(t, func(c *Config) { c.Store = store })
		ids := []parley.SessionID{r.open(), r.open(), r.open()}
		for _, id := range ids {
			r.do(id, parley.RenameSession{Title: "x"})
			r.do(id, parley.RenameSession{Title: "y"})
		}
		time.Sleep(2 * time.Minute) // all unload
		synctest.Wait()
		r.harm(`DELETE FROM events WHERE seq = 3 AND session = (SELECT no FROM sessions WHERE id = '` + string(ids[0]) +
			`')`)
		r.harm(`UPDATE sessions SET opened_at = '?' WHERE id = '` + string(ids[1]) + `'`)
		r.harm(`INSERT INTO due VALUES ('acme', '99999999-9999-4999-8999-999999999999', 1, 'run', '')`)
		r.harm(`INSERT INTO due VALUES ('acme', '` + string(ids[2]) + `', 'never', 'run', '')`)
		for _, id := range ids[:2] {
			if _, err := r.try(id, parley.RenameSession{Title: "z"}); parley.CodeOf(err) != parley.CodeCorrupt {
				t.Errorf("%v", err)
			}
		}
		r.say(ids[2], "call write x | say pity")
		before := store.looks.Load()
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		if len(all[parley.RunFinished](r.log(ids[2]))) == 0 {
			t.Error("a damaged row kept a card from expiring")
		}
		if looks := store.looks.Load() - before; looks > 25*60*2 {
			t.Errorf("looked %d times in 25 hours", looks)
		}
	})
}

func TestLongTextsAreRefused(t *testing.T) {
	r := newRig(t)
	id := r.open()
	long := strings.Repeat("x", 2<<20)
	for _, do := range []parley.CommandBody{
		parley.OpenSession{Title: long}, parley.OpenSession{Agent: long}, parley.RenameSession{Title: long},
		parley.HaltSession{Reason: long},
		parley.SubmitInput{Content: long}, parley.SubmitInput{Content: "x", Request: long},
		parley.CancelRun{Request: long},
		parley.DecideApproval{Note: long}, parley.ResolveToolCall{Note: long},
		parley.AnswerQuestion{Answers: [][]string{{long}}},
		parley.AnswerQuestion{Answers: make([][]string, 1<<20)},
	} {
		if _, err := r.try(id, do); parley.CodeOf(err) != parley.CodeTooLarge {
			t.Errorf("%T: %v", do, err)
		}
	}
	if _, err := r.Submit(context.Background(), ann, parley.Command{ID: parley.CommandID(long), Session: id,
		Do: parley.CancelRun{}}); parley.CodeOf(err) != parley.CodeTooLarge {
		t.Errorf("an id: %v", err)
	}
	if _, err := r.Submit(context.Background(), ann, parley.Command{Session: id}); parley.CodeOf(
		err) != parley.CodeInvalid {
		t.Errorf("nothing: %v", err)
	}
	if _, err := r.try(id, parley.SubmitInput{Content: "x", Request: "timer_1"}); parley.CodeOf(
		err) != parley.CodeInvalid {
		t.Errorf("a name of the server's own: %v", err)
	}
	r.puppet.says = []port.ModelChunk{{Text: strings.Repeat("x", parley.MaxOutput+1)}}
	r.do(id, parley.SubmitInput{Content: "x"})
	if end := all[parley.RunFinished](r.finished(id, 1))[0]; end.Outcome == parley.Completed ||
		end.Code != parley.CodeTooLarge {
		t.Errorf("%+v", end)
	}
}

// TestAnAnswerThatIsTooLong checks that such an answer is shown up to the limit
// and fails the run. It is not requested again: it would be as long the next
// time.
func TestAnAnswerThatIsTooLong(t *testing.T) {
	r := newRig(t)
	id := r.open()
	chunk := strings.Repeat("x", parley.MaxOutput/4)
	for range 5 {
		r.puppet.says = append(r.puppet.says, port.ModelChunk{Text: chunk})
	}
	r.do(id, parley.SubmitInput{Content: "x"})
	log := r.finished(id, 1)
	if end := all[parley.RunFinished](log)[0]; end.Outcome != parley.Failed || end.Code != parley.CodeTooLarge ||
		!strings.Contains(end.Message, "4194304") {
		t.Errorf("%+v", end)
	}
	if turns := len(all[parley.TurnStarted](log)); turns != 1 {
		t.Errorf("the model was asked %d times", turns)
	}
	if out := all[parley.OutputFinished](log); len(out) != 1 || !out[0].Incomplete ||
		len(out[0].Text) != parley.MaxOutput {
		t.Errorf("%d outputs", len(out))
	}
}

// trap panics when it is asked about a certain session.
type trap struct {
	access.Rules
	id parley.SessionID
}

func (p *trap) Permit(who port.Principal, action parley.Action, on port.Resource) error {
	if on.Session == p.id && action == parley.ActMessage {
		panic("a bug")
	}
	return p.Rules.Permit(who, action, on)
}

// TestAPanicStaysInItsSession checks that a panic anywhere in the engine
// affects one session only.
func TestAPanicStaysInItsSession(t *testing.T) {
	rules := &trap{}
	r := newRig(t, func(c *Config) { c.Access = rules })
	bad, good := r.open(), r.open()
	rules.id = bad
	for range 2 {
		if _, err := r.try(bad, parley.RenameSession{Title: "x"}); err == nil {
			t.Error("no error")
		}
	}
	r.say(good, "say fine")
	r.finished(good, 1)
}
