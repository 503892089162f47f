package engine

import (
	"context"
	"testing"

	"parley"
	"parley/port"
)

// TestRunAndCardListPermissions checks that lists of runs and cards
// follow the permissions of their sessions.
func TestRunAndCardListPermissions(t *testing.T) { onEveryStore(t, runsAndCards) }

func runsAndCards(t *testing.T, open func() port.Store) {
	r := newRig(t)
	r.stop(true)
	r.reopen = open
	r.start()
	bob, eve := member("bob", parley.RoleStandardUser), member("eve", parley.RoleStandardUser)
	ctx := context.Background()
	theirs := parley.SessionID("22222222-2222-4222-8222-00000000000a")
	if code := r.as(bob, theirs, parley.SubmitInput{Open: true, Content: "call write x; call ask y",
		Request: "bob's"}); code != "" {
		t.Fatal(code)
	}
	r.until(theirs, "bob is asked", seen[parley.QuestionAsked](1))
	mine := r.open()
	r.say(mine, "say hello")
	r.finished(mine, 1)
	for _, c := range []struct {
		who         port.Principal
		session     parley.SessionID
		runs, cards int
		code        parley.Code
	}{
		{bob, "", 1, 2, ""},
		{eve, "", 0, 0, ""},
		{ann, "", 2, 2, ""}, // an administrator may see all
		{ann, theirs, 1, 2, ""},
		{ann, mine, 1, 0, ""},
		{bob, theirs, 1, 2, ""},
		{bob, mine, 0, 0, parley.CodeNotFound},
		{eve, theirs, 0, 0, parley.CodeNotFound},
		{member("mia", "king"), "", 0, 0, parley.CodeForbidden},
	} {
		runs, err := r.Runs(ctx, c.who, port.RunQuery{Session: c.session})
		if codeOf(err) != c.code || len(runs) != c.runs {
			t.Errorf("%s sees the runs %+v of %q, %v", c.who.ID, runs, c.session, err)
		}
		cards, err := r.Cards(ctx, c.who, port.CardQuery{Session: c.session})
		if codeOf(err) != c.code || len(cards) != c.cards {
			t.Errorf("%s sees the cards %+v of %q, %v", c.who.ID, cards, c.session, err)
		}
		if c.session != "" {
			if _, err := r.Runs(ctx, c.who,
				port.RunQuery{Parent: &parley.Origin{Session: c.session, Run: 3}}); codeOf(err) != c.code {
				t.Errorf("%s looks for children in %q: %v", c.who.ID, c.session, err)
			}
		}
	}
	runs, err := r.Runs(ctx, bob, port.RunQuery{Open: true})
	if err != nil || len(runs) != 1 || !runs[0].Waiting || runs[0].Request != "bob's" || runs[0].Agent != "puppet" {
		t.Fatalf("%+v, %v", runs, err)
	}
	if code := r.as(bob, theirs, parley.CancelRun{Run: runs[0].Run}); code != "" {
		t.Error(code)
	}
	cards, err := r.Cards(ctx, bob, port.CardQuery{})
	if err != nil || len(cards) > 0 {
		t.Errorf("%+v, %v", cards, err)
	}
	runs, err = r.Runs(ctx, bob, port.RunQuery{})
	if err != nil || len(runs) != 1 || runs[0].Outcome != parley.Cancelled || runs[0].Waiting ||
		runs[0].EndedAt.IsZero() {
		t.Errorf("%+v, %v", runs, err)
	}
}
