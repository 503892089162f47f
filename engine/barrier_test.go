package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/access"
	"parley/checker"
	"parley/feed"
	"parley/port"
	"parley/provider"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
	"parley/store/sqlite"
)

// TestOneFireForTwoSchedulers checks that only one of two engines fires a
// timer. Both find the timer due and decide that it fires before either may
// commit. On PostgreSQL they are two nodes with connections of their own. On
// SQLite the lock on the folder refuses a second process, so they are two
// engines on one store, with actors and epochs of their own. It tries 100
// timers (20 with -short); PARLEY_BARRIER=2000 is a long run.
func TestOneFireForTwoSchedulers(t *testing.T) {
	n := 100
	if testing.Short() {
		n = 20
	}
	if s := os.Getenv("PARLEY_BARRIER"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 1 {
			t.Fatalf("PARLEY_BARRIER=%s is no number of times", s)
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		store, err := sqlite.Open(context.Background(), t.TempDir(), "a test")
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		oneFire(t, n, store, store)
	})
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Database(t)
		var stores []port.Store
		for range 2 {
			store, err := postgres.Open(context.Background(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			stores = append(stores, store)
		}
		oneFire(t, n, stores...)
	})
}

func oneFire(t *testing.T, n int, stores ...port.Store) {
	begin := time.Now().Add(-time.Hour)
	ids := make([]parley.SessionID, n)
	for i := range ids {
		ids[i] = parley.SessionID(fmt.Sprintf("22222222-2222-4222-8222-%012x", i))
		promised(t, stores[0], ids[i], begin.Add(time.Duration(i)*time.Millisecond))
	}
	b := &barrier{patience: time.Minute, wanted: n, handed: map[parley.SessionID]bool{},
		fires: map[parley.SessionID]chan struct{}{}, done: make(chan struct{}), gone: make(chan struct{})}
	var engines []*Engine
	for _, store := range stores {
		log := slog.New(slog.DiscardHandler)
		f := feed.New(store)
		defer f.Close(t.Context())
		e := New(Config{Store: &contested{store, b}, Feed: f, Access: access.Rules{},
			Project: Project{Agents: agents{}, Tools: &hands{}}, Log: log,
			Now: time.Now, Model: provider.Patient(&puppet{}, log),
			Autonomy: parley.Autonomy{Enabled: true, MaxConsecutive: 3, CooldownMS: 15000, MaxFollowUps: 10},
			Retry:    time.Hour})
		e.Start()
		engines = append(engines, e)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	select {
	case <-b.done:
	case <-ctx.Done():
		t.Errorf("not every run has ended")
	}
	close(b.gone)
	for _, e := range engines {
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	if b.met != n || b.fenced != n || b.again != 0 || b.alone != 0 {
		t.Errorf("of %d timers %d were contested, by %d losers; %d were fired again and %d by one who waited in vain",
			n, b.met, b.fenced, b.again, b.alone)
	}
	for _, id := range ids {
		log, err := stores[0].Tenant(acme).Events(context.Background(), id, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range append(checker.Check(log), checker.Settled(log)...) {
			t.Error(err)
		}
		if fired, said, runs := len(all[parley.TimerFired](log)), len(unaskedInputs(log)),
			len(all[parley.RunFinished](log)); fired != 1 || said != 1 || runs != 2 {
			t.Fatalf("%d fired, %d were said, %d runs:\n%s", fired, said, runs, story(log))
		}
	}
}

// promised appends a session with a follow-up that is due a second later.
func promised(t *testing.T, store port.Store, id parley.SessionID, at time.Time) {
	t.Helper()
	at = at.UTC().Truncate(time.Microsecond)
	state, log := parley.NewState(acme, id), []parley.Event(nil)
	add := func(events []parley.Event, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			state, log = parley.Fold(state, e), append(log, e)
		}
	}
	advance := func() {
		t.Helper()
		for head := parley.Seq(-1); head != state.Head; {
			head = state.Head
			add(parley.Decide(state, parley.Report{At: at, Body: parley.Advance{}}))
		}
	}
	command := func(do parley.CommandBody) {
		t.Helper()
		add(parley.Decide(state, parley.Command{Tenant: acme, Session: id, By: ann.ID, At: at, Do: do}))
		advance()
	}
	model := func(ended parley.ModelEnded) {
		t.Helper()
		add(parley.Decide(state, parley.Report{At: at, Run: state.Run.ID, Turn: state.Run.Turn.ID, Body: ended}))
		advance()
	}
	agent := parley.AgentRef{Name: "puppet", Autonomy: parley.Autonomy{Enabled: true, MaxConsecutive: 3,
		CooldownMS: 15000, MaxFollowUps: 10}}
	command(parley.OpenSession{})
	command(parley.SubmitInput{Content: "say hello", Agent: agent})
	model(parley.ModelEnded{Stop: parley.StopTools,
		Calls: []parley.CallAsked{{Name: "schedule_follow_up", Arguments: "{}",
			Verdict: parley.Verdict{Kind: parley.VerdictFollowUp,
				Class: parley.Idempotent, FollowUp: parley.FollowUp{Delay: time.Second, Reason: "because",
					Message: "say here"}}}}})
	model(parley.ModelEnded{Stop: parley.StopEnd})
	due := dueChange(state, nil, false)
	if due.Clear || due.Reason != "timer" {
		t.Fatalf("due %+v", due)
	}
	if res, err := store.Append(context.Background(), port.Batch{Tenant: acme, Session: id, Epoch: 1, Events: log,
		Summary: port.SummaryOf(state), Due: &due, Leave: true}); err != nil || res.Fenced {
		t.Fatal(res, err)
	}
}

// A barrier makes two engines do the same thing at the same time.
type barrier struct {
	patience time.Duration
	wanted   int // number of runs that have to end

	mu     sync.Mutex // guards the following; leaf
	handed map[parley.SessionID]bool
	round  *round // in which one engine waits for the other
	fires  map[parley.SessionID]chan struct{}
	ended  int

	met, fenced, again, alone int

	done chan struct{} // every run has ended
	gone chan struct{} // the test is over
}

// A round is one list of due sessions that both engines get.
type round struct {
	ready chan struct{}
	due   []port.DueSession
	err   error
}

// contested is the store as one of the engines uses it.
type contested struct {
	port.Store
	b *barrier
}

func (c *contested) DueBefore(ctx context.Context, now time.Time, limit int) ([]port.DueSession, time.Time, error) {
	b := c.b
	b.mu.Lock()
	r := b.round
	if r == nil { // the first engine waits, and the second one reads
		r = &round{ready: make(chan struct{})}
		b.round = r
		b.mu.Unlock()
		select {
		case <-r.ready:
		case <-ctx.Done():
		case <-b.gone:
		}
		return r.due, time.Time{}, r.err
	}
	defer b.mu.Unlock()
	var due []port.DueSession
	due, _, r.err = c.Store.DueBefore(ctx, now, 10*wakeAtOnce)
	for _, d := range due {
		if !b.handed[d.Session] && len(r.due) < wakeAtOnce {
			b.handed[d.Session] = true
			r.due = append(r.due, d)
		}
	}
	b.round = nil
	close(r.ready)
	return r.due, time.Time{}, r.err
}

func (c *contested) Append(ctx context.Context, batch port.Batch) (port.Appended, error) {
	b := c.b
	fires := len(all[parley.TimerFired](batch.Events)) > 0
	if fires {
		b.meet(batch.Session)
	}
	res, err := c.Store.Append(ctx, batch)
	b.mu.Lock()
	defer b.mu.Unlock()
	if fires && err == nil && res.Fenced {
		b.fenced++
	}
	if ends := len(all[parley.RunFinished](batch.Events)); ends > 0 && err == nil && !res.Fenced {
		if b.ended += ends; b.ended == b.wanted {
			close(b.done)
		}
	}
	return res, err
}

// meet returns when both engines are about to commit that the session's timer
// fires.
func (b *barrier) meet(id parley.SessionID) {
	b.mu.Lock()
	other, there := b.fires[id]
	switch {
	case !there:
		other = make(chan struct{})
		b.fires[id] = other
	case other == nil:
		b.again++
	default:
		b.fires[id] = nil
		b.met++
		close(other)
	}
	b.mu.Unlock()
	if there {
		return
	}
	select {
	case <-other:
	case <-time.After(b.patience):
		b.mu.Lock()
		b.alone++
		b.mu.Unlock()
	}
}
