package storetest

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// A life is a session that grows one batch at a time, through the same
// decisions as in the engine.
type life struct {
	f     *fixture
	state parley.State
	at    time.Time
}

// born opens a session. With a parent, it is the session of a sub-agent.
func (f *fixture) born(id parley.SessionID, owner parley.PrincipalID, at time.Time, parent *parley.Origin) *life {
	l := &life{f: f, state: parley.NewState(tenant, id), at: at}
	e := parley.Event{Session: id, Seq: 1, Root: id, At: at, By: owner,
		Body: parley.SessionOpened{Owner: owner, Parent: parent}}
	if parent != nil {
		e.Root = parent.Session
	}
	l.append([]parley.Event{e})
	return l
}

func (l *life) append(events []parley.Event) {
	l.f.t.Helper()
	after := l.state.Head
	for _, e := range events {
		l.state = parley.Fold(l.state, e)
	}
	l.f.mustAppend(port.Batch{Tenant: tenant, Session: l.state.ID, Epoch: 1, After: after, Events: events,
		Summary: port.SummaryOf(l.state), Parent: l.state.Parent})
}

// take commits the events that an input leads to, and those that follow from them.
func (l *life) take(in parley.In) {
	l.f.t.Helper()
	events, err := parley.Decide(l.state, in)
	if err != nil {
		l.f.t.Fatalf("%+v: %v", in, err)
	}
	state := l.state
	for more := events; len(more) > 0; {
		for _, e := range more {
			state = parley.Fold(state, e)
		}
		if more, err = parley.Decide(state, parley.Report{At: l.at, Body: parley.Advance{}}); err != nil {
			l.f.t.Fatal(err)
		}
		events = append(events, more...)
	}
	l.append(events)
}

func (l *life) do(do parley.CommandBody) {
	l.f.t.Helper()
	l.at = l.at.Add(time.Second)
	l.take(parley.Command{Tenant: tenant, Session: l.state.ID, By: l.state.Owner, At: l.at, Do: do})
}

func (l *life) say(request string) {
	l.f.t.Helper()
	l.do(parley.SubmitInput{Content: "do it", Request: request, Agent: parley.AgentRef{Name: "helper"}})
}

// model ends the model's turn with the given calls.
func (l *life) model(calls ...parley.CallAsked) {
	l.f.t.Helper()
	l.at = l.at.Add(time.Second)
	l.take(parley.Report{At: l.at, Run: l.state.Run.ID, Turn: l.state.Run.Turn.ID,
		Body: parley.ModelEnded{Stop: parley.StopEnd,
			Usage: parley.Usage{Input: 3, Output: 2, Cached: 1}, Calls: calls}})
}

func (l *life) tool(call parley.CallID, body parley.ReportBody) {
	l.f.t.Helper()
	l.at = l.at.Add(time.Second)
	l.take(parley.Report{At: l.at, Run: l.state.Run.ID, Call: call, Body: body})
}

func (l *life) asks(kind parley.VerdictKind) parley.CallAsked {
	return parley.CallAsked{Name: "tool", Arguments: `{"x":"é"}`, Expires: l.at.Add(time.Hour),
		Verdict: parley.Verdict{Kind: kind, Class: parley.Effectful,
			Show: "rm -rf é", Digest: "d",
			Questions: []parley.Question{{Question: "Which?", Options: []parley.Option{{Label: "this"}}}}}}
}

