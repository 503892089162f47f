package a2a

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
)

// events returns the events that a view shows of a log.
func events(v View, log []parley.Event) (list []event) {
	for _, e := range log {
		var shown []dialect.Frame
		v, shown = Project(v, e)
		for _, f := range shown {
			list = append(list, f.Body.(event))
		}
	}
	return list
}

// ofTask returns the events of one task, as a client receives them.
func ofTask(list []event, input parley.InputID) (texts []string) {
	for _, e := range list {
		if e.of == input {
			texts = append(texts, string(dialect.Encode(e)))
		}
	}
	return texts
}

// TestATaskIsTheSameFromItsBeginning: a client that follows a task from its input gets the same events as a client that
// follows the session from its beginning. The events add up to the same task.
func TestATaskIsTheSameFromItsBeginning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyTree(t)
		v := View{Session: log[0].Session, shape: rapid.SampledFrom([]shape{v1, v03}).Draw(t, "version")}
		all := events(v, log)
		for i, e := range log {
			if _, ok := e.Body.(parley.InputReceived); !ok || e.Session != log[0].Session {
				continue
			}
			input := parley.InputID(e.Seq)
			want, got := ofTask(all, input), ofTask(events(v, log[i:]), input)
			if !slices.Equal(want, got) {
				t.Fatalf("the task of seq %d is shown as\n%q\nand from its input on as\n%q", e.Seq, want, got)
			}
			ends(t, all, input)
		}
	})
}

// ends checks that a task begins with a task event, that nothing follows its end, and that its text is the sum of its
// chunks.
func ends(t *rapid.T, all []event, input parley.InputID) {
	var sum task
	text, over := "", false
	for n, e := range slices.DeleteFunc(slices.Clone(all), func(e event) bool { return e.of != input }) {
		switch {
		case over:
			t.Fatalf("%s follows the end of its task", dialect.Encode(e))
		case (n == 0) != (e.task != nil):
			t.Fatalf("event %d of a task is %s", n, dialect.Encode(e))
		case e.artifact != nil:
			text += *e.artifact.Artifact.Parts[0].Text
		}
		sum.apply(e)
		over = e.state.terminal()
	}
	if text != "" && *sum.Artifacts[0].Parts[0].Text != text {
		t.Fatalf("the pieces are %q, the task has %s", text, dialect.Encode(sum))
	}
}

// TestAWaitingTaskNamesItsCards: the state of a task names exactly the open cards of the session and its sub-agents.
func TestAWaitingTaskNamesItsCards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyTree(t)
		v := View{Session: log[0].Session, shape: v1}
		var last status
		for _, e := range log {
			var shown []dialect.Frame
			v, shown = Project(v, e)
			for _, f := range shown {
				if s := f.Body.(event).status; s != nil && f.Body.(event).of == v.task {
					last = s.Status
				}
			}
			if v.run == 0 {
				continue
			}
			var ids []string
			for _, c := range v.cards() {
				ids = append(ids, c.ID)
			}
			if got := named(last); !slices.Equal(got, ids) {
				t.Fatalf("after position %d the task names %v, open are %v", e.Position, got, ids)
			}
		}
	})
}

func named(s status) (ids []string) {
	if s.State != v1.state(inputRequired) {
		return nil
	}
	for _, p := range s.Message.Parts[1:] {
		var card struct{ ID string }
		if json.Unmarshal(dialect.Encode(p.Data), &card) == nil {
			ids = append(ids, card.ID)
		}
	}
	return ids
}
