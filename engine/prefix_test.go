package engine

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"parley"
	"parley/checker"
	"parley/port"
)

// TestPrefixes treats every prefix of the logs of all scripts as a crash,
// although not all of them could happen. Each becomes a session of its own in
// one store. An engine that starts on the store must settle all of them,
// without changing existing events and without breaking an invariant. With
// -short it is every fourth prefix.
func TestPrefixes(t *testing.T) { onEveryStore(t, prefixes) }

func prefixes(t *testing.T, open func() port.Store) {
	r := newRig(t, forward, func(c *Config) { c.Changes = &notebook{} })
	logs := map[string][]parley.Event{}
	for _, s := range scripts {
		id := r.open()
		s.play(r, id)
		r.check(id)
		logs[s.name] = r.log(id)
		for _, err := range checker.Settled(logs[s.name]) {
			t.Errorf("%s: %v", s.name, err)
		}
	}

	crashed := &rig{t: t, config: r.config, reopen: open}
	store := open()
	prefixes := map[parley.SessionID][]parley.Event{}
	names := map[parley.SessionID]string{}
	every := 1
	if testing.Short() {
		every = 4
	}
	for name, log := range logs {
		for n := 1; n <= len(log); n += every {
			id := parley.SessionID(fmt.Sprintf("22222222-2222-4222-8222-%012x", len(prefixes)))
			prefixes[id] = importLog(t, store, id, log[:n])
			names[id] = fmt.Sprintf("%s, cut after %d %s", name, n, parley.TypeOf(log[n-1].Body))
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d scripts, %d prefixes", len(scripts), len(prefixes))

	crashed.noHang = true
	crashed.start()
	defer crashed.stop(true)
	crashed.settled(prefixes)
	started := map[string]int{}
	for id, prefix := range prefixes {
		log := crashed.log(id)
		if len(log) < len(prefix) || !reflect.DeepEqual(log[:len(prefix)], prefix) {
			t.Errorf("%s: what was stored has changed", names[id])
		}
		for _, err := range append(checker.Check(log), checker.Settled(log)...) {
			t.Errorf("%s: %v\n%s", names[id], err, story(log))
		}
		calls := map[parley.CallID]string{}
		for i, e := range log {
			switch b := e.Body.(type) {
			case parley.ToolCallRequested:
				calls[parley.CallID(e.Seq)] = b.Name
			case parley.ToolCallStarted:
				if i >= len(prefix) {
					started[calls[b.Call]]++
				}
			}
		}
	}
	// The calls that the log says were started were really carried out.
	for _, name := range []string{"do", "write", "put", "read", "hangdo"} {
		if got := crashed.hands.count(name); got != started[name] {
			t.Errorf("%s was performed %d times and started %d times", name, got, started[name])
		}
	}
}

// importLog stores a log under another id, as if a process had written it and
// died.
func importLog(t testing.TB, store port.Store, id parley.SessionID, log []parley.Event) []parley.Event {
	t.Helper()
	var agent *parley.Agent
	for _, in := range all[parley.InputReceived](log) {
		a, _ := agents{}.Agent(acme, in.Agent.Name)
		a = parley.State{}.Facts.Effective().Complete(a)
		var c Config
		forward(&c)
		a.Autonomy = a.Autonomy.Within(c.Autonomy)
		agent = &a
	}
	state := parley.NewState(acme, id)
	events := make([]parley.Event, len(log))
	for i, e := range log {
		e.Session, e.Root = id, id
		state = parley.Fold(state, e)
		events[i] = e
	}
	due := dueChange(state, nil, true)
	res, err := store.Append(context.Background(), port.Batch{Tenant: acme, Session: id, Epoch: 1, Events: events,
		Summary: port.SummaryOf(state), Agent: agent, Due: &due})
	if err != nil || res.Fenced {
		t.Fatal(res, err)
	}
	for i := range events {
		events[i].Position = res.Positions[i]
	}
	return events
}

// settled follows the tenant until all these sessions have settled.
func (r *rig) settled(sessions map[parley.SessionID][]parley.Event) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	f, err := r.Follow(ctx, ann, port.Scope{}, port.Beginning)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	states := map[parley.SessionID]parley.State{}
	busy := map[parley.SessionID]bool{}
	for id := range sessions {
		states[id] = parley.NewState(acme, id)
		busy[id] = true
	}
	for len(busy) > 0 {
		items, err := f.Next(ctx)
		if err != nil {
			for id := range busy {
				r.t.Errorf("never settled:\n%s", story(r.log(id)))
			}
			r.t.Fatal(err)
		}
		for _, i := range items {
			s := parley.Fold(states[i.Session], i.Event)
			states[i.Session] = s
			due, ok := s.Due()
			if delete(busy, i.Session); ok && (due.Reason == "run" || due.Reason == "timer" &&
				due.At.Before(time.Now().Add(time.Minute))) || int(s.Head) < len(sessions[i.Session]) {
				busy[i.Session] = true
			}
		}
	}
}