func (f *fixture) runs(q port.RunQuery) []port.RunInfo {
	f.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	list, err := f.Tenant(tenant).Runs(context.Background(), q)
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

func (f *fixture) cards(q port.CardQuery) []port.CardInfo {
	f.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	list, err := f.Tenant(tenant).Cards(context.Background(), q)
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// runsAreRows checks that the list of runs agrees with the logs.
func runsAreRows(t *testing.T, f *fixture) {
	ann := f.born(ID(1), "ann", t0, nil)
	ann.say("r1")
	first := port.RunInfo{Session: ID(1), Root: ID(1), Run: ann.state.Run.ID, Agent: "helper", Owner: "ann",
		Request: "r1", StartedAt: ann.at}
	same := func(what string, got []port.RunInfo, want ...port.RunInfo) {
		t.Helper()
		if len(got) == 0 && len(want) == 0 {
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
		}
	}
	same("a run that goes on", f.runs(port.RunQuery{}), first)
	ann.model(ann.asks(parley.VerdictAsk))
	first.Waiting = true
	same("one that waits", f.runs(port.RunQuery{}), first)

	parent := &parley.Origin{Session: ID(1), Run: first.Run, Call: ann.state.Run.Calls[0].ID, Depth: 1}
	bob := f.born(ID(2), "bob", t0.Add(time.Minute), parent)
	bob.say("r2")
	child := port.RunInfo{Session: ID(2), Root: ID(1), Run: bob.state.Run.ID, Agent: "helper", Owner: "bob",
		Parent: parent, Request: "r2", StartedAt: bob.at}
	same("two", f.runs(port.RunQuery{}), child, first)

	ann.do(parley.DecideApproval{Card: ann.state.Run.Calls[0].Card, Decision: parley.AllowOnce})
	ann.tool(ann.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallSucceeded, Result: "done"})
	ann.model()
	first.Waiting, first.Outcome, first.Usage, first.EndedAt = false, parley.Completed,
		parley.Usage{Input: 6, Output: 4, Cached: 2}, ann.at
	ann.at = ann.at.Add(time.Hour)
	ann.say("r3")
	ann.take(parley.Report{At: ann.at, Run: ann.state.Run.ID, Turn: ann.state.Run.Turn.ID,
		Body: parley.ModelFailed{Code: parley.CodeModel, Message: "It \x00 would not."}})
	failed := port.RunInfo{Session: ID(1), Root: ID(1), Run: f.runs(port.RunQuery{Limit: 1})[0].Run,
		Agent: "helper", Owner: "ann", Request: "r3", Outcome: parley.Failed,
		Code: parley.CodeModel, Message: "It \x00 would not.", StartedAt: ann.at, EndedAt: ann.at}

	f.reopen()
	for what, c := range map[string]struct {
		q    port.RunQuery
		want []port.RunInfo
	}{
		"all":               {port.RunQuery{}, []port.RunInfo{failed, child, first}},
		"the newest":        {port.RunQuery{Limit: 2}, []port.RunInfo{failed, child}},
		"older ones":        {port.RunQuery{Before: child.StartedAt}, []port.RunInfo{first}},
		"one's own":         {port.RunQuery{Owner: "ann"}, []port.RunInfo{failed, first}},
		"own older ones":    {port.RunQuery{Owner: "ann", Before: failed.StartedAt}, []port.RunInfo{first}},
		"open ones":         {port.RunQuery{Open: true}, []port.RunInfo{child}},
		"own open ones":     {port.RunQuery{Owner: "ann", Open: true}, nil},
		"of a session":      {port.RunQuery{Session: ID(1)}, []port.RunInfo{failed, first}},
		"open of a session": {port.RunQuery{Session: ID(2), Open: true}, []port.RunInfo{child}},
		"another's session": {port.RunQuery{Session: ID(1), Owner: "bob"}, nil},
		"one":               {port.RunQuery{Session: ID(1), Run: first.Run}, []port.RunInfo{first}},
		"none":              {port.RunQuery{Session: ID(2), Run: first.Run + 1}, nil},
		"children": {port.RunQuery{Parent: &parley.Origin{Session: ID(1), Run: first.Run}},
			[]port.RunInfo{child}},
		"children of none":   {port.RunQuery{Parent: &parley.Origin{Session: ID(1), Run: failed.Run}}, nil},
		"of an agent":        {port.RunQuery{Agent: "helper", Owner: "ann"}, []port.RunInfo{failed, first}},
		"of another agent":   {port.RunQuery{Agent: "help"}, nil},
		"nobody's":           {port.RunQuery{Owner: "eve"}, nil},
		"of no such session": {port.RunQuery{Session: ID(9)}, nil},
	} {
		same(what, f.runs(c.q), c.want...)
	}
	if list, err := f.Tenant("rival").Runs(context.Background(), port.RunQuery{Limit: 10}); err != nil ||
		len(list) > 0 {
		t.Errorf("another tenant: %+v, %v", list, err)
	}

	fenced := batch(ID(1), ann.state.Head+5, 1)
	fenced.Events[0].Body = parley.RunStarted{Agent: parley.AgentRef{Name: "zombie"}}
	if !f.append(fenced).Fenced {
		t.Fatal("not fenced")
	}
	same("after a fenced append", f.runs(port.RunQuery{}), failed, child, first)
	bob.do(parley.DeleteSession{})
	same("after a session was deleted", f.runs(port.RunQuery{}), failed, first)
}

// cardsAreRows checks that a card is listed for as long as it waits for a person.
func cardsAreRows(t *testing.T, f *fixture) {
	ann, bob := f.born(ID(1), "ann", t0, nil), f.born(ID(2), "bob", t0.Add(time.Minute), nil)
	ann.say("r1")
	bob.say("r2")
	ann.model(ann.asks(parley.VerdictAsk), ann.asks(parley.VerdictCard), ann.asks(parley.VerdictRun))
	bob.model(bob.asks(parley.VerdictAsk))
	call := func(i int) parley.Call { return ann.state.Run.Calls[i] }
	card := func(kind parley.CardKind, seq parley.Seq, c parley.Call) port.CardInfo {
		info := port.CardInfo{Kind: kind, Session: ID(1), Root: ID(1), Run: ann.state.Run.ID, Seq: seq, Call: c.ID,
			Agent: "helper", Owner: "ann",
			Tool: "tool", Arguments: `{"x":"é"}`, AskedAt: ann.at, Expires: c.Expires,
			Position: f.log(ID(1))[seq-1].Position}
		switch kind {
		case parley.CardApproval:
			info.Show, info.Digest = "rm -rf é", "d"
		case parley.CardQuestion:
			info.Questions = []parley.Question{{Question: "Which?", Options: []parley.Option{{Label: "this"}}}}
		}
		return info
	}
	approval := card(parley.CardApproval, parley.Seq(call(0).Card), call(0))
	question := card(parley.CardQuestion, parley.Seq(call(1).Card), call(1))
	theirs := f.cards(port.CardQuery{Owner: "bob"})
	if len(theirs) != 1 || theirs[0].Session != ID(2) || theirs[0].Kind != parley.CardApproval {
		t.Fatalf("%+v", theirs)
	}
	ann.at = ann.at.Add(2 * time.Minute)
	ann.take(parley.Report{At: ann.at, Body: parley.Recover{}})
	lost := card(parley.CardCall, parley.Seq(call(2).ID), call(2))
	lost.Expires = time.Time{}

	f.reopen()
	same := func(what string, q port.CardQuery, want ...port.CardInfo) {
		t.Helper()
		if got := f.cards(q); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
		}
	}
	same("all, longest first", port.CardQuery{}, approval, question, theirs[0], lost)
	same("some", port.CardQuery{Limit: 2}, approval, question)
	same("one's own", port.CardQuery{Owner: "ann"}, approval, question, lost)
	same("approvals", port.CardQuery{Kind: parley.CardApproval}, approval, theirs[0])
	same("own questions", port.CardQuery{Owner: "ann", Kind: parley.CardQuestion}, question)
	same("calls", port.CardQuery{Kind: parley.CardCall}, lost)
	same("of a session", port.CardQuery{Session: ID(2)}, theirs[0])
	same("of another's session", port.CardQuery{Session: ID(2), Owner: "ann"})
	same("of a tree", port.CardQuery{Root: ID(1)}, approval, question, lost)
	same("of another's tree", port.CardQuery{Root: ID(2), Owner: "ann"})
	if list, err := f.Tenant("rival").Cards(context.Background(), port.CardQuery{Limit: 10}); err != nil ||
		len(list) > 0 {
		t.Errorf("another tenant: %+v, %v", list, err)
	}

	ann.do(parley.DecideApproval{Card: parley.CardID(approval.Seq), Decision: parley.Deny})
	same("after a decision", port.CardQuery{Owner: "ann"}, question, lost)
	ann.do(parley.AnswerQuestion{Card: parley.CardID(question.Seq), Answers: [][]string{{"this"}}})
	same("after an answer", port.CardQuery{Owner: "ann"}, lost)
	ann.do(parley.ResolveToolCall{Call: lost.Call, Resolution: parley.MarkDone})
	same("after a resolution", port.CardQuery{}, theirs[0])
	ann.model(ann.asks(parley.VerdictAsk), ann.asks(parley.VerdictRun))
	ann.take(parley.Report{At: ann.at, Body: parley.Recover{}})
	if got := f.cards(port.CardQuery{Session: ID(1)}); len(got) != 2 {
		t.Errorf("%+v", got)
	}
	ann.do(parley.CancelRun{})
	same("after a cancel", port.CardQuery{}, theirs[0])
	bob.do(parley.DeleteSession{})
	same("after a session was deleted", port.CardQuery{})

	// The list of cards is limited in bytes, as pages of a log are.
	ann.say("r3")
	large := ann.asks(parley.VerdictAsk)
	large.Verdict.Show = string(make([]byte, rules.PageBytes/4))
	ann.model(large, large, large, large, large, large)
	if got := f.cards(port.CardQuery{}); len(got) == 0 || len(got) == 6 {
		t.Errorf("%d large cards are shown at once", len(got))
	}
}

