package engine

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// TestARequestIsBuiltAgain checks that a reader is shown the request that the model got, and is told what has changed
// since.
func TestARequestIsBuiltAgain(t *testing.T) {
	r := newRig(t, screened)
	ctx := context.Background()
	asked := make(chan port.ModelRequest, 9)
	r.puppet.seen = func(q port.ModelRequest) { asked <- q }
	bob, id := member("bob", parley.RoleStandardUser), parley.SessionID("22222222-2222-4222-8222-0000000000aa")
	if code := r.as(bob, id, parley.SubmitInput{Content: "think hm; call read x | say done", Open: true}); code != "" {
		t.Fatal(code)
	}
	log := r.finished(id, 1)
	if code := r.as(bob, id, parley.SubmitInput{Content: "say more"}); code != "" {
		t.Fatal(code)
	}
	run := parley.RunID(seqOf[parley.RunStarted](log, 1))
	later := parley.RunID(seqOf[parley.RunStarted](r.finished(id, 2), 2))
	show := func(who port.Principal, run parley.RunID, number int) port.TurnRequest {
		t.Helper()
		shown, err := r.TurnRequest(ctx, who, id, run, number)
		if err != nil {
			t.Fatal(err)
		}
		return shown
	}
	for _, turn := range []struct {
		run    parley.RunID
		number int
	}{{run, 1}, {run, 2}, {later, 1}} {
		was := <-asked
		was.Instructions, _, _ = strings.Cut(was.Instructions, "\n\n[") // the canary is for the model only
		shown := show(ann, turn.run, turn.number)
		if !reflect.DeepEqual(shown.ModelRequest, was) {
			t.Errorf("turn %v:\nshown %+v\nasked %+v", turn, shown.ModelRequest, was)
		}
		if shown.Then != shown.Now || shown.Redefined || shown.Hidden ||
			shown.Agent != "puppet" {
			t.Errorf("turn %v: %+v", turn, shown)
		}
	}
	if shown := show(bob, run, 1); shown.Instructions != "" || !shown.Hidden || len(shown.Messages) != 1 {
		t.Errorf("to a user who may not change agents: %+v", shown)
	}
	if err := r.SetContext(ctx, bob, "", "puppet", "Bob plays the oboe.", parley.ViaHTTP); err != nil {
		t.Fatal(err)
	}
	if shown := show(ann, run, 2); shown.Then.Instructions == shown.Now.Instructions ||
		shown.Then.Tools != shown.Now.Tools {
		t.Errorf("the instructions have changed since, the tools have not: %+v", shown)
	}
	for _, none := range []struct {
		who    port.Principal
		run    parley.RunID
		number int
	}{{ann, run, 3}, {ann, run, 0}, {ann, run + 1, 1}, {member("eve", parley.RoleStandardUser), run, 1}} {
		if shown, err := r.TurnRequest(ctx, none.who, id, none.run, none.number); parley.CodeOf(err) !=
			parley.CodeNotFound || err == nil || shown.Messages != nil {
			t.Errorf("%+v: %+v, %v", none, shown, err)
		}
	}
}
