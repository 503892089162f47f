package parley_test

import (
	"fmt"
	"reflect"
	"testing"

	"parley"
	"parley/checker"
)

func TestCustomAgentFacts(t *testing.T) {
	a := newTenantTale(t)
	agent := func(name, text string) parley.MakeAgent {
		return parley.MakeAgent{Agent: parley.Agent{Name: name, Instructions: text}}
	}
	for _, name := range []string{"b", "c", "a"} {
		a.do(agent(name, "x"))
	}
	a.do(agent("b", "y"))
	a.do(agent("b", "y"))
	a.do(parley.DeleteAgent{Agent: "c"})
	a.expect("SessionOpened AgentChanged AgentChanged AgentChanged AgentChanged AgentChanged")
	want := []parley.AgentVersion{{Name: "a", Digest: agent("a", "x").Agent.Digest()},
		{Name: "b", Digest: agent("b", "y").Agent.Digest()}}
	if !reflect.DeepEqual(a.state.Facts.Made, want) {
		t.Errorf("%+v", a.state.Facts.Made)
	}
	// NoteAgents leads to events, but the engine reads agent files itself.
	a.do(parley.NoteAgents{Agents: []parley.AgentVersion{{Name: "a"}, {Name: "z", Digest: "d"}}})
	if !reflect.DeepEqual(a.state.Facts.Made, want) {
		t.Errorf("%+v", a.state.Facts.Made)
	}
	if err := a.try(parley.DeleteAgent{Agent: "c"}); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("%v", err)
	}
	s, ok := a.state.Snapshot()
	if back, good := s.State(); !ok || !good || !reflect.DeepEqual(back, a.state) {
		t.Errorf("%+v was read back as %+v", a.state, back)
	}
	a.do(parley.DeleteAgent{Agent: "a"})
	a.do(parley.DeleteAgent{Agent: "b"})
	if a.state.Facts.Made != nil {
		t.Errorf("%+v", a.state.Facts.Made)
	}
	for i := range 100 {
		a.do(agent(fmt.Sprint("n", i), "x"))
	}
	if err := a.try(agent("one-more", "x")); parley.CodeOf(err) != parley.CodeLimited {
		t.Errorf("%v", err)
	}
	a.do(agent("n7", "changed"))
	for _, err := range checker.Check(a.log) {
		t.Error(err)
	}
}