// plansAreRows checks that a proposed plan is listed until a person decides it, even after its run.
func plansAreRows(t *testing.T, f *fixture) {
	ann, bob := f.born(ID(1), "ann", t0, nil), f.born(ID(2), "bob", t0.Add(time.Minute), nil)
	propose := func(l *life, title string) {
		t.Helper()
		l.do(parley.SubmitInput{Content: "plan it", Mode: parley.ModePlan, Agent: parley.AgentRef{Name: "helper"}})
		call := l.asks(parley.VerdictPlan)
		call.Verdict.Plan = parley.PlanUpdate{Items: []parley.PlanItem{{Title: title}}}
		l.model(call)
		l.model()
	}
	titles := func(q port.CardQuery) (list []string) {
		t.Helper()
		for _, c := range f.cards(q) {
			if c.Plan == nil || c.Agent != "helper" || c.Root != c.Session || c.Kind != parley.CardPlan {
				t.Fatalf("%+v", c)
			}
			list = append(list, string(c.Owner)+": "+c.Plan.Items[0].Title)
		}
		return list
	}
	plans := port.CardQuery{Kind: parley.CardPlan}
	same := func(what string, q port.CardQuery, want ...string) {
		t.Helper()
		if got := titles(q); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", what, got, want)
		}
	}
	propose(ann, "one")
	propose(bob, "two")
	f.reopen()
	same("all", plans, "ann: one", "bob: two")
	same("one's own", port.CardQuery{Kind: parley.CardPlan, Owner: "bob"}, "bob: two")
	same("of a session", port.CardQuery{Kind: parley.CardPlan, Session: ID(1)}, "ann: one")
	if cards := f.cards(port.CardQuery{}); len(cards) > 0 {
		t.Errorf("plans are listed as cards of runs: %+v", cards)
	}
	propose(ann, "another")
	same("after another proposal", plans, "ann: another", "bob: two")
	bob.do(parley.DecidePlan{Decision: parley.EditPlan, Text: "two, slowly"})
	same("after an edit", plans, "ann: another", "bob: two")
	bob.do(parley.DecidePlan{Decision: parley.RejectPlan})
	same("after a rejection", plans, "ann: another")
	ann.do(parley.DecidePlan{Decision: parley.ApprovePlan, Agent: parley.AgentRef{Name: "helper"}})
	same("after an approval", plans)
	propose(bob, "three")
	bob.do(parley.DeleteSession{})
	same("after a session was deleted", plans)
}

// untilSomethingWaits cuts a log off at the last place where a card waits for a person, if there is one.
func untilSomethingWaits(log []parley.Event) []parley.Event {
	state, last := parley.NewState(tenant, ID(0)), len(log)
	for i, e := range log {
		state = parley.Fold(state, e)
		if state.Status() == parley.StatusWaiting {
			last = i + 1
		}
	}
	return log[:last]
}

// Rederived appends logs of random sessions. Then it lets a store delete its rows of runs and cards and derive them
// again from the stored events, as an upgrade does. The rows must be the same.
func Rederived(t *testing.T, store port.Store, logs [][]parley.Event, relearn func()) {
	t.Helper()
	ctx := context.Background()
	for i, log := range logs {
		if i%2 == 0 { // in most sessions, every card is answered
			log = untilSomethingWaits(log)
		}
		state := parley.NewState(tenant, ID(i))
		for j := range log {
			log[j].Session, log[j].Root = ID(i), ID(i)
			if opened, ok := log[j].Body.(parley.SessionOpened); ok && i > 0 && i%3 == 0 {
				opened.Parent = &parley.Origin{Session: ID(i - 1), Run: 3, Call: 7, Depth: 1}
				log[j].Body = opened
			}
			if i%3 == 0 && i > 0 {
				log[j].Root = ID(i - 1)
			}
			state = parley.Fold(state, log[j])
		}
		res, err := store.Append(ctx, port.Batch{Tenant: tenant, Session: ID(i), Epoch: 1, Events: log,
			Summary: port.SummaryOf(state), Parent: state.Parent})
		if err != nil || res.Fenced {
			t.Fatal(res, err)
		}
	}
	rows := func() (runs []port.RunInfo, cards []port.CardInfo) {
		runs, err := store.Tenant(tenant).Runs(ctx, port.RunQuery{Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if cards, err = store.Tenant(tenant).Cards(ctx, port.CardQuery{Limit: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		return runs, cards
	}
	used := func() []port.UsageRow {
		list, err := store.Tenant(tenant).Usage(ctx, port.UsageQuery{First: "0000", Last: "9999", Limit: 1 << 20})
		if err != nil || len(list) == 0 {
			t.Fatal(list, err)
		}
		return list
	}
	runs, cards := rows()
	usage := used()
	children := 0
	for _, r := range runs {
		if r.Parent != nil {
			children++
		}
	}
	kinds := map[parley.CardKind]int{}
	for _, c := range cards {
		kinds[c.Kind]++
	}
	if len(runs) < 10 || len(kinds) < 3 || children == 0 {
		t.Fatalf("only %d runs, cards %v, %d runs of children: the logs show too little", len(runs), kinds, children)
	}
	relearn()
	againRuns, againCards := rows()
	if !reflect.DeepEqual(againRuns, runs) {
		t.Errorf("runs were\n%+v\nand are\n%+v", runs, againRuns)
	}
	if again := used(); !reflect.DeepEqual(again, usage) {
		t.Errorf("usage was\n%+v\nand is\n%+v", usage, again)
	}
	if !reflect.DeepEqual(againCards, cards) {
		t.Errorf("cards were\n%+v\nand are\n%+v", cards, againCards)
	}
}
